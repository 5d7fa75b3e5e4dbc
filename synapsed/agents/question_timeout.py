"""Questions of a task that nobody answers: after `question_timeout` the turn is stopped, as a cancellation would stop
it, and the task has failed. When that is follows from when the task began to wait, which is durable; a clock that is
set meanwhile changes nothing.

What a program asks before it works at all (`OF_NO_TURN`) is left to a person: the keys that stop a turn would refuse
it, or end the program.
"""

from datetime import datetime

from synapsed.agents.actor import Actor
from synapsed.agents.part_interfaces import Configured
from synapsed.agents.turns import OF_NO_TURN, AgentTurns
from synapsed.clock import Ages, Clock
from synapsed.config.config import seconds_of
from synapsed.model.task import INTERRUPTED_STATES, Task

TRY_AGAIN_S = 30.0
"""A program that did not stop is asked again so much later."""

TIMED_OUT = "nobody answered"


class Unanswered:
    """Of one agent."""

    def __init__(self, turns: AgentTurns, owner: Configured, *, clock: Clock, actor: Actor) -> None:
        self._turns = turns
        self._owner = owner
        self._clock = clock
        self._ages = Ages(clock)
        self._actor = actor
        self._tried: tuple[str, float] = ("", 0.0)

    def sweep(self) -> None:
        """Stop the turn whose question has waited for too long."""
        if (late := self._late()) is None or (limit := self._owner.config.question_timeout) is None:
            return
        now = self._clock.monotonic()
        if self._tried[0] != late.updated_at or now - self._tried[1] >= TRY_AGAIN_S:
            self._tried = late.updated_at, now
            self._actor.post(self._give_up, late.updated_at, limit)

    def _late(self) -> Task | None:
        limit, task = self._owner.config.question_timeout, self._turns.current
        if limit is None or task is None or task.status not in INTERRUPTED_STATES or task.prompt is None:
            return None
        asked = datetime.fromisoformat(task.updated_at).timestamp()
        waited = self._ages.of(f"{task.id} {task.updated_at}", asked)
        return task if waited >= seconds_of(limit) and task.prompt.type not in OF_NO_TURN else None

    async def _give_up(self, asked_at: str, limit: str) -> None:
        late = self._late()
        if late is not None and late.prompt is not None and late.updated_at == asked_at:
            self._actor.log.info("a question timed out", task=late.id, after=limit)
            self._turns.interruption.begin(TIMED_OUT, f"nobody answered within {limit}: {late.prompt.prompt}")
