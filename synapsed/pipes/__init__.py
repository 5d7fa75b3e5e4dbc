"""Programs without a terminal, which speak the Agent Client Protocol on pipes.

`rpc` reads JSON-RPC from the lines of the output, `speech` has the text of a turn and its outcome, `permission_request`
the questions of the program. `acp_session` decides by all of them; `transcript` draws what a person sees in a terminal.
These modules are pure, and so is `pty.channel_turn`, which decides about a task's turn; `acp_link` does what they
decide, by a keeper.
"""

__all__: list[str] = []
