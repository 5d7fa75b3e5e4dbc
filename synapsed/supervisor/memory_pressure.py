"""Parks idle agents (ends their programs until the next message) while memory is short: one after the other, the one
that is idle longest first."""

import gc
from collections.abc import Callable, Mapping

import structlog

from synapsed.agents.live_agent import Agent
from synapsed.agents.parking import Memory, first_to_park
from synapsed.aio import TaskSet
from synapsed.clock import Clock
from synapsed.errors import SynapsedError
from synapsed.model.agent import ProcessState

LOOK_EVERY_S = 5.0
"""Seconds between two checks. Memory that a program frees counts as available at once, so more checks gain nothing."""

log = structlog.stdlib.get_logger("synapsed.parking")


class MemoryWatch:
    """Parks idle agents while memory is short; `look` is called about once a second. One agent is parked at a time: the
    freed memory may be enough."""

    def __init__(
        self, *, agents: Mapping[str, Agent], memory: Callable[[], Memory], clock: Clock, background: TaskSet
    ) -> None:
        self._agents = agents
        self._memory = memory
        self._clock = clock
        self._background = background
        self._due = clock.monotonic()
        self._parking = False
        self._parked = 0
        self._freeing = False

    def look(self) -> None:
        self._free()
        now = self._clock.monotonic()
        if self._parking or now < self._due:
            return
        self._due = now + LOOK_EVERY_S
        idle = [
            (agent, seconds, agent.parking.policy)
            for agent in self._agents.values()
            if agent.parking.policy.memory_below is not None and (seconds := agent.parking.idle_s) is not None
        ]
        if not idle:
            return
        memory = self._memory()
        if (agent := first_to_park(idle, memory)) is not None:
            self._parking = True
            self._background.spawn(self._park(agent, memory))

    def _free(self) -> None:
        """Frees the memory of released links. A link and its screen are a reference cycle (callbacks): only the garbage
        collector finds it, which may not run for hours in an idle daemon."""
        if self._freeing:
            gc.collect()
        before, self._parked = self._parked, sum(agent.state is ProcessState.PARKED for agent in self._agents.values())
        self._freeing = self._parked > before  # at the next call: now they are just being released

    async def _park(self, agent: Agent, memory: Memory) -> None:
        try:
            await agent.park(f"memory is short: {memory.available / 2**30:.1f} GiB available")
        except SynapsedError as error:  # it just got something to do
            log.info("an agent is not parked", agent=agent.record.name, why=error.message)
        finally:
            self._parking = False
