"""All that is done by itself, as one part of the daemon."""

import asyncio
from collections.abc import Mapping
from typing import Self

from synapsed.automation.scheduler import Scheduler
from synapsed.automation.zones import LocalZone
from synapsed.clock import Clock
from synapsed.config import Config
from synapsed.interfaces import Control
from synapsed.store import SqliteStore

__all__ = ["Automation"]


class Automation:
    """Life: `restore`, `start` once the agents are there, …, `close` before they go."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler

    @classmethod
    def of(cls, control: Control, store: SqliteStore, *, clock: Clock, environ: Mapping[str, str]) -> Self:
        """Call it in the running event loop."""
        timers = asyncio.get_running_loop()
        return cls(Scheduler(control=control, book=store, clock=clock, timers=timers, zone=LocalZone(environ)))

    async def restore(self, config: Config) -> None:
        await self.scheduler.restore(config.schedule)

    def start(self) -> None:
        self.scheduler.start()

    def reconfigure(self, config: Config) -> None:
        """The configuration was read again."""
        self.scheduler.reconfigure(config.schedule)

    async def close(self) -> None:
        """May be called again."""
        await self.scheduler.close()
