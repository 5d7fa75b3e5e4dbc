"""One timer for all links of a daemon: each beat visits every link, which starts work if it has some to do.

With a timer and a task for each of fifty links, the daemon woke up two hundred times a second without need. Pulses (the
pings of keepers) come less often: each beat is the pulse of a tenth of the links, so that they do not all ping at once.
"""

from typing import Final, Protocol

import structlog

from synapsed.aio import Timer, Timers

BEAT_S = 0.5
"""Seconds between two visits of a link: a channel's notification may be lost, and a transcript sends none."""

PULSE_BEATS: Final = 10
"""Number of beats between two pulses of a link."""

log = structlog.get_logger(__name__)


class Visited(Protocol):
    """A visited link. Neither method may block: each only starts longer work."""

    def visit(self) -> None: ...

    def pulse(self) -> None: ...


class Rounds:
    """Visits its members, from `join` to `leave`. It has a timer only while it has members."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._groups: list[dict[Visited, None]] = [{} for _ in range(PULSE_BEATS)]
        """The members, in one group for each beat that is their pulse, in the order of joining."""
        self._beats = 0
        self._timer: Timer | None = None

    def join(self, one: Visited) -> None:
        """Adds a member: its first visit comes within one beat, its first pulse within PULSE_BEATS beats."""
        min(self._groups, key=len)[one] = None
        if self._timer is None:
            self._timer = self._timers.call_later(BEAT_S, self._beat)

    def leave(self, one: Visited) -> None:
        """Removes a member; does nothing if it is no member."""
        for group in self._groups:
            group.pop(one, None)
        if self._timer is not None and not any(self._groups):
            self._timer.cancel()
            self._timer = None

    def _beat(self) -> None:
        self._timer = self._timers.call_later(BEAT_S, self._beat)  # first: a failing beat must not be the last one
        turn = self._groups[self._beats % PULSE_BEATS]
        self._beats += 1
        for group in self._groups:
            for one in list(group):
                for call in (one.visit, one.pulse) if group is turn else (one.visit,):
                    try:
                        call()
                    except Exception:  # one link's error must not prevent the visits of others, nor its own pulse
                        log.exception("a link could not be visited")
