"""Cron's five fields, as Debian's cron reads them (by the library cronsim, which is held against it).

`MIN HOUR DAY MONTH WEEKDAY`, with names, lists, ranges and steps, `L` for a month's last day and `MON#2` for its second
Monday; or `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`. When summer time begins and
ends, it is as with Debian's cron:

- with a fixed minute and hour, a time that does not exist occurs as soon as clocks have been set (02:30 at 03:00), and
  one that exists twice occurs once, the first time;
- with `*` (or a step of it) as minute or hour, it occurs by what clocks show: twice in an hour that comes twice, not at
  all in one that is skipped.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

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
    """`fields` are five; `zone` is that which was named beside them."""

    fields: str
    zone: str | None

    def next_after(self, instant: int, zone: ZoneInfo) -> int | None:
        """Seconds since the epoch of the first occurrence after `instant`, None if nothing comes in 50 years."""
        zone = ZoneInfo(self.zone) if self.zone is not None else zone
        for found in CronSim(self.fields, datetime.fromtimestamp(instant, zone)):
            # In an hour that comes twice it begins again with the first one.
            if (at := int(found.timestamp())) > instant:
                return at
        return None


def is_cron(text: str) -> bool:
    """Whether it is meant for cron: a calendar event has at most four words."""
    return len(text.split()) >= FIELDS or (text.startswith("@") and not text[1:].isdecimal())


def parse_cron(text: str, zone: str | None = None) -> Cron:
    """Raises ValueError that says which field is wrong."""
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
        raise ValueError(f"cron's {str(error).removeprefix('Bad ')} is not understood") from None
    return Cron(" ".join(fields), zone)
