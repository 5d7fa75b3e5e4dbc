"""The clock that shells are given, so that pure code takes `now` as an argument and tests can turn the hands."""

import re
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one for durations, one for people."""

    def monotonic(self) -> float:
        """Seconds that only grow; never compare them over a restart of the daemon."""
        ...

    def wall(self) -> float:
        """Seconds since the epoch; may jump."""
        ...


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


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
    """`wall` seconds since the epoch as RFC 3339 in UTC with milliseconds, as A2A and the seeds' Task want it."""
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
