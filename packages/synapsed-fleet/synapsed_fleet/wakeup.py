"""A signal that there is work to do."""

import asyncio


class Bell:
    """A signal that one task waits for; many calls of `set` before it runs count once."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, seconds: float | None = None) -> None:
        """Returns after `set` was called, or after `seconds`; clears the signal."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            pass
        self._event.clear()
