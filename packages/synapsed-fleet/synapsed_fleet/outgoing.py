"""Messages to other hosts: publishes rows of the outbox, sends receipts, and audits both.

Everything is saved before it is published, and only its receiver's receipt closes a row. So each of these steps may be
interrupted anywhere, and is then done again.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import structlog

from synapsed.clock import Clock
from synapsed.errors import SynapsedError
from synapsed.model.task import Task, new_id
from synapsed_fleet import receipts, streams
from synapsed_fleet.a2a_types import Shapes
from synapsed_fleet.audit import Ledger, is_lost
from synapsed_fleet.envelope import BODY_MAX, PARCELS, VERSION, Envelope, encoded
from synapsed_fleet.fleet_rows import InRow, OutRow
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.names import MailKind, MailSubject, WorkSubject, class_of
from synapsed_fleet.nkey import KeyPair
from synapsed_fleet.outbox import IN_FLIGHT, Pacing
from synapsed_fleet.parcel_sending import Parcels
from synapsed_fleet.ports import Broker, BrokerRefused, NoBroker, StreamFacts
from synapsed_fleet.signing import signed

BATCH: Final = 256
"""Rows that are read at one time."""
AUDITED: Final = 10_000
"""Most rows that one audit looks at."""
RECEIPTS: Final = 500
"""Most messages whose receipts are read at one time."""

log = structlog.stdlib.get_logger("synapsed.fleet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """Identity of this host: the fleet's id, its own name and key."""

    fleet: str
    name: str
    pair: KeyPair


class TaskReader(Protocol):
    """Interface that reads a task for its messages."""

    async def committed(self, task_id: str) -> Task | None:
        """Returns the task, no older than any row that was read before."""
        ...


class Outgoing:
    """Publishes rows and receipts. `publish`, `receipts` and `audit` are each called by one caller at a time; they
    raise NoBroker."""

    def __init__(
        self,
        *,
        me: Speaker,
        table: FleetTable,
        tasks: TaskReader,
        parcels: Parcels,
        broker: Broker,
        shapes: Shapes,
        clock: Clock,
        rng: Callable[[], float],
    ) -> None:
        self._me = me
        self._table = table
        self._tasks = tasks
        self._parcels = parcels
        self._broker = broker
        self._clock = clock
        self._rng = rng
        self._shapes = shapes
        self.pacing = Pacing()
        self._created: dict[str, str] = {}
        """Time when each stream was made to which this host publishes."""
        self._ledger = Ledger()
        self._auditing = asyncio.Lock()
        self._fresh: dict[str, list[int]] = {}
        """Places that were given since the last look, by stream and the time when that was made."""
        self.stuck: dict[str, str] = {}
        """Rows that the broker refuses, and why; shown by `status`."""

    # --- rows ---

    async def publish(self) -> bool:
        """Publishes rows that are due, oldest first; returns True if there were any."""
        try:
            return await self._publish()
        except NoBroker:
            self.pacing.broker_failed(self._clock.monotonic(), self._rng())
            raise

    async def _publish(self) -> bool:
        if not self._created:
            await self.audit()  # first: a restored stream shows by its end only until a host publishes to it
        now = self._clock.monotonic()
        rows = await self._table.due(1 if self.pacing.trying else BATCH, without=self.pacing.blocked(now))
        for name in {_stream_of(row) for row in rows} - self._created.keys():
            await self._know(name)  # before anything is published there: it may be made again at any time
        done, failed = await self._publish_rows(rows)
        if done:
            await self._table.piped(done)
            for row in done:
                self._ledger.piped(row, self.subject(row), self._clock.monotonic())
                self.pacing.worked(row.dst)
                self.stuck.pop(row.id, None)
            await self._look_back(done)
        if failed is not None:
            raise failed
        return bool(rows)

    async def _look_back(self, done: Sequence[OutRow]) -> None:
        """Publishes rows again whose places are beyond the present end of their stream."""
        fresh, self._fresh = self._fresh, {}
        for stream, places in fresh.items():
            if not self._ledger.went_back(stream, places):
                continue
            just = {(row.id, row.n) for row in done}
            gone = [
                row
                for row in await self._table.open_rows(state="piped", limit=AUDITED)
                if _made(_stream_of(row), row.stream) == stream and (row.id, row.n) not in just
            ]
            log.warning("an older copy of a stream was put back: what it has lost is published again", rows=len(gone))
            await self._table.again(gone)

    async def _publish_rows(self, rows: Sequence[OutRow]) -> tuple[list[OutRow], NoBroker | None]:
        """Returns the rows that were published, and the error that stopped the others."""
        done: list[OutRow] = []
        for begin in range(0, len(rows), IN_FLIGHT):
            some = rows[begin : begin + IN_FLIGHT]
            told = await asyncio.gather(*(self._publish_row(row) for row in some), return_exceptions=True)
            done += [one for one in told if isinstance(one, OutRow)]
            errors = [one for one in told if isinstance(one, BaseException)]
            for error in errors:
                if not isinstance(error, NoBroker):
                    raise error
                return done, error
        return done, None

    async def _publish_row(self, row: OutRow) -> OutRow | None:
        """Returns the row as it was published; None if the broker does not take it now."""
        envelope = await self._envelope(row)
        try:
            piped = await self._broker.publish(envelope)
        except BrokerRefused as error:
            self.pacing.refused(row.dst, self._clock.monotonic(), self._rng())
            self.stuck[row.id] = str(error)
            log.info("the broker takes no more for a host", host=row.dst, why=str(error))
            return None
        stream = self._created[_stream_of(row)]
        if not piped.copy:
            self._fresh.setdefault(_made(_stream_of(row), stream), []).append(piped.seq)
        return replace(row, state="piped", stream=stream, seq=piped.seq, attempt=envelope.attempt)

    async def _envelope(self, row: OutRow) -> Envelope:
        body = row.body.encode() if row.body is not None else await self._body(row)
        if len(body) > BODY_MAX:
            body = await self._parcels.refer(row, body)
        version = PARCELS if self._parcels.goes_with(row) else VERSION
        return self.sign(self.subject(row), row.wire, body, attempt=row.attempt + 1, version=version)

    async def _body(self, row: OutRow) -> bytes:
        """Returns the message about the row's task, as it is now."""
        task = await self._tasks.committed(row.task_id)
        if task is None:  # removed by its age: the waiting host learns of it when it asks again
            return encoded(receipts.GONE)
        files = await self._parcels.attach(row, receipts.files_of_task(task, answer=row.kind == "upd"))
        await self._shapes.ready()
        from synapsed_fleet import messages

        if row.kind == "upd":
            return await asyncio.to_thread(messages.update_body, task, files)
        try:
            return await asyncio.to_thread(messages.message_body, task, own_name=self._me.name, files=files)
        except SynapsedError as error:  # it was checked before it was taken
            raise AssertionError(error.message) from error

    def subject(self, row: OutRow) -> str:
        if row.kind == "work":
            return str(WorkSubject(row.dst.removeprefix("any:"), self._me.name))
        return str(MailSubject(row.dst, self._me.name, MailKind(row.kind)))

    def sign(self, subject: str, named: str, body: bytes, *, attempt: int = 1, version: str = VERSION) -> Envelope:
        said = Envelope(subject=subject, id=named, body=body, attempt=attempt, version=version)
        return signed(said, self._me.fleet, self._me.pair)

    async def say(self, dst: str, kind: MailKind, body: bytes) -> None:
        """Publishes a message that has no row, since its sender repeats it."""
        await self._broker.publish(self.sign(str(MailSubject(dst, self._me.name, kind)), new_id(), body))

    async def say_control(self, dst: str, document: Mapping[str, Any]) -> None:
        await self.say(dst, MailKind.CONTROL, encoded(document))

    # --- receipts ---

    async def receipts(self) -> bool:
        """Sends receipts for messages that were taken, to their hosts; returns True if there may be more."""
        owed = await self._table.owed(RECEIPTS)
        by_host: dict[str, list[InRow]] = {}
        for row in owed:
            by_host.setdefault(row.src, []).append(row)
        for host, rows in by_host.items():
            refused = {row.id: json.loads(row.refused) for row in rows if row.refused is not None}
            try:
                await self.say(host, MailKind.RECEIPT, receipts.receipt_body([_name(row) for row in rows], refused))
            except BrokerRefused as error:
                # Its mail is full. It publishes everything again that has no receipt, so no message is lost by this.
                log.info("a receipt is not taken", host=host, why=str(error))
            await self._table.receipted(rows)
        return len(owed) >= RECEIPTS

    # --- the audit ---

    async def audit(self) -> int:
        """Publishes rows again that the broker may have lost; returns their number."""
        async with self._auditing:
            return await self._audit()

    async def _audit(self) -> int:
        rows = await self._table.open_rows(state="piped", limit=AUDITED)
        facts = {name: await self._know(name) for name in {_stream_of(row) for row in rows}}
        now = self._clock.monotonic()
        if len(rows) < AUDITED:
            self._ledger.look((row.id, row.n) for row in rows)
        back = {_stream_of(row) for row in rows if (row.seq or 0) > facts[_stream_of(row)].last}
        lost = []
        for row in rows:
            subject = self.subject(row)
            waited, overtaken = self._ledger.waited(row, subject, now), self._ledger.overtaken(row, subject)
            gone = _stream_of(row) in back
            if gone or is_lost(row, subject, facts[_stream_of(row)], waited, overtaken=overtaken):
                lost.append(row)
                self._ledger.again(row)
        if lost:
            log.info("what the broker may have lost is published again", rows=len(lost))
            await self._table.again(lost)
        return len(lost)

    async def _know(self, stream: str) -> StreamFacts:
        mine = self._me.name
        counted = f"syn.work.*.{mine}" if stream == streams.WORK else f"syn.to.*.{mine}.>"
        facts = await self._broker.facts(stream, counted)
        self._created[stream] = facts.created
        return facts

    def reconnected(self) -> None:
        """Forgets the streams: the broker may be another one, with other streams."""
        self._created.clear()
        self._ledger.forget_places()
        self.pacing.reconnected()


def work_class(address: str, priority: int) -> str:
    """Returns the destination of work for any. Raises InvalidRequest."""
    return f"any:{class_of(address, priority)}"


def _made(stream: str, created: str | None) -> str:
    return f"{stream} {created}"


def _stream_of(row: OutRow) -> str:
    return streams.WORK if row.kind == "work" else streams.IN


def _name(row: InRow) -> str:
    """Returns the id of the row at the host that has sent it."""
    return f"{row.id.removesuffix(UPDATES)}/{row.n}" if row.kind == "upd" else row.id


UPDATES: Final = ":u"
"""End of the id under which the number of a task's last update is saved."""


def update_taken(task_id: str) -> str:
    return f"{task_id}{UPDATES}"
