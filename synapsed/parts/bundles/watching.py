"""Rolls a bundle of profiles back by itself: does the I/O around `trial`.

A file (`shelf`) says which bundle counts, and whether there is a trial: after a kill in the middle of one, the next
daemon continues it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import structlog

from synapsed.aio import TaskSet, pause
from synapsed.errors import SynapsedError
from synapsed.interfaces import EventFilter, NewEvent
from synapsed.kernel import Kernel, Running
from synapsed.model.events import ActivityChanged, AgentAlert, AttentionChanged, Event, StateChanged
from synapsed.parts.bundles import trial
from synapsed.parts.bundles.shelf import SHIPPED, Counts, Shelf, Trial
from synapsed.store.follower import Changes, Follower

ROLLED_BACK = "PROFILES_ROLLED_BACK"
"""Code of the alert."""
LOOK_S = 0.5
"""Seconds between two looks at an agent in a trial."""

log = structlog.stdlib.get_logger("synapsed.bundles")


class BundleWatch(Follower):
    """Watches agents of profiles that a bundle has changed, until one of each has come up."""

    name = "bundles"
    wants = EventFilter(types=frozenset({"agentState", "activity"}))

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel.store.events, kernel.timers)
        self._kernel = kernel
        self._shelf = Shelf(kernel.paths.state)
        self._counts = Counts()
        self._suspicion = trial.Suspicion()
        self._work = TaskSet()
        self._alerted = ""
        """The alert that stands until a person makes other profiles count."""

    async def look(self) -> None:
        """Reads which bundle counts."""
        self._become(await asyncio.to_thread(self._shelf.counts))

    def look_soon(self) -> None:
        self._work.spawn(self.look(), name="bundles: what counts")

    def go_on(self) -> None:
        """Continues a trial that another daemon has begun."""
        if (open_trial := self._counts.trial) is not None:
            self._work.spawn(self._conclude(open_trial), name="bundles: trial")

    async def end(self) -> None:
        await self.close()
        await self._work.cancel()

    def _become(self, counts: Counts) -> None:
        if counts.current != self._counts.current:
            self._suspicion.launched.clear()
            if self._alerted:
                self._kernel.settle(self._alerted)
                self._alerted = ""
        self._counts = counts
        self._suspicion.unproved = frozenset(() if counts.trial is not None else counts.unproved)

    # --- what happens ---

    async def handle(self, event: Event) -> Changes | None:
        if not self._suspicion.unproved:
            return None
        try:
            profile = self._kernel.control.directory.view(event.agent_id).type
        except SynapsedError:  # it is there no more
            self._suspicion.launched.pop(event.agent_id, None)
            return None
        now = self._kernel.clock.monotonic()
        match event.data:
            case StateChanged(state=state, reason=reason):
                if self._suspicion.state(event.agent_id, profile, state, now):
                    self._doubt(event.agent_id, profile, reason or f"it is {state}")
                elif self._suspicion.launched.get(event.agent_id) == now:
                    silent = partial(self._silent, event.agent_id, profile, now)
                    self._kernel.timers.call_later(trial.UP_S, silent)
            case ActivityChanged(activity=activity):
                if self._suspicion.activity(event.agent_id, profile, activity):
                    self._work.spawn(self._proved(self._counts.current, profile), name="bundles: proved")
        return None

    def _silent(self, agent: str, profile: str, since: float) -> None:
        if self.running and self._suspicion.silent(agent, since):
            self._doubt(agent, profile, f"nothing of it was read for {trial.UP_S:g} s")

    async def _proved(self, digest: str, profile: str) -> None:
        self._become(await self._change(partial(trial.proved, digest=digest, profile=profile)))

    async def _change(self, decide: "partial[Counts | None]") -> Counts:
        return await asyncio.to_thread(self._shelf.change, decide)

    # --- a trial ---

    def _doubt(self, agent: str, profile: str, why: str) -> None:
        if self._counts.current == SHIPPED:
            return
        about = Trial(digest=self._counts.current, agent=agent, profile=profile, why=why)
        self._work.spawn(self._try_without(about), name="bundles: trial")

    async def _try_without(self, about: Trial) -> None:
        counts = await self._change(partial(trial.begun, trial=about))
        self._become(counts)
        if counts.trial != about:
            return
        log.warning("an agent does not come up: its profile's bundle is set aside", agent=about.agent, why=about.why)
        await self._reload(about.agent)
        await self._conclude(about)

    async def _reload(self, agent: str) -> None:
        """Brings the agent to the present state of its profile: it is started again if it is not alive, or was launched
        with another one."""
        try:
            changes = await self._kernel.control.processes.reload()
            view = self._kernel.control.directory.view(agent)
            restarts = any(change.agent == view.name and change.action == "restart" for change in changes)
            if restarts or view.state in trial.GONE:
                await self._kernel.control.processes.restart(agent)
        except SynapsedError as error:
            log.warning("the profiles cannot be changed for a trial", agent=agent, why=error.message)

    async def _conclude(self, about: Trial) -> None:
        came_up = await self._comes_up(about.agent)
        counts = await self._change(partial(trial.ended, trial=about, came_up=came_up))
        self._become(counts)
        if about.digest not in (counts.current, *counts.set_aside):
            return  # a person has gone back meanwhile
        if came_up:
            await self._tell(about)
        elif counts.current == about.digest:
            log.info("the agent does not come up without the bundle either", agent=about.agent)
            await self._reload(about.agent)

    async def _comes_up(self, agent: str) -> bool:
        until = self._kernel.clock.monotonic() + trial.TRIAL_S
        while self._kernel.clock.monotonic() < until:
            with contextlib.suppress(SynapsedError):
                view = self._kernel.control.directory.view(agent)
                if view.state == "running" and view.activity in trial.UP:
                    return True
            await pause(self._kernel.timers, LOOK_S)
        return False

    async def _tell(self, about: Trial) -> None:
        message = (
            f"the bundle of profiles {about.digest[:12]} was rolled back: with its profile {about.profile} this agent "
            f"did not come up ({about.why}), and without it it did. 'synapsectl doctor' says which profiles count"
        )
        details = {"state": "happened", "bundle": about.digest, "profile": about.profile}
        item = f"{about.agent}:bundle-{about.digest[:12]}"
        told = AttentionChanged(id=item, state="opened", kind="alert", question=message, code=ROLLED_BACK)
        self._kernel.alert(message)
        self._alerted = message
        await self._kernel.store.commit(
            events=[
                NewEvent(about.agent, AgentAlert(code=ROLLED_BACK, message=message, details=details)),
                NewEvent(about.agent, told),
            ]
        )


class BundleWatching(Running):
    def __init__(self, watch: BundleWatch) -> None:
        self._watch = watch

    def started(self) -> None:
        self._watch.start()
        self._watch.go_on()

    def reconfigured(self) -> None:
        self._watch.look_soon()

    async def stopping(self) -> None:
        await self._watch.end()


@asynccontextmanager
async def opened(kernel: Kernel) -> AsyncIterator[Running]:
    watch = BundleWatch(kernel)
    await watch.restore()
    await watch.look()
    yield BundleWatching(watch)
