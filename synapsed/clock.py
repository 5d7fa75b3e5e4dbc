"""The clock that shells are given, so that pure code takes `now` as an argument and tests can turn the hands.

Clocks are set, and machines sleep. So each question has its clock (docs/clocks.md is the list of them):

- how long something of this process takes: `monotonic`, which event loops have too, and which stands while the machine
  sleeps;
- how long something has waited or is good for, in the world of people: `boot`; where a date is kept of it, `began`;
- which day and hour it is, and the date that something is given: `wall`;
- what is so old that it is removed for good: `settled`.
"""

import re
import time
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Final, Protocol

JUMP_S: Final = 60.0
"""A wall clock that has gone further than that from the boot clock was set: corrections are made in smaller steps."""

SETTLED_S: Final = 86_400.0
"""For so long after a jump nothing is removed for its age: whoever has set a clock wrong sees that within a day."""

AGES_MAX: Final = 10_000
"""Things whose age is remembered; of more, those that were asked for longest ago are known by their dates again."""

STEP_S: Final = 1.0
"""A change of the wall clock against the monotonic one that is remembered: by that much may a date be wrong."""

STEPS_MAX: Final = 64

_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""On macOS CLOCK_MONOTONIC runs on while the machine sleeps, which `time.monotonic` there does not."""


class Clock(Protocol):
    """The machine's clocks: for durations, for people, and for what cannot be taken back."""

    def monotonic(self) -> float:
        """Seconds that only grow, and stand while the machine sleeps; never compare them over a restart of the
        daemon."""
        ...

    def boot(self) -> float:
        """Seconds that only grow, also while the machine sleeps; never compare them over a restart of the daemon."""
        ...

    def wall(self) -> float:
        """Seconds since the epoch; may jump."""
        ...

    def settled(self) -> float | None:
        """The same for what cannot be taken back; None where the clock was set lately, and may be wrong."""
        ...


class SettledDate:
    """Notices that a wall clock was set. It is believed at first: which date was right before is not known then."""

    def __init__(self) -> None:
        self._offset: float | None = None
        """The wall clock's, from the boot clock."""
        self._set_at: float | None = None
        """By the boot clock, when it was seen to be set last."""

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
    """The instant of the boot clock at which it was `date`. One of the future is that of a clock that was wrong: now.

    Called when a thing begins, or when it is read in another life, so that whoever sets a clock later changes nothing.
    """
    return clock.boot() - max(0.0, clock.wall() - date)


class Ages:
    """For how long things have waited of which the date is kept, by `began` when a thing is asked for first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began: OrderedDict[str, float] = OrderedDict()

    def of(self, key: str, date: float) -> float:
        """Seconds since `date`, which is that of `key`; never negative."""
        since = self._began.pop(key, None)
        if since is None:
            since = began(self._clock, date)
            while len(self._began) >= AGES_MAX:
                self._began.popitem(last=False)
        self._began[key] = since
        return self._clock.boot() - since


class PastDates:
    """Dates of instants of the monotonic clock that are past, as the wall clock had them then: the machine may have
    slept since, and clocks may have been set. `note` it now and then."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._steps: list[tuple[float, float]] = []
        """From when on the wall clock was how far from the monotonic one."""
        self.note()

    def note(self) -> float:
        """Returns the monotonic clock's time."""
        now = self._clock.monotonic()
        offset = self._clock.wall() - now
        if not self._steps or abs(offset - self._steps[-1][1]) > STEP_S:
            self._steps = [*self._steps[-STEPS_MAX:], (now, offset)]
        return now

    def of(self, instant: float) -> float:
        """The date at `instant`."""
        self.note()
        return instant + next(
            (offset for begin, offset in reversed(self._steps) if begin <= instant), self._steps[0][1]
        )

    def instant(self, date: float) -> float:
        """Returns the last instant at which the wall clock was at `date`; now for the future."""
        until = self.note()
        for begin, offset in reversed(self._steps):
            if date - offset >= begin:
                return min(date - offset, until)
            until = begin
        return min(date - self._steps[0][1], until)


def backoff(failures: int, *, initial: float, factor: float, maximum: float) -> float:
    """The pause before the next attempt where so many failed before the last one: `initial`, each further one `factor`
    times as long, at most `maximum`."""
    pause = initial
    for _ in range(failures):  # not a power: it may overflow where the loop just ends
        if pause >= maximum:
            break
        pause *= factor
    return min(pause, maximum)


def iso(wall: float) -> str:
    """`wall` seconds since the epoch as RFC 3339 in UTC with milliseconds, as the seeds' Task wants it."""
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_of(text: str) -> str | None:
    """A time that somebody else has told, in the form of `iso`; None for what is no time in UTC of this
    millennium: not every reader could turn it into that of its own zone."""
    if re.fullmatch(r"2[0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?Z", text) is None:
        return None
    try:
        return iso(datetime.fromisoformat(text).timestamp())
    except ValueError:
        return None
