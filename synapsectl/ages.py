"""Formats times and durations for people to read."""

from datetime import UTC, datetime

MINUTE, HOUR, DAY = 60, 3600, 86400


def age(since: str, now: datetime | None = None) -> str:
    """Returns the time since the RFC 3339 time `since`: `12s`, `5m`, `3h`, `2d`; `since` itself if it is no time."""
    try:
        then = datetime.fromisoformat(since)
    except ValueError:
        return since
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    seconds = max(0, int(((now or datetime.now(UTC)) - then).total_seconds()))
    return length(seconds)


def length(seconds: int) -> str:
    """Returns a length of time: `12s`, `5m`, `3h`, `2d`."""
    for unit, letter in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m")):
        if seconds >= unit:
            return f"{seconds // unit}{letter}"
    return f"{seconds}s"


def clock_time(time: str, now: datetime) -> str:
    """Returns the RFC 3339 time `time` on the local clock: `18:00`, with the day if it is not today."""
    try:
        when = datetime.fromisoformat(time).astimezone()
    except ValueError:
        return time
    return when.strftime("%H:%M" if when.date() == now.astimezone().date() else "%a %d %b %H:%M")
