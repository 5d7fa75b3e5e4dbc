"""How many write in one turn of the event loop.

An event that three hundred streams wait for wakes them all, and each has a piece of it to write. Done in one turn of
the loop that is a tenth of a second in which nobody else is heard. So a few write in each turn, in the order in which
they came, and everything else has its place between two turns.
"""

import asyncio
from collections import deque
from typing import Final

AT_ONCE: Final = 8
"""Who may write in one turn of the loop; a piece takes some 0.1 ms."""


class Pace:
    """One for all who write."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._admitted = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._counting = False

    async def turn(self) -> None:
        """Returns when the caller may write a piece: at once where few do."""
        loop = asyncio.get_running_loop()
        if not self._counting:
            self._counting = True
            loop.call_soon(self._next)
        if self._admitted < self._at_once and not self._waiting:
            self._admitted += 1
            return
        place = loop.create_future()
        self._waiting.append(place)
        await place

    def _next(self) -> None:
        """A turn of the loop is over."""
        self._admitted = 0
        while self._waiting and self._admitted < self._at_once:
            place = self._waiting.popleft()
            if not place.done():  # it has left
                place.set_result(None)
                self._admitted += 1
        if self._admitted:
            asyncio.get_running_loop().call_soon(self._next)
        else:
            self._counting = False
