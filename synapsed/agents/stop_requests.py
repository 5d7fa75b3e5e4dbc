"""Handles requests to stop an agent's work (the running turn, or one task), and stops tasks whose question stays
unanswered.

A question that a program asks before it works at all (`OF_NO_TURN`) is left to a person: the keys that stop a turn
would refuse it, or end the program.
"""

import asyncio
import contextlib
from datetime import datetime
from typing import TYPE_CHECKING

from synapsed.agents.actor import Actor
from synapsed.agents.agent_process import AgentProcess
from synapsed.agents.parking import Parking
from synapsed.agents.part_doors import HoldDoor
from synapsed.agents.turns import OF_NO_TURN, AgentTurns
from synapsed.clock import Ages, Clock
from synapsed.config.config import seconds_of
from synapsed.errors import NotReady, ProgramEnded, TaskNotCancelable
from synapsed.interfaces import Store
from synapsed.model.task import INTERRUPTED_STATES, Task, TaskState
from synapsed.tasks.transitions import describe_exit

if TYPE_CHECKING:
    from synapsed.agents.live_agent import Agent

CANCEL_ADOPTION_S = 5.0
"""Seconds that a cancel request waits for the program to be adopted while the daemon comes up."""


class StopRequests:
    """Handles the requests to stop one agent's work."""

    def __init__(
        self,
        process: AgentProcess,
        turns: AgentTurns,
        hold: HoldDoor,
        parking: Parking,
        owner: "Agent",
        *,
        store: Store,
        actor: Actor,
    ) -> None:
        self._process = process
        self._turns = turns
        self._hold = hold
        self._parking = parking
        self._owner = owner
        self._store = store
        self._actor = actor

    async def interrupt(self) -> bool:
        """Stops the running turn, also a person's own, and lifts a hold; returns False when there was neither, or the
        program did not confirm. Raises ProgramEnded if the program ended by this."""
        await self._owner.adopted()
        if self._parking.away:
            return False
        self._process.require_link()
        held = self._hold.hold() is not None
        before = self._owner.exit
        pending = await self._actor.call(self._begin_interrupt)
        await self._actor.call(self._hold.lift, "a person does not wait")  # last: the next turn is not to be stopped
        if pending is None and held:
            await self._actor.call(self._owner.recheck)
            return True
        done = pending is not None and await self._actor.wait(asyncio.shield(pending))
        if not done and (exited := self._owner.exit) is not before and exited is not None:
            name, state, how = self._process.record.name, self._process.state.value, describe_exit(exited)
            raise ProgramEnded(
                f"{name}: its program ended when it was interrupted ({how}); the agent is {state}", agent=name
            )
        return done

    async def stop_background(self) -> bool:
        """Stops everything that its program runs in the background; returns False if something still runs. Raises
        NotReady while the program is not at rest, because it takes the keys for this at its composer."""
        await self._owner.adopted()
        if self._parking.away:
            return False
        pending = await self._actor.call(self._begin_background)
        return await self._actor.wait(asyncio.shield(pending))

    async def _begin_background(self) -> asyncio.Future[bool]:
        link, name = self._process.require_link(), self._process.record.name
        if self._turns.current is not None or not (await link.observe()).can_receive:
            raise NotReady(
                f"{name} is at work: its background can only be stopped while it rests; try again then", agent=name
            )
        return self._turns.interruption.begin("background", stop=link.stop_background)

    async def cancel(self, task_id: str) -> Task:
        """Cancels a task. Raises TaskNotCancelable if the task has ended, if the program goes on, or while a keeper
        that stands still prevents the adoption of the program."""
        if (current := self._turns.current) is not None and current.id == task_id:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._owner.adopted(), CANCEL_ADOPTION_S)
        outcome = await self._actor.call(self._turns.cancel, task_id)
        if isinstance(outcome, Task):
            return outcome
        confirmed = await self._actor.wait(asyncio.shield(outcome))
        return await self._actor.call(self._canceled, task_id, confirmed)

    async def _begin_interrupt(self) -> asyncio.Future[bool] | None:
        return self._turns.interruption.begin("interrupted") if await self._turns.runs_something() else None

    async def _canceled(self, task_id: str, confirmed: bool) -> Task:
        if self._turns.ahead(task_id) is not None:  # its program ended before the message was submitted: it waits again
            outcome = await self._turns.cancel(task_id)
            if isinstance(outcome, Task):
                return outcome
        task = await self._store.task(task_id)
        assert task is not None, "a task that was accepted is in the store"
        if task.status is TaskState.CANCELED:
            return task
        why = f"it is {task.status.value}" if task.terminal or confirmed else "the program did not confirm it"
        if task.error is not None and task.error.code == ProgramEnded.code:
            why = f"it failed, {task.error.message}"
        raise TaskNotCancelable(f"task {task_id} was not canceled: {why}", task=task_id, status=task.status.value)


TRY_AGAIN_S = 30.0
"""Seconds until a program that did not stop is asked again."""

TIMED_OUT = "nobody answered"


class Unanswered:
    """Stops turns of one agent whose question stays unanswered."""

    def __init__(self, turns: AgentTurns, owner: "Agent", *, clock: Clock, actor: Actor) -> None:
        self._turns = turns
        self._owner = owner
        self._clock = clock
        self._ages = Ages(clock)
        self._actor = actor
        self._tried: tuple[str, float] = ("", 0.0)

    def sweep(self) -> None:
        """Stops the turn whose question has waited for too long."""
        if (late := self._overdue_task()) is None or (limit := self._owner.config.question_timeout) is None:
            return
        now = self._clock.monotonic()
        if self._tried[0] != late.updated_at or now - self._tried[1] >= TRY_AGAIN_S:
            self._tried = late.updated_at, now
            self._actor.post(self._give_up, late.updated_at, limit)

    def _overdue_task(self) -> Task | None:
        limit, task = self._owner.config.question_timeout, self._turns.current
        if limit is None or task is None or task.status not in INTERRUPTED_STATES or task.prompt is None:
            return None
        asked = datetime.fromisoformat(task.updated_at).timestamp()
        waited = self._ages.of(f"{task.id} {task.updated_at}", asked)
        return task if waited >= seconds_of(limit) and task.prompt.type not in OF_NO_TURN else None

    async def _give_up(self, asked_at: str, limit: str) -> None:
        late = self._overdue_task()
        if late is not None and late.prompt is not None and late.updated_at == asked_at:
            self._actor.log.info("a question timed out", task=late.id, after=limit)
            self._turns.interruption.begin(TIMED_OUT, f"nobody answered within {limit}: {late.prompt.prompt}")
