"""Watches whether agents come up with the bundle in use: does the I/O around `suspicion`.

After two failed launches it rolls the bundle back if the agent comes up with the profile from before (`trial`), and
notifies a person in any case.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from synapsed.aio import TaskSet
from synapsed.errors import SynapsedError
from synapsed.interfaces import EventFilter, NewEvent
from synapsed.kernel import Kernel, Running
from synapsed.model.events import ActivityChanged, AgentAlert, AttentionChanged, Event, StateChanged
from synapsed.parts.profile_tools.bundles import suspicion
from synapsed.parts.profile_tools.bundles.shelf import SHIPPED, Counts, Shelf
from synapsed.parts.profile_tools.bundles.trial import Trials
from synapsed.store.follower import Changes, Follower

NOT_UP = "BUNDLE_NOT_UP"
ROLLED_BACK = "BUNDLE_ROLLED_BACK"
"""Codes of the alerts."""
DOUBTS = 2
"""Number of failed launches of one profile after which a trial is made, or a person is notified."""


class BundleWatch(Follower):
    """Watches agents of profiles that a bundle has changed, until one of each has come up."""

    name = "bundles"
    wants = EventFilter(types=frozenset({"agentState", "activity"}))

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel.store.events, kernel.timers)
        self._kernel = kernel
        self._shelf = Shelf(kernel.paths.state)
        self._counts = Counts()
        self._suspicion = suspicion.Suspicion()
        self._trials = Trials(kernel, self._shelf, self._become)
        self._work = TaskSet()
        self._doubts: dict[str, int] = {}
        """Failed launches with the bundle in use, by profile."""
        self._tried: set[str] = set()
        """Profiles of it for which a trial was made."""
        self._alerts: dict[str, str] = {}
        """Alerts by profile: each lasts until an agent comes up with it, or a person chooses another bundle."""

    async def look(self) -> None:
        """Reads which bundle is in use."""
        self._become(await asyncio.to_thread(self._shelf.counts))

    def go_on(self) -> None:
        """Ends a trial that an earlier daemon had begun."""
        self._work.spawn(self._trials.end(self._counts), name="bundles: end of a trial")

    def look_soon(self) -> None:
        self._work.spawn(self.look(), name="bundles: what counts")

    async def end(self) -> None:
        await self.close()
        await self._work.cancel()

    def _become(self, counts: Counts) -> None:
        if counts.current != self._counts.current:
            self._suspicion.launched.clear()
            self._suspicion.reported.clear()
            self._doubts.clear()
            self._tried.clear()
            self._settle(*self._alerts)
        self._counts = counts
        self._suspicion.unproved = frozenset(counts.unproved) - {counts.aside}

    # --- what happens ---

    async def handle(self, event: Event) -> Changes | None:
        self._trials.happened(event.agent_id)
        if not self._suspicion.unproved:
            return None
        try:
            profile = self._kernel.control.directory.view(event.agent_id).type
        except SynapsedError:  # the agent was removed
            self._suspicion.forget(event.agent_id)
            return None
        now = self._kernel.clock.monotonic()
        match event.data:
            case StateChanged(state=state, reason=reason):
                doubted = profile in self._suspicion.unproved and profile in self._doubts
                if self._suspicion.state(event.agent_id, profile, state, now) or (
                    doubted and state == suspicion.GIVEN_UP
                ):
                    self._doubt(event.agent_id, profile, reason or f"it is {state}", state)
                elif self._suspicion.launched.get(event.agent_id) == now:
                    silent = partial(self._silent, event.agent_id, profile, now)
                    self._kernel.timers.call_later(suspicion.UP_S, silent)
            case ActivityChanged(activity=activity):
                if self._suspicion.activity(event.agent_id, profile, activity):
                    self._work.spawn(self._proved(self._counts.current, profile), name="bundles: proved")
        return None

    def _silent(self, agent: str, profile: str, since: float) -> None:
        if self.running and self._suspicion.silent(agent, since):
            self._doubt(agent, profile, f"nothing of it was read for {suspicion.UP_S:g} s")

    def _settle(self, *profiles: str) -> None:
        for profile in profiles:
            if (message := self._alerts.pop(profile, None)) is not None:
                self._kernel.settle(message)

    async def _proved(self, digest: str, profile: str) -> None:
        self._settle(profile)
        self._become(await self._change(partial(suspicion.proved, digest=digest, profile=profile)))

    async def _change(self, decide: "partial[Counts | None]") -> Counts:
        return await asyncio.to_thread(self._shelf.change, decide)

    # --- what is told ---

    def _doubt(self, agent: str, profile: str, why: str, gone: str = "") -> None:
        """Notes a failed launch; `gone`: the state of the agent, if its program has ended. A program that still runs
        may only be slow, and is not ended to try another profile."""
        self._doubts[profile] = self._doubts.get(profile, 0) + (DOUBTS if gone == suspicion.GIVEN_UP else 1)
        if self._counts.current == SHIPPED or self._doubts[profile] < DOUBTS:
            return
        if gone and profile not in self._tried:
            self._tried.add(profile)
            self._work.spawn(self._try_without(self._counts.current, agent, profile, why), name="bundles: trial")
        else:
            self._work.spawn(self._not_up(self._counts.current, agent, profile, why), name="bundles: tell")

    async def _try_without(self, digest: str, agent: str, profile: str, why: str) -> None:
        if not await self._trials.rolled_back(digest, agent, profile):
            await self._not_up(digest, agent, profile, why)
            return
        message = (
            f"the bundle of profiles {digest[:12]} was rolled back: with its profile {profile} this agent did not come "
            f"up ({why}), and with the one before it did. 'synapsectl profiles list' says which profiles count"
        )
        details = {"state": "happened", "bundle": digest, "profile": profile}
        await self._tell(agent, profile, AgentAlert(code=ROLLED_BACK, message=message, details=details))

    async def _not_up(self, digest: str, agent: str, profile: str, why: str) -> None:
        if self._counts.current != digest or profile not in self._counts.unproved or profile in self._alerts:
            return
        message = (
            f"this agent does not come up with its profile {profile} of the bundle of profiles {digest[:12]} ({why}); "
            "it may have other reasons. 'synapsectl profiles update --rollback' goes back"
        )
        details = {"state": "happened", "bundle": digest, "profile": profile}
        await self._tell(agent, profile, AgentAlert(code=NOT_UP, message=message, details=details))

    async def _tell(self, agent: str, profile: str, alert: AgentAlert) -> None:
        item = f"{agent}:bundle-{alert.details['bundle'][:12]}"
        told = AttentionChanged(id=item, state="opened", kind="alert", question=alert.message, code=alert.code)
        self._kernel.alert(alert.message)
        self._alerts[profile] = alert.message
        await self._kernel.store.commit(events=[NewEvent(agent, alert), NewEvent(agent, told)])


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
