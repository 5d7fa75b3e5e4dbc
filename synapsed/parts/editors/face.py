"""Agents as sessions in editors that speak the Agent Client Protocol, by the verb `acp`.

In `ctl`, `wire` is JSON-RPC in lines, `shapes` validates requests, `content` converts messages, `tools`, `turn` and
`asking` make updates about an agent's work; all of these are pure. `session` decides on requests of an editor and
events of the daemon; `server` performs that, with `daemon_calls` for waiting calls.
"""

from synapsed.kernel import Face

FACE = Face(name="editors")
"""Description of this part for the daemon, which reads it without loading the part's code."""
