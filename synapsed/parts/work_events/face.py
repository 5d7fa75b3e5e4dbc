"""Events of agents' work, that is, tool calls, plans, changed files, limits, usage of turns, and turns that a person
typed.

`tool_calls` tracks the begin and the end of calls, `shown_calls` finds the new ones on a screen; `reporting` follows
one agent.
"""

from synapsed.kernel import WITH_AGENTS, Face

FACE = Face(name="work_events", opens="synapsed.parts.work_events.reporting", wanted=WITH_AGENTS)
"""Description of this part for the daemon, which reads it without loading the part's code."""
