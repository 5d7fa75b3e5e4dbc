"""What the rooms share of asyncio: timers that a test can turn, and a pause by them."""

import asyncio
from typing import Protocol

__all__ = ["Timer", "Timers", "pause"]


class Timer(Protocol):
    def cancel(self) -> None: ...


class Timers(Protocol):
    """What is used of an event loop's timers, so that tests can turn the clock."""

    def call_later(self, delay: float, callback: "_Callback", /) -> Timer: ...


class _Callback(Protocol):
    def __call__(self) -> object: ...


async def pause(timers: Timers, seconds: float) -> None:
    """Returns after so many seconds, at once for 0; a pause that is cancelled leaves no timer."""
    if seconds <= 0:
        return
    over = asyncio.Event()
    timer = timers.call_later(seconds, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()
