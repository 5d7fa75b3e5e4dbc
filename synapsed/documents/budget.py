"""Limits the bytes of large documents that are in memory at once: read from the store, and not yet written to clients.

A client that requests an answer of megabytes and does not read it costs memory until it is disconnected. All clients
together get one budget. A document for many clients counts once, by its key.
"""

import asyncio
from collections import deque
from collections.abc import Hashable
from typing import Any, Final, NamedTuple

BUDGET: Final = 64 * 1024 * 1024
"""Bytes of texts in memory; a text takes up to twice that while it is written."""


class Large(NamedTuple):
    """A large document that is about to be read."""

    id: str
    size: int
    """Bytes that its texts take in memory: a single character beyond Latin-1 doubles the whole text, an emoji makes it
    four times as long."""
    version: Hashable
    """Version of the document, which readers of the same version share."""


class Lease:
    """Room for one document, for one writer of it."""

    __slots__ = ("_budget", "_key")

    def __init__(self, budget: "Budget", key: Hashable) -> None:
        self._budget: Budget | None = budget
        self._key = key

    def release(self) -> None:
        """Gives the room back; may be called again."""
        budget, self._budget = self._budget, None
        if budget is not None:
            budget._give_back(self._key)  # noqa: SLF001 - made by it


class _Held:
    __slots__ = ("holders", "shared", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.holders = 0
        self.shared: Any = None


class Budget:
    """The budget for all writers to clients. Waiters get room in their order; only documents that are held already are
    served at once, because they cost nothing. A document larger than the whole budget gets room when it is alone."""

    def __init__(self, size_max: int = BUDGET) -> None:
        self.used = 0
        self._size_max = size_max
        self._held: dict[Hashable, _Held] = {}
        self._waiting: deque[tuple[Hashable, int, asyncio.Future[Lease]]] = deque()

    @property
    def waiting(self) -> int:
        """Number of waiters for room."""
        return sum(not place.done() for _, _, place in self._waiting)

    def take_now(self, key: Hashable, size: int) -> Lease | None:
        """Returns room; None if there is no room, or others wait for it."""
        if key in self._held or (self._fits(size) and not self._waiting):
            return self._give(key, size)
        return None

    async def take(self, key: Hashable, size: int) -> Lease:
        """Returns room once there is some."""
        if (lease := self.take_now(key, size)) is not None:
            return lease
        place: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, size, place))
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                place.result().release()
            else:
                place.cancel()
                self._admit()  # those behind it may fit
            raise

    def share(self, key: Hashable, value: Any) -> None:
        """Keeps the document that was read under `key` for all its holders, until the last of them releases its lease.
        This method and `shared` may be called in any thread."""
        if (held := self._held.get(key)) is not None:
            held.shared = value

    def shared(self, key: Hashable) -> Any:
        """Returns the document; None until it was read."""
        held = self._held.get(key)
        return None if held is None else held.shared

    def _fits(self, size: int) -> bool:
        return self.used + size <= self._size_max or not self._held

    def _give(self, key: Hashable, size: int) -> Lease:
        held = self._held.get(key)
        if held is None:
            self._held[key] = held = _Held(size)
            self.used += size
        held.holders += 1
        return Lease(self, key)

    def _give_back(self, key: Hashable) -> None:
        held = self._held[key]
        held.holders -= 1
        if not held.holders:
            del self._held[key]
            self.used -= held.size
            self._admit()

    def _admit(self) -> None:
        """Admits the waiters for whom there is room now, and all who wait for the same documents."""
        while self._waiting:
            key, size, place = self._waiting[0]
            if not place.done():
                if key not in self._held and not self._fits(size):
                    break
                place.set_result(self._give(key, size))
            self._waiting.popleft()
        shared = [waiter for waiter in self._waiting if waiter[0] in self._held and not waiter[2].done()]
        for key, size, place in shared:
            place.set_result(self._give(key, size))
        self._waiting = deque(waiter for waiter in self._waiting if not waiter[2].done())
