"""Programs without a terminal, which speak the Agent Client Protocol on pipes.

`rpc` is JSON-RPC in lines of the spool, `speech` what a turn said and how it ended, `permission_request` what it asks,
and `acp_session` what follows from all of it; `acp_turn` decides of a task's turn; `transcript` is what a person sees
of it in a terminal. These are pure; `acp_link` performs what they decide, over a keeper.
"""

__all__: list[str] = []
