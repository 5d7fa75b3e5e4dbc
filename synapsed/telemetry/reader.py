"""Reads the log for those who look at lives of tasks: event by event, each with its task's life up to there."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from synapsed.interfaces import EventLog
from synapsed.model.events import Event, TaskStatusChanged
from synapsed.telemetry.task_lives import TYPES, Life, Lives, Period, ToolLife, begins

BATCH = 200
"""Events that are looked at before other work has its turn."""


@dataclass(frozen=True, slots=True)
class News:
    """`life` is None for an event of no task, and for one told after its task's end. `fresh`: the task begins."""

    event: Event
    life: Life | None
    ended: list[Period | ToolLife]
    fresh: bool = False


class LogReader:
    """`cursor` is the id of the last event that was given."""

    def __init__(self, log: EventLog, cursor: int) -> None:
        self._log = log
        self._lives = Lives()
        self.cursor = cursor

    async def news(self) -> AsyncGenerator[News]:
        """What was written up to now. Raises StoreError; nothing is lost by that, nor by leaving in the middle."""
        upto = self._log.last_id
        while batch := await self._log.read(self.cursor, limit=BATCH, types=TYPES):
            for event in batch:
                news = await self._look(event)
                self.cursor = event.id
                yield news
            await asyncio.sleep(0)
        self.cursor = max(self.cursor, upto)

    async def _look(self, event: Event) -> News:
        if event.task_id is None:
            return News(event, None, [])
        fresh = begins(event)
        if not fresh and not self._lives.knows(event.task_id):
            await self._recall(event.task_id, event.id)
            if not isinstance(event.data, TaskStatusChanged) and not self._lives.knows(event.task_id):
                return News(event, None, [])
        life, ended = self._lives.take(event.task_id, event)
        return News(event, life, ended, fresh)

    async def _recall(self, task_id: str, before: int) -> None:
        """Take what is told of the task before `before`: that was somebody else's news."""
        cursor = 0
        while batch := await self._log.read(cursor, task_id=task_id, limit=BATCH, types=TYPES):
            for event in batch:
                if event.id >= before:
                    return
                self._lives.take(task_id, event)
            cursor = batch[-1].id
