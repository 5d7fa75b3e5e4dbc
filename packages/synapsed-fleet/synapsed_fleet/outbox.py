"""Decides when messages to other hosts are published, and when a failed publication is tried again. Pure.

Rows under way are in SQLite, oldest first; this module decides to which hosts nothing is published now. A broker that
is not reached, or has no leader, stops everything; a broker that refuses messages to one host (its mail is full) stops
that host. The pause grows from 0.2 s to 5 s, with jitter, so that a thousand hosts do not come back at one moment;
while brokers elect a leader it is at most 1 s, and one row is tried at a time.
"""

from typing import Final

from synapsed.clock import backoff

IN_FLIGHT: Final = 64
"""Most publications whose ack is awaited."""
OPEN_MAX: Final = 10_000
"""Most rows to one host that it has not confirmed; the sender of one more is refused."""
FIRST_S: Final = 0.2
LONGEST_S: Final = 5.0
ELECTION_PAUSE_S: Final = 1.0
ELECTION_TRIES: Final = 20
"""Number of pauses that are at most ELECTION_PAUSE_S each: an election takes 4 to 10 s."""
JITTER: Final = 0.3
"""Share by which jitter makes a pause longer at most."""


class Pacing:
    """Decides when to publish again. Times are `clock.monotonic()`, `roll` is from 0 to 1."""

    def __init__(self) -> None:
        self._failures: dict[str, int] = {}
        self._until: dict[str, float] = {}
        self._all_failures = 0
        self._all_until = 0.0

    def broker_failed(self, now: float, roll: float) -> None:
        """Notes that nothing can be published."""
        longest = ELECTION_PAUSE_S if self._all_failures < ELECTION_TRIES else LONGEST_S
        self._all_until = now + _pause(self._all_failures, roll, longest)
        self._all_failures += 1

    @property
    def trying(self) -> bool:
        """True if nothing has been published since the broker failed."""
        return self._all_failures > 0

    def refused(self, dst: str, now: float, roll: float) -> None:
        """Notes that messages to this host cannot be published, though the broker is reached."""
        self._all_failures, self._all_until = 0, 0.0
        failures = self._failures.get(dst, 0)
        self._until[dst] = now + _pause(failures, roll, LONGEST_S)
        self._failures[dst] = failures + 1

    def worked(self, dst: str) -> None:
        """Notes that a message to this host was published."""
        self._all_failures, self._all_until = 0, 0.0
        self._failures.pop(dst, None)
        self._until.pop(dst, None)

    def reconnected(self) -> None:
        """Ends all pauses: the broker is reached again."""
        self._all_failures, self._all_until = 0, 0.0
        self._failures.clear()
        self._until.clear()

    def resting(self, now: float) -> float:
        """Returns the seconds until anything may be published at all."""
        return max(0.0, self._all_until - now)

    def blocked(self, now: float) -> frozenset[str]:
        """Returns the hosts to which nothing is published now."""
        return frozenset(dst for dst, until in self._until.items() if until > now)

    def next_at(self, now: float) -> float | None:
        """Returns the seconds until a host that is blocked is tried again; None if no host is blocked."""
        waits = [until - now for until in self._until.values() if until > now]
        return min(waits, default=None)


def _pause(failures: int, roll: float, longest: float) -> float:
    return backoff(failures, initial=FIRST_S, factor=2.0, maximum=longest) * (1 + JITTER * roll)
