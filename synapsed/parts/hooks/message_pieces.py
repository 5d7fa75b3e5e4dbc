"""Puts the pieces of an unfinished message of a program in order.

Each piece is reported by a process of its own, and these processes may overtake each other. So a program numbers the
pieces of a message from 0 on, and a piece that comes too early is held until the earlier ones are here. Pure.
"""

from collections import deque

HELD_MAX = 256
"""Most pieces that are held; if there would be more, one was lost, and the rest of the message is dropped."""

MESSAGES_KEPT = 64
"""Messages that are remembered, so that a late piece is not taken for the beginning of another one."""


class MessagePieces:
    """Pieces of one conversation: the unfinished message, and those before it."""

    def __init__(self) -> None:
        self._message: str | None = None
        self._before: deque[str] = deque(maxlen=MESSAGES_KEPT)
        self._next = 0
        self._held: dict[int, str] = {}

    def take(self, message: str, number: int, text: str) -> str:
        """Takes in a piece. Returns the continuation of `message`; it is empty while an earlier piece is missing, and
        after another message has begun."""
        if message in self._before:
            return ""
        if message != self._message:
            if self._message is not None:
                self._before.append(self._message)
            self._message, self._next, self._held = message, 0, {}
        if number >= self._next and len(self._held) < HELD_MAX:
            self._held[number] = text
        ready = ""
        while (piece := self._held.pop(self._next, None)) is not None:
            ready += piece
            self._next += 1
        return ready
