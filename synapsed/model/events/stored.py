"""Events as the log has them, including those that older programs wrote.

A row keeps its event's `type` beside the other fields. Some had other names before; they are read under their new ones,
and nothing is rewritten: the database of an older program is opened as it is, and that program can still read it.
"""

import json
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, TypeAdapter, ValidationError

from synapsed.model.events.kinds import REMOVED, AgentAlert, EventData
from synapsed.model.task import Task

_ADAPTER: TypeAdapter[EventData] = TypeAdapter(EventData)

OLD_TYPES = {
    "agentProcess": "agentState",
    "agentRemoved": "agentState",
    "agentActivity": "activity",
    "inputProvided": "inputAnswered",
}
"""Present type of each event type of older programs."""

_OLD_FIELDS: dict[str, dict[str, Any]] = {"agentRemoved": {"state": REMOVED}}
"""Fields that an older event implied by its type."""


class Event(BaseModel):
    """One row of the log, made by `model_construct` of parts that are valid already. `at` is seconds since the epoch;
    `agent_id` is empty if the event concerns no agent."""

    id: int
    at: float
    agent_id: str
    task_id: str | None
    context_id: str | None = None
    data: EventData


def parse_event(kept: str | dict[str, Any]) -> EventData:
    """Returns the event in a row's JSON, or in its document. An event that only a newer version understands is returned
    as an alert, so that readers can go past it."""
    try:
        return _ADAPTER.validate_json(kept) if isinstance(kept, str) else _ADAPTER.validate_python(kept)
    except ValidationError:
        told: dict[str, Any] = json.loads(kept) if isinstance(kept, str) else kept
    was = str(told.get("type"))
    try:
        return _ADAPTER.validate_python({**told, **_OLD_FIELDS.get(was, {}), "type": OLD_TYPES.get(was, was)})
    except ValidationError:
        message = f"a newer version of synapsed told of {was!r}"
        return AgentAlert(code="NEWER_EVENT", message=message, details=told)


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be appended; its id is given by the log."""

    agent_id: str
    """Empty if the event concerns no agent."""
    data: EventData
    task_id: str | None = None
    context_id: str | None = None
    """The conversation that it belongs to."""

    @classmethod
    def of(cls, task: Task, data: EventData) -> Self:
        return cls(task.agent_id, data, task.id, task.context_id)
