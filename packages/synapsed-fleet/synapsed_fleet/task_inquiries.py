"""Asks other hosts, on connecting and every ten minutes, about tasks that they have received and not reported on. A
host sends the updates again, or reports that it does not know the tasks."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from synapsed.clock import Clock
from synapsed.interfaces import Store
from synapsed.model.external import KEY as EXTERNAL
from synapsed_fleet import receipts
from synapsed_fleet.envelope import encoded
from synapsed_fleet.fleet_rows import carried_by_fleet
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.names import MailKind
from synapsed_fleet.outgoing import Outgoing
from synapsed_fleet.ports import NoBroker
from synapsed_fleet.wakeup import Bell

EVERY_S: Final = 600.0
AT_ONCE: Final = 200
"""Most tasks in one request."""
AGAIN_S: Final = 60.0
"""Seconds before the same task is asked for again."""
LATER_S: Final = 5.0
"""Seconds until a request that the broker does not take is sent again: the connected brokers may have no leader yet."""

log = structlog.stdlib.get_logger("synapsed.fleet")


class TaskInquiries:
    """Asks about tasks; `run` does so whenever `bell` rings."""

    def __init__(
        self, *, store: Store, table: FleetTable, outgoing: Outgoing, clock: Clock, later_s: float = LATER_S
    ) -> None:
        self._store = store
        self._table = table
        self._outgoing = outgoing
        self._clock = clock
        self._later_s = later_s
        self._asked_at: dict[str, float] = {}

    async def run(self, bell: Bell, wait_up: Callable[[], Awaitable[None]]) -> None:
        while True:
            await bell.wait(EVERY_S)
            await wait_up()
            try:
                await self.ask()
            except NoBroker as error:
                log.debug("hosts are asked later what became of tasks", why=str(error))
                bell.set()
                await asyncio.sleep(self._later_s)

    async def ask(self) -> None:
        """Asks all hosts about their silent tasks. Raises NoBroker."""
        for host, tasks in (await self._silent()).items():
            for begin in range(0, len(tasks), AT_ONCE):
                some = tasks[begin : begin + AT_ONCE]
                await self._outgoing.say(host, MailKind.CONTROL, encoded(receipts.tell_body(some)))
                now = self._clock.monotonic()
                self._asked_at |= dict.fromkeys(some, now)

    async def _silent(self) -> dict[str, list[str]]:
        """Returns open tasks that their hosts have received, by host, without those that were asked for just now."""
        now = self._clock.monotonic()
        found: dict[str, list[str]] = {}
        open_ = [task for task in await self._store.open_tasks() if carried_by_fleet(task)]
        self._asked_at = {task.id: self._asked_at[task.id] for task in open_ if task.id in self._asked_at}
        for task in open_:
            host = (task.metadata.get(EXTERNAL) or {}).get("host")
            if host is None or now - self._asked_at.get(task.id, -AGAIN_S) < AGAIN_S:
                continue
            if await self._table.row(task.id) is None:
                found.setdefault(host, []).append(task.id)
        return found
