"""When the person last did something with synapsed: pressed a key at an attached terminal, or asked for something to be
done. What is only read (lists, streams, an inbox that stands open) does not count."""

from synapsed.clock import Clock
from synapsed.interfaces import Terminals


class Presence:
    def __init__(self, terminals: Terminals, clock: Clock) -> None:
        self._terminals = terminals
        self._clock = clock
        self._acted_at = clock.monotonic()

    def acted(self) -> None:
        """The person has asked for something to be done."""
        self._acted_at = self._clock.monotonic()

    @property
    def idle(self) -> float:
        """Seconds since; at the daemon's beginning the person is taken to be there."""
        at = max(self._acted_at, self._terminals.hands_at() or self._acted_at)
        return max(0.0, self._clock.monotonic() - at)
