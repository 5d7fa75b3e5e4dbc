"""Follows the event log, and gives each event together with the history of its task up to then (its `Life`: periods and
tool calls)."""

from dataclasses import dataclass

from synapsed.interfaces import EventFilter, EventLog
from synapsed.model.events import Event, TaskStatusChanged
from synapsed.parts.telemetry.task_lives import TYPES, Life, Lives, Period, ToolLife, begins
from synapsed.store.follower import Follower

BATCH = 200
"""Events of a task's past that are read at a time."""


@dataclass(frozen=True, slots=True)
class EventWithLife:
    """An event, with the history of its task."""

    event: Event
    life: Life | None
    """None if the event belongs to no task, or comes after the task's end."""
    ended: list[Period | ToolLife]
    """Periods and tool calls that ended with this event."""
    fresh: bool = False
    """True if the task begins with this event."""


class LifeFollower(Follower):
    """Follows the log, and calls `on_event` for each event with its task's history."""

    wants = EventFilter(types=TYPES)

    def __init__(self, events: EventLog) -> None:
        super().__init__(events)
        self.cursor = events.last_id
        self._lives = Lives()

    async def restore(self) -> None:
        self._lives = Lives()

    async def handle(self, event: Event) -> None:
        await self.on_event(await self._life_of(event))

    async def on_event(self, entry: EventWithLife) -> None:
        raise NotImplementedError

    async def _life_of(self, event: Event) -> EventWithLife:
        if event.task_id is None:
            return EventWithLife(event, None, [])
        fresh = begins(event)
        if not fresh and not self._lives.knows(event.task_id):
            await self._recall(event.task_id, event.id)
            if not isinstance(event.data, TaskStatusChanged) and not self._lives.knows(event.task_id):
                return EventWithLife(event, None, [])
        life, ended = self._lives.apply(event.task_id, event)
        return EventWithLife(event, life, ended, fresh)

    async def _recall(self, task_id: str, before: int) -> None:
        """Applies the earlier events of the task, up to `before`, which this reader has not seen."""
        cursor = 0
        while batch := await self._events.read(cursor, task_id=task_id, limit=BATCH, types=TYPES):
            for event in batch:
                if event.id >= before:
                    return
                self._lives.apply(task_id, event)
            cursor = batch[-1].id
