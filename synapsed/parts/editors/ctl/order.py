"""Merges the two streams of a task into one order: the agent's events, and the task's own, which alone has its text
unmasked. Pure.

Both are read from one log, and their ids are that log's. The agent's stream has the pieces of text as well, and so
shows their places among tool calls: a place waits for its piece, and a piece waits for its place.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

HELD_MAX: Final = 4096
"""Pieces and events of a task that wait; with more the order is given up."""


class PiecePart(NamedTuple):
    """An `artifact` of the task's own stream."""

    told: Mapping[str, Any]


class UpdatesPart(NamedTuple):
    """Updates that follow from an event of the agent's."""

    updates: list[dict[str, Any]]


class EndPart(NamedTuple):
    """The task, whole, as the last part."""

    document: Mapping[str, Any]


type Part = PiecePart | UpdatesPart | EndPart


class TurnOrder:
    """The parts of one turn, in the order of their ids. Every method returns the parts that can be sent now."""

    def __init__(self) -> None:
        self._pieces: dict[int, PiecePart] = {}
        """Pieces whose place is not known yet or not reached."""
        self._queue: deque[int | Part] = deque()
        """Parts of the agent's stream; a number is the place of a piece."""
        self._read = 0
        """Position in the task's own stream."""
        self._given_up = False

    @property
    def waits(self) -> bool:
        """True if a part of the agent's stream waits for text before it."""
        return bool(self._queue)

    def place(self, id_: int) -> Iterator[Part]:
        """Notes the place of a piece of text."""
        return self._then(id_)

    def then(self, part: Part) -> Iterator[Part]:
        """Adds a part after everything that was placed so far."""
        return self._then(part)

    def piece(self, id_: int, told: Mapping[str, Any] | None, *, newest: int) -> Iterator[Part]:
        """Notes that the task's own stream was read up to `id_`, with `told` there (None: no text). `newest` is the
        position in the agent's stream."""
        self._read = max(self._read, id_)
        if told is not None:
            if self._given_up or (id_ <= newest and id_ not in self._queue):
                yield PiecePart(told)  # its place went by before anything was known of the turn
            else:
                self._pieces[id_] = PiecePart(told)
        yield from self._ready()

    def give_up(self) -> Iterator[Part]:
        """Stops ordering, because one of the streams is away: from now on, parts are returned as they come."""
        self._given_up = True
        yield from self.release()

    def release(self) -> Iterator[Part]:
        """Releases all waiting parts, because something is missing in a stream."""
        self._read = max([self._read, *(part for part in self._queue if isinstance(part, int))])
        yield from self._ready()
        for id_ in sorted(self._pieces):
            yield self._pieces.pop(id_)

    def _then(self, part: int | Part) -> Iterator[Part]:
        if not self._given_up:
            self._queue.append(part)
            yield from self._ready()
        elif not isinstance(part, int):
            yield part

    def _ready(self) -> Iterator[Part]:
        while self._queue:
            part = self._queue[0]
            if isinstance(part, int) and part not in self._pieces and part > self._read:
                break
            self._queue.popleft()
            if not isinstance(part, int):
                yield part
            elif part in self._pieces:
                yield self._pieces.pop(part)
        if len(self._queue) + len(self._pieces) > HELD_MAX:
            yield from self.give_up()
