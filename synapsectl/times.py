"""Parses times that a person has written."""

import argparse
import re
from datetime import UTC, datetime, timedelta

_AGO = re.compile(r"([0-9]{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DAYS = {"today": 0, "yesterday": 1}


def moment(text: str) -> str:
    """Returns the value of an option that takes a time, as RFC 3339 in UTC: `2h` (ago), `today`, `yesterday`, a day, or
    a day and a time, of the local zone if it names none."""
    now = datetime.now().astimezone()
    try:
        if (ago := _AGO.fullmatch(text)) is not None:
            when = now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        elif text in _DAYS:
            day = now.date() - timedelta(days=_DAYS[text])
            when = datetime(day.year, day.month, day.day).astimezone()
        else:
            when = datetime.fromisoformat(text)
            when = when if when.tzinfo is not None else when.astimezone()
        return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text[:100]!r} is no time: such as 2h, 3d, today, yesterday, 2026-01-31 or '2026-01-31 14:00'"
        ) from None


def shown(time: str) -> str:
    """Returns the RFC 3339 time `time` in the local zone."""
    return datetime.fromisoformat(time).astimezone().strftime("%Y-%m-%d %H:%M:%S")
