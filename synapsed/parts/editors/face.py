"""Agents as sessions in editors that speak the Agent Client Protocol, by the verb `acp`.

Of `ctl`, `wire` is JSON-RPC in lines, `shapes` what requests must look like, `content` messages in either form,
`tools`, `turn` and `asking` what is told of an agent's work; all of these are pure. `session` decides what follows from
what an editor or the daemon says; `server` performs that, with `daemon_calls` for whatever has to wait.
"""

from synapsed.kernel import Face

FACE = Face(name="editors")
