"""Reads the event log for modules that need task lives: gives them each event with its task's life up to that event."""

from dataclasses import dataclass

from synapsed.interfaces import EventFilter, EventLog
from synapsed.model.events import Event, TaskStatusChanged
from synapsed.parts.telemetry.task_lives import TYPES, Life, Lives, Period, ToolLife, begins
from synapsed.store.follower import Follower

BATCH = 200
"""Events of a task's past that are read at a time."""


@dataclass(frozen=True, slots=True)
class News:
    """An event and its task. `life` is None for an event without a task, and for one after its task's end. `fresh`: the
    task begins."""

    event: Event
    life: Life | None
    ended: list[Period | ToolLife]
    fresh: bool = False


class LifeFollower(Follower):
    """Follows the log with the lives of its tasks."""

    wants = EventFilter(types=TYPES)

    def __init__(self, events: EventLog) -> None:
        super().__init__(events)
        self.cursor = events.last_id
        self._lives = Lives()

    async def restore(self) -> None:
        self._lives = Lives()

    async def handle(self, event: Event) -> None:
        await self.on_news(await self._life_of(event))

    async def on_news(self, news: News) -> None:
        raise NotImplementedError

    async def _life_of(self, event: Event) -> News:
        if event.task_id is None:
            return News(event, None, [])
        fresh = begins(event)
        if not fresh and not self._lives.knows(event.task_id):
            await self._recall(event.task_id, event.id)
            if not isinstance(event.data, TaskStatusChanged) and not self._lives.knows(event.task_id):
                return News(event, None, [])
        life, ended = self._lives.apply(event.task_id, event)
        return News(event, life, ended, fresh)

    async def _recall(self, task_id: str, before: int) -> None:
        """Applies the earlier events of the task, up to `before`, which this reader has not seen."""
        cursor = 0
        while batch := await self._events.read(cursor, task_id=task_id, limit=BATCH, types=TYPES):
            for event in batch:
                if event.id >= before:
                    return
                self._lives.apply(task_id, event)
            cursor = batch[-1].id
