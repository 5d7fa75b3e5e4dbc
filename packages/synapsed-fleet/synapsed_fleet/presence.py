"""Presence of the hosts: writes this host's record, and reads those of the others."""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from synapsed.clock import Clock
from synapsed.interfaces import Activity, AgentView, Directory, EventFilter, EventLog, ProcessState
from synapsed_fleet import streams
from synapsed_fleet.attention import NOTHING_TOLD, Waiting, Waits
from synapsed_fleet.host_record import (
    EVERY_S,
    VERSION,
    AgentRecordOf,
    HostRecord,
    Liveness,
    Twin,
    digest,
    read,
    written,
)
from synapsed_fleet.names import HOSTS_PREFIX, record
from synapsed_fleet.outgoing import Speaker
from synapsed_fleet.peer_certificates import Peers
from synapsed_fleet.ports import Broker, BrokerRefused, NoBroker
from synapsed_fleet.trust import NotTrusted

CACHED_S: Final = 2.0
"""Seconds for which the other hosts' records are used before they are read again."""
FLEET_KEY: Final = "_fleet"
"""Key of the fleet's own token among the records: it names the revoked hosts."""
CHANGES: Final = EventFilter(types=frozenset({"agentState", "activity", "taskStatus", "attention"}))
BYE_S: Final = 1.0

log = structlog.stdlib.get_logger("synapsed.fleet")


class Records:
    """The hosts' records; `announce` runs for as long as there is a fleet. `accepts` returns True for the agents that
    others may write to."""

    def __init__(
        self,
        *,
        me: Speaker,
        token: Callable[[], str],
        broker: Broker,
        peers: Peers,
        directory: Directory,
        events: EventLog,
        clock: Clock,
        accepts: Callable[[str], bool],
        version: str,
        waiting: Waiting,
        classes: Sequence[str],
    ) -> None:
        self._me = me
        self._token = token
        self._broker = broker
        self._peers = peers
        self._directory = directory
        self._events = events
        self._clock = clock
        self._accepts = accepts
        self._version = version
        self._waiting = waiting
        self._classes = list(classes)
        self._boot = os.urandom(8).hex()
        self._n = 0
        self._records: dict[str, HostRecord] = {}
        self._read_at: float | None = None
        self._reading = asyncio.Lock()
        self.liveness = Liveness()
        self._twin = Twin(self._boot)
        self.written = asyncio.Event()
        """Set once the broker has this daemon's record: until then other hosts cannot verify this host's messages."""

    @property
    def twin(self) -> bool:
        """True if another machine uses this host's key."""
        return self._twin.is_there(self._clock.monotonic())

    # --- this host ---

    def own_agents(self) -> list[AgentRecordOf]:
        teams: dict[str, list[str]] = {}
        for team, members in self._directory.teams().items():
            for member in members:
                teams.setdefault(member, []).append(team)
        types = {view.type for view in self._directory.agents()}
        skills = {profile.name: profile.skills for profile in self._directory.profiles(types)}
        return [
            AgentRecordOf(
                name=view.name,
                type=view.type,
                teams=teams.get(view.name, []),
                skills=[str(skill.get("id")) for skill in skills.get(view.type, [])],
                state=view.state.value,
                activity=view.activity.value,
                since=view.since,
                queue=view.queue,
            )
            for view in self._directory.agents()
            if self._accepts(view.name)
        ]

    async def announce(self) -> None:
        """Writes the record every 10 s, and at most once a second when something has changed; never returns. Raises
        NoBroker, BrokerRefused."""
        while True:
            agents, waits = self.own_agents(), await self._waiting.told()
            await self.write("up", agents, waits)
            await asyncio.sleep(1.0)
            await self._until_due(digest(agents, waits.items))

    async def _until_due(self, told: str) -> None:
        """Returns when the record is to be written: it is 10 s old, or an agent of it has changed."""
        try:
            async with asyncio.timeout(EVERY_S - 1.0):
                while True:
                    await self._events.changed(self._events.last_id, CHANGES)
                    if digest(self.own_agents(), (await self._waiting.told()).items) != told:
                        return
                    await asyncio.sleep(1.0)
        except TimeoutError:
            return

    async def write(self, state: str, agents: Sequence[AgentRecordOf], waits: Waits = NOTHING_TOLD) -> None:
        self._n += 1
        made = HostRecord(
            v=VERSION,
            host=self._me.name,
            jwt=self._token(),
            boot=self._boot,
            n=self._n,
            state=state,
            version=self._version,
            load=round(os.getloadavg()[0], 2),
            agents=list(agents),
            classes=self._classes,
            waits=waits.items,
            more=waits.more,
        )
        await self._broker.say(record(self._me.name), written(made))
        self.written.set()

    async def bye(self) -> None:
        """Reports that this host goes; a host that does not get the report notices that records stop."""
        try:
            async with asyncio.timeout(BYE_S):
                await self.write("sleeping", [])
        except (NoBroker, BrokerRefused, TimeoutError):
            pass

    # --- the others ---

    @property
    def met(self) -> bool:
        """True once the records of all hosts were read."""
        return self._read_at is not None

    async def records(self) -> list[HostRecord]:
        """Returns the records of all hosts, this one too, by name; the last known ones if there is no broker now. A
        record without the fleet's certificate for its host is ignored."""
        async with self._reading:
            now = self._clock.monotonic()
            if self._read_at is None or now - self._read_at >= CACHED_S:
                try:
                    await self._read_all()
                    self._read_at = now
                except (NoBroker, BrokerRefused) as error:
                    log.debug("the records of the hosts are not read", why=str(error))
        return [self._records[name] for name in sorted(self._records)]

    async def _read_all(self) -> None:
        found: dict[str, HostRecord] = {}
        now = self._clock.monotonic()
        stored = await self._broker.all_last(streams.HOSTS, f"{HOSTS_PREFIX}>")
        for one in stored:
            if one.subject == record(FLEET_KEY):
                self._renew_trust(one.body)
        for one in stored:
            told = read(one.body)
            if told is None or one.subject != record(told.host):
                continue
            if await self._peers.learn(told.host, told.jwt):
                found[told.host] = told
                self.liveness.note(told, now)
                if self.written.is_set() and told.host == self._me.name and self._twin.note(told, now):
                    log.error("another machine is in the fleet with this host's key", host=told.host)
        for gone in self._records.keys() - found.keys():
            self.liveness.forget(gone)
        self._records = found

    async def renew_trust(self) -> None:
        """Learns which keys were revoked. Raises NoBroker, BrokerRefused."""
        if (found := await self._broker.last(streams.HOSTS, record(FLEET_KEY))) is not None:
            self._renew_trust(found.body)

    def _renew_trust(self, body: bytes) -> None:
        try:
            self._peers.trust = self._peers.trust.renewed(body.decode("ascii"))
        except (NotTrusted, UnicodeDecodeError) as error:
            log.warning("the fleet's own token at the broker is not its operator's", why=str(error))

    def state(self, told: HostRecord) -> str:
        if told.host == self._me.name:
            return "up"
        return self.liveness.state(told, self._clock.monotonic())

    async def agents(self) -> list[AgentView]:
        """Returns the agents of the other hosts, in the form that `list` shows."""
        shown = []
        for told in await self.records():
            if told.host != self._me.name:
                state = self.state(told)
                shown += [_view(agent, told, state) for agent in told.agents]
        return shown

    async def classes(self) -> frozenset[str] | None:
        """Returns the classes of work that some host takes, even if it is away; None if that is not known of all
        hosts."""
        records = await self.records()
        told = [one.classes for one in records]
        if not records or any(one is None for one in told):
            return None
        return frozenset(name for one in told for name in one or ())

    async def teams(self) -> dict[str, list[str]]:
        """Returns the members of each team on the other hosts, as addresses, also of hosts that are away."""
        found: dict[str, list[str]] = {}
        for told in await self.records():
            if told.host != self._me.name:
                for agent in told.agents:
                    for team in agent.teams:
                        found.setdefault(team, []).append(f"{agent.name}@{told.host}")
        return found


def _view(agent: AgentRecordOf, told: HostRecord, state: str) -> AgentView:
    process = ProcessState(agent.state) if agent.state in list(ProcessState) else ProcessState.STOPPED
    activity = Activity(agent.activity) if agent.activity in list(Activity) else Activity.UNKNOWN
    name = f"{agent.name}@{told.host}"
    return AgentView(
        name=name,
        id=name,
        type=agent.type,
        port=None,
        pid=None,
        state=process,
        activity=activity if state == "up" else Activity.UNKNOWN,
        since=agent.since,
        evidence=f"as {told.host} told it" if state == "up" else f"{told.host} is {state}: as it told it last",
        held=None,
        queue=agent.queue,
        task=None,
        restarts=0,
        cwd="",
        endpoint="",
        host=told.host,
    )
