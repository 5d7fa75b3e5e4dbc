"""systemd's calendar events (systemd.time(7)): parses a text, and finds the next instant that it names.

    Mon..Fri 08:00 · *-*-01 06:00:00 Europe/Berlin · *:0/15 · *-02~03 · hourly · quarterly UTC

The grammar is that of `systemd-analyze calendar`, except that the seconds must be one whole number: no message is sent
more often than once a minute. The rules for the beginning and the end of summer time are systemd's too:

- a time that does not exist is left out: `02:30` has no occurrence on the day on which that half hour is skipped;
- a time that exists twice occurs once, the first time.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from synapsed.shared.regex import regex

YEARS = range(1970, 2200)
"""Years that systemd allows; the last one limits the search for a time that never comes."""

_MONTHS, _HOURS, _MINUTES, _SECONDS = range(1, 13), range(24), range(60), range(60)
_DAYS = range(1, 32)
_FROM_END = range(1, 29)
"""Days counted from a month's end: every month has them."""
_COMPONENTS_MAX = 240
"""Members of one list, as in systemd."""
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHORT = {name[:3]: number for number, name in enumerate(_WEEKDAYS)} | {
    name: number for number, name in enumerate(_WEEKDAYS)
}
_NAMES = {
    "minutely": "*-*-* *:*:00",
    "hourly": "*-*-* *:00:00",
    "daily": "*-*-* 00:00:00",
    "weekly": "Mon *-*-* 00:00:00",
    "monthly": "*-*-01 00:00:00",
    "quarterly": "*-01,04,07,10-01 00:00:00",
    **dict.fromkeys(("semiannually", "semi-annually", "biannually", "bi-annually"), "*-01,07-01 00:00:00"),
    **dict.fromkeys(("yearly", "annually", "anually"), "*-01-01 00:00:00"),
}
_COMPONENT = regex(r"(\d{1,5})(?:\.\.(\d{1,5}))?(?:/(\d{1,5}))?", re.ASCII)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Component:
    start: int
    stop: int | None
    repeat: int

    def within(self, allowed: range) -> range:
        """Returns its numbers among the `allowed` ones."""
        last = allowed[-1] if self.repeat else self.start
        return range(self.start, (self.stop if self.stop is not None else last) + 1, self.repeat or 1)

    def from_end(self, length: int) -> range:
        """Returns its days in a month of that length, if it counts from the end."""
        start = length + 1 - self.start
        if self.stop is not None:
            return range(start, length - self.stop, -self.repeat)
        return range(start, length + 1 if self.repeat else start + 1, self.repeat or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """A parsed event; None means any value. `weekdays` are 0 (Monday) to 6; `zone` is the one in the text."""

    weekdays: frozenset[int] | None
    years: frozenset[int] | None
    months: frozenset[int] | None
    days: tuple[_Component, ...] | None
    from_end: bool
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    second: int
    zone: str | None

    def next_after(self, instant: int, zone: ZoneInfo) -> int | None:
        """Returns the seconds since the epoch of the first occurrence after `instant`, None if nothing comes before
        2200. `zone` is used if the text names none."""
        zone = ZoneInfo(self.zone) if self.zone is not None else zone
        begin = datetime.fromtimestamp(instant, zone)
        for day in self._days(begin.date()):
            first = begin.hour if day == begin.date() else 0
            for hour in self.hours:
                if hour < first:
                    continue
                for minute in self.minutes:
                    found = _instant(datetime.combine(day, time(hour, minute, self.second)), zone)
                    if found is not None and found > instant:
                        return found
        return None

    def why_never(self, instant: int, zone: ZoneInfo) -> str:
        """Returns the reason why no time comes after `instant`, for people; the caller knows that none comes."""
        if self.next_after(0, zone) is not None:
            return "the last of its times is over"
        dates = list(islice(self._dates(date(YEARS[0], 1, 1)), 2))
        if not dates:
            return "no month of it has so many days" if self.years is None else "its years have no such day"
        if next(self._days(date(YEARS[0], 1, 1)), None) is None:
            return f"{dates[0]} is a {dates[0]:%A}" if len(dates) == 1 else "no such date is on such a weekday"
        return "clocks there are set forward over it"

    def _days(self, first: date) -> Iterator[date]:
        """Yields the days that match, from `first` on."""
        return (day for day in self._dates(first) if self.weekdays is None or day.weekday() in self.weekdays)

    def _dates(self, first: date) -> Iterator[date]:
        """Yields the same days, but of any weekday."""
        month = first.replace(day=1)
        while month.year in YEARS:
            following = (month + 31 * _DAY).replace(day=1)
            if self.years is not None and month.year not in self.years:
                month = date(month.year + 1, 1, 1)
                continue
            if self.months is None or month.month in self.months:
                length = (following - month).days
                for number in self._of_month(length):
                    day = month.replace(day=number)
                    if day >= first:
                        yield day
            month = following

    def _of_month(self, length: int) -> list[int]:
        if self.days is None:
            return list(range(1, length + 1))
        spans = (one.from_end(length) if self.from_end else one.within(_DAYS) for one in self.days)
        return sorted({day for span in spans for day in span if 1 <= day <= length})


def _instant(local: datetime, zone: ZoneInfo) -> int | None:
    """Returns the first instant at which clocks in `zone` show `local`, None if they never do."""
    shown = local.replace(tzinfo=zone)
    if shown.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != local:
        return None
    return int(shown.timestamp())


def parse_calendar(text: str, zone: str | None = None) -> Calendar:
    """Returns the event of `text`, without a time zone. Raises ValueError that names the wrong part."""
    given = text.strip()
    if given.startswith("@"):
        return _moment(given)
    words = _NAMES.get(given.lower(), given).split()
    weekdays = _weekdays(words.pop(0)) if words and words[0][0].isalpha() else None
    day = words.pop(0) if words and ":" not in words[0] else None
    clock = words.pop(0) if words and ":" in words[0] else None
    if words or (day is None and clock is None and weekdays is None):
        raise ValueError(
            f"{words[0] if words else given!r} is not expected here: write [WEEKDAYS] [DATE] [TIME] [ZONE]"
        )
    years, months, days, from_end = _date(day) if day is not None else (None, None, None, False)
    hours, minutes, second = _time(clock) if clock is not None else ((0,), (0,), 0)
    return Calendar(
        weekdays=weekdays,
        years=years,
        months=months,
        days=days,
        from_end=from_end,
        hours=hours,
        minutes=minutes,
        second=second,
        zone=zone,
    )


def _moment(text: str) -> Calendar:
    """Returns the event of `@1800000000`: one instant."""
    if not (text[1:].isascii() and text[1:].isdigit() and len(text) <= 11):
        raise ValueError(f"{text!r} is neither one of cron's names nor seconds since the epoch")
    at = datetime.fromtimestamp(int(text[1:]), UTC)
    if at.year not in YEARS:
        raise ValueError(f"{text!r}: years go from {YEARS[0]} to {YEARS[-1]}")
    return Calendar(
        weekdays=None,
        years=frozenset((at.year,)),
        months=frozenset((at.month,)),
        days=(_Component(at.day, None, 0),),
        from_end=False,
        hours=(at.hour,),
        minutes=(at.minute,),
        second=at.second,
        zone="UTC",
    )


def _weekdays(text: str) -> frozenset[int] | None:
    found: set[int] = set()
    for piece in text.lower().removesuffix(",").split(","):
        first, *rest = re.split(r"\.\.|-", piece)
        if len(rest) > 1 or any(name not in _SHORT for name in (first, *rest)):
            raise ValueError(
                f"{piece!r} is not a weekday or a range of them, like Mon or Mon..Fri; other times are "
                "'08:00', 'hourly', '*:0/15' (each quarter of an hour) and '2026-12-24 18:00'"
            )
        begin, end = _SHORT[first], _SHORT[rest[0] if rest else first]
        if begin > end:
            raise ValueError(f"{piece!r}: a week goes from Mon to Sun; write it as a list")
        found.update(range(begin, end + 1))
    return frozenset(found) if len(found) < len(_WEEKDAYS) else None


type _Date = tuple[frozenset[int] | None, frozenset[int] | None, tuple[_Component, ...] | None, bool]


def _date(text: str) -> _Date:
    head, tilde, tail = text.partition("~")
    parts = [*head.split("-"), tail] if tilde else head.split("-")
    if not 2 <= len(parts) <= 3:
        raise ValueError(f"{text!r} is neither a time, as 08:00, nor a date, as *-*-01 or 12-24")
    year, month, day = parts if len(parts) == 3 else ("*", *parts)
    allowed = _FROM_END if tilde else _DAYS
    years = _chain(year, YEARS, "the year")
    months, days = _chain(month, _MONTHS, "the month"), _chain(day, allowed, "the day")
    month_set = None if months is None else _members(months, _MONTHS)
    longest = max((31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[number - 1] for number in month_set or _MONTHS)
    if days is not None and not tilde and min(one.start for one in days) > longest:
        raise ValueError(f"{text!r} never comes: no such month has so many days")
    return None if years is None else _members(years, YEARS), month_set, days, bool(tilde)


def _time(text: str) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    hour, minute, *rest = text.split(":")
    if len(rest) > 1:
        raise ValueError(f"{text!r} is not a time: write HH:MM or HH:MM:SS")
    second = rest[0] if rest else "00"
    if not (second.isascii() and second.isdigit() and len(second) <= 2 and int(second) in _SECONDS):
        raise ValueError(f"the seconds: {second!r} must be one whole number from 0 to 59: at most one message a minute")
    hours, minutes = _chain(hour, _HOURS, "the hour"), _chain(minute, _MINUTES, "the minute")
    return (
        tuple(sorted(_members(hours, _HOURS))) if hours is not None else tuple(_HOURS),
        tuple(sorted(_members(minutes, _MINUTES))) if minutes is not None else tuple(_MINUTES),
        int(second),
    )


def _members(chain: tuple[_Component, ...], allowed: range) -> frozenset[int]:
    return frozenset(number for one in chain for number in one.within(allowed))


def _century(year: int) -> int:
    """Returns the full year: 12 is 2012, 89 is 1989."""
    return year + (2000 if year < 70 else 1900 if year < 100 else 0)


def _chain(text: str, allowed: range, what: str) -> tuple[_Component, ...] | None:
    """Returns a list of numbers, ranges and steps; None for `*`."""
    if text == "*":
        return None
    pieces = text.split(",")
    if len(pieces) > _COMPONENTS_MAX:
        raise ValueError(f"{what}: the list has more than {_COMPONENTS_MAX} members")
    return tuple(_component(piece, allowed, what) for piece in pieces)


def _component(text: str, allowed: range, what: str) -> _Component:
    match = _COMPONENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{what}: {text!r} is not *, a number, a range as 1..5, or a step as 0/15")
    start, stop, repeat = (int(group) if group is not None else None for group in match.groups())
    assert start is not None
    if allowed is YEARS:
        start, stop = _century(start), None if stop is None else _century(stop)
    step = repeat if repeat is not None else (1 if stop is not None else 0)
    ends = [number for number in (start, stop) if number is not None]
    if any(number not in allowed for number in ends):
        raise ValueError(f"{what}: {text!r} is not from {allowed[0]} to {allowed[-1]}")
    backwards = allowed is _FROM_END  # the further from the end, the earlier
    beyond = start - step < allowed[0] if backwards else start + step > allowed[-1]
    if repeat == 0 or step > allowed[-1] - allowed[0] or (repeat is not None and stop is None and beyond):
        raise ValueError(f"{what}: the step of {text!r} reaches no second value")
    if stop is not None and stop < start:
        raise ValueError(f"{what}: {text!r} ends before it begins")
    return _Component(start, stop, step)
