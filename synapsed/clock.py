"""The clock that is injected, so that pure code takes `now` as an argument and tests can set the time.

Clocks are set, and machines sleep. So each question has its clock (docs/clocks.md is the list of them):

- how long something of this process takes: `monotonic`, which event loops have too, and which stands still while the
  machine sleeps;
- how long something has waited or is valid, for people: `boot`; if only a date is kept, `began`;
- the day and the hour, and the date of a record: `wall`;
- the age after which something is removed for good: `settled`.
"""

import time
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Final, Protocol

JUMP_S: Final = 60.0
"""Seconds by which a wall clock must move against the boot clock to count as set: corrections have smaller steps."""

SETTLED_S: Final = 86_400.0
"""Seconds after a jump in which nothing is removed for age: a person who has set a clock wrong sees it within a day."""

AGES_MAX: Final = 10_000
"""Number of ages that are remembered. Those requested longest ago are forgotten, and computed again."""

STEP_S: Final = 1.0
"""Least change in seconds of the wall clock against the monotonic one that is remembered: dates may be so wrong."""

STEPS_MAX: Final = 64

_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Clock that runs on while the machine sleeps: on macOS CLOCK_MONOTONIC does, and `time.monotonic` there does not."""


class Clock(Protocol):
    """The machine's clocks: for durations, for people, and for irreversible actions."""

    def monotonic(self) -> float:
        """Returns seconds that only grow, but not while the machine sleeps; never compare them over a restart."""

    def boot(self) -> float:
        """Returns seconds that grow, also while the machine sleeps; never compare them over a restart of the daemon."""

    def wall(self) -> float:
        """Returns seconds since the epoch; may jump."""

    def settled(self) -> float | None:
        """Returns the time of `wall` for irreversible actions; None if the clock was set lately, and may be wrong."""


class SettledDate:
    """Notices that a wall clock was set. The first date is believed, because there is no earlier one to compare."""

    def __init__(self) -> None:
        self._offset: float | None = None
        """Difference of the wall clock from the boot clock."""
        self._set_at: float | None = None
        """Time by the boot clock at which the wall clock was last seen to be set."""

    def look(self, wall: float, boot: float) -> float | None:
        """Returns `wall`, or None for SETTLED_S after it was seen to have jumped."""
        before, self._offset = self._offset, wall - boot
        if before is not None and abs(self._offset - before) > JUMP_S:
            self._set_at = boot
        return wall if self._set_at is None or boot - self._set_at >= SETTLED_S else None


class SystemClock:
    """The machine's clocks."""

    def __init__(self) -> None:
        self._date = SettledDate()

    def monotonic(self) -> float:
        return time.monotonic()

    def boot(self) -> float:
        return time.clock_gettime(_BOOT)

    def wall(self) -> float:
        return time.time()

    def settled(self) -> float | None:
        return self._date.look(self.wall(), self.boot())


def began(clock: Clock, date: float) -> float:
    """Returns the instant of the boot clock at which it was `date`. A future date comes from a wrong clock, and counts
    as now. It is called when a wait begins, or when a later process reads the date of the wait, so that setting a clock
    afterwards changes nothing."""
    return clock.boot() - max(0.0, clock.wall() - date)


class Ages:
    """Ages of things whose date is kept, computed with `began` at the first request."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began: OrderedDict[str, float] = OrderedDict()

    def of(self, key: str, date: float) -> float:
        """Returns the seconds since `date`, which belongs to `key`; never negative."""
        since = self._began.pop(key, None)
        if since is None:
            since = began(self._clock, date)
            while len(self._began) >= AGES_MAX:
                self._began.popitem(last=False)
        self._began[key] = since
        return self._clock.boot() - since


class PastDates:
    """Dates of past instants of the monotonic clock, as the wall clock showed them at that time: the machine may have
    slept since, and clocks may have been set. Call `note` at intervals."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._steps: list[tuple[float, float]] = []
        """Times, each with the wall clock's distance from the monotonic one from then on."""
        self.note()

    def note(self) -> float:
        """Returns the monotonic clock's time."""
        now = self._clock.monotonic()
        offset = self._clock.wall() - now
        if not self._steps or abs(offset - self._steps[-1][1]) > STEP_S:
            self._steps = [*self._steps[1 - STEPS_MAX :], (now, offset)]
        return now

    def of(self, instant: float) -> float:
        self.note()
        return instant + next(
            (offset for begin, offset in reversed(self._steps) if begin <= instant), self._steps[0][1]
        )

    def instant(self, date: float) -> float:
        """Returns the last instant at which the wall clock was at `date`. For a date that it has left out, returns the
        instant at which it was set past that date; for the future, now."""
        now = self.note()  # it may add a step
        ends = [*(begin for begin, _ in self._steps[1:]), now]
        spans = [*zip(self._steps, ends, strict=True)][::-1]
        for (begin, offset), end in spans:
            if begin <= date - offset <= end:
                return date - offset
        for (begin, offset), end in spans:
            if date - offset >= begin:
                return min(date - offset, end)
        return min(date - self._steps[0][1], ends[0])


def backoff(failures: int, *, initial: float, factor: float, maximum: float) -> float:
    """Returns the pause before the next attempt: `initial` without failures, and for each of the `failures` `factor`
    times as long, at most `maximum`."""
    pause = initial
    for _ in range(failures):  # not a power: it may overflow where the loop just ends
        if pause >= maximum:
            break
        pause *= factor
    return min(pause, maximum)


def iso(wall: float) -> str:
    """Returns `wall` seconds since the epoch as RFC 3339 in UTC with milliseconds, the form of dates in tasks."""
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
