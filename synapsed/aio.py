"""What the rooms share of asyncio: timers that a test can turn, a pause by them, and work that is begun at once."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

__all__ = ["Timer", "Timers", "at_once", "pause"]


class Timer(Protocol):
    def cancel(self) -> None: ...


class Timers(Protocol):
    """What is used of an event loop's timers, so that tests can turn the clock."""

    def call_later(self, delay: float, callback: "_Callback", /) -> Timer: ...


class _Callback(Protocol):
    def __call__(self) -> object: ...


def at_once[T](work: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
    """A task for `work` that runs as far as it can before this returns, and not behind what the loop has to do."""
    return asyncio.Task(work, loop=asyncio.get_running_loop(), name=name, eager_start=True)


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
