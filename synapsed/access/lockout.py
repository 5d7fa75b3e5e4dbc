"""Failures to prove who one is: counted by address and in all, so that guessing is slow. Pure.

What is proved is let in whatever was counted: somebody who shares an address with a guesser is not shut out by him.
"""

from dataclasses import dataclass
from typing import Final

WINDOW_S: Final = 300.0
"""Seconds after its first failure in which an address's failures are added up, and for which it is shut out then."""

FAILURES_MAX: Final = 10
"""Of one address in a window."""

ALL_MAX: Final = 200
"""Of all addresses together in a window."""

ADDRESSES_MAX: Final = 1024
"""Addresses that are remembered; of more the one that failed first is forgotten."""


@dataclass(slots=True)
class _Count:
    since: float
    failures: int = 0


class Lockout:
    """Times are those of a monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._addresses: dict[str, _Count] = {}
        self._all = _Count(0.0)

    def __len__(self) -> int:
        return len(self._addresses)

    def failed(self, address: str, *, now: float) -> None:
        self._count(address, now).failures += 1
        self._counted(now).failures += 1

    def wait(self, address: str, *, now: float) -> float:
        """Seconds for which nothing that comes from there is looked at; 0 where it is."""
        known, every = self._addresses.get(address), self._counted(now)
        left = 0.0
        if known is not None and known.failures >= FAILURES_MAX:
            left = known.since + WINDOW_S - now
        if every.failures >= ALL_MAX:
            left = max(left, every.since + WINDOW_S - now)
        return max(0.0, left)

    def _counted(self, now: float) -> _Count:
        if now - self._all.since >= WINDOW_S:
            self._all = _Count(now)
        return self._all

    def _count(self, address: str, now: float) -> _Count:
        known = self._addresses.get(address)
        if known is not None and now - known.since < WINDOW_S:
            return known
        self._addresses.pop(address, None)
        while len(self._addresses) >= ADDRESSES_MAX:
            del self._addresses[next(iter(self._addresses))]
        return self._addresses.setdefault(address, _Count(now))
