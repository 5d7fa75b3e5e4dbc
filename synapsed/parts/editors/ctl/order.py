"""Puts the two streams that tell of a task in one order: the agent's events, and the task's own, which alone has its
text unmasked. Pure.

Both are read from one log, and their ids are that log's. The agent's stream has the pieces of text as well, so that it
tells where each stands among tool calls: it waits there for the piece, and a piece waits for its place.
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
    """The task, whole: nothing comes behind it."""

    document: Mapping[str, Any]


type Part = PiecePart | UpdatesPart | EndPart


class TurnOrder:
    """The parts of one turn, in the order of their ids. Every method returns those that it is the turn of."""

    def __init__(self) -> None:
        self._pieces: dict[int, PiecePart] = {}
        """Those that came, and whose place is not known yet or not reached."""
        self._queue: deque[int | Part] = deque()
        """What the agent's stream has told; a number is the place of a piece."""
        self._read = 0
        """How far the task's own stream was read."""
        self._given_up = False

    @property
    def waits(self) -> bool:
        """Whether something that the agent's stream has told waits for text before it."""
        return bool(self._queue)

    def place(self, id_: int) -> Iterator[Part]:
        """A piece of text stands here."""
        return self._then(id_)

    def then(self, part: Part) -> Iterator[Part]:
        """That comes behind everything that was placed so far."""
        return self._then(part)

    def piece(self, id_: int, told: Mapping[str, Any] | None, *, newest: int) -> Iterator[Part]:
        """The task's own stream was read up to `id_`, and has `told` there (None: no text). `newest` is how far the
        agent's stream was read."""
        self._read = max(self._read, id_)
        if told is not None:
            if self._given_up or (id_ <= newest and id_ not in self._queue):
                yield PiecePart(told)  # its place went by before anything was known of the turn
            else:
                self._pieces[id_] = PiecePart(told)
        yield from self._ready()

    def give_up(self) -> Iterator[Part]:
        """One of the streams is away: from now on everything comes as it comes."""
        self._given_up = True
        yield from self.release()

    def release(self) -> Iterator[Part]:
        """Something is missing in a stream: what waits, waits no more."""
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
