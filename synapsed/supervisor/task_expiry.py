"""Removes old tasks with all their data, in the store and in the agents' inboxes, step by step. After a recent change
of the clock, nothing is removed for its age."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from synapsed.agents import message_files
from synapsed.aio import Timers, pause
from synapsed.clock import Clock, iso
from synapsed.config.config import Keep
from synapsed.errors import StoreError
from synapsed.store.store import SqliteStore
from synapsed.tasks.prompt_text import SHORT_ID

EVERY_S = 600.0
"""Seconds of pause between two cleanups."""

STEP_PAUSE_S = 0.02
"""Seconds of pause between two steps: ten times the length of a step, so that the writer is mostly free for others."""

LEAST_AGE_S = 3600.0
"""Seconds after its end in which a task stays, even if there are too many: its client may be about to ask for it."""

DAY_S = 86_400.0

VACUUM_PAGES = 32
"""Pages of the database file that are given back in one step."""

log = structlog.stdlib.get_logger("synapsed.retention")


class Retention:
    """Removes old tasks by the limits `keep`. `inbox` returns an agent's inbox folder."""

    def __init__(
        self, store: SqliteStore, keep: Keep, *, inbox: Callable[[str], Path], clock: Clock, timers: Timers
    ) -> None:
        self._store = store
        self._keep = keep
        self._inbox = inbox
        self._clock = clock
        self._timers = timers

    async def run(self) -> None:
        """Cleans up again and again, until it is cancelled."""
        while True:
            try:
                await self.tidy()
            except StoreError as error:
                if error.details.get("reason") == "closed":
                    return
                log.warning("old tasks stay for now", error=error.message)
            await pause(self._timers, EVERY_S)

    async def tidy(self) -> int:
        """Removes all tasks that are due; returns their number."""
        now, settled = self._clock.wall(), self._clock.settled()
        cut = await self._store.find_cut(
            keep=self._keep.tasks,
            oldest=iso(settled - self._keep.days * DAY_S) if self._keep.days and settled is not None else None,
            newest=iso(now - LEAST_AGE_S),
        )
        removed = 0
        while cut is not None:
            step = await self._store.prune(cut)
            await self._forget(step.tasks)
            removed += len(step.tasks)
            if step.rows == 0:
                break
            await pause(self._timers, STEP_PAUSE_S)
        while await self._store.shrink(VACUUM_PAGES):
            await pause(self._timers, STEP_PAUSE_S)
        if removed:
            log.info("old tasks removed", tasks=removed)
        return removed

    async def _forget(self, tasks: Sequence[tuple[str, str]]) -> None:
        """Removes the tasks' files, which are named by the beginning of the task's id, which another task may share."""
        files: dict[str, set[str]] = {}
        for task_id, agent_id in tasks:
            if not await self._store.find_tasks(task_id[:SHORT_ID], 1):
                files.setdefault(agent_id, set()).add(task_id)
        for agent_id, gone in files.items():
            try:
                await asyncio.to_thread(message_files.forget, self._inbox(agent_id), gone)
            except OSError as error:
                log.warning("files of old tasks stay", agent=agent_id, error=str(error))
