"""Counts failed authentications, for each address and for each way of all addresses together, so that guessing is slow.
Pure.

Valid credentials are let in at any count: a user who shares an address with a guesser is not shut out. A proxy's report
of its client's address is as reliable as the proxy: a program that poses as one on this machine, with another address
each time, fills the count of its own way only.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

WINDOW_S: Final = 300.0
"""Seconds after its first failure in which an address's failures are added up, and for which it is shut out then."""

FAILURES_MAX: Final = 10
"""Most failures of one address in a window."""

ALL_MAX: Final = 200
"""Most failures of all addresses together in a window, by one way."""

WAYS_MAX: Final = 64
"""Ways that are remembered; beyond that the one that failed first is forgotten."""

ADDRESSES_MAX: Final = 1024
"""Addresses that are remembered; beyond that the one that failed first is forgotten."""


class Source(NamedTuple):
    """Source of a request. `way`: a proxy, by its user, or the user whose process has connected."""

    way: str
    address: str


@dataclass(slots=True)
class _Count:
    since: float
    failures: int = 0


class Lockout:
    """Counts failures. Times are those of the boot clock, in seconds."""

    def __init__(self) -> None:
        self._addresses: dict[Source, _Count] = {}
        self._ways: dict[str, _Count] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def failed(self, source: Source, *, now: float) -> None:
        _count(self._addresses, source, ADDRESSES_MAX, now).failures += 1
        _count(self._ways, source.way, WAYS_MAX, now).failures += 1

    def wait(self, source: Source, *, now: float) -> float:
        """Returns the seconds for which unknown credentials from there are refused; 0 if they are checked."""
        one = _left(self._addresses.get(source), FAILURES_MAX, now)
        return max(one, _left(self._ways.get(source.way), ALL_MAX, now))


def _left(known: _Count | None, limit: int, now: float) -> float:
    return 0.0 if known is None or known.failures < limit else max(0.0, known.since + WINDOW_S - now)


def _count[K](among: dict[K, _Count], key: K, limit: int, now: float) -> _Count:
    known = among.get(key)
    if known is not None and now - known.since < WINDOW_S:
        return known
    among.pop(key, None)
    while len(among) >= limit:
        del among[next(iter(among))]
    return among.setdefault(key, _Count(now))
