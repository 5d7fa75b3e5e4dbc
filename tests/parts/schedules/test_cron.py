"""Cron's notation: what is taken, and what Debian's cron does when clocks are set."""

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.parts.schedules.spec import next_after, parse
from tests.parts.schedules.test_calendar import times

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 8 * * MON-FRI", ["11-23 08:00 +0100", "11-24 08:00 +0100"]),
        ("*/15 9-17 * * *", ["11-23 09:00 +0100", "11-23 09:15 +0100"]),
        ("5,35 0 1 jan,jul *", ["01-01 00:05 +0100", "01-01 00:35 +0100"]),
        ("0 0 13 * FRI", ["11-27 00:00 +0100", "12-04 00:00 +0100"]),
        ("0 12 * * 7", ["11-29 12:00 +0100", "12-06 12:00 +0100"]),
        ("30 6 L * *", ["11-30 06:30 +0100", "12-31 06:30 +0100"]),
        ("0 9 * * MON#1", ["12-07 09:00 +0100", "01-04 09:00 +0100"]),
        ("@hourly", ["11-22 21:00 +0100", "11-22 22:00 +0100"]),
        ("@midnight", ["11-23 00:00 +0100", "11-24 00:00 +0100"]),
        ("@Weekly", ["11-29 00:00 +0100", "12-06 00:00 +0100"]),
        ("@monthly", ["12-01 00:00 +0100", "01-01 00:00 +0100"]),
        ("@yearly", ["01-01 00:00 +0100", "01-01 00:00 +0100"]),
    ],
)
def test_what_it_means(text: str, expected: list[str]) -> None:
    assert times(text, "2026-11-22T20:30+01:00", 2, BERLIN) == expected


def test_a_time_that_does_not_exist_occurs_when_clocks_have_been_set() -> None:
    assert times("30 2 * * *", "2026-03-28T12:00+01:00", 2, BERLIN) == ["03-29 03:00 +0200", "03-30 02:30 +0200"]
    assert times("30 2 * * *", "2026-03-07T12:00-05:00", 2, NEW_YORK) == ["03-08 03:00 -0400", "03-09 02:30 -0400"]
    assert times("15 0 * * *", "2026-04-23T12:00+02:00", 2, "Africa/Cairo") == [
        "04-24 01:00 +0300",
        "04-25 00:15 +0300",
    ]


def test_a_time_that_exists_twice_occurs_the_first_time() -> None:
    assert times("30 2 * * *", "2026-10-24T12:00+02:00", 2, BERLIN) == ["10-25 02:30 +0200", "10-26 02:30 +0100"]
    assert times("30 2 * * *", "2026-10-25T02:10+01:00", 1, BERLIN) == ["10-26 02:30 +0100"], "asked in the second hour"


def test_every_so_often_goes_by_what_clocks_show() -> None:
    spring = times("*/30 * * * *", "2026-03-29T01:00+01:00", 2, BERLIN)
    assert spring == ["03-29 01:30 +0100", "03-29 03:00 +0200"]
    autumn = times("*/30 * * * *", "2026-10-25T02:00+02:00", 4, BERLIN)
    assert autumn == ["10-25 02:30 +0200", "10-25 02:00 +0100", "10-25 02:30 +0100", "10-25 03:00 +0100"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("* * * * * *", "5 fields (minute, hour, day, month, weekday), not 6"),
        ("@reboot", "'@reboot' is not one of @hourly"),
        ("60 * * * *", "cron's minute"),
        ("0 24 * * *", "cron's hour"),
        ("0 0 32 * *", "cron's day-of-month"),
        ("0 0 30 2 *", "'0 0 30 2 *' never comes: no such month has so many days"),
        ("0 0 31 4,6 *", "'0 0 31 4,6 *' never comes"),
        ("0 0 32 2 *", "cron's day-of-month"),
        ("0 0 30 2 noday", "cron's day-of-week"),
        ("0 0 * 13 *", "cron's month"),
        ("0 0 * * noday", "cron's day-of-week"),
        ("*/0 * * * *", "cron's minute"),
        ("0 0 * * 5-1", "cron's day-of-week"),
    ],
)
def test_what_is_refused_says_why(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        parse(text)


@given(
    minute=st.sampled_from(["*", "*/7", "0", "30", "5,35", "10-50/20"]),
    hour=st.sampled_from(["*", "*/3", "0", "2", "1,2,3", "0-4"]),
    zone=st.sampled_from([BERLIN, NEW_YORK, "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kolkata", "UTC"]),
    month=st.sampled_from([3, 4, 10, 11]),
    hours=st.integers(0, 30 * 24),
)
def test_time_only_goes_forward(minute: str, hour: str, zone: str, month: int, hours: int) -> None:
    """Also from an instant in an hour that comes twice."""
    spec, where = parse(f"{minute} {hour} * * *"), ZoneInfo(zone)
    at = datetime(2026, month, 1, tzinfo=ZoneInfo("UTC")).timestamp() + hours * 3600 + 600
    for _ in range(6):
        following = next_after(spec, at, where)
        assert following is not None
        assert at < following <= at + 49 * 3600
        at = following
