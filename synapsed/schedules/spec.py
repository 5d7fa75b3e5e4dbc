"""What stands in a schedule's `at`: cron's notation or systemd's, and the times that it means."""

import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from synapsed.schedules.calendar import Calendar, parse_calendar
from synapsed.schedules.cron import Cron, is_cron, parse_cron

AT_MAX = 256
"""Characters of an `at`."""

type Spec = Cron | Calendar

_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")


def parse(text: str, zone: str | None = None) -> Spec:
    """The times that `text` means, in `zone` (a name of the IANA database) unless it names one itself; with neither,
    the zone is given when it is asked for times. Raises ValueError."""
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
    """Seconds since the epoch of the first occurrence after `instant`, None if nothing comes after it. `zone` counts
    where the spec has none of its own."""
    return spec.next_after(int(instant // 1), zone)


def next_times(spec: Spec, instant: float, zone: ZoneInfo, count: int) -> list[int]:
    """At most `count` occurrences after `instant`."""
    found: list[int] = []
    while len(found) < count:
        at = next_after(spec, found[-1] if found else instant, zone)
        if at is None:
            break
        found.append(at)
    return found


def check_zone(name: str) -> str:
    """Raises ValueError unless it is the name of a time zone."""
    if _named(name) is None:
        raise ValueError(f"{name!r} is not a time zone of this machine's database, like Europe/Berlin or UTC")
    return name


def _named(word: str) -> str | None:
    """The zone that the word names, None for any other word."""
    if word.upper() == "UTC":
        return "UTC"
    if not _ZONE.fullmatch(word):
        return None
    try:
        ZoneInfo(word)
    except (ZoneInfoNotFoundError, OSError, ValueError):  # OSError: a folder of the database
        return None
    return word
