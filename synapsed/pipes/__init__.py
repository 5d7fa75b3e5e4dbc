"""Programs without a terminal, which speak the Agent Client Protocol on pipes.

`rpc` is JSON-RPC in lines of the spool, `speech` what a turn said, `turn_outcome` how it ended, `permission_request`
what it asks, and `session` what follows from all of it; `transcript` is what a person sees of it in a terminal. These
are pure; `link` performs what they decide, over a keeper.
"""

__all__: list[str] = []
