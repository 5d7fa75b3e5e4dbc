"""Events of agents' work: tool calls, plans, changed files, limits, what turns used, and turns that a person typed.

`tool_calls` says what began and ended, `shown_calls` which of those on a screen are new; `telling` follows one agent.
"""

from synapsed.kernel import Face

FACE = Face(name="work_events", opens="synapsed.parts.work_events.telling")
