"""Notifies viewers without a terminal (web pages) that a screen may have changed; they then ask for the screen."""

import asyncio
from collections.abc import Callable


class Watch:
    """Implements `interfaces.ScreenWatch`. Several changes between two waits count as one."""

    def __init__(self, leave: Callable[["Watch"], None]) -> None:
        self._leave = leave
        self._news = asyncio.Event()
        self._over = False

    async def changed(self) -> bool:
        await self._news.wait()
        self._news.clear()
        return not self._over

    def close(self) -> None:
        self._leave(self)

    def note(self) -> None:
        self._news.set()

    def end(self) -> None:
        """Ends the watch, because the program is gone or its link is closed."""
        self._over = True
        self._news.set()


class Watches:
    """All watches of one agent."""

    def __init__(self) -> None:
        self._watches: set[Watch] = set()
        self._over = False

    def join(self) -> Watch:
        watch = Watch(self._watches.discard)
        self._watches.add(watch)
        if self._over:
            watch.end()
        return watch

    def note(self) -> None:
        for watch in self._watches:
            watch.note()

    def end(self) -> None:
        self._over = True
        for watch in self._watches:
            watch.end()
