"""Decides when a failed receiver is tried next, and when it is given up. Pure: time and chance are arguments.

The n-th failure in a row is followed by a pause of `initial * factor**(n-1)` seconds, at most `maximum`, shortened by
up to `jitter` of itself, so that receivers that failed together are not tried together. If the receiver sends
`Retry-After`, the pause is at least that long, but that wish counts for at most RETRY_AFTER_MAX. After `attempts`
failures in a row, or when the next try would be later than `give_up` seconds after the first of them, the receiver is
given up. Time without tries (the machine slept, no daemon ran, or the clock was set) does not count: `failing_since`
moves along.
"""

from datetime import UTC

from synapsed.clock import backoff
from synapsed.model.records import LogProgress
from synapsed.outgoing import PushPolicy

RETRY_AFTER_MAX = 3600.0
"""Most seconds of a `Retry-After` that count: even if it asks for more, the receiver is tried after this time."""

LATE_S = 300.0
"""Seconds by which a try must miss its time to show that no tries could be made meanwhile."""


def accepted[P: LogProgress](record: P, cursor: int, *, last: bool) -> P:
    """Returns the progress after the receiver has taken all up to the event `cursor`; `last`: the task's end."""
    return record.model_copy(
        update={
            "cursor": cursor,
            "attempt": 0,
            "failing_since": None,
            "retry_at": None,
            "state": "done" if last else "active",
        }
    )


def failed[P: LogProgress](record: P, policy: PushPolicy, *, now: float, asked: float | None, roll: float) -> P:
    """Returns the progress after a failure at `now`; `asked` is `retry_after`'s result, `roll` random in [0, 1)."""
    since = record.failing_since if record.failing_since is not None else now
    if record.retry_at is not None and abs(late := now - record.retry_at) > LATE_S:
        since += late
    pause = backoff(record.attempt, initial=policy.initial, factor=policy.factor, maximum=policy.maximum)
    pause = max(pause * (1 - policy.jitter * roll), asked or 0.0)
    attempt = record.attempt + 1
    hopeless = attempt >= policy.attempts or now + pause > since + policy.give_up
    return record.model_copy(
        update={
            "attempt": attempt,
            "failing_since": since,
            "retry_at": now + pause,
            "state": "given_up" if hopeless else "active",
        }
    )


def waiting(record: LogProgress, policy: PushPolicy, *, now: float) -> float:
    """Returns the seconds until the next try, at most the longest pause: the wall clock may have been set."""
    if record.retry_at is None:
        return 0.0
    return min(max(record.retry_at - now, 0.0), max(policy.maximum, RETRY_AFTER_MAX))


def retry_after(header: str | None, *, now: float) -> float | None:
    """Returns the seconds of a `Retry-After` (a number or a date), bounded; None if it is missing or invalid."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        seconds = float(text[:12])
    else:
        from email.utils import parsedate_to_datetime

        try:
            date = parsedate_to_datetime(text)
            seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return min(max(seconds, 0.0), RETRY_AFTER_MAX)
