"""Ends the work for a host that was removed from the fleet, and does not begin what it has sent.

A host counts as removed if its certificate is revoked and its record was gone from the broker for a minute: a host that
is invited again, and whose new certificate is not here yet, still has its record.
"""

import asyncio
from contextlib import suppress
from typing import Final

import structlog

from synapsed.clock import Clock
from synapsed.errors import SynapsedError
from synapsed.interfaces import Store, Tasks
from synapsed.model.external import KEY as EXTERNAL
from synapsed.model.task import Task, TaskState
from synapsed.tasks import transitions
from synapsed_fleet import streams
from synapsed_fleet.fleet_rows import FleetChange, FleetOrigin, carried_by_fleet
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.incoming import Incoming
from synapsed_fleet.names import record
from synapsed_fleet.peer_certificates import Peers
from synapsed_fleet.ports import Broker

SURE_S: Final = 60.0

log = structlog.stdlib.get_logger("synapsed.fleet")


class RemovedHosts:
    """Finds removed hosts; `look` is called regularly."""

    def __init__(
        self,
        *,
        own: str,
        store: Store,
        table: FleetTable,
        tasks: Tasks,
        incoming: Incoming,
        peers: Peers,
        broker: Broker,
        clock: Clock,
    ) -> None:
        self._own = own
        self._store = store
        self._table = table
        self._tasks = tasks
        self._incoming = incoming
        self._peers = peers
        self._broker = broker
        self._clock = clock
        self._token = ""
        """The fleet's token with which `_revoked` was found: each revocation changes the token."""
        self._revoked: dict[str, str] = {}
        self._since: dict[str, float] = {}

    async def look(self) -> None:
        """Looks for removed hosts, and ends their work. Raises NoBroker, BrokerRefused."""
        if (token := self._peers.trust.account_token) != self._token:
            self._revoked, self._token = await asyncio.to_thread(self._peers.revoking()), token
        for host, jwt in list(self._revoked.items()):
            if host == self._own or not self._peers.has(host, jwt):  # it has another certificate by now
                del self._revoked[host]
                self._since.pop(host, None)
                continue
            now = self._clock.monotonic()
            if await self._broker.last(streams.HOSTS, record(host)) is not None:
                self._since.pop(host, None)
            elif now - self._since.setdefault(host, now) >= SURE_S:
                await self._end(host)

    async def _end(self, host: str) -> None:
        if host not in self._peers.gone:
            self._peers.gone.add(host)
            log.warning("a host was removed from the fleet: what was under way to it ends", host=host)
            for task in await self._store.open_tasks():
                if _is_at(task, host):
                    await self._fail(task.id, host)
                elif _is_of(task, host) and task.status is TaskState.SUBMITTED:
                    with suppress(SynapsedError):  # it has just begun, or ended
                        await self._tasks.cancel(task.id)
        while rows := await self._table.open_rows(dst=host):  # with updates of its own tasks
            for row in rows:
                if row.kind == "msg":  # it was sent in the meantime
                    await self._fail(row.task_id, host)
            await self._table.change(FleetChange(closed=tuple((row.id, row.n, row.dst) for row in rows)))

    async def _fail(self, task_id: str, host: str) -> None:
        async with self._incoming.lock(task_id):
            task = await self._store.task(task_id)
            if task is None or task.terminal or not _is_at(task, host):
                return
            row = await self._table.row(task_id)
            never = row is not None and row.state == "new" and row.attempt == 0
            had = "it never had the message" if never else "whether its agent has done anything cannot be told"
            commit = transitions.failed(
                task,
                code="UNDELIVERED",
                message=f"{host} was removed from the fleet: {had}",
                now=self._clock.wall(),
            )
            change = FleetChange(given_up=(task_id,))
            await self._table.commit(commit.task, change, events=commit.events, turn_ended=commit.turn_ended)


def _is_at(task: Task, host: str) -> bool:
    return carried_by_fleet(task) and (task.metadata.get(EXTERNAL) or {}).get("host") == host


def _is_of(task: Task, host: str) -> bool:
    origin = FleetOrigin.of(task.metadata)
    return origin is not None and origin.src == host
