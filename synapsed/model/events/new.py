"""An event before it is in the log."""

from dataclasses import dataclass
from typing import Self

from synapsed.model.events.stored import EventData
from synapsed.model.task import Task


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be appended; its id is given by the log."""

    agent_id: str
    """Empty for what concerns none."""
    data: EventData
    task_id: str | None = None
    context_id: str | None = None
    """The conversation that it belongs to."""

    @classmethod
    def of(cls, task: Task, data: EventData) -> Self:
        """An event of the task."""
        return cls(task.agent_id, data, task.id, task.context_id)
