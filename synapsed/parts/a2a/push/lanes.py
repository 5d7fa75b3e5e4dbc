"""Limits on notifications that are on their way at once, so that slow or dead receivers delay only themselves.

First attempts and further ones have lanes of their own: however many receivers are dead, a healthy one finds a place.
One receiver (an origin) has at most a few places, so that a slow one with many tasks leaves places to the others.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

FIRST_MAX = 64
"""Attempts at a time to receivers that took their last notification."""

RETRIES_MAX = 16
"""Attempts at a time to receivers that did not take their last notification."""

ORIGIN_MAX = 4
"""Attempts at a time to one receiver."""


class Lanes:
    def __init__(self, *, first: int = FIRST_MAX, retries: int = RETRIES_MAX, origin: int = ORIGIN_MAX) -> None:
        self._first = asyncio.Semaphore(first)
        self._retries = asyncio.Semaphore(retries)
        self._origin_max = origin
        self._origins: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def place(self, origin: str, *, retry: bool) -> AsyncGenerator[None]:
        """Waits for a place, and holds it."""
        own = self._enter(origin)
        try:
            async with own, self._retries if retry else self._first:
                yield
        finally:
            self._leave(origin)

    def _enter(self, origin: str) -> asyncio.Semaphore:
        semaphore, users = self._origins.get(origin) or (asyncio.Semaphore(self._origin_max), 0)
        self._origins[origin] = semaphore, users + 1
        return semaphore

    def _leave(self, origin: str) -> None:
        semaphore, users = self._origins[origin]
        if users == 1:
            del self._origins[origin]
        else:
            self._origins[origin] = semaphore, users - 1
