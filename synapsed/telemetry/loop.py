"""Whether the event loop turns: how late it comes to a timer, once a second."""

import asyncio
from collections.abc import Callable

import structlog

from synapsed.clock import Clock
from synapsed.model.figures import Histogram

CHECK_S = 1.0

TOLD_S = 0.25
"""An event loop that comes this much late is told: some call blocks it."""

log = structlog.stdlib.get_logger("synapsed.daemon")


async def watch_loop(clock: Clock, lag: Histogram, look: Callable[[], object]) -> None:
    """Note in `lag`, and say, when the event loop was held up; `look` is called each time. Until cancelled."""
    while True:
        look()
        due = clock.monotonic() + CHECK_S
        await asyncio.sleep(CHECK_S)
        late = clock.monotonic() - due
        lag.observe(late)
        if late > TOLD_S:
            log.warning("the event loop was blocked", seconds=round(late, 3))
