"""The fleet, put together for the daemon: one connection, and the tasks that use it for as long as the daemon runs.

The daemon imports this module only if there is `[fleet]`. `Fleet` has a `carrier`, which sends messages to members
(`interfaces.Carrier`), and the methods for people (`fleet_control.FleetControl`).
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Final

import structlog

from synapsed.aio import TaskSet
from synapsed.clock import Clock
from synapsed.errors import ConfigError, RemoteRefused, StoreError, SynapsedError
from synapsed.interfaces import AgentView, Control, HostSaid, Store
from synapsed.model.events import AttentionItem
from synapsed_fleet import live_text, streams
from synapsed_fleet.a2a_types import Shapes
from synapsed_fleet.attention import Waiting, inbox
from synapsed_fleet.audit import EVERY_S as AUDIT_EVERY_S
from synapsed_fleet.carrier import FleetCarrier
from synapsed_fleet.class_work import AGAIN_S, Claims, WorkDeps, Working
from synapsed_fleet.event_publishing import EventTelling
from synapsed_fleet.event_reading import EventHearing
from synapsed_fleet.file_transfers import UNDER_WAY_MAX, Files
from synapsed_fleet.fleet_answers import FleetEvent, FleetHeld, FleetHost, FleetOut, FleetStatus
from synapsed_fleet.fleet_config import FleetConfig
from synapsed_fleet.fleet_rows import FleetChange, OutRow, carried_by_fleet
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.incoming import Incoming
from synapsed_fleet.link import Link
from synapsed_fleet.mail_pulling import Pull
from synapsed_fleet.member_files import Home
from synapsed_fleet.membership import is_due, keep_newest, keep_urls, renew
from synapsed_fleet.names import urgent
from synapsed_fleet.offered_agents import OfferedAgents
from synapsed_fleet.outgoing import Outgoing, Speaker
from synapsed_fleet.parcel_fetching import Fetching
from synapsed_fleet.parcel_sending import Parcels
from synapsed_fleet.peer_certificates import NotMet, Peers
from synapsed_fleet.ports import BrokerRefused, NoBroker
from synapsed_fleet.presence import Records
from synapsed_fleet.removed_hosts import RemovedHosts
from synapsed_fleet.stranded_work import EVERY_S as LOST_EVERY_S
from synapsed_fleet.stranded_work import StrandedWork
from synapsed_fleet.task_inquiries import TaskInquiries
from synapsed_fleet.views import FleetTold
from synapsed_fleet.wakeup import Bell

RECEIPTS_AFTER_S: Final = 0.02
"""Seconds within which receipts go in one message."""
BROKERS: Final = "$KV.SYN_HOSTS._brokers"
LEARN_S: Final = 30.0
LEARN_FEW_S: Final = 5.0
"""Seconds between two reads of the records in a fleet of few hosts: after that time a new host can be written to."""
FEW_HOSTS: Final = 16
LEARN_PER_HOST_S: Final = 0.3
LEARN_MOST_S: Final = 300.0
MEMBERSHIP_S: Final = 30.0
"""Seconds between two looks at the credentials' files, and at the brokers' addresses."""
FORGET_EVERY_S: Final = 3600.0
"""Seconds between two removals of old ids of taken messages."""
BEFORE_THE_RECORD: Final = frozenset({"connection", "record", "peers"})
"""Loops that begin at once. The others publish messages, which other hosts verify with the certificate in this host's
record."""

log = structlog.stdlib.get_logger("synapsed.fleet")


class Fleet:
    """The fleet of one daemon: call `start` once, and `close` before the store is closed. `version` is this
    program's."""

    def __init__(
        self,
        config: FleetConfig,
        home: Home,
        *,
        store: Store,
        table: FleetTable,
        control: Control,
        clock: Clock,
        version: str,
    ) -> None:
        """Makes the fleet from its credentials. Raises ConfigError if they are missing."""
        self._config = config
        self._home = home
        self._store = store
        self._clock = clock
        self._identity = home.identity()
        me = Speaker(fleet=self._identity.trust.fleet, name=self._identity.name, pair=self._identity.pair)
        self._me = me
        self.table = table
        self._agents = agents = OfferedAgents(control, config)
        inbox = f"_INBOX_{me.name}"
        self.link = Link(lambda: self._identity.options(config.urls), inbox, on_up=self._connected)
        self._peers = peers = Peers(table, self._identity.trust, clock)
        self.parcels = Parcels(
            name=me.name,
            pair=me.pair,
            table=table,
            broker=self.link,
            clock=clock,
            folder=home.files / "out",
            lost=self._undeliverable,
        )
        shapes = Shapes()
        self._outgoing = Outgoing(
            me=me,
            table=table,
            tasks=store,
            parcels=self.parcels,
            broker=self.link,
            shapes=shapes,
            clock=clock,
            rng=random.random,
        )
        self._fetching = Fetching(
            broker=self.link, clock=clock, folder=home.files / "in", say=self._outgoing.say_control
        )
        self.files = Files(parcels=self.parcels, fetching=self._fetching, clock=clock, folder=home.files / "in")
        self._due, self._owed, self._audit, self._ask = Bell(), Bell(), Bell(), Bell()
        claims = Claims(self.link, peers)
        persons = frozenset(config.persons)
        self._incoming = incoming = Incoming(
            me=me,
            store=store,
            table=table,
            tasks=control.tasks,
            accepting=agents,
            peers=peers,
            broker=self.link,
            outgoing=self._outgoing,
            parcels=self.parcels,
            fetching=self._fetching,
            shapes=shapes,
            claims=claims,
            clock=clock,
            persons=persons,
            owed=self._something_owed,
        )
        self._questions = TaskInquiries(store=store, table=table, outgoing=self._outgoing, clock=clock)
        self._working = Working(
            WorkDeps(
                me=me,
                table=table,
                peers=peers,
                broker=self.link,
                outgoing=self._outgoing,
                fetching=self._fetching,
                shapes=shapes,
                agents=agents,
                persons=persons,
                owed=self._something_owed,
            ),
            incoming,
            claims,
        )
        self._pull = Pull(self.link, streams.IN, me.name, inbox, incoming.take)
        self.waiting = Waiting(store, agents.accepts, publish=config.events.publish, content=config.events.content)
        self.presence = Records(
            me=me,
            token=lambda: self._identity.token,
            broker=self.link,
            peers=peers,
            directory=control.directory,
            events=store.events,
            clock=clock,
            accepts=agents.accepts,
            version=version,
            waiting=self.waiting,
            classes=config.work.classes,
        )
        self.carrier = FleetCarrier(
            me=me,
            store=store,
            table=table,
            peers=peers,
            incoming=incoming,
            shapes=shapes,
            clock=clock,
            due=self._due.set,
            classes=self._want_class,
            files=self.parcels.check,
            taken=self.presence.classes,
            met=lambda: self.presence.met,
        )
        self._lost = StrandedWork(
            me=me,
            store=store,
            table=table,
            incoming=incoming,
            working=self._working,
            clock=clock,
            config=config.work,
            idle_for=lambda host: self.presence.liveness.idle_for(host, clock.monotonic()),
            due=self._due.set,
        )
        self._removed = RemovedHosts(
            own=me.name,
            store=store,
            table=table,
            tasks=control.tasks,
            incoming=incoming,
            peers=peers,
            broker=self.link,
            clock=clock,
        )
        self._told = FleetTold(
            identity=lambda: self._identity, link=self.link, presence=self.presence, table=table, clock=clock
        )
        self._hearing = EventHearing(self.link, peers, clock)
        self._telling = EventTelling(
            name=me.name,
            events=store.events,
            cursors=table,
            directory=control.directory,
            broker=self.link,
            outgoing=self._outgoing,
            clock=clock,
            accepts=agents.accepts,
            content=config.events.content,
        )
        self._live = live_text.LiveTelling(
            me=me, events=store.events, store=store, table=table, broker=self.link, outgoing=self._outgoing
        )
        heard = live_text.LiveHearing(
            me=me,
            store=store,
            peers=peers,
            broker=self.link,
            outgoing=self._outgoing,
            incoming=incoming,
            clock=clock,
            again=self._live.again,
        )
        self.link.listen(f"syn.say.{me.name}.*", heard.take)
        self._classes: set[str] = set(config.work.classes)
        self._tasks = TaskSet()
        self._loops: list[asyncio.Task[None]] = []

    async def restore(self) -> None:
        """Loads the hosts and files that the daemon before knew: from then on messages to them are accepted."""
        await self._peers.load()
        await self.parcels.load()

    async def start(self) -> None:
        """Starts all loops, which continue the work under way. Call `restore` before."""
        await self.carrier.restore()
        await self._peers.learn(self._me.name, self._identity.token)
        self.table.on_owed = self._due.set
        loops: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("connection", self.link.run),
            ("mail", self._pull.run),
            ("outbox", self._publish),
            ("files", self.parcels.run),
            ("receipts", self._receipts),
            ("audit", self._audits),
            ("questions", lambda: self._questions.run(self._ask, self.link.wait_up)),
            ("record", self._announce),
            ("peers", self._learn),
            ("candidates", self._candidates),
            ("taken", self._forget),
            ("lost work", self._look_for_lost),
            ("live text", self._live.run),
        ]
        if self._config.work.classes:
            loops.append(("work", lambda: self._working.ask(self._config.work.classes)))
        if self._config.events.publish:
            loops.append(("events", self._telling.run))
        for name, loop in loops:
            self._loops.append(asyncio.create_task(self._for_ever(name, loop), name=f"fleet {name}"))

    async def close(self) -> None:
        """Stops all loops; rows and files under way stay saved."""
        self.table.on_owed = None
        await self.presence.bye()
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await self._tasks.cancel()
        await self._fetching.close()
        await self.files.close()

    # --- signals ---

    def _connected(self) -> None:
        self._outgoing.reconnected()
        self._pull.reconnected()
        for signal in (self._due, self._owed, self._audit, self._ask, self.parcels.bell):
            signal.set()
        self._tasks.spawn(self._make_classes())

    def _something_owed(self) -> None:
        self._owed.set()
        self._due.set()
        self.parcels.bell.set()

    async def _undeliverable(self, row: OutRow, why: str) -> None:
        await self._incoming.undeliverable(row, why)

    def _want_class(self, cls: str) -> None:
        """Asks the registrar to make the stream's consumer of the class, so that it exists before the first work of the
        class is taken, if the registrar can be reached."""
        if cls not in self._classes:
            self._classes.add(cls)
            self._tasks.spawn(self._make_classes())

    async def _make_classes(self) -> None:
        wanted = sorted({name for cls in self._classes for name in (cls, urgent(cls.removesuffix("-hi")))})
        if not wanted:
            return
        try:
            await self.link.ask(f"syn.adm.classes.{self._me.name}", {"classes": wanted})
        except (NoBroker, BrokerRefused) as error:
            log.info("the classes of work are not made yet", why=str(error))

    # --- loops ---

    async def _for_ever(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        """Runs a loop without end, so that a fault in one loop, or of the broker, does not stop the others."""
        if name not in BEFORE_THE_RECORD:
            await self.presence.written.wait()
        while True:
            try:
                await loop()
            except (NoBroker, BrokerRefused, NotMet) as error:
                log.debug("it waits for the broker", part=name, why=str(error))
                await self.link.wait_up()
            except StoreError as error:
                if error.details.get("reason") == "closed":
                    return
                log.warning("the store refuses", part=name, why=error.message)
            except Exception:
                log.exception("a part of the fleet failed, and is begun again", part=name)
            await asyncio.sleep(1.0)

    async def _announce(self) -> None:
        await self.link.wait_up()
        await self.presence.announce()

    async def _publish(self) -> None:
        pacing = self._outgoing.pacing
        while True:
            while (rest := pacing.resting(self._clock.monotonic())) > 0:
                await self._due.wait(rest)  # a new connection ends the pause, and rings
            await self.link.wait_up()
            try:
                more = await self._outgoing.publish()
            except NoBroker as error:
                log.debug("nothing is published now", why=str(error))
                continue
            if not more:
                await self._due.wait(pacing.next_at(self._clock.monotonic()))

    async def _receipts(self) -> None:
        while True:
            await self._owed.wait()
            await self.link.wait_up()
            await asyncio.sleep(RECEIPTS_AFTER_S)
            try:
                while await self._outgoing.receipts():
                    pass
            except NoBroker:
                await asyncio.sleep(0.5)
                self._owed.set()

    async def _audits(self) -> None:
        while True:
            await self._audit.wait(AUDIT_EVERY_S)
            if self.link.up and await self._outgoing.audit():
                self._due.set()

    async def _candidates(self) -> None:
        while True:
            await self.link.wait_up()
            if not await self._working.resume():
                await self._working.undecided.wait()
            await asyncio.sleep(AGAIN_S)

    async def _look_for_lost(self) -> None:
        while True:
            await self.link.wait_up()
            await self.presence.records()
            await self._lost.look()
            await self._removed.look()
            await asyncio.sleep(LOST_EVERY_S)

    async def _forget(self) -> None:
        while True:
            await self.table.forget_taken()
            await self._fetching.sweep()
            await asyncio.sleep(FORGET_EVERY_S)

    async def _learn(self) -> None:
        """Reads the certificates and revocations of the fleet. The more hosts there are, the less often their records
        are read, all at once; revocations are read separately, and more often."""
        read_at, looked_at, connects = -LEARN_MOST_S, -MEMBERSHIP_S, 0
        while True:
            await self.link.wait_up()
            now = self._clock.monotonic()
            hosts = len(self._peers.names())
            if now - read_at >= min(LEARN_MOST_S, hosts * LEARN_PER_HOST_S):
                await self.presence.records()
                read_at = now
            else:
                await self.presence.renew_trust()
            if self.link.connects != connects or now - looked_at >= MEMBERSHIP_S or self._membership_is_due():
                await self._keep_membership()
                looked_at, connects = now, self.link.connects
            await asyncio.sleep(LEARN_S if hosts > FEW_HOSTS else LEARN_FEW_S)

    def _membership_is_due(self) -> bool:
        """Returns True if a host was revoked, or this host's credentials are to be renewed."""
        news = self._peers.trust.account_token != self._identity.trust.account_token
        return news or is_due(self._identity, now=self._clock.wall())

    async def _keep_membership(self) -> None:
        """Saves newly revoked hosts, and renews credentials in time."""
        try:
            if self._peers.trust.account_token != self._identity.trust.account_token:
                await asyncio.to_thread(keep_newest, self._home, self._peers.trust)
            await self._take_up_credentials()
            if (told := await self.link.last(streams.HOSTS, BROKERS)) is not None:
                await asyncio.to_thread(keep_urls, self._home, told.body)
            now = self._clock.wall()
            if is_due(self._identity, now=now) and await renew(self._home, self.link.ask, now=now):
                await self._take_up_credentials()
                log.info("this host's credentials were renewed", until=self._identity.expires)
        except (RemoteRefused, ConfigError, BrokerRefused) as error:
            log.warning("this host's membership is not kept", why=str(error))

    async def _take_up_credentials(self) -> None:
        """Loads new credentials, whichever process has written them: connections use the saved ones, and other hosts
        believe the certificate in this host's record."""
        kept = await asyncio.to_thread(self._home.identity)
        if kept.pair.public == self._me.pair.public:  # with another key the daemon is restarted
            self._identity = kept
            if kept.trust.account_token != self._peers.trust.account_token:
                self._peers.trust = self._peers.trust.renewed(kept.trust.account_token)

    # --- what people ask ---

    async def agents(self) -> list[AgentView]:
        """Returns the agents of the other hosts."""
        return await self.presence.agents()

    async def inboxes(self) -> tuple[list[AttentionItem], list[HostSaid]]:
        """Returns the items that wait for a person on the other hosts, as far as they publish them."""
        return inbox(await self.presence.records(), self.presence.state, own=self._me.name)

    async def teams(self) -> dict[str, list[str]]:
        """Returns the members of teams on other hosts, as addresses."""
        return await self.presence.teams()

    async def status(self) -> FleetStatus:
        return (await self._told.status()).model_copy(update={"files": self.files.under_way()[:UNDER_WAY_MAX]})

    async def hosts(self) -> Sequence[FleetHost]:
        return await self._told.hosts()

    def events(
        self, after: str | None, *, newest: bool, host: str | None = None, types: frozenset[str] | None = None
    ) -> AsyncGenerator[FleetEvent | None]:
        return self._hearing.follow(after, newest=newest, host=host, types=types)

    async def outbox(self, host: str | None = None) -> Sequence[FleetOut]:
        return await self._told.outbox(host)

    async def quarantine(self) -> Sequence[FleetHeld]:
        return await self._told.quarantine()

    async def outbox_retry(self, row_id: str) -> bool:
        """Publishes the row again now; returns False if there is no such row."""
        row = await self.table.row(row_id)
        if row is None:
            return False
        await self.table.again([row])
        self._outgoing.pacing.worked(row.dst)
        self._due.set()
        return True

    async def outbox_cancel(self, row_id: str) -> bool:
        """Cancels the task of the row, or removes the row if it has no open task here; returns False if there is no
        such row."""
        row = await self.table.row(row_id)
        if row is None:
            return False
        task = await self._store.task(row.task_id)
        if task is not None and not task.terminal and carried_by_fleet(task):
            try:
                await self.carrier.cancel(task)
            except SynapsedError as error:
                log.info("a task of the outbox is not canceled", task=task.id, why=error.message)
            else:
                return True
        await self.table.change(FleetChange(closed=((row.id, row.n, row.dst),)))
        return True
