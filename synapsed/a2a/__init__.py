"""A2A on our own engine: the only room that imports the A2A SDK, for its types alone (docs/adr/0004).

- `card`: an agent's card, as data; needs no SDK. `host`: what the host says of all of them.
- `convert`: the Task of `synapsed.model` to the SDK's types and back.
- `errors`: A2A's errors in both bindings' forms, and which of ours they are. `version`: what a request speaks.
- `operations`: what the methods do, on `Tasks`; `methods` is the one table of them, `params` reads their requests.
- `jsonrpc`, `rest`: the bindings, which dispatch by that table; `endpoint_types` is what they give back.
- `extensions`: those of ours, what activates them and what their metadata means.
- `endpoints`: all of it, wired.

All but `card`, `errors`, `extensions`, `host`, `endpoint_types` and `version` import the SDK, which takes its time:
`synapsed.api.a2a_loading` loads them when they are first asked for.
"""
