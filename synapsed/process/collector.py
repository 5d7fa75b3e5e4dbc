"""When the collector looks for garbage that only it finds: circles of objects.

It stops everything while it looks, and a look through all that a daemon with many agents has takes it from 20 to 200
milliseconds. It looks by itself at what is young, a little and often; at everything when little goes on.
"""

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from typing import Final

from synapsed.aio import Timers

YOUNG: Final = (1000, 2)
"""Objects that are made until the youngest are looked at; and how many such looks until what they left is looked at.
That is a few thousand objects at once, about 2 ms."""
LOOK_EVERY_S: Final = 1.0
QUIET: Final = 0.05
"""Of a processor: what the event loop uses in a second in which little goes on."""
DUE: Final = 10
"""Looks at what is younger, after which everything is due to be looked at; Python's own number."""
OVERDUE: Final = 200
"""The same where it is never quiet. By then at most 600,000 objects may be garbage, some 100 MB."""
_NEVER: Final = 2**31 - 1


@contextlib.contextmanager
def collecting(timers: Timers) -> Iterator[None]:
    """In a process whose main thread has an event loop."""
    before = gc.get_threshold()
    gc.set_threshold(*YOUNG, _NEVER)
    collector = Collector(timers)
    try:
        yield
    finally:
        collector.end()
        gc.set_threshold(*before)


class Collector:
    """Looks through everything at quiet moments, until its `end`. `used` are the seconds of a processor that the
    thread of the event loop has used."""

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
