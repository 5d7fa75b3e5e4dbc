"""Finds a program's words about a usage limit, or an account that does not work, and reads the end of the limit. Pure;
times are Unix seconds.

A profile's patterns find the words; this module reads their group `until`: a time of day (`3pm`, `1:25 AM UTC`), a date
with a time (`Nov 22nd, 2026 1:24 AM`), a duration (`2 hours 5 minutes`, `2h 5m`, `3h22m10s`), RFC 3339, or Unix
seconds. A time without a zone is in the agent's zone; one without a date is the next such time.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from synapsed.profiles.setting_spec import AccountSpec, LimitPattern
from synapsed.shared.regex import regex

UNTIL_MAX_S = 32 * 86_400.0
"""Seconds of the longest limit that is believed; the end of a longer one counts as unknown."""

_DURATION = regex(
    r"(?P<n>\d+(?:\.\d+)?)\s*(?P<unit>d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![A-Za-z])",
    re.IGNORECASE,
)
_SECONDS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_CLOCK = regex(
    r"\b(?P<h>\d{1,2})(?::(?P<m>\d{2}))?(?::\d{2})?\s*(?P<half>[ap])\.?m\b|\b(?P<h24>\d{1,2}):(?P<m24>\d{2})",
    re.IGNORECASE,
)
_DATE = regex(
    r"\b(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+"
    r"(?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{4}))?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ZONE = regex(
    r"\b(?:(?:UTC|GMT)(?:(?P<sign>[+-])(?P<hours>\d{1,2})(?::(?P<minutes>\d{2}))?)?|(?P<name>[A-Z][A-Za-z_]+/[A-Za-z_/+-]+))\b"
)
_EPOCH = regex(r"\d{10}(?:\.\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit, or trouble with an account, that a program reports."""

    words: str
    """The program's words."""
    until: float | None = None
    """End of the limit; None if the words name no time."""
    answer: str | None = None
    """Answer for the program's dialog."""
    code: str = ""
    """Code with which the task fails, because the account does not work; empty for a limit."""
    reach: str | None = None
    """The address that could not be reached; empty if the words are about one but do not name it, else None."""


def find_limit(patterns: Sequence[LimitPattern], text: str, now: float, zone: tzinfo | None = None) -> Limit | None:
    """Returns the limit that `text` reports, with line breaks treated as blanks, or None."""
    flat = " ".join(text.split())
    for spec in patterns:
        if (match := spec.pattern.search(flat)) is not None:
            told = match.groupdict().get("until")
            until = read_until(told, now, zone) if told else None
            return Limit(words=match.group().strip()[:500], until=until, answer=spec.answer, code=spec.code or "")
    return None


def find_trouble(spec: AccountSpec, code: str, text: str) -> Limit | None:
    """Returns the trouble with the account that a turn's failure reports; None if the failure is due to the message."""
    flat = " ".join(text.split())
    for pattern in spec.unreachable:
        if (match := pattern.search(flat)) is not None:
            return Limit(words=flat[:500], code=code, reach=match.groupdict().get("url") or "")
    if code == "AUTH_REQUIRED" or any(pattern.search(flat) for pattern in spec.failures):
        return Limit(words=flat[:500], code=code)
    return None


def read_until(text: str, now: float, zone: tzinfo | None = None) -> float | None:
    """Returns the time in the text, in Unix seconds after `now`; None if it is no future time. `zone` is the agent's,
    None for this machine's."""
    try:
        # Without a zone the time is naive, so that this machine's rules decide about times at a change of clocks.
        found = _read(text.strip(), datetime.fromtimestamp(now, _zone(text) or zone))
    except (ValueError, OverflowError):
        return None
    return found if found is not None and now < found <= now + UNTIL_MAX_S else None


def _read(text: str, now: datetime) -> float | None:
    if _EPOCH.fullmatch(text):
        return float(text)
    if re.match(r"\d{4}-\d\d-\d\d", text):
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)).timestamp()
    clock = _CLOCK.search(text)
    if clock is None and (pieces := list(_DURATION.finditer(text))):
        return now.timestamp() + sum(float(p["n"]) * _SECONDS[p["unit"][0].lower()] for p in pieces)
    date = _DATE.search(text)
    if clock is None and date is None:
        return None
    hour, minute = _time_of(clock) if clock is not None else (0, 0)
    moment = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if date is None:
        return (moment if moment > now else moment + timedelta(days=1)).timestamp()
    month, day = _MONTHS.index(date["month"].lower()) + 1, int(date["day"])
    year = int(date["year"]) if date["year"] else now.year
    moment = moment.replace(year=year, month=month, day=day)
    if not date["year"] and moment < now - timedelta(days=1):
        moment = moment.replace(year=year + 1)
    return moment.timestamp()


def _time_of(clock: re.Match[str]) -> tuple[int, int]:
    if clock["half"] is None:
        return int(clock["h24"]), int(clock["m24"])
    return int(clock["h"]) % 12 + (12 if clock["half"].lower() == "p" else 0), int(clock["m"] or 0)


def _zone(text: str) -> tzinfo | None:
    match = _ZONE.search(text)
    if match is None:
        return None
    if match["name"] is None:
        east = timedelta(hours=int(match["hours"] or 0), minutes=int(match["minutes"] or 0))
        return timezone(-east if match["sign"] == "-" else east) if east < timedelta(days=1) else None
    try:
        return ZoneInfo(match["name"])
    except (ZoneInfoNotFoundError, ValueError):
        return None
