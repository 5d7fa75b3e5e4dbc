"""A pause by timers that a test can turn."""

import asyncio

from synapsed.supervisor.links import Timers

__all__ = ["pause"]


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
