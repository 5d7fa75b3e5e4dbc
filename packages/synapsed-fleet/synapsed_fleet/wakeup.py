"""A signal that something is to be done."""

import asyncio


class Bell:
    """Told many times before it is done, it is done once."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, seconds: float | None = None) -> None:
        """Returns when it was told, or after so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            pass
        self._event.clear()
