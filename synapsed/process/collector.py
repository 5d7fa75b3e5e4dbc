"""Chooses the times of the garbage collector, which finds circles of objects.

The collector stops all other work while it runs, and a full collection in a daemon with many agents takes from 20 to
200 milliseconds. Young objects are collected automatically, a few at a time and often; all objects only at quiet
moments.
"""

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from synapsed.aio import Timers

YOUNG: Final = (1000, 2)
"""Objects that are made until the youngest are collected; and the number of such collections until their survivors are
collected. That is a few thousand objects at once, about 2 ms."""
INCREMENTS: Final = (1000, 10)
"""The same for an incremental collector (Python 3.14.0 to 3.14.4), which looks at some old objects each time, with this
second value at one in a hundred. It never collects all at once by itself."""
LOOK_EVERY_S: Final = 1.0
QUIET: Final = 0.05
"""Share of a processor that the event loop uses in a quiet second."""
DUE: Final = 30
"""Collections of younger objects after which a full collection is due: as in Python itself, some 30,000 objects."""
OVERDUE: Final = 600
"""The same if there is no quiet moment. By then at most 600,000 objects may be garbage, some 100 MB."""
_NEVER: Final = 2**31 - 1


class Garbage(Protocol):
    """The functions of the module `gc` that are used here."""

    def get_threshold(self) -> tuple[int, int, int]: ...

    def set_threshold(self, threshold0: int, threshold1: int = ..., threshold2: int = ..., /) -> None: ...

    def get_stats(self) -> list[dict[str, Any]]: ...

    def collect(self) -> int: ...


@contextlib.contextmanager
def collecting(timers: Timers, garbage: Garbage = gc) -> Iterator[None]:
    """Context in which a collector runs, in a process whose main thread has an event loop."""
    before = garbage.get_threshold()
    garbage.set_threshold(*YOUNG, _NEVER)
    if garbage.get_threshold()[2] != _NEVER:  # an incremental collector ignores the third value
        garbage.set_threshold(*INCREMENTS)
    collector = Collector(timers, due=Younger(garbage), collect=garbage.collect)
    try:
        yield
    finally:
        collector.end()
        garbage.set_threshold(*before)


class Younger:
    """Counts the collections of younger objects since the last full one. `gc.get_count` does not give this number: its
    numbers have another meaning with an incremental collector."""

    def __init__(self, garbage: Garbage) -> None:
        self._garbage = garbage
        self._full, self._before = -1, 0
        self()

    def __call__(self) -> int:
        *younger, full = [int(generation["collections"]) for generation in self._garbage.get_stats()]
        if full != self._full:
            self._full, self._before = full, sum(younger)
        return sum(younger) - self._before


class Collector:
    """Collects everything at quiet moments, until its `end`. `used` returns the seconds of a processor that the thread
    of the event loop has used, `due` the number of collections of younger objects since the last full one."""

    def __init__(
        self,
        timers: Timers,
        *,
        used: Callable[[], float] = time.thread_time,
        due: Callable[[], int],
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
