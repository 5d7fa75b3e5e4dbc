"""Pieces of an answer that still grows, as they go to the host whose task it is. Pure.

::

    syn.say.<dst>.<src>    a piece, from the host whose agent writes to the host that has sent the task;
                           or a request for the whole text of a task, the other way

The broker keeps none of it, and any of it may be lost: the answer comes complete by mail, and its missing part is
appended to the text here, or it replaces that text. `begin` is the event of the writer's log with which the message
begins, so that it identifies the message over a restart; `at` is the place of the piece in the message. A listener that
misses a piece requests the whole text, once in a while. Texts are read from the log only: neither side holds them.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

from synapsed_fleet.envelope import BadEnvelope, encoded
from synapsed_fleet.names import BadName, identity

TEXT_MAX: Final = 1 << 20
"""Most characters of one message that are sent live; the rest comes with the answer."""
PIECE_MAX: Final = 32 * 1024
"""Most characters of a piece: it fits into a body even if each is escaped, or has four bytes."""
TASKS_MAX: Final = 1000
"""Most tasks whose place is remembered; the text of one that is forgotten is requested, or read from the log, again."""
ASK_EVERY_S: Final = 2.0
"""Seconds between two requests for the whole text of a task, and between two answers to them."""


@dataclass(frozen=True, slots=True)
class SaidPiece:
    """A piece of text. `task` is the id that the task has at the host that has sent it."""

    task: str
    begin: int
    at: int
    text: str

    def body(self) -> bytes:
        return encoded({"begin": self.begin, "at": self.at, "text": self.text})

    def split(self) -> Iterator[Self]:
        """Yields pieces that fit into a body, up to the limit of a message."""
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
    """Reads a piece or a request. Raises BadEnvelope."""
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
    """Place in a message: the message begins with the event `begin`, and has `length` characters so far."""

    begin: int
    length: int = 0


class Bounded[V](OrderedDict[str, V]):
    """A dictionary of at most TASKS_MAX entries, without the ones that were set longest ago."""

    def __setitem__(self, key: str, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > TASKS_MAX:
            self.popitem(last=False)


type Heard = tuple[str, bool]
"""Text to show, and whether it is appended."""


class Listened:
    """Received text of this host's tasks, since this daemon began: after a restart the first piece finds no earlier
    one, and the whole text is requested, which then replaces the earlier text."""

    def __init__(self) -> None:
        self._places: Bounded[Place] = Bounded()
        self._asked: Bounded[float] = Bounded()

    def take(self, piece: SaidPiece, *, told: bool) -> Heard | Literal["ask"] | None:
        """Returns the text to show; "ask" if an earlier piece is missing; None if the piece has nothing new. `told`:
        part of the task's answer is in the log already."""
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
        """Returns True if it is time to ask, and notes that as the time of a request."""
        if now - self._asked.get(task, -ASK_EVERY_S) < ASK_EVERY_S:
            return False
        self._asked[task] = now
        return True

    def forget(self, task: str) -> None:
        self._places.pop(task, None)
        self._asked.pop(task, None)
