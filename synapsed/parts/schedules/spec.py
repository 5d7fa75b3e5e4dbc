"""The notations of a schedule's `at`, cron's and systemd's, and their times, also when clocks go forward or back.

Cron has five fields, read as Debian's cron reads them (by the library cronsim, which tests compare with it): `MIN HOUR
DAY MONTH WEEKDAY`, with names, lists, ranges and steps, `L` for a month's last day and `MON#2` for its second Monday;
or `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`. At the beginning and the end of
summer time the rules are those of Debian's cron:

- with a fixed minute and hour, a time that does not exist occurs as soon as clocks have been set (02:30 at 03:00), and
  one that exists twice occurs once, the first time;
- with `*` (or a step of it) as minute or hour, it occurs by the clock's display: twice in an hour that comes twice, not
  at all in one that is skipped.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from synapsed.parts.schedules.calendar import Calendar, parse_calendar
from synapsed.shared.regex import regex

FIELDS = 5
_NAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_ANY = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed line of cron: `fields` has its five fields; `zone` is the time zone that was given with them."""

    fields: str
    zone: str | None

    def why_never(self, instant: int, zone: ZoneInfo) -> str:
        """Returns the reason why no time comes after `instant`, for people; the caller knows that none comes."""
        return "there is no such day in 50 years"

    def next_after(self, instant: int, zone: ZoneInfo) -> int | None:
        """Returns the seconds since the epoch of the first occurrence after `instant`, None if nothing comes in 50
        years."""
        zone = ZoneInfo(self.zone) if self.zone is not None else zone
        for found in CronSim(self.fields, datetime.fromtimestamp(instant, zone)):
            # In an hour that comes twice, the iterator begins again with the first one.
            if (at := int(found.timestamp())) > instant:
                return at
        return None


def is_cron(text: str) -> bool:
    """Returns True if the text is meant for cron: a calendar event has at most four words."""
    return len(text.split()) >= FIELDS or (text.startswith("@") and not text[1:].isdecimal())


def parse_cron(text: str, zone: str | None = None) -> Cron:
    """Returns the parsed fields. Raises ValueError that names the wrong field."""
    name = text.strip().lower()
    if name.startswith("@"):
        if name not in _NAMES:
            raise ValueError(f"{text!r} is not one of {', '.join(_NAMES)}")
        return Cron(_NAMES[name], zone)
    fields = text.split()
    if len(fields) != FIELDS:
        raise ValueError(f"cron has {FIELDS} fields (minute, hour, day, month, weekday), not {len(fields)}")
    try:
        CronSim(" ".join(fields), _ANY)
    except CronSimError as error:
        if _is_understood([*fields[:3], "*", fields[4]]) and _is_understood(["*", "*", "*", *fields[3:]]):
            raise ValueError(f"{text!r} never comes: no such month has so many days") from None
        raise ValueError(f"cron's {str(error).removeprefix('Bad ')} is not understood") from None
    return Cron(" ".join(fields), zone)


def _is_understood(fields: list[str]) -> bool:
    try:
        CronSim(" ".join(fields), _ANY)
    except CronSimError:
        return False
    return True


AT_MAX = 256
"""Characters of an `at`."""

type Spec = Cron | Calendar

_ZONE = regex(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")


def parse(text: str, zone: str | None = None) -> Spec:
    """Returns the times of `text`, in `zone` (a name of the IANA database) unless the text names one itself; without
    both, each query gives the zone. Raises ValueError."""
    if not text.strip() or len(text) > AT_MAX or not text.isprintable():
        raise ValueError(f"must be a time of at most {AT_MAX} characters, such as 'Mon..Fri 08:00' or '0 8 * * 1-5'")
    if zone is not None:
        check_zone(zone)
    if is_cron(text.strip()):
        return parse_cron(text.strip(), zone)
    rest, _, last = text.strip().rpartition(" ")
    if rest and (named := _named(last)) is not None:
        if zone is not None:
            raise ValueError(f"the time names a zone itself ({named}): leave {zone!r} out")
        return parse_calendar(rest, named)
    return parse_calendar(text, zone)


def next_after(spec: Spec, instant: float, zone: ZoneInfo) -> int | None:
    """Returns the seconds since the epoch of the first occurrence after `instant`, None if nothing comes after it.
    `zone` is used if the spec names no zone."""
    return spec.next_after(int(instant // 1), zone)


def why_never(spec: Spec, instant: float, zone: ZoneInfo) -> str | None:
    """Returns the reason why no time comes after `instant`, for people; None if one comes. `zone`: see `next_after`."""
    return spec.why_never(int(instant // 1), zone) if next_after(spec, instant, zone) is None else None


def next_times(spec: Spec, instant: float, zone: ZoneInfo, count: int) -> list[int]:
    """Returns at most `count` occurrences after `instant`."""
    found: list[int] = []
    while len(found) < count:
        at = next_after(spec, found[-1] if found else instant, zone)
        if at is None:
            break
        found.append(at)
    return found


def check_zone(name: str) -> str:
    """Returns the name of a time zone. Raises ValueError for any other text."""
    if _named(name) is None:
        raise ValueError(f"{name!r} is not a time zone of this machine's database, like Europe/Berlin or UTC")
    return name


def _named(word: str) -> str | None:
    """Returns the zone that the word names, None for any other word."""
    if word.upper() == "UTC":
        return "UTC"
    if not _ZONE.fullmatch(word):
        return None
    try:
        ZoneInfo(word)
    except (ZoneInfoNotFoundError, OSError, ValueError):  # OSError: a folder of the database
        return None
    return word
