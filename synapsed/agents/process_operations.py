"""Long operations on an agent's program: launching it, adopting it, opening its link, stopping it, and removing the
leftovers of an earlier launch.

Each runs beside the agent's actor, and reports its result to its owner (`AgentProcess`) by a call in the actor.
"""

import asyncio
import functools
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from synapsed.agents.actor import Actor
from synapsed.agents.lifecycle import ProcessEvent
from synapsed.agents.part_interfaces import ProgramOwner
from synapsed.errors import AgentError, NotReady, SynapsedError
from synapsed.interfaces import AgentLink
from synapsed.keepers.launch_plan import LaunchPlan, LaunchPlanner, LinkFactory, ProgramEnd
from synapsed.model.link import LinkExited
from synapsed.model.records import LaunchRecord
from synapsed.profiles.profile import Profile

if TYPE_CHECKING:
    from synapsed.agents.agent_process import AgentProcess


class ProcessOperations:
    """Runs the operations. `every` is the profile with its variants for versions; `program` handles its reports."""

    def __init__(
        self,
        owner: "AgentProcess",
        program: ProgramOwner,
        every: Profile,
        *,
        planner: LaunchPlanner,
        factory: LinkFactory,
        actor: Actor,
    ) -> None:
        self._owner = owner
        self._program = program
        self._every = every
        self._planner = planner
        self._factory = factory
        self._actor = actor
        self._reading: asyncio.Task[None] | None = None
        self._dismissing: asyncio.Task[None] | None = None
        self.leaving = False
        """True if the daemon ends, and the program goes on running."""

    def launch(self) -> None:
        """Begins a launch; `launched` or `launch_failed` follows."""
        self._actor.spawn(self._launch())

    def check(self) -> None:
        """Raises NotReady if the program could not be launched again: then the running one must not be ended."""
        record = self._owner.record
        try:
            self._planner.check(record, self._every)
        except SynapsedError as error:
            why = f"{record.name} could not be started again, so its program runs on: {error.message}"
            raise NotReady(why, agent=record.name, because=error.code) from None

    def adopt(self) -> None:
        """Looks for the last daemon's program; `launched` or `found_dead` follows."""
        self._actor.spawn(self._adopt())

    def stop(self, link: AgentLink) -> None:
        """Begins to end the program; `gone` follows."""
        self._actor.spawn(self._stop(link))

    def dismiss(self) -> None:
        """Ends all leftovers of the last launch; the next launch waits for this."""
        self._dismissing = self._actor.spawn(self._dismiss())

    async def version_known(self, patience: float) -> None:
        """Waits until the reading of the program's version is over, for at most `patience` seconds."""
        if self._reading is not None:
            await asyncio.wait([self._reading], timeout=patience)

    async def _launch(self) -> None:
        if self._dismissing is not None:
            await asyncio.wait([self._dismissing])
        launched = await self._tried(self._launched(), "the launch failed")
        if isinstance(launched, SynapsedError):
            await self._actor.report(self._owner.launch_failed, launched)
            return
        version, plan, link = launched
        self._owner.given(self._owner.record.conversation if plan.resumed else plan.conversation, chosen=plan.chosen)
        launch = link.launch.model_copy(update={"resumed": plan.resumed, "version": version})
        await self._actor.report(self._owner.launched, link, launch, ProcessEvent.LAUNCHED)
        if version is None:
            self._reading = self._actor.spawn(self._read_version(launch, plan))
        await self._open(link)

    async def _launched(self) -> tuple[str | None, LaunchPlan, AgentLink]:
        """Returns the program's version, the plan of the launch, and the link. The version is read first only if the
        profile has variants for versions; otherwise it is None."""
        owner, every, version = self._owner, self._every, None
        plan = self._planner.plan(owner.record, every)
        if every.versions:
            version = await self._factory.version(owner.record, every, plan)
            plan = self._planner.plan(owner.record, every.at(version).with_variants({}))
        owner.profile = every.at(version)
        return version, plan, await self._factory.launch(owner.record, owner.profile, plan)

    async def _read_version(self, launch: LaunchRecord, plan: LaunchPlan) -> None:
        """Reads the version while the program starts."""
        version = await self._factory.version(self._owner.record, self._every, plan)
        if version is not None or self._every.version is not None:
            await self._actor.report(self._owner.told_version, launch, version or "")

    async def _adopt(self) -> None:
        owner = self._owner
        link = await self._tried(self._factory.adopt(owner.record, owner.profile), "the program could not be adopted")
        if link is None or isinstance(link, SynapsedError):
            ended = await self._tried(self._factory.ended(owner.record), "its end could not be read")
            if isinstance(ended, SynapsedError):
                ended = ProgramEnd(LinkExited(None, ended.message), taken_down=False)
            if ended.exited.exit_code is None and owner.record.launch is not None:
                await self._sweep(owner.record.launch)
            await self._actor.report(owner.found_dead, ended)
            return
        was = owner.record.launch
        known = was.model_dump(include={"resumed", "version", "session_ns"}) if was is not None else {}
        launch = link.launch.model_copy(update=known)
        await self._actor.report(owner.launched, link, launch, ProcessEvent.ADOPTED)
        await self._open(link)

    async def _open(self, link: AgentLink) -> None:
        if self.leaving:
            link.leave_unreached()
        failure = await self._tried(link.open(functools.partial(self._actor.emit, link)), "its link cannot be opened")
        if failure is None:
            await self._actor.report(self._owner.opened, link)
            return
        await self._sweep(link.launch)
        lost = LinkExited(None, f"its program cannot be reached: {failure.message}")
        await self._actor.report(self._owner.open_failed, link, lost)

    async def _stop(self, link: AgentLink) -> None:
        exited = await self._tried(self._stopped(link), "the stop failed")
        if isinstance(exited, SynapsedError):
            await self._sweep(link.launch)
            exited = LinkExited(None, exited.message)
        await self._actor.report(self._owner.gone, exited)

    async def _stopped(self, link: AgentLink) -> LinkExited:
        if self._owner.record.parking:
            await self._program.leaves(link)
        return await link.stop(self._owner.profile.exit.grace_ms / 1000)

    async def _dismiss(self) -> None:
        """Ends the keeper of a program whose exit is on record: the last daemon may have been killed before."""
        record, what = self._owner.record, "the last keeper could not be dismissed"
        found = await self._tried(self._factory.adopt(record, self._owner.profile), what)
        if record.launch is not None and found is not None and not isinstance(found, SynapsedError):
            await self._tried(self._factory.sweep(record.launch), what)

    async def _sweep(self, launch: LaunchRecord) -> None:
        """Ends everything that is left of a launch whose end was not seen. This is done before the exit is on record:
        after that, the next daemon ends only the keeper (`dismiss`)."""
        ended = await self._tried(self._factory.sweep(launch), "processes are left over")
        if ended and not isinstance(ended, SynapsedError):
            self._actor.log.warning("processes were left over and are ended", count=ended)

    async def _tried[T](self, work: Awaitable[T], failed: str) -> T | SynapsedError:
        """Returns the result of `work`, or its error, of whatever kind: else the agent's state would last for ever, and
        with it the wait of its callers."""
        try:
            return await work
        except (SynapsedError, OSError) as error:
            failure: Exception = error
            self._actor.log.warning(failed, error=str(error))
        except Exception as error:
            failure = error
            self._actor.log.exception(failed)
        return failure if isinstance(failure, SynapsedError) else AgentError(str(failure) or type(failure).__name__)
