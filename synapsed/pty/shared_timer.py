"""One timer for all links of a daemon: each beat visits every link, which says at once if it has work to do.

A timer and a task for each of fifty links woke the daemon two hundred times a second for nothing. Pulses are slower: in
each beat a tenth of the links have theirs, so that they do not all ask their keepers at once.
"""

from typing import Final, Protocol

import structlog

from synapsed.aio import Timer, Timers

BEAT_S = 0.5
"""Seconds between the looks of a link for work: a poke may be lost, and a transcript sends none."""

PULSE_BEATS: Final = 10
"""Number of beats between two pulses of a link."""

log = structlog.get_logger(__name__)


class Visited(Protocol):
    """A visited link. Neither method may block; longer work is only begun there."""

    def visit(self) -> None: ...

    def pulse(self) -> None: ...


class Rounds:
    """Visits those who have joined, until they leave. It has a timer only while there is at least one."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._groups: list[dict[Visited, None]] = [{} for _ in range(PULSE_BEATS)]
        """Groups by the beat of their pulse; in each the members are in order of joining."""
        self._beats = 0
        self._timer: Timer | None = None

    def join(self, one: Visited) -> None:
        """Adds a member: the first visit comes within a beat, the first pulse within PULSE_BEATS of them."""
        min(self._groups, key=len)[one] = None
        if self._timer is None:
            self._timer = self._timers.call_later(BEAT_S, self._beat)

    def leave(self, one: Visited) -> None:
        """Removes a member; does nothing for one that has not joined, or has left."""
        for group in self._groups:
            group.pop(one, None)
        if self._timer is not None and not any(self._groups):
            self._timer.cancel()
            self._timer = None

    def _beat(self) -> None:
        self._timer = self._timers.call_later(BEAT_S, self._beat)  # first: one that fails is not the last
        turn = self._groups[self._beats % PULSE_BEATS]
        self._beats += 1
        for group in self._groups:
            for one in list(group):
                for call in (one.visit, one.pulse) if group is turn else (one.visit,):
                    try:
                        call()
                    except Exception:  # a defect must not keep others from their visits, nor this one from its pulse
                        log.exception("a link could not be visited")
