"""Work that any host may take, but none has taken, or whose host is lost: the sender takes it back or sends it again.

==========================================  ==========================================================================
no host has claimed it for long             the sender claims it itself, so that no host begins it any more; it ends
                                            UNDELIVERED. If another host's claim was first, that host has the work
its host is lost, `on_loss = "wait"`        it waits for that host
its host is lost, `on_loss = "again"`       it is sent again in a further round, which a host claims like the first.
                                            Later reports of the lost host do not count, and it gets a cancel; what
                                            it has done until then is done twice
==========================================  ==========================================================================

A host is lost if, by this host's own clock (`host_record.Liveness`), its record did not change for `lost_after`.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog

from synapsed.clock import Ages, Clock
from synapsed.interfaces import Store
from synapsed.model.external import KEY as EXTERNAL
from synapsed.model.external import is_any
from synapsed.model.task import Task
from synapsed.tasks import transitions
from synapsed_fleet import receipts
from synapsed_fleet.audit import ROUND_ATTEMPTS
from synapsed_fleet.class_work import ClaimVerdict, Working
from synapsed_fleet.fleet_config import FleetWork
from synapsed_fleet.fleet_rows import FleetChange, OutRow, WorkCandidate, carried_by_fleet
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.incoming import Incoming
from synapsed_fleet.outgoing import Speaker, work_class

EVERY_S: Final = 30.0

log = structlog.stdlib.get_logger("synapsed.fleet")


class StrandedWork:
    """Finds stranded work; `look` is called regularly. `idle_for` returns the seconds since the last sign of life of a
    host, None if not known."""

    def __init__(
        self,
        *,
        me: Speaker,
        store: Store,
        table: FleetTable,
        incoming: Incoming,
        working: Working,
        clock: Clock,
        config: FleetWork,
        idle_for: Callable[[str], float | None],
        due: Callable[[], None],
    ) -> None:
        self._me = me
        self._store = store
        self._table = table
        self._incoming = incoming
        self._working = working
        self._clock = clock
        self._ages = Ages(clock)
        self._config = config
        self._idle_for = idle_for
        self._due = due

    async def look(self) -> None:
        """Looks at all open work for any host. Raises NoBroker, NotMet."""
        for task in await self._store.open_tasks():
            if carried_by_fleet(task) and is_any(task.agent_id):
                await self._look_at(task)

    async def _look_at(self, task: Task) -> None:
        host = _host_of(task)
        if host is None and self._age(task) >= self._config.unclaimed_after:
            await self._take_back(task)
        elif host is not None and self._config.on_loss == "again":
            idle = self._idle_for(host)
            if idle is not None and idle >= self._config.lost_after and receipts.round_of(task) < receipts.ROUNDS_MAX:
                await self._again(task.id, host)

    def _age(self, task: Task) -> float:
        return self._ages.of(task.id, datetime.fromisoformat(task.created_at).timestamp())

    async def _take_back(self, task: Task) -> None:
        work = WorkCandidate(src=self._me.name, id=task.id, cls="", round=receipts.round_of(task), body="")
        if await self._working.claim(work) is not ClaimVerdict.OURS:
            return  # a host has it, and will report; or that is not known now
        async with self._incoming.lock(task.id):
            now = await self._store.task(task.id)
            if now is None or now.terminal or _host_of(now) is not None:
                return
            commit = transitions.failed(
                now,
                code="UNDELIVERED",
                message=f"no host of the fleet has taken it for {self._config.unclaimed_after / 3600:.1f} hours; "
                "it was taken back, and is done nowhere",
                now=self._clock.wall(),
            )
            change = FleetChange(closed=((now.id, 0, work_class(now.agent_id, now.priority)),))
            await self._table.commit(commit.task, change, events=commit.events, turn_ended=commit.turn_ended)

    async def _again(self, task_id: str, host: str) -> None:
        async with self._incoming.lock(task_id):
            now = await self._store.task(task_id)
            if now is None or now.terminal or _host_of(now) != host:
                return
            round_ = receipts.round_of(now) + 1
            metadata = {
                key: value for key, value in now.metadata[EXTERNAL].items() if key not in ("host", "task_id", "n")
            }
            metadata |= {"round": round_, "lost": [*receipts.lost_with(now), host][-receipts.ROUNDS_MAX :]}
            after = now.model_copy(update={"metadata": {**now.metadata, EXTERNAL: metadata}})
            row = OutRow(
                id=now.id,
                dst=work_class(now.agent_id, now.priority),
                kind="work",
                task_id=now.id,
                attempt=round_ * ROUND_ATTEMPTS,
            )
            await self._table.commit(after, FleetChange(put=(row,)))
        log.warning("work is sent again, since its host is lost: it may be done twice", task=task_id, host=host)
        self._due()


def _host_of(task: Task) -> str | None:
    host = (task.metadata.get(EXTERNAL) or {}).get("host")
    return host if isinstance(host, str) else None
