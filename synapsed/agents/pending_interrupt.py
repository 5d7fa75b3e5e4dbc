"""An interrupt that was asked for: whoever asked hears one word of it, and no task is taken until it is over."""

import asyncio
from dataclasses import dataclass, field

from synapsed.aio import Timer
from synapsed.model.task import Task, TaskState


def _future() -> asyncio.Future[bool]:
    return asyncio.get_running_loop().create_future()


@dataclass(slots=True)
class PendingInterrupt:
    """What stops the program is the link's to know. `reason` is that of a task that ran; with a `failure`, it fails
    with these words. `outcome` tells whether the program confirmed it."""

    reason: str
    failure: str = ""
    outcome: asyncio.Future[bool] = field(default_factory=_future)
    confirmed: bool = False
    timer: Timer | None = None

    def ended(self, task: Task) -> None:
        """The task that ran has ended: whoever asked hears at once that it is canceled. Tasks are taken again when the
        composer is cleared, too."""
        if task.status is TaskState.CANCELED:
            self._tell(confirmed=True)

    def end(self) -> None:
        """Nothing is under way any more."""
        if self.timer is not None:
            self.timer.cancel()
        self._tell(confirmed=self.confirmed)

    def _tell(self, *, confirmed: bool) -> None:
        if not self.outcome.done():
            self.outcome.set_result(confirmed)
