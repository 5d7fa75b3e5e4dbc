"""A fleet without processes: real stores and the real code of each host, over a broker that is a few dictionaries
(`fakebroker`).

A daemon can be killed before or after each step that leaves its host. Nothing sleeps: a host is worked until it has
nothing more to do.
"""

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from synapsed.clock import SystemClock
from synapsed.errors import QueueFull, UnknownAgent
from synapsed.interfaces import SendRequest
from synapsed.model.kept_file import KeptFile
from synapsed.model.task import Artifact, FileContent, FilePart, Message, Task, TaskState
from synapsed.store.idempotency import Idempotency
from synapsed.store.store import SqliteStore
from synapsed.tasks import transitions
from synapsed_fleet import streams
from synapsed_fleet.a2a_types import Shapes
from synapsed_fleet.carrier import FleetCarrier
from synapsed_fleet.class_work import Claims, WorkDeps, Working
from synapsed_fleet.event_publishing import EventTelling
from synapsed_fleet.event_reading import EventHearing
from synapsed_fleet.fleet_config import FleetWork
from synapsed_fleet.fleet_rows import KEY, OutRow
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.host_record import HostRecord, written
from synapsed_fleet.incoming import Incoming
from synapsed_fleet.live_text import LiveHearing, LiveTelling
from synapsed_fleet.names import MailSubject, WorkSubject
from synapsed_fleet.nkey import KeyPair
from synapsed_fleet.outgoing import Outgoing, Speaker
from synapsed_fleet.parcel_fetching import Fetching
from synapsed_fleet.parcel_sending import Parcels
from synapsed_fleet.peer_certificates import Peers
from synapsed_fleet.ports import NoBroker
from synapsed_fleet.removed_hosts import RemovedHosts
from synapsed_fleet.stranded_work import StrandedWork
from synapsed_fleet.trust import Member, OutOfTime, Revoked
from tests.fakes.clock import FakeClock
from tests.parts.fleet.fakebroker import Broker, Fuse, Wire

__all__ = ["Host", "World"]

ANSWER = "done"


def as_task(task_id: str, agent_id: str, request: SendRequest) -> Task:
    """What a mailbox makes of a message."""
    return Task(
        id=task_id,
        agent_id=agent_id,
        message=request.message,
        metadata={**request.metadata, **request.marks},
        created_at="2026-01-01T00:00:00.000Z",
        updated_at="2026-01-01T00:00:00.000Z",
    )


class AllMembers:
    """A trust that takes the name of a host and its public key for a token."""

    fleet = KeyPair.generate("account").public

    @property
    def account_token(self) -> str:
        """Another with each host that is revoked."""
        return "|".join(sorted(self.revoked))

    def __init__(self) -> None:
        self.revoked: set[str] = set()
        self.ended: set[str] = set()
        """Hosts whose token has ended."""

    def host(self, token: str, *, now: float) -> Member:
        name, _, key = token.partition("|")
        if not key or name in self.revoked:
            raise Revoked(name, key)
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

    async def is_former(self, task_id: str, agent_id: str) -> bool:
        return await self.real.is_former(task_id, agent_id)


class Mailbox:
    """The agents of a host: they take a message into the store, and answer when they are told to work."""

    def __init__(self, store: FusedStore, clock: FakeClock) -> None:
        self._store = store
        self._clock = clock
        self._once = Idempotency(store)  # type: ignore[arg-type]
        self.answer = ANSWER
        self.refuses: Exception | None = None
        self.room: int | None = None
        """So many more messages are taken; None: any number."""
        self.blocks: list[Artifact] = []

    async def send(self, agent_id: str, request: SendRequest) -> Task:
        if self.refuses is not None:
            raise self.refuses
        async with self._once.once(request, agent_id) as (task_id, known):
            if known is not None:
                return known
            if self.room is not None:
                if self.room == 0:
                    raise QueueFull("it has too many")
                self.room -= 1
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
        self.table = FleetTable(self.store)
        table: Any = FusedTable(self.table, self.fuse)
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
        shapes = Shapes()
        self.outgoing = Outgoing(
            me=me,
            table=table,
            tasks=store,
            parcels=self.parcels,
            broker=self.wire,
            shapes=shapes,
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
            shapes=shapes,
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
                shapes=shapes,
                agents=agents,
                persons=self.persons,
                owed=lambda: None,
            ),
            self.incoming,
            claims,
        )
        self.lost = StrandedWork(
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
        self.removed = RemovedHosts(
            own=self.name,
            store=store,
            table=table,
            tasks=self.mailbox,  # type: ignore[arg-type]
            incoming=self.incoming,
            peers=self.peers,
            broker=self.wire,
            clock=world.clock,
        )
        self.carrier = FleetCarrier(
            me=me,
            store=store,
            table=table,
            peers=self.peers,
            incoming=self.incoming,
            shapes=shapes,
            clock=world.clock,
            due=lambda: None,
            classes=lambda _: None,
            taken=self._taken,
            files=self.parcels.check,
        )
        await self.carrier.restore()
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
        self.says = LiveTelling(
            me=me,
            events=self.store.events,
            store=store,
            table=table,
            broker=self.wire,
            outgoing=self.outgoing,
        )
        self.hears = LiveHearing(
            me=me,
            store=store,
            peers=self.peers,
            broker=self.wire,
            outgoing=self.outgoing,
            incoming=self.incoming,
            clock=world.clock,
            again=self.says.again,
        )
        self.says.cursor = self.store.events.last_id
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
        return await self.carrier.send(address, request, lambda *_, **__: nullcontext())

    async def tasks(self) -> list[Task]:
        return await _all(self.store)

    async def live(self) -> None:
        """Tell what agents have said since, and hear what was told."""
        await self.says.catch_up()
        told = self.world.broker.live.pop(self.name, [])
        for came in told:
            await self.hears.take(came)

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
            if await self.table.owed(1):
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
        return sum([len(await each.table.open_rows()) for each in self.hosts.values()])


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
