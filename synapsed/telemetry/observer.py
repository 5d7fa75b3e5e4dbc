"""What the event log tells of tasks, counted: the numbers behind the metrics that no room keeps.

The log is read when somebody asks, and every now and then, so that what is read at once stays small. Numbers begin at 0
with the daemon, as Prometheus expects of a counter; a turn that began before that has its whole length all the same,
because the beginning of a task that is met in the middle is read from the log.
"""

import asyncio
from collections import Counter
from collections.abc import Callable

from synapsed.interfaces import EventLog
from synapsed.model.events import Event
from synapsed.model.external import alias_of
from synapsed.model.figures import SLOW_S, Histogram
from synapsed.model.task import TaskState
from synapsed.telemetry.lives import TYPES, Life, Lives, Period, Stage, begins

__all__ = ["ELSEWHERE", "UNKNOWN", "Observer"]

ELSEWHERE = "external"
"""`profile` of tasks of agents elsewhere."""

UNKNOWN = "unknown"
"""`profile` of an agent that was gone before its tasks were counted."""

CODES_MAX = 100
"""Codes of errors that are told apart; an agent elsewhere may make up its own. Others are counted as OTHER."""

OTHER = "OTHER"

BATCH = 200
"""Events that are looked at before other work has its turn."""


class Observer:
    """`profile_of` gives the profile of an agent that there is."""

    def __init__(self, log: EventLog, *, profile_of: Callable[[str], str | None]) -> None:
        self._log = log
        self._profile_of = profile_of
        self._cursor = log.last_id
        self._lives = Lives()
        self._reading = asyncio.Lock()
        self.submitted: Counter[str] = Counter()
        self.ended: Counter[tuple[str, str]] = Counter()
        """By profile and state."""
        self.failed: Counter[tuple[str, str]] = Counter()
        """By profile and code."""
        self.periods: dict[tuple[Stage, str], Histogram] = {}
        """By stage and profile; of WHOLE only those of completed tasks."""

    async def catch_up(self) -> None:
        """Count what was written up to now. Raises StoreError."""
        async with self._reading:
            upto = self._log.last_id
            while batch := await self._log.read(self._cursor, limit=BATCH, types=TYPES):
                for event in batch:
                    await self._take(event)
                    self._cursor = event.id
                await asyncio.sleep(0)
            self._cursor = max(self._cursor, upto)

    async def _take(self, event: Event) -> None:
        if event.task_id is None:
            return
        fresh = begins(event)
        if not fresh and not self._lives.knows(event.task_id):
            await self._recall(event.task_id, event.id)
        life, ended = self._lives.take(event.task_id, event)
        if life.by_reply:
            return  # what it waits for is a task of its own
        profile = self._profile(life.agent_id)
        self.submitted[profile] += fresh
        for period in ended:
            self._count(life, period, profile)

    async def _recall(self, task_id: str, before: int) -> None:
        """Take what is told of the task before `before`, which an earlier daemon has counted."""
        cursor = 0
        while batch := await self._log.read(cursor, task_id=task_id, limit=BATCH, types=TYPES):
            for event in batch:
                if event.id >= before:
                    return
                self._lives.take(task_id, event)
            cursor = batch[-1].id

    def _count(self, life: Life, period: Period, profile: str) -> None:
        if period.stage is Stage.WHOLE:
            self.ended[profile, life.state.value] += 1
            if life.code is not None:
                self.failed[profile, self._code(life.code)] += 1
            if life.state is not TaskState.COMPLETED:
                return
        key = period.stage, profile
        if (histogram := self.periods.get(key)) is None:
            histogram = self.periods[key] = Histogram(SLOW_S)
        histogram.observe(period.seconds)

    def _code(self, code: str) -> str:
        known = {known for _, known in self.failed}
        return code if code in known or len(known) < CODES_MAX else OTHER

    def _profile(self, agent_id: str) -> str:
        if alias_of(agent_id) is not None:
            return ELSEWHERE
        return self._profile_of(agent_id) or UNKNOWN
