"""Launches an agent once more with the profile from before a bundle, if its program ends with the bundle's: does the
I/O around `suspicion.set_aside` and `suspicion.after_trial`.

Meanwhile only that profile is set aside, so that agents with other profiles are not affected; a running program is not
ended. The file that names the bundle in use (`shelf`) names this profile, too: if the daemon is killed in the middle,
the next one ends the trial.
"""

import asyncio
from collections.abc import Callable
from functools import partial

import structlog

from synapsed.errors import SynapsedError
from synapsed.kernel import Kernel
from synapsed.parts.profile_tools.bundles import suspicion
from synapsed.parts.profile_tools.bundles.shelf import Counts, Shelf

log = structlog.stdlib.get_logger("synapsed.bundles")


class Trials:
    """Makes one trial at a time. `become` is called with the counts, whenever they have changed."""

    def __init__(self, kernel: Kernel, shelf: Shelf, become: Callable[[Counts], None]) -> None:
        self._kernel = kernel
        self._shelf = shelf
        self._become = become
        self._alone = asyncio.Lock()
        self._agent: str | None = None
        self._heard = asyncio.Event()

    @property
    def runs(self) -> bool:
        return self._alone.locked()

    def happened(self, agent: str) -> None:
        """Notes that an agent has changed: the one in the trial may have come up."""
        if agent == self._agent:
            self._heard.set()

    async def rolled_back(self, digest: str, agent: str, profile: str) -> bool:
        """Makes a trial for an agent whose program has ended with its profile of that bundle. If the program comes up
        with the profile from before within UP_S, the bundle before is in use again, and True is returned; otherwise all
        is as it was."""
        async with self._alone:
            until = self._kernel.clock.monotonic() + suspicion.UP_S
            self._agent = agent
            try:
                if (done := await self._set_aside(digest, agent, profile)) is None:
                    return await self._end(digest, profile, came_up=False)
                came_up = await self._comes_up(agent, until, launched=done != "restart")
                return await self._end(digest, profile, came_up=came_up)
            except SynapsedError as error:
                log.warning("a bundle of profiles cannot be tried", agent=agent, why=error.message)
                return await self._end(digest, profile, came_up=False)
            finally:
                self._agent = None

    async def end(self, counts: Counts) -> None:
        """Ends a trial that an earlier daemon had begun, without a result."""
        if counts.aside and not self.runs:
            async with self._alone:
                await self._end(counts.current, counts.aside, came_up=False)

    async def _set_aside(self, digest: str, agent: str, profile: str) -> str | None:
        """Sets the profile aside, and returns the effect on the agent; None if nothing changes for it, for example
        because its profile is a person's own. There is no trial while the configuration has changes that the daemon was
        not asked to read."""
        if await self._unasked():
            return None
        counts = await self._change(partial(suspicion.set_aside, digest=digest, profile=profile))
        if counts.current != digest or counts.aside != profile:
            return None
        changes = await self._kernel.control.processes.reload()
        name = self._kernel.control.directory.view(agent).name
        return next((each.action for each in changes if each.agent == name and each.action != "refused"), None)

    async def _comes_up(self, agent: str, until: float, *, launched: bool) -> bool:
        """Starts the agent's program once if it has ended, and returns True as soon as a screen is read of a program
        that was launched with the profile from before. `launched` is False while the program of the earlier launch may
        still run."""
        clock, directory = self._kernel.clock, self._kernel.control.directory
        over = self._kernel.timers.call_later(until - clock.monotonic(), self._heard.set)
        started = False
        try:
            while True:
                self._heard.clear()
                view = directory.view(agent)
                if clock.monotonic() >= until or view.state in suspicion.AT_REST:
                    return False
                if launched and view.state == "running" and view.activity in suspicion.UP:
                    return True
                if view.state in suspicion.GONE and not started:
                    launched = started = True
                    await self._kernel.control.processes.restart(agent)
                else:
                    await self._heard.wait()
        finally:
            over.cancel()

    async def _end(self, digest: str, profile: str, *, came_up: bool) -> bool:
        """Ends the trial, unless a person has chosen another bundle meanwhile. Returns True if the bundle was rolled
        back."""
        ended = list[Counts]()

        def decide(counts: Counts) -> Counts | None:
            ended.extend(suspicion.after_trial(counts, digest=digest, profile=profile, came_up=came_up))
            return ended[0] if ended else None

        try:
            unasked = await self._unasked()
            await self._change(decide)
            if ended and not unasked:
                await self._kernel.control.processes.reload()
        except SynapsedError as error:
            log.warning("a trial of a bundle of profiles was not ended", profile=profile, why=error.message)
        return bool(ended) and ended[0].current != digest

    async def _unasked(self) -> bool:
        """Returns True if reading the configuration again would do more than the trial needs, or fail."""
        try:
            changes = await self._kernel.control.processes.reload(dry_run=True)
        except SynapsedError:
            return True
        return any(change.action != "refused" for change in changes)

    async def _change(self, decide: Callable[[Counts], Counts | None]) -> Counts:
        counts = await asyncio.to_thread(self._shelf.change, decide)
        self._become(counts)
        return counts
