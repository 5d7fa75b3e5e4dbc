"""Pieces of an answer that still grows, as they go to the host whose task it is.

::

    syn.say.<dst>.<src>    a piece, from the host whose agent speaks to the host that has sent the task;
                           or the question for all that was said of a task, the other way

Nothing of it is kept at the broker, and any of it may be lost: the answer comes whole by the mail, and is told as the
rest of what was told here, or in its place. `begin` is the event of the speaker's log by which the message begins, so
that it tells one message from the next over a restart; `at` is where in it the piece stands. A listener that misses
something asks for all of it, once in a while. Only the log is asked for texts: neither side holds them. Pure.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

from synapsed_fleet.envelope import BadEnvelope, encoded
from synapsed_fleet.names import BadName, identity

TEXT_MAX: Final = 1 << 20
"""Characters of one message that are told so; the rest comes with the answer."""
PIECE_MAX: Final = 32 * 1024
"""Characters: with each escaped, and four of them a byte's worth, it fits into a body."""
TASKS_MAX: Final = 1000
"""Tasks of which it is known how far they were told; one that is forgotten is asked for, or looked for, again."""
ASK_EVERY_S: Final = 2.0
"""Between two questions for all that was said of a task, and between two answers to them."""


@dataclass(frozen=True, slots=True)
class SaidPiece:
    """`task` is what the host calls it that has sent it."""

    task: str
    begin: int
    at: int
    text: str

    def body(self) -> bytes:
        return encoded({"begin": self.begin, "at": self.at, "text": self.text})

    def split(self) -> Iterator[Self]:
        """Pieces that fit into a body, up to what is told at all."""
        text = self.text[: max(0, TEXT_MAX - self.at)]
        for first in range(0, len(text), PIECE_MAX):
            yield type(self)(self.task, self.begin, self.at + first, text[first : first + PIECE_MAX])


@dataclass(frozen=True, slots=True)
class SayAgain:
    """Request for the text of the task so far."""

    task: str

    @staticmethod
    def body() -> bytes:
        return encoded({"again": True})


def read(task: str, document: Mapping[str, Any]) -> SaidPiece | SayAgain:
    """Raises BadEnvelope."""
    try:
        identity(task)
    except BadName as error:
        raise BadEnvelope("it names no task") from error
    if document.get("again") is True:
        return SayAgain(task)
    begin, at, text = document.get("begin"), document.get("at"), document.get("text")
    if type(begin) is not int or type(at) is not int or not isinstance(text, str):
        raise BadEnvelope("it is no piece of a text")
    if begin < 0 or at < 0 or len(text) > PIECE_MAX or at + len(text) > TEXT_MAX:
        raise BadEnvelope("its piece is nowhere in a text")
    return SaidPiece(task, begin, at, text)


@dataclass(slots=True)
class Place:
    """Place in a message: it has begun with `begin`, and has `length` characters."""

    begin: int
    length: int = 0


class Bounded[V](OrderedDict[str, V]):
    """At most TASKS_MAX; what was used longest ago is forgotten."""

    def __setitem__(self, key: str, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > TASKS_MAX:
            self.popitem(last=False)


type Heard = tuple[str, bool]
"""A piece to tell, and whether it is appended."""


class Listened:
    """Received text of this host's tasks, in one daemon's life: after a restart the first piece finds no earlier one,
    and the whole text is requested, which then replaces the earlier text."""

    def __init__(self) -> None:
        self._places: Bounded[Place] = Bounded()
        self._asked: Bounded[float] = Bounded()

    def take(self, piece: SaidPiece, *, told: bool) -> Heard | Literal["ask"] | None:
        """Returns the text to tell; "ask" if an earlier piece is missing; None if the piece has no news. `told`: some
        of the task's answer was told before."""
        place = self._places.get(piece.task)
        if place is not None and piece.begin < place.begin:
            return None
        if place is None or piece.begin > place.begin:
            if piece.at:
                return "ask"
            self._places[piece.task] = Place(piece.begin, len(piece.text))
            return (piece.text, not told) if piece.text else None
        if piece.at > place.length:
            return "ask"
        news = piece.text[place.length - piece.at :]
        place.length += len(news)
        return (news, True) if news else None

    def knows(self, task: str) -> bool:
        """True if any text of the task has come."""
        return task in self._places

    def may_ask(self, task: str, now: float) -> bool:
        """True if it is time to ask; counts as asked then."""
        if now - self._asked.get(task, -ASK_EVERY_S) < ASK_EVERY_S:
            return False
        self._asked[task] = now
        return True

    def forget(self, task: str) -> None:
        self._places.pop(task, None)
        self._asked.pop(task, None)
