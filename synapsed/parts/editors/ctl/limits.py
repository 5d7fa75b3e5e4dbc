"""Shows an editor the usage limit that keeps its prompts waiting. Pure."""

from datetime import datetime
from typing import Any, NamedTuple

from synapsed.parts.editors.ctl.content import id_for
from synapsed.shared.visible import visible

LIMITED = "limited"
"""An agent's activity while no message is given to its program."""

TITLE_MAX = 200


class UsageLimit(NamedTuple):
    """A usage limit: `words` are the program's, `until` the RFC 3339 time of its end, if that is known."""

    words: str
    until: str | None

    @property
    def call(self) -> str:
        return id_for("limit", self.words, self.until)


def limit_of(agent: dict[str, Any]) -> UsageLimit | None:
    """Returns the usage limit that the agent has reached, by its status; None if it has reached no limit."""
    if agent.get("activity") != LIMITED:
        return None
    return UsageLimit(str(agent.get("evidence", "")).removeprefix("limit: "), agent.get("until"))


def until(time: str) -> str:
    """Returns the time for a person, in the local time of this machine."""
    try:
        return f"until {datetime.fromisoformat(time).astimezone():%a %d %b %H:%M}"
    except ValueError:
        return f"until {time}"


def begins(limit: UsageLimit, name: str) -> dict[str, Any]:
    """Returns an update: prompts wait for the end of the limit."""
    end = until(limit.until) if limit.until else "until it can be tried again"
    words = f"{visible(limit.words)}\n\nThe message waits {end}. To try it now: synapsectl cancel {name}"
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": limit.call,
        "title": f"{name} has reached its usage limit: waits {end}"[:TITLE_MAX],
        "kind": "other",
        "status": "pending",
        "content": [{"type": "content", "content": {"type": "text", "text": words}}],
    }


def over(limit: UsageLimit) -> dict[str, Any]:
    """Returns an update that ends the one of `begins`."""
    return {"sessionUpdate": "tool_call_update", "toolCallId": limit.call, "status": "completed"}
