"""Parking: ends the program of an idle agent; the next message starts it again.

An agent is idle if its stop would change nothing for people and other agents, except for the time that its next start
takes:

==================  ================================================================================================
not idle            because
==================  ================================================================================================
a task              one waits in the mailbox, is worked on, or is being interrupted
the program         it is starting, works, asks something, or says nothing that is understood
the background      something that it has started goes on there
a person            a terminal is attached (looking on is enough), or a draft stands in the composer
its messages        they are held back: the end of that would have to be found out again
a restart           one was asked for as soon as it is idle, which comes first
==================  ================================================================================================

An agent whose conversation could not be continued is not parked, either. Idleness counts from when this daemon first
saw it, on the monotonic clock: neither a restart of the daemon nor a night in which the machine slept makes an agent
idle.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from synapsed.agents import conversations
from synapsed.agents.actor import Actor
from synapsed.agents.agent_process import AgentProcess
from synapsed.agents.part_doors import HoldDoor
from synapsed.agents.turns import AgentTurns
from synapsed.clock import Clock
from synapsed.config.config import Config, ParkPolicy
from synapsed.config.paths import Paths
from synapsed.errors import ConfigError, InvalidRequest, NotReady, SynapsedError
from synapsed.model.agent import Activity, ProcessState
from synapsed.model.link import LinkObserved
from synapsed.profiles.library import ProfileLibrary

if TYPE_CHECKING:
    from synapsed.agents.live_agent import Agent

SETTLED_S = 60.0
"""Seconds for which an agent must have been idle even if memory is short: it may be in the middle of something."""

_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The facts that decide whether an agent is idle. `seen` is None if its program does not run."""

    seen: LinkObserved | None
    busy: bool
    """True if a task waits, is worked on, or is being interrupted."""
    attached: int
    restart_pending: bool
    hold: str | None
    """The reason why its messages are held back, if they are."""


def occupied(now: Situation) -> str | None:
    """Returns the reason why an agent is not idle, for people; None if it is."""
    seen = now.seen
    if seen is None:
        return "its program does not run"
    if now.busy:
        return "it has messages to work on"
    if now.attached:
        return "a terminal is attached"
    if now.hold is not None:
        return now.hold
    if now.restart_pending:
        return "it is to be restarted"
    if seen.activity is not Activity.READY:
        return f"it is {seen.activity.value}"
    if seen.background:
        count = len(seen.background)
        return f"{count} background {'task' if count == 1 else 'tasks'} would end with it"
    if seen.held is not None:
        return f"it is held ({seen.held})"
    return None


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of the machine, in bytes. `available` is the amount that programs could get without swapping."""

    total: int
    available: int


def machine_memory() -> Memory:
    now = psutil.virtual_memory()
    return Memory(total=now.total, available=now.available)


def threshold(size: str, total: int) -> int:
    """Returns a size as in the configuration (`config.SIZE`) in bytes; `total` is all memory of the machine."""
    if size.endswith("%"):
        return total * int(size[:-1]) // 100
    return int(size.rstrip("KMGT")) * _UNITS.get(size[-1], 1)


def first_to_park[A](idle: Iterable[tuple[A, float, ParkPolicy]], memory: Memory) -> A | None:
    """Chooses the agent to be parked because memory is short, from agents with the seconds that each has been idle."""
    short = [
        (seconds, agent)
        for agent, seconds, policy in idle
        if policy.memory_below is not None
        and seconds >= SETTLED_S
        and memory.available < threshold(policy.memory_below, memory.total)
    ]
    return max(short, key=lambda one: one[0])[1] if short else None


class Parking:
    """Parks one agent. Everything here runs in the agent's actor, except methods that only read."""

    def __init__(
        self, process: AgentProcess, turns: AgentTurns, hold: HoldDoor, owner: "Agent", *, clock: Clock, actor: Actor
    ) -> None:
        self._process = process
        self._turns = turns
        self._hold = hold
        self._owner = owner
        self._clock = clock
        self._actor = actor
        self._idle_since: float | None = None
        self._attaching = 0
        self._leaving = False
        """True between the decision to park and its record."""

    @property
    def policy(self) -> ParkPolicy:
        return self._owner.config.park

    @property
    def away(self) -> bool:
        """Returns whether it is parked, or about to be: `start` brings it back, and messages are accepted."""
        state = self._process.state
        going = state is ProcessState.STOPPING and self._process.record.parking
        return state is ProcessState.PARKED or going or self._leaving

    @property
    def idle_s(self) -> float | None:
        """Returns the seconds for which it has been idle; None if it is not, or its conversation would be lost."""
        if self._idle_since is None or self._obstacle() is not None:
            return None
        return self._clock.monotonic() - self._idle_since

    @contextlib.contextmanager
    def attaching(self) -> Iterator[None]:
        """Prevents parking while a terminal is about to be attached."""
        self._attaching += 1
        try:
            yield
        finally:
            self._attaching -= 1

    def note(self) -> None:
        """Checks again whether it is idle, after an event that may have changed it."""
        if self._occupied(self._owner.seen) is not None:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = self._clock.monotonic()

    def wake(self) -> None:
        """Starts it if it is parked and a message waits."""
        if self._process.state is ProcessState.PARKED and self._turns.queue:
            self._actor.post(self._process.wake)

    def sweep(self) -> None:
        """Parks it if it is due, wakes it if a message waits."""
        if self._process.state is ProcessState.PARKED:
            self.wake()
            return
        if not self.policy.on:
            return
        self.note()
        limit, idle = self.policy.idle_timeout, self.idle_s
        if limit is not None and idle is not None and idle >= limit:
            self._actor.post(self._park_if_idle)

    async def park(self, why: str) -> asyncio.Future[None]:
        """Returns a future that is done when it is parked. Raises NotReady if it is not idle, InvalidRequest if its
        conversation would be lost."""
        if self.away:
            return self._process.parked()
        link = self._process.link
        name = self._process.record.name
        seen = await link.observe() if link is not None else None
        reason = self._occupied(seen)
        if link is None or reason is not None or (seen is not None and not seen.can_receive):
            why_not = reason or "its screen has not come to rest"
            raise NotReady(f"{name} is not ended to save memory: {why_not}", agent=name)
        if (obstacle := self._obstacle()) is not None:
            raise InvalidRequest(f"{name} is not ended to save memory: {obstacle}", agent=name, field="agent.profile")
        self._leaving = True  # a caller that comes now starts it again
        self._idle_since = None  # if parking fails, it is not tried at each sweep
        try:
            await link.terminal.keep_screen()
            return await self._process.park(why)
        finally:
            self._leaving = False

    async def _park_if_idle(self) -> None:
        link, idle = self._process.link, self.idle_s
        if link is None or idle is None or not (await link.observe()).can_receive:
            return
        try:
            await self.park(f"idle for {idle:.0f} s")
        except SynapsedError as error:  # it was given something to do just then
            self._actor.log.info("not parked", why=error.message)

    def _occupied(self, seen: LinkObserved | None) -> str | None:
        link, hold = self._process.link, self._hold.hold()
        return occupied(
            Situation(
                seen=seen if link is not None else None,
                busy=not self._turns.at_rest,
                attached=self._attaching + (link.terminal.attached if link is not None else 0),
                restart_pending=self._process.record.restart_pending,
                hold=hold.reason if hold is not None else None,
            )
        )

    def _obstacle(self) -> str | None:
        return conversations.obstacle(self._process.record, self._process.profile)


def check_parking(config: Config, profiles: ProfileLibrary, paths: Paths) -> None:
    """Raises ConfigError for an agent with parking whose program cannot continue a conversation."""
    for name, agent in config.agents.items():
        profile = profiles.find(agent.profile or name)
        if agent.park.on and profile is not None and not profile.resumes:
            saved = paths.agents_d / f"{name}.toml"
            place = f"{saved}: park" if saved.exists() else f"{paths.config_file}: agents.{name}.park"
            raise ConfigError(
                f"{place}: profile {profile.name!r} has no way to continue a conversation, which would be lost; "
                f"remove this key, or give the profile [resume] args"
            )
