"""Starts many agents in order: a limited number at once, and those that others depend on first."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

import structlog

from synapsed.agents import views
from synapsed.agents.live_agent import Agent
from synapsed.aio import Timers, pause
from synapsed.clock import Clock
from synapsed.config.config import Config
from synapsed.errors import SynapsedError
from synapsed.interfaces import Directory, EventFilter, EventLog
from synapsed.model.events import Event
from synapsed.store.follower import Follower
from synapsed.supervisor.reload import in_layers

PARALLEL = 16
"""Agents that are started or stopped at once at the daemon's start and end."""

DEPENDENCY_S = 60.0
"""Seconds that an agent's start waits for those that it depends on to be ready."""

log = structlog.stdlib.get_logger("synapsed.manager")


async def each(
    work: Callable[[Agent], Awaitable[None]], agents: Iterable[Agent], *, parallel: int | None = PARALLEL
) -> None:
    """Does `work` for each agent, `parallel` at a time (None: all at once); a failure is logged and stops no other."""
    chosen = list(agents)
    room = asyncio.Semaphore(parallel or max(1, len(chosen)))

    async def one(agent: Agent) -> None:
        async with room:
            try:
                await work(agent)
            except SynapsedError as error:
                log.error("agent", agent=agent.record.name, error=error.message)  # noqa: TRY400

    await asyncio.gather(*(one(agent) for agent in chosen))


class StartOrder:
    """Starts agents by `depends_on`; `agents` has all agents, by id. Call `changed` whenever the state or activity of
    an agent changed."""

    def __init__(self, agents: Mapping[str, Agent], *, clock: Clock, timers: Timers) -> None:
        self._agents = agents
        self._clock = clock
        self._timers = timers
        self._news = asyncio.Event()
        self._over = False
        self._making = asyncio.Lock()

    async def turn(self) -> None:
        """Returns when an agent may be made: one in each turn of the event loop, so that many do not block others."""
        async with self._making:
            await asyncio.sleep(0)

    def end(self) -> None:
        """Ends the starts that are under way: no further agent is started."""
        self._over = True
        self.changed()

    def changed(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def start(self, wanted: Iterable[Agent], config: Config) -> None:
        """Starts `wanted`, each after the agents that it depends on are ready. An agent that was made again meanwhile,
        for another configuration, is started in its new form; one that was stopped is not started."""
        for layer in in_layers(config, [agent.record.name for agent in wanted]):
            needed = {other for name in layer if name in config.agents for other in config.agents[name].depends_on}
            await self._until_up([agent for agent in self._agents.values() if agent.record.name in needed])
            chosen = [agent for agent in self._agents.values() if agent.record.name in layer and not agent.stopped]
            await each(Agent.start, chosen if not self._over else ())

    async def _until_up(self, agents: list[Agent]) -> None:
        deadline = self._clock.monotonic() + DEPENDENCY_S
        while not self._over and (late := [agent.record.name for agent in agents if views.is_coming_up(agent)]):
            left = deadline - self._clock.monotonic()
            if left <= 0:
                log.warning("what others depend on is not ready; they are started all the same", agents=late)
                return
            if self._news.is_set():  # set at the end of an earlier wait: nothing is new
                self._news = asyncio.Event()
            await pause(self._timers, left, woken=self._news)


class AgentNews(Follower):
    """Reports changes of agents to the start order, when they have taken effect in the agents."""

    name = "start order"
    wants = EventFilter(types=frozenset({"agentState", "activity"}))

    def __init__(self, events: EventLog, timers: Timers, *, directory: Directory, order: StartOrder) -> None:
        super().__init__(events, timers)
        self._directory = directory
        self._order = order
        self._changed: set[str] = set()

    async def handle(self, event: Event) -> None:
        self._changed.add(event.agent_id)

    async def handled(self) -> None:
        changed, self._changed = self._changed, set()
        if changed:
            await self._directory.believed(changed)
            self._order.changed()
