"""Chooses the times of the garbage collector, which finds circles of objects.

The collector stops all other work while it runs, and a full collection in a daemon with many agents takes from 20 to
200 milliseconds. Young objects are collected automatically, a few at a time and often; all objects only at quiet
moments.
"""

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from typing import Final

from synapsed.aio import Timers

YOUNG: Final = (1000, 2)
"""Objects that are made until the youngest are collected; and the number of such collections until their survivors are
collected. That is a few thousand objects at once, about 2 ms."""
LOOK_EVERY_S: Final = 1.0
QUIET: Final = 0.05
"""Share of a processor that the event loop uses in a quiet second."""
DUE: Final = 10
"""Collections of younger objects after which a full collection is due; Python's own number."""
OVERDUE: Final = 200
"""The same if there is no quiet moment. By then at most 600,000 objects may be garbage, some 100 MB."""
_NEVER: Final = 2**31 - 1


@contextlib.contextmanager
def collecting(timers: Timers) -> Iterator[None]:
    """Context in which a collector runs, in a process whose main thread has an event loop."""
    before = gc.get_threshold()
    gc.set_threshold(*YOUNG, _NEVER)
    collector = Collector(timers)
    try:
        yield
    finally:
        collector.end()
        gc.set_threshold(*before)


class Collector:
    """Collects everything at quiet moments, until its `end`. `used` returns the seconds of a processor that the thread
    of the event loop has used."""

    def __init__(
        self,
        timers: Timers,
        *,
        used: Callable[[], float] = time.thread_time,
        due: Callable[[], int] = lambda: gc.get_count()[2],
        collect: Callable[[], object] = gc.collect,
    ) -> None:
        self._timers = timers
        self._used = used
        self._due = due
        self._collect = collect
        self._before = used()
        self._timer = timers.call_later(LOOK_EVERY_S, self._look)

    def end(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        self._timer = self._timers.call_later(LOOK_EVERY_S, self._look)
        used = self._used() - self._before
        looks = self._due()
        if looks >= OVERDUE or (looks >= DUE and used <= QUIET * LOOK_EVERY_S):
            self._collect()
        self._before = self._used()
