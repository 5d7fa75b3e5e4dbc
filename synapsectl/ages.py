"""Formats times and durations for people to read."""

from datetime import UTC, datetime

MINUTE, HOUR, DAY = 60, 3600, 86400


def age(since: str, now: datetime | None = None) -> str:
    """How long ago the RFC 3339 time `since` was: `12s`, `5m`, `3h`, `2d`; `since` itself where it is no time."""
    try:
        then = datetime.fromisoformat(since)
    except ValueError:
        return since
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    seconds = max(0, int(((now or datetime.now(UTC)) - then).total_seconds()))
    return length(seconds)


def length(seconds: int) -> str:
    """So many seconds: `12s`, `5m`, `3h`, `2d`."""
    for unit, letter in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m")):
        if seconds >= unit:
            return f"{seconds // unit}{letter}"
    return f"{seconds}s"


def clock_time(time: str, now: datetime) -> str:
    """The RFC 3339 time `time` on the local clock: `18:00`, with the day where that is not today's."""
    try:
        when = datetime.fromisoformat(time).astimezone()
    except ValueError:
        return time
    return when.strftime("%H:%M" if when.date() == now.astimezone().date() else "%a %d %b %H:%M")
