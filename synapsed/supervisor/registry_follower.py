"""Follows the log of events: the registry shows each agent as it is, and starts that wait for others go on.

An event is durable before its agent believes it, so the agent is looked at only when its actor has come past it. The
log is followed from where it ends when a daemon begins: what a daemon that was killed did not write is written when
the agents are adopted (`refresh`). What no event tells of (a link that is open, and sees what it saw before) is found
by the look at every agent about once a second.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

import structlog

from synapsed.agents import views
from synapsed.agents.agent import Agent
from synapsed.aio import TaskSet
from synapsed.clock import Clock
from synapsed.interfaces import EVERY_EVENT, EventLog
from synapsed.supervisor.launch_planner import Planner
from synapsed.supervisor.registry import REGISTRY_SWEEP_S, Registry
from synapsed.supervisor.startup_order import StartOrder

BATCH: Final = 500
"""Events that are looked at in one go."""

_TYPES: Final = frozenset({"agentState", "activity"})
"""Of all that an entry says only state, activity and pid ever change."""

log = structlog.stdlib.get_logger("synapsed.registry")


class RegistryFollower:
    """`agents` are all there are, by id. Life: `start`, …, `close`."""

    def __init__(
        self,
        registry: Registry,
        *,
        events: EventLog,
        agents: Mapping[str, Agent],
        planner: Planner,
        order: StartOrder,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._events = events
        self._agents = agents
        self._planner = planner
        self._order = order
        self._clock = clock
        self._cursor = events.last_id
        self._moved = asyncio.Event()
        self._sweep_due = clock.monotonic()
        self._sweeps = TaskSet()
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Follow what happens from now on."""
        self._cursor = self._events.last_id
        self._running = asyncio.get_running_loop().create_task(self._run(), name="registry follower")

    def look(self) -> None:
        """Look at every agent and at the files. Call it on a timer."""
        self._show(self._reachable())
        self._registry.look()

    def sweep_soon(self) -> None:
        """Remove stale entries, but not for each of many who ask."""
        if (now := self._clock.monotonic()) >= self._sweep_due:
            self._sweep_due = now + REGISTRY_SWEEP_S
            self._sweeps.spawn(self.refresh(), name="registry sweep")

    async def refresh(self) -> None:
        """Returns when every agent is shown as it is, and stale entries are removed."""
        reachable = self._reachable()
        self._show(reachable)
        await self._registry.sweep(reachable, frozenset(self._agents))

    async def flush(self) -> None:
        """Returns when all that the log has now is in the files, and the sweep that was begun is over."""
        await self._sweeps.finish()
        upto = self._events.last_id
        while self._cursor < upto and self._running is not None and not self._running.done():
            self._moved.clear()
            await self._moved.wait()
        await self._registry.flush()

    async def close(self) -> None:
        """The agents' actors have ended: nothing more happens. Returns when the files say so."""
        await self.flush()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _run(self) -> None:
        try:
            while (after := await self._events.changed(self._cursor, EVERY_EVENT)) is not None:
                changed, upto = await self._changed(after)
                if changed:
                    agents = [agent for agent_id in changed if (agent := self._agents.get(agent_id)) is not None]
                    await asyncio.gather(*(agent.believed() for agent in agents))
                    self._show(changed)
                    self._order.changed()
                self._cursor = upto
                self._moved.set()
        finally:
            self._moved.set()

    async def _changed(self, after: int) -> tuple[frozenset[str], int]:
        """The agents that events after `after` tell of, and how far that goes."""
        upto = self._events.last_id
        try:
            found = await self._events.read(after, limit=BATCH, types=_TYPES)
        except Exception:  # one fault must not end it
            log.exception("every agent is looked at, as the events cannot be read", after=after)
            return frozenset(self._agents), upto
        return frozenset(event.agent_id for event in found), found[-1].id if found else upto

    def _reachable(self) -> frozenset[str]:
        return frozenset(agent.id for agent in self._agents.values() if views.is_reachable(agent))

    def _show(self, agent_ids: Iterable[str]) -> None:
        for agent_id in agent_ids:
            agent = self._agents.get(agent_id)
            if agent is not None and views.is_reachable(agent):
                self._registry.publish(views.entry_of(agent, self._planner.endpoint(agent.record)))
            else:
                self._registry.withdraw(agent_id)
