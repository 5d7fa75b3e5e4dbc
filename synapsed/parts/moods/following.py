"""Applies `synapsed.parts.moods` to the events of the log, and reports changes of a person's mood.

It is a follower of the log, and saves the state of each agent's scorer beside its cursor.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import structlog
from pydantic import ValidationError

from synapsed.errors import SynapsedError
from synapsed.interfaces import EventFilter, FollowerState, NewEvent
from synapsed.kernel import Kernel, Running
from synapsed.model.events import REMOVED, Event, StateChanged
from synapsed.parts.moods.mood_record import MoodState
from synapsed.parts.moods.scorer import TYPES, Scorer, asks_for_text
from synapsed.store.follower import Changes, DurableFollower

log = structlog.stdlib.get_logger("synapsed.parts.moods")


class _Running(Running):
    def __init__(self, moods: "Moods") -> None:
        self._moods = moods

    def started(self) -> None:
        self._moods.start()

    async def stopping(self) -> None:
        await self._moods.close()


@asynccontextmanager
async def opened(kernel: Kernel) -> AsyncIterator[Running]:
    """Opens the part, which continues where the last daemon ended."""
    moods = Moods(kernel)
    await moods.restore()
    yield _Running(moods)


class Moods(DurableFollower):
    name = "moods"
    wants = EventFilter(types=TYPES | {"agentState"})

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel.store, kernel.timers)
        self._kernel = kernel
        self._scorers: dict[str, tuple[int, Scorer]] = {}
        """Scorers by agent, each with the last event that it has taken."""
        self._ahead: set[str] = set()
        """Agents whose scorer has taken more than is durable."""
        self._silent: set[str] = set()
        """Agents without reports, whose states are removed."""

    async def restore(self) -> None:
        self._scorers.clear()
        self._ahead.clear()
        await super().restore()

    async def handle(self, event: Event) -> Changes | None:
        agent_id = event.agent_id
        if isinstance(event.data, StateChanged):
            if event.data.state == REMOVED:
                await self._forget(agent_id)
        elif event.id <= self._store.events.born(agent_id):
            pass  # the agent was removed, and another has its id
        elif self._wanted(agent_id):
            self._silent.discard(agent_id)
            return await self._score(agent_id, event)
        elif agent_id not in self._silent:
            await self._forget(agent_id)
            self._silent.add(agent_id)
        return None

    async def pass_over(self, event: Event) -> None:
        await self._forget(event.agent_id)

    def memory(self) -> Mapping[str, FollowerState]:
        ahead = {_of(agent_id): self._state(agent_id) for agent_id in self._ahead}
        self._ahead.clear()
        return ahead

    def _wanted(self, agent_id: str) -> bool:
        """Returns True if moods are reported for the agent; for a removed agent they are not."""
        if not agent_id or not self._kernel.config.moods.enabled:
            return False
        try:
            name = self._kernel.control.directory.view(agent_id).name
        except SynapsedError:
            return False
        agent = self._kernel.agent_config(name)
        return agent is None or agent.moods

    async def _score(self, agent_id: str, event: Event) -> Changes | None:
        taken, scorer = await self._scorer(agent_id)
        if event.id <= taken:
            return None
        said = None
        if asks_for_text(event) and event.task_id is not None:
            said = await self._store.said(event.task_id)
        updates = scorer.evaluate(event, said)
        self._scorers[agent_id] = (event.id, scorer)
        self._ahead.add(agent_id)
        told = [NewEvent(agent_id, update, event.task_id, event.context_id) for update in updates]
        return Changes(told) if told else None

    async def _scorer(self, agent_id: str) -> tuple[int, Scorer]:
        known = self._scorers.get(agent_id)
        if known is None:
            kept = await self._store.follower(_of(agent_id))
            known = (0 if kept is None else kept.cursor, Scorer(_read(kept)))
        return known

    async def _forget(self, agent_id: str) -> None:
        """Drops the state of an agent: later reports begin without it."""
        self._scorers.pop(agent_id, None)
        self._ahead.discard(agent_id)
        self._silent.discard(agent_id)
        await self._store.forget_follower(_of(agent_id))

    def _state(self, agent_id: str) -> FollowerState:
        taken, scorer = self._scorers[agent_id]
        return FollowerState(cursor=taken, secret=scorer.state.model_dump_json())


def _read(kept: FollowerState | None) -> MoodState | None:
    """Returns the state for a scorer; None if there is no state, or it cannot be read."""
    if kept is None or not kept.secret:
        return None
    try:
        return MoodState.model_validate_json(kept.secret)
    except ValidationError as error:
        log.warning("what was kept is dropped", why=error.title)
        return None


def _of(agent_id: str) -> str:
    return f"mood:{agent_id}"
