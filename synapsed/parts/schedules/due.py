"""Finds the times of a schedule that are due at an instant, or were missed, and the messages for them. Pure.

The only inputs are the last instant whose times were handled (`cursor`) and the present time. The times in between are
due. Usually that is one, of this moment. More, or older ones, mean that the clock was set forward, that the machine
slept or that no daemon ran: these are missed, and `missed` decides about them:

- `skip`: nothing;
- `once`: one message, for the last of them.

A clock that was set back is believed: times that come again are due again, and the caller knows for which of them a
message was sent.
"""

from dataclasses import dataclass
from typing import Literal
from zoneinfo import ZoneInfo

from synapsed.parts.schedules.spec import Spec, next_after

LATE_S = 60
"""Seconds after which a time counts as missed: more than any restart or busy machine takes."""

_WINDOWS_S = (3600, 86_400, 32 * 86_400, 367 * 86_400, 30 * 366 * 86_400)
"""Lengths of time in which the last time is searched, one after the other, so that few times are computed."""

type Missed = Literal["skip", "once"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """The times that are due: `send` is the time for which a message is due, or None. `missed` is the first and the
    last missed time (with the time of `send` among them if it is late), or None."""

    send: int | None = None
    missed: tuple[int, int] | None = None


def due(spec: Spec, zone: ZoneInfo, *, cursor: float, now: float, missed: Missed) -> Due:
    """Returns the messages for the times after `cursor` up to `now`."""
    first = next_after(spec, cursor, zone)
    if first is None or first > now:
        return Due()
    before, last = _last_two(spec, zone, cursor, now, first)
    if now - last < LATE_S:
        return Due(send=last, missed=None if before is None else (first, before))
    return Due(send=last if missed == "once" else None, missed=(first, last))


def _last_two(spec: Spec, zone: ZoneInfo, cursor: float, now: float, first: int) -> tuple[int | None, int]:
    """Returns the last occurrence up to `now`, and the one before it after `cursor`; `first` is the first after
    `cursor`."""
    for window in _WINDOWS_S:
        begin = max(cursor, now - window)
        found = first if begin == cursor else next_after(spec, begin, zone)
        before, last = None, None
        while found is not None and found <= now:
            before, last = last, found
            found = next_after(spec, last, zone)
        if last is not None and (before is not None or begin == cursor):
            return before, last
    return None if last in (None, first) else first, first if last is None else last
