"""Interrupts an agent's work: the link is asked once, all callers get the same result, and no task is taken until the
interruption is over."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from synapsed.agents.actor import Actor
from synapsed.agents.agent_process import AgentProcess
from synapsed.aio import Timer
from synapsed.clock import Clock
from synapsed.errors import SynapsedError
from synapsed.model.task import Task, TaskState
from synapsed.tasks import transitions

if TYPE_CHECKING:
    from synapsed.agents.turns import AgentTurns


@dataclass(slots=True)
class PendingInterrupt:
    """An interruption under way."""

    reason: str
    """A task that ran ends `canceled` with this reason, unless it is empty."""
    failure: str = ""
    """A task that ran fails with these words, unless they are empty."""
    outcome: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Its result is True if the program confirmed the interruption."""
    confirmed: bool = False
    timer: Timer | None = None

    def ended(self, task: Task) -> None:
        """Handles the end of the task that ran: callers learn at once that it is canceled. The next task is taken only
        when the composer is cleared, too."""
        if task.status is TaskState.CANCELED:
            self._tell(confirmed=True)

    def end(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self._tell(confirmed=self.confirmed)

    def _tell(self, *, confirmed: bool) -> None:
        if not self.outcome.done():
            self.outcome.set_result(confirmed)


INTERRUPT_TOLD_S = 3.0
"""Seconds that the link has to report how the turn ended, after the program confirmed an interruption (the turn may
have ended by itself just before). Without a report by then, the task ends by the confirmation alone."""


class Interruption:
    """Manages interruptions, at most one at a time. Everything here runs in the agent's actor but for the request."""

    def __init__(self, process: AgentProcess, owner: "AgentTurns", *, clock: Clock, actor: Actor) -> None:
        self._process = process
        self._owner = owner
        self._clock = clock
        self._actor = actor
        self.pending: PendingInterrupt | None = None

    def begin(
        self, reason: str, failure: str = "", *, stop: Callable[[], Awaitable[bool]] | None = None
    ) -> asyncio.Future[bool]:
        """Stops the running work, unless an interruption is under way already; the future says whether the program
        confirmed it. A task that ran ends `canceled` with `reason`, or, with a `failure`, as failed (TIMEOUT) with
        these words. No task is taken meanwhile. `stop`: a request that stops background work, in place of the turn."""
        if self.pending is None:
            self.pending = PendingInterrupt(reason, failure)
            self._actor.spawn(self._ask(self.pending, stop))
        return self.pending.outcome

    def turn_ended(self, task: Task) -> None:
        """Notes that the turn of `task` is over, durably."""
        if self.pending is not None:
            self.pending.ended(task)

    def program_gone(self) -> None:
        """Notes that the program is gone: nothing is left to interrupt."""
        if self.pending is not None and self.pending.confirmed:
            self.end(over=True)

    def end(self, *, over: bool = False) -> None:
        """Lets tasks be taken again when the link has confirmed (`over`: or refused) and the turn has ended."""
        pending = self.pending
        if pending is None or not (over or (pending.confirmed and self._owner.current is None)):
            return
        self.pending = None
        pending.end()

    async def _ask(self, pending: PendingInterrupt, stop: Callable[[], Awaitable[bool]] | None) -> None:
        confirmed = False
        await self._owner.given()
        try:
            link = self._process.link
            if link is not None:
                confirmed = await (stop or link.interrupt)()
        except SynapsedError as error:
            self._actor.log.warning("the interruption failed", error=error.message)
        finally:
            # The link's reports of this time are before this call in the inbox, so they are handled first.
            self._actor.post(self._answered, pending, confirmed)

    async def _answered(self, pending: PendingInterrupt, confirmed: bool) -> None:
        pending.confirmed = confirmed
        if confirmed and self._owner.current is not None:
            pending.timer = self._actor.post_later(INTERRUPT_TOLD_S, self._untold, pending)
            return
        self.end(over=True)
        await self._owner.pump()

    async def _untold(self, pending: PendingInterrupt) -> None:
        if self.pending is not pending:
            return  # its end was reported just now, and another turn runs
        if (task := self._owner.current) is not None:
            reason, failure, now = pending.reason, pending.failure, self._clock.wall()
            await self._owner.persist(transitions.stopped(task, reason=reason, failure=failure, now=now))
        self.end(over=True)
        await self._owner.pump()
