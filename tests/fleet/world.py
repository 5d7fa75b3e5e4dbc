"""A fleet without processes: real stores and the real code of each host, over a broker that is a few dictionaries.

Each step that leaves a host (a write, a read, a publish, an ack) can be the one before or after which its daemon is
killed. Nothing sleeps: a host is worked until it has nothing more to do.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from synapsed.clock import SystemClock
from synapsed.errors import UnknownAgent
from synapsed.fleet import streams
from synapsed.fleet.carrier import FleetCarrier
from synapsed.fleet.envelope import Envelope
from synapsed.fleet.fetching import Fetching
from synapsed.fleet.hearing import EventHearing
from synapsed.fleet.incoming import Incoming
from synapsed.fleet.lostwork import LostWork
from synapsed.fleet.names import MailSubject, WorkSubject
from synapsed.fleet.nkey import KeyPair
from synapsed.fleet.outgoing import Outgoing, Speaker
from synapsed.fleet.peers import Peers
from synapsed.fleet.ports import WRONG_SEQUENCE, BrokerRefused, NoBroker, Piped, Stored, StreamFacts
from synapsed.fleet.registry import HostRecord, written
from synapsed.fleet.sending import Parcels
from synapsed.fleet.telling import EventTelling
from synapsed.fleet.trust import Member, NotTrusted, OutOfTime
from synapsed.fleet.working import Claims, WorkDeps, Working
from synapsed.fleetspec import FleetWork
from synapsed.interfaces import SendRequest
from synapsed.model.fleet import KEY, OutRow
from synapsed.model.keptfile import KeptFile
from synapsed.model.task import Artifact, FileContent, FilePart, Message, Task, TaskState
from synapsed.store import SqliteStore
from synapsed.store.idempotency import Idempotency
from synapsed.tasks import transitions
from tests.fakes.clock import FakeClock

__all__ = ["Broker", "Host", "Killed", "World"]

ANSWER = "done"


def as_task(task_id: str, agent_id: str, request: SendRequest) -> Task:
    """What a mailbox makes of a message."""
    metadata = dict(request.metadata)
    if request.origin is not None:
        metadata[KEY] = request.origin._asdict()
    return Task(
        id=task_id,
        agent_id=agent_id,
        message=request.message,
        metadata=metadata,
        created_at="2026-01-01T00:00:00.000Z",
        updated_at="2026-01-01T00:00:00.000Z",
    )


class Killed(BaseException):
    """The daemon is no more, at this very moment."""


class Fuse:
    """Kills at the step with this number; steps are counted from 1. None: never."""

    def __init__(self) -> None:
        self.at: int | None = None
        self.steps = 0

    def step(self) -> None:
        self.steps += 1
        if self.at is not None and self.steps >= self.at:
            raise Killed


@dataclass
class Kept:
    """One message of a stream, and whether somebody has it in hand."""

    subject: str
    headers: Mapping[str, str]
    body: bytes
    seq: int
    times: int = 0
    out: bool = False


@dataclass
class Stream:
    """A stream of the broker."""

    created: str
    messages: list[Kept] = field(default_factory=list)
    last: int = 0
    seen: dict[str, int] = field(default_factory=dict)


_STREAMS = {"to": streams.IN, "work": streams.WORK, "claim": streams.CLAIM, "ev": streams.EVENTS}


class Broker:
    """JetStream as far as it is used. `away`: nobody reaches it; `lose_acks`: what is published is kept, and its ack is
    lost so often."""

    def __init__(self) -> None:
        self.made = 0
        self.streams: dict[str, Stream] = {}
        self.records: dict[str, Stored] = {}
        self.files: dict[str, Stored] = {}
        self.said = 0
        self.away = False
        self.lose_acks = 0
        self.lose_receipts = 0
        self.wipe()

    def wipe(self) -> None:
        """Its disk is lost; the admin's daemon has made the streams again."""
        self.made += 1
        self.streams = {
            name: Stream(str(self.made)) for name in (streams.IN, streams.WORK, streams.CLAIM, streams.EVENTS)
        }
        self.files.clear()

    def put(self, envelope: Envelope, *, first: bool) -> Piped:
        kind = envelope.subject.split(".")[1]
        stream = self.streams[_STREAMS[kind]]
        headers = envelope.headers()
        if headers["Nats-Msg-Id"] in stream.seen:
            return Piped(stream.seen[headers["Nats-Msg-Id"]], copy=True)
        if first and any(each.subject == envelope.subject for each in stream.messages):
            raise BrokerRefused(WRONG_SEQUENCE, "wrong last sequence: 1")
        if self.lose_receipts and envelope.subject.endswith(".rcpt"):
            self.lose_receipts -= 1
            return Piped(stream.last + 1)
        stream.last += 1
        stream.seen[headers["Nats-Msg-Id"]] = stream.last
        stream.messages.append(Kept(envelope.subject, headers, envelope.body, stream.last))
        return Piped(stream.last)

    def forget_who_has_what(self) -> None:
        """Whatever was in hand is given out again: ack_wait is over."""
        for stream in self.streams.values():
            for each in stream.messages:
                each.out = False


class Wire:
    """The connection of one host (`ports.Broker`), which ends with its daemon."""

    def __init__(self, broker: Broker, fuse: Fuse) -> None:
        self._broker = broker
        self._fuse = fuse

    @property
    def up(self) -> bool:
        return not self._broker.away

    @asynccontextmanager
    async def _reached(self) -> AsyncGenerator[None]:
        self._fuse.step()
        if self._broker.away:
            raise NoBroker("it is away")
        yield
        self._fuse.step()

    async def publish(self, envelope: Envelope, *, first: bool = False) -> Piped:
        async with self._reached():
            piped = self._broker.put(envelope, first=first)
            if self._broker.lose_acks:
                self._broker.lose_acks -= 1
                raise NoBroker("its ack was lost")
        return piped

    async def say(self, subject: str, body: bytes) -> None:
        async with self._reached():
            kept = self._broker.files if subject.startswith("syn.file.") else self._broker.records
            self._broker.said += 1
            kept[subject] = Stored(subject, {}, body, self._broker.said)

    async def release(self, subject: str) -> None:
        async with self._reached():
            self._broker.files.pop(subject, None)

    async def facts(self, stream: str, subjects: str) -> StreamFacts:
        async with self._reached():
            if stream == streams.FILES:
                return StreamFacts(created="1", first=0, last=0, pending={}, size=0, size_max=1 << 30)
            found = self._broker.streams[stream]
            pending: dict[str, int] = {}
            for each in found.messages:
                pending[each.subject] = pending.get(each.subject, 0) + 1
            first = found.messages[0].seq if found.messages else found.last + 1
        return StreamFacts(created=found.created, first=first, last=found.last, pending=pending)

    async def last(self, stream: str, subject: str) -> Stored | None:
        async with self._reached():
            if stream == streams.HOSTS:
                return self._broker.records.get(subject)
            if stream == streams.FILES:
                return self._broker.files.get(subject)
            found = [each for each in self._broker.streams[stream].messages if each.subject == subject]
        return Stored(subject, found[-1].headers, found[-1].body, found[-1].seq) if found else None

    async def all_last(self, stream: str, subjects: str) -> list[Stored]:
        return list(self._broker.records.values())

    async def after(self, stream: str, seq: int, subjects: str, limit: int) -> list[Stored]:
        async with self._reached():
            begin = subjects.removesuffix(">")
            found = [
                each
                for each in self._broker.streams[stream].messages
                if each.seq >= seq and each.subject.startswith(begin)
            ]
        return [Stored(each.subject, each.headers, each.body, each.seq) for each in found[:limit]]

    async def ask(self, subject: str, document: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    async def next(self, stream: str, consumer: str, *, wait: float) -> "Given | None":
        async with self._reached():
            for each in self._broker.streams[stream].messages:
                if not each.out and _is_for(each.subject, consumer):
                    each.out = True
                    each.times += 1
                    return Given(self._broker, stream, each, self._fuse)
        return None


def _is_for(subject: str, consumer: str) -> bool:
    tokens = subject.split(".")
    return tokens[2] == consumer


@dataclass
class Given:
    """A delivery."""

    broker: Broker
    stream: str
    message: Kept
    fuse: Fuse

    @property
    def subject(self) -> str:
        return self.message.subject

    @property
    def headers(self) -> Mapping[str, str]:
        return self.message.headers

    @property
    def body(self) -> bytes:
        return self.message.body

    @property
    def times(self) -> int:
        return self.message.times

    async def ack(self) -> None:
        self.fuse.step()
        with suppress(ValueError):
            self.broker.streams[self.stream].messages.remove(self.message)
        self.fuse.step()

    async def later(self, seconds: float) -> None:
        self.fuse.step()


class AllMembers:
    """A trust that takes the name of a host and its public key for a token."""

    fleet = KeyPair.generate("account").public

    def __init__(self) -> None:
        self.revoked: set[str] = set()
        self.ended: set[str] = set()
        """Hosts whose token has ended."""

    def host(self, token: str, *, now: float) -> Member:
        name, _, key = token.partition("|")
        if not key or name in self.revoked:
            raise NotTrusted("it is revoked")
        if name in self.ended:
            raise OutOfTime("its token has ended")
        return Member(name, key, None)

    def renewed(self, account_token: str) -> "AllMembers":
        return self


class FusedTable:
    """The store's rows, each call of which may be the last."""

    def __init__(self, real: Any, fuse: Fuse) -> None:
        self._real = real
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)

        async def called(*args: Any, **kwargs: Any) -> Any:
            self._fuse.step()
            done = await found(*args, **kwargs)
            self._fuse.step()
            return done

        return called


class FusedStore:
    """The store, likewise."""

    def __init__(self, real: SqliteStore, fuse: Fuse) -> None:
        self.real = real
        self._fuse = fuse
        self.fleet = FusedTable(real.fleet, fuse)
        self.events = real.events

    async def commit(self, **what: Any) -> Any:
        self._fuse.step()
        done = await self.real.commit(**what)
        self._fuse.step()
        return done

    async def task(self, task_id: str) -> Task | None:
        return await self.real.task(task_id)

    async def committed(self, task_id: str) -> Task | None:
        return await self.real.committed(task_id)

    async def open_tasks(self) -> list[Task]:
        return await self.real.open_tasks()


class Mailbox:
    """The agents of a host: they take a message into the store, and answer when they are told to work."""

    def __init__(self, store: FusedStore, clock: FakeClock) -> None:
        self._store = store
        self._clock = clock
        self._once = Idempotency(store)  # type: ignore[arg-type]
        self.answer = ANSWER
        self.refuses: Exception | None = None
        self.blocks: list[Artifact] = []

    async def send(self, agent_id: str, request: SendRequest) -> Task:
        if self.refuses is not None:
            raise self.refuses
        async with self._once.once(request, agent_id) as (task_id, known):
            if known is not None:
                return known
            task = as_task(task_id, agent_id, request)
            commit = transitions.accepted(task)
            await self._store.commit(events=commit.events, tasks=[task])
            return task

    async def cancel(self, task_id: str) -> Task:
        task = await self._store.task(task_id)
        assert task is not None
        commit = transitions.canceled(task, reason="canceled", now=self._clock.wall())
        await self._store.commit(events=commit.events, tasks=[commit.task])
        return commit.task

    async def work(self) -> bool:
        """Answer everything that waits; whether there was anything."""
        waiting = [task for task in await self._store.open_tasks() if KEY in task.metadata]
        for task in waiting:
            commit = transitions.completed(
                task, answer=self.answer, exact=True, blocks=self.blocks, now=self._clock.wall()
            )
            await self._store.commit(events=commit.events, tasks=[commit.task])
        return bool(waiting)


class Named:
    """The directory: every agent is called codex."""

    def view(self, agent_id: str) -> SimpleNamespace:
        return SimpleNamespace(name="codex")


class Accepting:
    def __init__(self, name: str) -> None:
        self._name = name

    def agent(self, address: str) -> str:
        if address != "codex":
            raise UnknownAgent(f"no agent {address}", agent=address)
        return "synapse-codex-1"

    def idle(self, cls: str) -> str | None:
        return "synapse-codex-1" if cls == "codex" else None


class Host:
    """One host over the lives of its daemon."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.pair = KeyPair.generate("user")
        self.fuse = Fuse()
        self.path = world.folder / f"{name}.db"
        self.persons: frozenset[str] = frozenset()
        self.content = False
        self.work = FleetWork()
        self.kills = 0

    async def start(self) -> None:
        world, self.fuse = self.world, Fuse()
        self.store = await SqliteStore.open(self.path, clock=world.clock)
        fused = FusedStore(self.store, self.fuse)
        me = Speaker(fleet=world.trust.fleet, name=self.name, pair=self.pair)
        self.wire = Wire(world.broker, self.fuse)
        table: Any = fused.fleet
        store: Any = fused
        self.peers = Peers(table, world.trust, world.clock)  # type: ignore[arg-type]
        files = world.folder / f"{self.name}.files"
        self.parcels = Parcels(
            name=self.name,
            pair=self.pair,
            table=table,
            broker=self.wire,
            clock=world.clock,
            folder=files / "out",
            lost=self._lost,
        )
        await self.parcels.load()
        self.outgoing = Outgoing(
            me=me,
            table=table,
            tasks=store,
            parcels=self.parcels,
            broker=self.wire,
            clock=world.clock,
            rng=lambda: 0.0,
        )
        self.fetching = Fetching(
            broker=self.wire,
            clock=SystemClock(),
            folder=files / "in",
            say=self.outgoing.say_control,
            quick_s=0.2,
            missed_s=0.2,
        )
        self.mailbox = Mailbox(fused, world.clock)
        claims = Claims(self.wire, self.peers)
        agents = Accepting(self.name)
        self.incoming = Incoming(
            me=me,
            store=store,
            table=table,
            tasks=self.mailbox,  # type: ignore[arg-type]
            accepting=agents,
            peers=self.peers,
            broker=self.wire,
            outgoing=self.outgoing,
            parcels=self.parcels,
            fetching=self.fetching,
            claims=claims,
            clock=world.clock,
            persons=self.persons,
            owed=lambda: None,
        )
        self.working = Working(
            WorkDeps(
                me=me,
                table=table,
                peers=self.peers,
                broker=self.wire,
                outgoing=self.outgoing,
                fetching=self.fetching,
                agents=agents,
                persons=self.persons,
                owed=lambda: None,
            ),
            self.incoming,
            claims,
        )
        self.lost = LostWork(
            me=me,
            store=store,
            table=table,
            incoming=self.incoming,
            working=self.working,
            clock=world.clock,
            config=self.work,
            idle_for=world.idle.get,
            due=lambda: None,
        )
        self.carrier = FleetCarrier(
            me=me,
            store=store,
            table=table,
            peers=self.peers,
            incoming=self.incoming,
            clock=world.clock,
            due=lambda: None,
            classes=lambda _: None,
            taken=self._taken,
            files=self.parcels.check,
        )
        self.telling = EventTelling(
            name=self.name,
            events=self.store.events,
            cursors=table,
            directory=Named(),  # type: ignore[arg-type]
            broker=self.wire,
            outgoing=self.outgoing,
            clock=world.clock,
            accepts=lambda _: True,
            content=self.content,
        )
        self.hearing = EventHearing(self.wire, self.peers, world.clock)
        await self.peers.load()
        token = f"{self.name}|{self.pair.public}"
        await self.peers.learn(self.name, token)
        record = HostRecord(v=1, host=self.name, jwt=token, boot="1", n=1)
        await self.wire.say(f"$KV.SYN_HOSTS.{self.name}", written(record))

    async def _lost(self, row: OutRow, why: str) -> None:
        await self.incoming.undeliverable(row, why)

    async def _taken(self) -> frozenset[str] | None:
        return self.world.taken

    async def kill(self) -> None:
        """And start the next daemon; what is done in a thread of the store's completes, as a commit does."""
        self.kills += 1
        await self.fetching.close()
        await self.store.close()
        self.world.broker.forget_who_has_what()
        await self.start()

    async def give(self, name: str, content: bytes) -> FilePart:
        """A file that is given at this host, as the part of a message that names it."""
        upload = await self.parcels.upload()
        upload.write(content)
        parcel = await self.parcels.uploaded(upload, name)
        return FilePart(file=FileContent(name=name, uri=KeptFile(None, parcel.id).uri))

    async def send(self, address: str, text: str, *, key: str, files: Sequence[FilePart] = ()) -> Task:
        message = Message.of(text)
        request = SendRequest(message=message.model_copy(update={"parts": [*message.parts, *files]}), key=key)
        return await self.carrier.send(address, request, lambda *_, **__: nullcontext())  # type: ignore[arg-type]

    async def tasks(self) -> list[Task]:
        return await _all(self.store)

    async def turn(self, *, answers: bool = True) -> bool:
        """Everything that this host would do now, once; whether it did anything. `answers`: its agents too."""
        did = False
        with suppress(NoBroker):
            did = await self.outgoing.publish() or did
            while await self.parcels.step():
                did = True
            while (given := await self.wire.next(streams.IN, self.name, wait=0)) is not None:
                did = True
                await self.incoming.take(given)
            for name in self.world.works.get(self.name, ()):
                given = await self.wire.next(streams.WORK, name, wait=0)
                if given is not None:
                    did = True
                    await self.working.take(given)
            await self.working.resume()
            did = (answers and await self.mailbox.work()) or did
            if await self.store.fleet.owed(1):
                did = True
                await self.outgoing.receipts()
        return did


class World:
    """Hosts that know each other, and a broker. Leave it by `close`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.broker = Broker()
        self.trust = AllMembers()
        self.hosts: dict[str, Host] = {}
        self.works: dict[str, Sequence[str]] = {}
        self.idle: dict[str, float] = {}
        """For how long nothing was heard of a host."""
        self.taken: frozenset[str] | None = None
        """Classes of work that some host takes."""

    async def host(self, name: str) -> Host:
        made = self.hosts[name] = Host(self, name)
        await made.start()
        return made

    async def close(self) -> None:
        for each in self.hosts.values():
            await each.fetching.close()
            await each.store.close()

    async def rest(self, *, audits: int = 3) -> None:
        """Until nobody has anything to do, though the audit was asked each time after a minute."""
        for _ in range(audits):
            quiet = 0
            while quiet < 2:
                self.broker.forget_who_has_what()
                did = [await each.turn() for each in self.hosts.values()]
                quiet = 0 if any(did) else quiet + 1
            self.clock.advance(61)
            if not self.broker.away:
                for each in self.hosts.values():
                    await each.outgoing.audit()

    async def tasks_of(self, host: Host, state: TaskState) -> int:
        tasks = [task for task in await _all(host.store) if task.status is state]
        return len(tasks)

    async def open_rows(self) -> int:
        return sum([len(await each.store.fleet.open_rows()) for each in self.hosts.values()])


async def _all(store: SqliteStore) -> list[Task]:
    from synapsed.interfaces import TaskFilter

    tasks, _ = await store.tasks(TaskFilter(limit=10_000))
    return tasks


def addressed(subject: str) -> str:
    """Who is meant by a subject, for messages of assertions."""
    try:
        return MailSubject.parse(subject).dst
    except ValueError:
        return WorkSubject.parse(subject).cls
