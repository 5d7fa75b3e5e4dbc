"""A clock that stands still until the test turns it.

`FakeClock` is both a `Clock` and a `Timers`: what would be `loop.call_later` is kept in a list, and `advance` runs what
is due, in order. So no test sleeps, and an hour of backoff takes no time. Callbacks usually post work to a task;
`until` gives the tasks their turns until what the test waits for is so.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from typing import Any

from synapsed.clock import SettledDate
from tests.support.patience import PATIENCE_S

__all__ = ["DAY_S", "JUMPS", "PATIENCE_S", "POLL_S", "FakeClock", "FakeTimer", "until"]

DAY_S = 86_400.0

JUMPS = tuple(days * DAY_S for days in (-20, -1, 1, 20))
"""Seconds by which a person sets a clock wrong (docs/clocks.md)."""

TURNS = 2000
"""Turns of the event loop that anything without real I/O is done in, many times over."""

POLL_S = 0.002
"""Between two looks at that: the loop has nothing else to do."""


class FakeTimer:
    def __init__(self, when: float, callback: Callable[[], Any]) -> None:
        self.when = when
        self.callback = callback
        self.canceled = False

    def cancel(self) -> None:
        self.canceled = True


class FakeClock:
    def __init__(self, *, monotonic: float = 1000.0, wall: float = 1_700_000_000.0) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._slept = 0.0
        self._date = SettledDate()
        self._timers: list[tuple[float, int, FakeTimer]] = []
        self._numbers = itertools.count()

    def monotonic(self) -> float:
        return self._monotonic

    def wall(self) -> float:
        return self._wall

    def boot(self) -> float:
        return self._monotonic + self._slept

    def settled(self) -> float | None:
        return self._date.look(self._wall, self.boot())

    def jump(self, seconds: float) -> None:
        """Set the wall clock; durations are not touched."""
        self._wall += seconds

    def sleep(self, seconds: float) -> None:
        """Suspend the machine: no timer runs, and what is monotonic stands."""
        self._wall += seconds
        self._slept += seconds

    def call_later(self, delay: float, callback: Callable[[], Any]) -> FakeTimer:
        timer = FakeTimer(self._monotonic + delay, callback)
        heapq.heappush(self._timers, (timer.when, next(self._numbers), timer))
        return timer

    def pending(self) -> list[float]:
        """Seconds until each timer that is set, soonest first."""
        return [when - self._monotonic for when, _, timer in sorted(self._timers) if not timer.canceled]

    def advance(self, seconds: float) -> None:
        target = self._monotonic + seconds
        while self._timers and self._timers[0][0] <= target:
            when, _, timer = heapq.heappop(self._timers)
            if timer.canceled:
                continue
            self._move(when)
            timer.callback()
        self._move(target)

    def _move(self, to: float) -> None:
        self._wall += to - self._monotonic
        self._monotonic = to


async def until(condition: Callable[[], Any], what: str = "") -> None:
    """Let the other tasks, and threads, run until `condition()`; fails when they have come to rest without it."""
    for _ in range(TURNS):
        if condition():
            return
        await asyncio.sleep(0)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if condition():
            return
        await asyncio.sleep(POLL_S)
    raise AssertionError(f"never came true: {what or condition}")
