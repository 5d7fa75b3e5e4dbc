"""A2A on our own engine: the only room that imports the A2A SDK, for its types alone (docs/adr/0004).

- `card`: an agent's card, as data; needs no SDK. `host`: what the host says of all of them.
- `convert`: the Task of `synapsed.model` to the SDK's types and back.
- `errors`: A2A's errors, and which of ours they are.
- `operations`: what the methods do, on `Control`.
- `jsonrpc`: envelope, version, dispatch; `replies` is what it gives back.

All but `card`, `host` and `replies` import the SDK, which takes its time: `synapsed.api.sdk` loads them when they are
first asked for.
"""
