"""Doors at which an agent asks the parts that are there: who reads its answers.

Agents are made before parts are open, so each asks once it needs one. Without one nothing is done; nor is where a part
has a fault: the agent goes on.
"""

from collections.abc import Callable, Sequence
from typing import Any

import structlog

from synapsed.interfaces import AnswerReader, AnswerReading
from synapsed.model.task import Artifact
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
