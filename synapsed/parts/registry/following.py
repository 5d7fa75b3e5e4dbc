"""Follows the event log, and keeps the registry's entry of each agent up to date.

An agent is read only after it has taken in an event, which was durable before. The log is followed from its end at the
daemon's start: changes that a killed daemon has not written are written at the first looks. Changes without an event (a
link that is open, and sees an unchanged screen) are found by the look at every agent about once a second.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from synapsed.aio import TaskSet, Timer
from synapsed.interfaces import EventFilter
from synapsed.kernel import Kernel, Running
from synapsed.model.events import Event
from synapsed.parts.registry.files import Registry, RegistryFiles
from synapsed.store.follower import Follower

LOOK_S = 1.0
"""Seconds between two looks at every agent and every file."""

SWEEP_EVERY = 5
"""Number of looks between two searches for stale entries."""


class RegistryFollower(Follower):
    """Publishes this daemon's agents in the registry. Life: `start`, `started` once the agents are adopted and started,
    …, `close`."""

    name = "registry"
    wants = EventFilter(types=frozenset({"agentState", "activity"}))
    """Events to follow: state, activity and pid are the only fields of an entry that ever change."""

    def __init__(self, registry: Registry, kernel: Kernel) -> None:
        super().__init__(kernel.store.events, kernel.timers)
        self._registry = registry
        self._directory = kernel.control.directory
        self._kernel = kernel
        self._changed: set[str] = set()
        self._looks = 0
        self._adopted = False
        """True once the agents are adopted: before that, no entry of this daemon's agents counts as dead."""
        self._look_later: Timer | None = None
        self._sweeps = TaskSet()

    def start(self) -> None:
        """Follows events from now on."""
        self.cursor = self._events.last_id
        super().start()
        self._look_again()
        self._sweeps.spawn(self.sweep(), name="registry sweep")

    def started(self) -> None:
        """Notes that the agents are adopted: from now on, entries of this daemon's own dead agents are removed too."""
        self._adopted = True
        self._sweeps.spawn(self.sweep(), name="registry sweep")

    async def restore(self) -> None:
        """Marks every agent to be read, because the missed events are unknown."""
        self.cursor = self._events.last_id
        self._changed = set(self._directory.entries())

    async def handle(self, event: Event) -> None:
        self._changed.add(event.agent_id)

    async def handled(self) -> None:
        if changed := self._changed:
            self._changed = set()
            await self._directory.believed(changed)
            entries = self._directory.entries(changed)
            for agent_id in changed:
                if (entry := entries.get(agent_id)) is not None:
                    self._registry.publish(entry)
                else:
                    self._registry.withdraw(agent_id)

    def look(self) -> None:
        """Reads every agent and the files; every few looks, stale entries are removed."""
        self._show_live()
        self._registry.look()
        self._looks += 1
        if self._looks % SWEEP_EVERY == 0:
            self._sweeps.spawn(self.sweep(), name="registry sweep")

    async def sweep(self) -> None:
        """Returns when every agent's entry is up to date, and stale entries are removed."""
        await self._registry.sweep(self._show_live)

    async def flush(self) -> None:
        """Returns when all events of the log so far are in the files, and the present sweep is over."""
        await self._sweeps.finish()
        await self.reached(self._events.last_id)
        await self._registry.flush()

    async def close(self) -> None:
        """Ends the follower, after the agents' actors, when there are no further events. Returns when the files are up
        to date."""
        if self._look_later is not None:
            self._look_later.cancel()
        await self.flush()
        await super().close()

    def _look_again(self) -> None:
        # First, so that a failed look does not end the others.
        self._look_later = self._kernel.timers.call_later(LOOK_S, self._look_again)
        self.look()

    def _show_live(self) -> tuple[frozenset[str], frozenset[str]]:
        """Publishes every agent that has an address for messages. Returns their ids, and those of all agents."""
        entries = self._directory.entries()
        live = {agent_id: entry for agent_id, entry in entries.items() if entry is not None}
        for entry in live.values():
            self._registry.publish(entry)
        known = frozenset(entries)
        return frozenset(live) if self._adopted else known, known


class Registering(Running):
    def __init__(self, follower: RegistryFollower) -> None:
        self.follower = follower

    def started(self) -> None:
        self.follower.started()


@asynccontextmanager
async def opened(kernel: Kernel) -> AsyncIterator[Registering]:
    follower = RegistryFollower(Registry(RegistryFiles(kernel.paths.registry)), kernel)
    follower.start()
    try:
        yield Registering(follower)
    finally:  # when the agents have ended, or are released
        await follower.close()
