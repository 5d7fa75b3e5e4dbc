"""Events as clients get them: `{id, event, data, time, agent, task, context}`, on every transport the same."""

from typing import Any

from synapsed.clock import iso
from synapsed.model.events.base import Data
from synapsed.model.events.stored import Event

__all__ = ["envelope", "enveloped"]


def envelope(event: Event) -> dict[str, Any]:
    """The event of the log, for a client."""
    return enveloped(
        event.data,
        at=event.at,
        event_id=event.id,
        agent_id=event.agent_id or None,
        task_id=event.task_id,
        context_id=event.context_id,
    )


def enveloped(
    data: Data,
    *,
    at: float,
    event_id: int | None = None,
    agent_id: str | None = None,
    task_id: str | None = None,
    context_id: str | None = None,
) -> dict[str, Any]:
    """`at` is seconds since the epoch; `time` is RFC 3339 in UTC, as in the other answers."""
    return {
        "id": event_id,
        "event": data.type,
        "data": data.model_dump(mode="json", by_alias=True, exclude={"type"}),
        "time": iso(at),
        "agent": agent_id,
        "task": task_id,
        "context": context_id,
    }
