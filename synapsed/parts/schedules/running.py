"""Opens the part: one scheduler, and the findings about its schedules."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from synapsed.errors import SynapsedError
from synapsed.interfaces import Directory, ProcessState
from synapsed.kernel import Automated, Kernel, Running
from synapsed.parts.schedules.schedule import ScheduleView
from synapsed.parts.schedules.scheduler import Scheduler
from synapsed.parts.schedules.table import occurrence_of


@asynccontextmanager
async def opened(kernel: Kernel) -> AsyncIterator[Running]:
    """Opens the part, which continues where the last daemon ended."""
    kernel.store.with_tasks(occurrence_of)
    scheduler = Scheduler(
        directory=kernel.control.directory,
        tasks=kernel.control.tasks,
        store=kernel.store,
        clock=kernel.clock,
        timers=kernel.timers,
        zone=kernel.zone,
    )
    await scheduler.restore(kernel.config.schedule)
    yield Schedules(kernel, scheduler)


class Schedules(Running):
    def __init__(self, kernel: Kernel, scheduler: Scheduler) -> None:
        self.provides = {Scheduler: scheduler}
        self._kernel = kernel
        self._scheduler = scheduler

    def started(self) -> None:
        self._scheduler.start()

    async def stopping(self) -> None:
        await self._scheduler.close()

    def reconfigured(self) -> None:
        self._scheduler.reconfigure(self._kernel.config.schedule)

    async def automated(self) -> list[Automated]:
        directory = self._kernel.control.directory
        return [automated(view, directory) for view in await self._scheduler.views()]


def automated(view: ScheduleView, directory: Directory) -> Automated:
    """Returns the finding about a schedule for `synapsectl doctor`."""
    found = Automated(kind="schedule", name=view.name, source=view.source)
    try:
        agent_id = directory.resolve(view.agent)
    except SynapsedError as error:
        return found.model_copy(update={"state": "wrong", "problem": error.message})
    if not view.next:
        return found.model_copy(update={"state": "idle", "problem": f"none of its times comes again ({view.at})"})
    if view.last is not None and view.last.outcome == "refused":
        problem = f"its message of {view.last.at} was refused: {view.last.problem}"
        return found.model_copy(update={"state": "wrong", "problem": problem})
    if _is_stopped(agent_id, directory):
        problem = f"{view.agent} is stopped: while it is, its messages are refused"
        return found.model_copy(update={"state": "idle", "problem": problem})
    return found


def _is_stopped(agent_id: str, directory: Directory) -> bool:
    try:
        return directory.view(agent_id).state is ProcessState.STOPPED
    except SynapsedError:  # an agent elsewhere has no state here
        return False
