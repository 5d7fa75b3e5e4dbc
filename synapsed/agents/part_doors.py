"""Doors at which an agent asks the parts that are there: who reads its answers, who tells of its work.

Agents are made before parts are open, so each asks once it needs one. Without one nothing is done; nor is where a part
has a fault: the agent goes on.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog

from synapsed.agents.actor import Actor
from synapsed.errors import StoreError, SynapsedError
from synapsed.interfaces import AnswerReader, AnswerReading, NewEvent, Store, WorkTeller, WorkTelling
from synapsed.model.task import Artifact, Prompt, Task
from synapsed.profiles.profile import Profile

log = structlog.stdlib.get_logger("synapsed.parts")


class PartDoors:
    """Of all agents."""

    def __init__(self) -> None:
        self._provided: Callable[[type], list[Any]] = lambda _: []

    def become(self, provided: Callable[[type], list[Any]]) -> None:
        """The parts are open: `provided` returns what they provide of a type."""
        self._provided = provided

    def first(self, kind: type) -> Any:
        """Returns what the first part in the list's order provides of that type; None without any."""
        return next(iter(self._provided(kind)), None)


class AnswerDoor:
    """Of one agent."""

    def __init__(self, doors: PartDoors, profile: Profile) -> None:
        self._doors = doors
        self._profile = profile
        self._reader: AnswerReader | None = None

    async def read(self, text: str, *, whole: bool) -> Sequence[Artifact]:
        """Returns what of the answer is an artifact of its own. `whole`: `text` is all of it."""
        try:
            if self._reader is None and (reading := self._doors.first(AnswerReading)) is not None:
                self._reader = reading.reader(self._profile.parsers)
            return () if self._reader is None else await self._reader.read(text, whole=whole)
        except Exception:
            log.exception("an answer is its text alone: a part has a fault")
            self._reader = None
            return ()


class WorkDoor:
    """Of one agent; implements `WorkOwner`. `since`: monotonic time."""

    def __init__(
        self,
        agent_id: str,
        doors: PartDoors,
        *,
        store: Store,
        actor: Actor,
        since: float,
        current: Callable[[], Task | None],
    ) -> None:
        self.id = agent_id
        self.since = since
        self._current = current
        self._doors = doors
        self._store = store
        self._actor = actor
        self._teller: WorkTeller | None = None

    @property
    def current(self) -> Task | None:
        return self._current()

    async def tell(self, events: Sequence[NewEvent]) -> None:
        try:
            await self._actor.persist(self._store.commit, events=events)
        except StoreError as error:  # the actor ends: a new daemon is told again
            self._actor.log.warning("what was told could not be recorded", count=len(events), error=error.message)

    async def restore(self) -> None:
        """Raises StoreError."""
        if (telling := self._doors.first(WorkTelling)) is not None:
            self._teller = telling.teller(self)
            await self.do(lambda work: work.restore())

    async def do(self, what: Callable[[WorkTeller], Awaitable[None]]) -> None:
        """Has it told of."""
        try:
            if self._teller is not None:
                await what(self._teller)
        except SynapsedError:
            raise
        except Exception:
            log.exception("of this nothing is told: a part has a fault", agent_id=self.id)

    def about(self, prompt: Prompt | None) -> Prompt | None:
        """Returns the prompt with what is known of it besides."""
        try:
            return self._teller.about(prompt) if self._teller is not None else prompt
        except Exception:
            log.exception("a dialog is as it is drawn: a part has a fault", agent_id=self.id)
            return prompt
