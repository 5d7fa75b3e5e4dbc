"""Messages from other hosts: each signature is checked before anything else, then the message is committed, then acked.

::

    not signed by a member, or not by the one in its subject   quarantine, ack
    known by its host and id                                   its receipt once more, ack
    msg    for an agent here                                   a task, ack; or refused for good, ack
           whose mailbox is full, or which is not started      later
    upd    of a task that was sent there                       the change, ack
    ctl    cancel, answer, tell, unknown                       done, ack
    rcpt                                                       rows are closed, ack

A receipt of a decided message is due from that commit on (`outgoing`). A message is handed to the mailbox under a key
that is made of its host and its id, so that one commit makes the task and marks the message as taken.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol
from uuid import UUID, uuid5
from weakref import WeakValueDictionary

import structlog

from synapsed.a2a_types.remote_outcome import outcome
from synapsed.clock import Clock
from synapsed.errors import (
    Busy,
    NotReady,
    QueueFull,
    StoreError,
    SynapsedError,
)
from synapsed.interfaces import NewEvent, SendRequest, Store, Tasks
from synapsed.model.events import TaskStatusChanged
from synapsed.model.external import ANSWERS
from synapsed.model.external import KEY as EXTERNAL
from synapsed.model.task import TERMINAL_STATES, Task, TaskState
from synapsed.store.lookup import told_before
from synapsed.tasks import transitions
from synapsed_fleet import receipts
from synapsed_fleet.a2a_types import Shapes
from synapsed_fleet.envelope import BadEnvelope, Envelope
from synapsed_fleet.fleet_rows import (
    FleetChange,
    FleetOrigin,
    InRow,
    OutRow,
    Quarantined,
    carried_by_fleet,
    update_row,
)
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.mail_turns import PutOffMail
from synapsed_fleet.names import BadName, MailKind, MailSubject, parse_update
from synapsed_fleet.outgoing import Outgoing, Speaker, update_taken
from synapsed_fleet.parcel import Progress
from synapsed_fleet.parcel_fetching import FalseParcel, Fetching, NotHere, document_of
from synapsed_fleet.parcel_sending import Parcels
from synapsed_fleet.peer_certificates import NotMet, Peers
from synapsed_fleet.ports import Broker, Came, Delivered, NoBroker
from synapsed_fleet.task_controls import OPEN_QUESTIONS, Controls, refusal

LATER_S: Final = 5.0
"""Seconds until a message comes again that cannot be taken now."""
COMING_S: Final = 1.0
"""Seconds until a message comes again whose file is not here yet."""
UNMET_TIMES: Final = 60
"""Times that a message is put off if its host's certificate cannot be found."""
ANSWERED: Final = sorted(OPEN_QUESTIONS)
_STOPS: Final = UUID("b1d6c4f2-5a1e-4f0a-8a39-2f1f6f1f7d11")

log = structlog.stdlib.get_logger("synapsed.fleet")


class Later(Exception):
    """Signals that the message cannot be taken now."""


class Accepting(Protocol):
    """Interface that decides which agents other hosts may send to."""

    def agent(self, address: str) -> str:
        """Returns the id of the agent. Raises UnknownAgent, AmbiguousAddress, Forbidden."""
        ...


class ClaimReader(Protocol):
    """Interface to the claims of work for any (`class_work`)."""

    async def winner(self, src: str, task_id: str, round_: int = 1) -> str | None:
        """Returns the host that has claimed the work of the host `src`; None while there is no claim."""
        ...


class Answers:
    """Callers that wait for the result of a control: its refusal, or None for its receipt."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[tuple[str, str] | None]] = {}

    def expect(self, named: str) -> asyncio.Future[tuple[str, str] | None]:
        future = self._waiting[named] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda _: self._waiting.pop(named, None))
        return future

    def tell(self, named: str, refused: tuple[str, str] | None) -> None:
        if (future := self._waiting.get(named)) is not None and not future.done():
            future.set_result(refused)


class Incoming:
    """Takes the mail of this host. `persons` are the hosts whose persons count as persons here."""

    def __init__(
        self,
        *,
        me: Speaker,
        store: Store,
        table: FleetTable,
        tasks: Tasks,
        accepting: Accepting,
        peers: Peers,
        broker: Broker,
        outgoing: Outgoing,
        parcels: Parcels,
        fetching: Fetching,
        shapes: Shapes,
        claims: ClaimReader,
        clock: Clock,
        persons: frozenset[str],
        owed: Callable[[], None],
    ) -> None:
        """`owed` is called when receipts or rows are due."""
        self._me = me
        self._store = store
        self._table = table
        self._tasks = tasks
        self._accepting = accepting
        self._peers = peers
        self._broker = broker
        self._outgoing = outgoing
        self._parcels = parcels
        self._fetching = fetching
        self._shapes = shapes
        self._claims = claims
        self._clock = clock
        self._persons = persons
        self._owed = owed
        self._controls = Controls(me=me, store=store, table=table, tasks=tasks, persons=persons)
        self.answers = Answers()
        self.locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._in_hand: set[tuple[str, str]] = set()
        self._put_off = PutOffMail()

    def lock(self, task_id: str) -> asyncio.Lock:
        """Lock of a task: only one writer at a time records updates of it."""
        return self.locks.setdefault(task_id, asyncio.Lock())

    async def take(self, delivered: Delivered) -> None:
        """Handles one delivery, up to its ack; a message that cannot be taken now is delivered again. An exception that
        it raises is a bug."""
        try:
            subject = self._addressed(delivered.subject)
            envelope = Envelope.read(delivered.subject, delivered.headers, delivered.body)
            await self._peers.check(envelope, subject.src, self._broker)
            await self._once(subject, envelope)
        except (BadName, BadEnvelope) as error:
            await self.quarantine(delivered, str(error))
            await delivered.ack()
        except NotMet:
            if delivered.times < UNMET_TIMES:
                return await delivered.later(LATER_S)
            await self.quarantine(delivered, "its host has no certificate")
            await delivered.ack()
        except Later:
            await delivered.later(LATER_S)
        except NotHere:
            await delivered.later(COMING_S)
        except NoBroker:
            pass  # the broker delivers the message again
        except StoreError as error:
            log.warning("what has come cannot be kept now", why=error.message)
            await delivered.later(LATER_S)
        else:
            await delivered.ack()
            self._owed()

    def _addressed(self, subject: str) -> MailSubject:
        """Parses the subject of mail to this host. Raises BadName, BadEnvelope."""
        parsed = MailSubject.parse(subject)
        if parsed.dst != self._me.name:
            raise BadEnvelope("it is for another host")
        return parsed

    async def quarantine(self, came: Came, reason: str) -> None:
        log.warning("something has come that no member says", subject=came.subject[:200], why=reason)
        await self._table.quarantine(
            Quarantined(
                at=self._clock.wall(),
                subject=came.subject,
                reason=reason,
                headers=json.dumps(dict(came.headers), ensure_ascii=False),
                size=len(came.body),
            )
        )

    async def _once(self, subject: MailSubject, envelope: Envelope) -> None:
        """Handles a message unless the same one is being handled: then it is put off, and delivered again."""
        key = (subject.src, f"{subject.kind}:{envelope.id}")
        if key in self._in_hand:
            raise Later
        self._in_hand.add(key)
        try:
            if not envelope.known_version:
                await self._refuse(
                    subject.src,
                    envelope.id,
                    subject.kind,
                    "UNSUPPORTED",
                    f"{self._me.name} runs an older synapsed, which does not understand this: bring it up to date",
                )
                return
            match subject.kind:
                case MailKind.MESSAGE:
                    await self._message(FleetOrigin(subject.src, envelope.id), envelope)
                case MailKind.UPDATE:
                    await self._update(subject.src, envelope)
                case MailKind.CONTROL:
                    await self._control(subject.src, envelope)
                case MailKind.RECEIPT:
                    await self._receipt(subject.src, envelope)
            await self._fetching.taken(subject.src, envelope.id)
        finally:
            self._in_hand.discard(key)

    # --- messages ---

    async def _message(self, origin: FleetOrigin, envelope: Envelope) -> None:
        if (known := await self._table.taken(*origin)) is not None:
            if known.refused is not None:
                await self._fetching.refused(origin.src, envelope)
            return await self._table.owe(*origin)
        try:
            document = await self._fetching.document(envelope, origin.src, self._me.name)
        except FalseParcel as error:
            await self._refuse(*origin, MailKind.MESSAGE, "UNDELIVERED", str(error))
            return await self._fetching.refused(origin.src, envelope)
        await self._shapes.ready()
        from synapsed_fleet import messages

        agent = ""
        try:
            addressed = await asyncio.to_thread(messages.read_message, document, origin, persons=self._persons)
            agent = self._accepting.agent(addressed.to)
            self._put_off.check(origin.src, agent, self._clock.monotonic())
            await self.hand_over(agent, addressed.request)
        except StoreError as error:
            if error.details.get("reason") != "constraint":
                raise
            await self._table.owe(*origin)  # another delivery took it at the same moment
        except (QueueFull, Busy, NotReady) as error:
            if self._put_off.add(origin, agent, self._clock.monotonic()):
                raise Later from error
            await self._refuse(*origin, MailKind.MESSAGE, error.code, error.message)
        except SynapsedError as error:
            await self._refuse(*origin, MailKind.MESSAGE, error.code, error.message)
        self._put_off.taken(origin, agent)
        return None

    async def hand_over(self, agent_id: str, request: SendRequest) -> Task:
        """Makes the message a task of the agent, which also marks it as taken."""
        task = await self._tasks.send(agent_id, request)
        origin = FleetOrigin.of(request.marks)
        if origin is not None and await self._table.taken(*origin) is None:
            # The task exists, but no mark that it was taken: an older program has written the row since.
            row = InRow(src=origin.src, id=origin.id, kind=MailKind.MESSAGE, task_id=task.id)
            await self._table.change(FleetChange(taken=(row,)))
        return task

    async def _refuse(self, src: str, named: str, kind: str, code: str, message: str) -> None:
        await self._table.change(FleetChange(taken=(refusal(src, named, kind, code, message),)))

    # --- updates ---

    async def _update(self, src: str, envelope: Envelope) -> None:
        task_id, n = parse_update(envelope.id)
        if n < 0:
            raise BadEnvelope("its id is no update's")
        known = await self._table.taken(src, update_taken(task_id))
        if known is not None and known.n >= n:
            return await self._table.owe(src, update_taken(task_id))
        document = await self._fetching.document(envelope, src, self._me.name)  # before the lock: it may take long
        await self._shapes.ready()
        from synapsed_fleet import messages

        async with self.lock(task_id):
            known = await self._table.taken(src, update_taken(task_id))
            if known is not None and known.n >= n:
                return await self._table.owe(src, update_taken(task_id))
            taken = InRow(src=src, id=update_taken(task_id), kind=MailKind.UPDATE, n=n)
            task = await self._store.task(task_id)
            if task is None:
                return await self._table.change(FleetChange(taken=(taken,)))
            there = await asyncio.to_thread(messages.read_update, document, src)
            if await self._was_lost(task, src):
                done = there is None or there.state in TERMINAL_STATES
                return await self._table.change(
                    FleetChange(taken=(taken,), put=() if done else (_stop_row(task, src),))
                )
            await self._check_host(task, src)
            if task.terminal:
                stop = task.status is TaskState.CANCELED and there is not None and there.state not in TERMINAL_STATES
                rows = (_stop_row(task, src),) if stop else ()
                return await self._table.change(FleetChange(taken=(taken,), put=rows))
            if there is None:
                return await self._lose(task, src, taken)
            now = self._clock.wall()
            told = await told_before(self._store.events, task_id) if there.state is TaskState.COMPLETED else ""
            commit = outcome(task, there, by=_there_called(task, src), now=now, told=told)
            change = FleetChange(taken=(taken,), closed=((task_id, 0, src), (task_id, 0, task.agent_id)))
            learned = {"host": src, "task_id": there.id, "context_id": there.context_id, "n": n, ANSWERS: ANSWERED}
            await self._commit(task, commit, learned, change)
        return None

    async def _commit(
        self, task: Task, commit: transitions.Commit | None, learned: dict[str, Any], change: FleetChange
    ) -> None:
        after = task if commit is None else commit.task
        told = {**(after.metadata.get(EXTERNAL) or {}), **learned}
        after = after.model_copy(update={"metadata": {**after.metadata, EXTERNAL: told}})
        events, turn_ended = ((), None) if commit is None else (commit.events, commit.turn_ended)
        await self._table.commit(after, change, events=events, turn_ended=turn_ended)

    async def _check_host(self, task: Task, src: str) -> None:
        """Raises BadEnvelope unless the task was sent to the host `src`, or that host has claimed it."""
        there = task.metadata.get(EXTERNAL) or {}
        if carried_by_fleet(task):
            if there.get("host") == src:
                return
            if there.get("host") is None and await self._winner(task) == src:
                return
        raise BadEnvelope("it is about a task that its host does not have")

    async def _winner(self, task: Task) -> str | None:
        return await self._claims.winner(self._me.name, task.id, receipts.round_of(task))

    async def _was_lost(self, task: Task, src: str) -> bool:
        """Returns True if `src` was treated as lost with the work, and has not claimed it again: its updates do not
        count then."""
        if src not in receipts.lost_with(task):
            return False
        host = (task.metadata.get(EXTERNAL) or {}).get("host")
        return bool(src != host and await self._winner(task) != src)

    async def _lose(self, task: Task, src: str, taken: InRow | None) -> None:
        """Fails a task that its host does not know: the message may have been typed or not."""
        commit = transitions.failed(
            task,
            code="UNDELIVERED",
            message=f"{src} had the message, and does not know it any more: its state was lost, or put back to an "
            "older copy. Whether its agent has done anything cannot be told",
            now=self._clock.wall(),
        )
        change = FleetChange(taken=() if taken is None else (taken,))
        await self._commit(task, commit, {}, change)

    # --- receipts ---

    async def _receipt(self, src: str, envelope: Envelope) -> None:
        ids, refused = receipts.read_receipt(await document_of(envelope))
        closed: list[tuple[str, int, str]] = []
        for named in ids:
            task_id, n = parse_update_or_id(named)
            if n >= 0:
                closed.append((update_row(FleetOrigin(src, task_id)), n, src))
            elif (why := refused.get(named)) is not None:
                await self._refused(src, named, why)
            else:
                closed += await self._received(src, named)
                self.answers.tell(named, None)
        await self._table.change(FleetChange(closed=tuple(closed)))

    async def _received(self, src: str, named: str) -> list[tuple[str, int, str]]:
        """Returns the rows that the receipt closes. For work for any host, first notes the host that has it."""
        row = await self._table.row(named)
        if row is None or row.kind != "work":
            return [(named, 0, src)]
        if not await self._has_it(row, src):
            log.warning("a host says that it has work which it has not claimed", host=src, task=named)
            return []
        async with self.lock(named):
            task = await self._store.task(named)
            if task is None:
                return [(named, 0, row.dst)]
            change = FleetChange(closed=((named, 0, row.dst),))
            await self._commit(task, None, {"host": src}, change)
        return []

    async def _has_it(self, row: OutRow, src: str) -> bool:
        """Returns True if the host `src` is the one that decides about the row."""
        if row.kind != "work":
            return row.dst == src
        task = await self._store.task(row.task_id)
        round_ = 1 if task is None else receipts.round_of(task)
        return await self._claims.winner(self._me.name, row.task_id, round_) == src

    async def _refused(self, src: str, named: str, why: tuple[str, str]) -> None:
        """Fails the task of a message, since the host will never take it."""
        code, message = why
        self.answers.tell(named, why)
        row = await self._table.row(named)
        if row is None or not await self._has_it(row, src):
            return None
        change = FleetChange(closed=((named, row.n, row.dst),))
        async with self.lock(row.task_id):
            task = await self._store.task(row.task_id)
            if row.kind == "ctl" or task is None or task.terminal:
                return await self._table.change(change)
            failed = transitions.failed(task, code=code, message=f"{src} refused it: {message}", now=self._clock.wall())
            rejected = failed.task.model_copy(update={"status": TaskState.REJECTED})
            event = NewEvent.of(rejected, TaskStatusChanged(state=TaskState.REJECTED, error=rejected.error))
            commit = transitions.Commit(task=rejected, events=(event,), turn_ended=rejected.id)
            await self._commit(task, commit, {"host": src}, change)
        return None

    async def undeliverable(self, row: OutRow, why: str) -> None:
        """Fails a task whose message is not complete any more, and notifies the host that has begun to take it."""
        async with self.lock(row.task_id):
            change = FleetChange(closed=((row.id, row.n, row.dst),))
            task = await self._store.task(row.task_id)
            if task is None or task.terminal:
                return await self._table.change(change)
            host = (task.metadata.get(EXTERNAL) or {}).get("host")
            stop = () if host is None else (_stop_row(task, host),)
            failed = transitions.failed(task, code="UNDELIVERED", message=why, now=self._clock.wall())
            await self._commit(task, failed, {}, FleetChange(closed=change.closed, put=stop))
        return None

    # --- controls ---

    async def _control(self, src: str, envelope: Envelope) -> None:
        document = await self._fetching.document(envelope, src, self._me.name)
        match document.get("do"):
            case "parcel":
                await self._parcels.told(src, Progress.read(document), self._has_it)
            case "tell":
                unknown = await self._table.tell_again(src, receipts.tasks_of(document))
                if unknown:
                    await self._outgoing.say(src, MailKind.CONTROL, _encoded(receipts.unknown_body(unknown)))
            case "unknown":
                await self._unknown(src, receipts.tasks_of(document))
            case "cancel" | "answer" as what:
                if await self._table.taken(src, envelope.id) is not None:
                    return await self._table.owe(src, envelope.id)
                try:
                    do = self._controls.cancel if what == "cancel" else self._controls.answer
                    await do(src, envelope.id, document)
                except StoreError:
                    raise
                except SynapsedError as error:
                    await self._refuse(src, envelope.id, MailKind.CONTROL, error.code, error.message)
                else:
                    row = InRow(src=src, id=envelope.id, kind=MailKind.CONTROL)
                    await self._table.change(FleetChange(taken=(row,)))
            case _:
                raise BadEnvelope("its request is not known here")
        return None

    async def _unknown(self, src: str, task_ids: Sequence[str]) -> None:
        for task_id in task_ids:
            async with self.lock(task_id):
                task = await self._store.task(task_id)
                if task is None or task.terminal or await self._table.row(task_id) is not None:
                    continue
                if await self._was_lost(task, src):
                    continue
                await self._check_host(task, src)
                await self._lose(task, src, None)


def _stop_row(task: Task, src: str) -> OutRow:
    """Returns the row that cancels a task at `src`, which began the work before it was known as its host. Its id is the
    same each time, so there is one such row."""
    named = str(uuid5(_STOPS, f"{task.id}@{src}"))
    return OutRow(id=named, dst=src, kind="ctl", task_id=task.id, body=json.dumps(receipts.cancel_body(task.id)))


def parse_update_or_id(named: str) -> tuple[str, int]:
    """Parses any id of a receipt, as `parse_update` does for an update's."""
    try:
        return parse_update(named)
    except ValueError:
        return named, -1


def _there_called(task: Task, src: str) -> str:
    return task.agent_id if "@" in task.agent_id else f"{task.agent_id} on {src}"


def _encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode()
