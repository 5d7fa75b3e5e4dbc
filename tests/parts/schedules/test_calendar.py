"""systemd's calendar events, held against what systemd said of them (`record.py`)."""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.parts.schedules.spec import next_after, next_times, parse, why_never
from tests.parts.schedules.record import RECORDED

ANY = ZoneInfo("UTC")
RECORDS = [line.split("\t") for line in RECORDED.read_text().splitlines()]


def times(text: str, after: str, count: int, zone: str = "UTC") -> list[str]:
    """The next occurrences as clocks in the zone show them, with the offset."""
    begin = datetime.fromisoformat(after).timestamp()
    found = next_times(parse(text), begin, ZoneInfo(zone), count)
    return [datetime.fromtimestamp(at, ZoneInfo(zone)).strftime("%m-%d %H:%M %z") for at in found]


@pytest.mark.parametrize("part", range(9))
def test_what_systemd_says(part: int) -> None:
    assert len(RECORDS) == 900
    for text, base, told in RECORDS[part::9]:
        assert meant(text, int(base)) in (told, "never" if told == "" else told), text


def meant(text: str, base: int) -> str:
    """In the form of the records; what can never come is refused here, which systemd takes."""
    try:
        return " ".join(map(str, next_times(parse(text), base, ANY, 7)))
    except ValueError as error:
        return "never" if "never comes" in str(error) else "invalid"


def test_a_time_that_does_not_exist_is_left_out() -> None:
    assert times("02:30", "2026-03-28T12:00+01:00", 2, "Europe/Berlin") == ["03-30 02:30 +0200", "03-31 02:30 +0200"]
    assert times("*:0/30", "2026-03-29T01:00+01:00", 2, "Europe/Berlin") == ["03-29 01:30 +0100", "03-29 03:00 +0200"]
    assert times("00:15", "2026-04-23T12:00+02:00", 2, "Africa/Cairo") == ["04-25 00:15 +0300", "04-26 00:15 +0300"]


def test_a_time_that_exists_twice_occurs_the_first_time() -> None:
    zone = "America/New_York"
    assert times("01:30", "2026-10-31T12:00-04:00", 2, zone) == ["11-01 01:30 -0400", "11-02 01:30 -0500"]
    assert times("*:0/30", "2026-11-01T01:00-04:00", 2, zone) == ["11-01 01:30 -0400", "11-01 02:00 -0500"]
    assert times("*:0/30", "2026-11-01T01:10-05:00", 1, zone) == ["11-01 02:00 -0500"], "asked in the second hour"


def test_half_an_hour_of_summer_time() -> None:
    found = times("*:0/15", "2026-04-05T01:45+11:00", 2, "Australia/Lord_Howe")
    assert found == ["04-05 02:00 +1030", "04-05 02:15 +1030"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must be a time"),
        ("tomorrow", "not a weekday"),
        ("every 1h", "'every' is not a weekday or a range of them, like Mon or Mon..Fri; other times are '08:00', 'h"),
        ("10", "neither a time"),
        ("25:00", "the hour: '25' is not from 0 to 23"),
        ("10:60", "the minute"),
        ("*:*:*", "at most one message a minute"),
        ("*:*:0/30", "at most one message a minute"),
        ("00:00:00.5", "one whole number"),
        ("*-02-30", "never comes"),
        ("*-04-31 08:00", "never comes"),
        ("Sat..Mon 10:00", "a week goes from Mon to Sun"),
        ("20..10:00", "ends before it begins"),
        ("1/23:00", "reaches no second value"),
        ("*/2:00", "'*/2' is not"),
        ("2200-01-01", "the year"),
        ("08:00 Europe/Atlantis", "'Europe/Atlantis' is not expected"),
        ("08:00 Europe/", "not expected"),
        ("Mon .. Fri", "not expected"),
        ("08:00 10:00", "'10:00' is not expected"),
        ("@99999999999", "seconds since the epoch"),
        ("08:00\n09:00", "must be a time"),
        ("1," * 127 + "1:00", "256"),
    ],
)
def test_what_is_refused_says_why(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        parse(text)


def test_a_zone_beside_the_text() -> None:
    at = next_after(parse("08:00", "Asia/Tokyo"), datetime(2026, 1, 1, tzinfo=UTC).timestamp(), ANY)
    assert at == datetime(2026, 1, 1, 23, tzinfo=UTC).timestamp()
    with pytest.raises(ValueError, match="leave 'UTC' out"):
        parse("08:00 Asia/Tokyo", "UTC")
    with pytest.raises(ValueError, match="not a time zone"):
        parse("08:00", "../etc/passwd")


def test_what_never_comes_again() -> None:
    assert next_after(parse("2020-01-01 08:00"), 1_800_000_000, ANY) is None
    assert next_after(parse("@1800000000"), 1_800_000_000, ANY) is None
    assert next_after(parse("@1800000000"), 1_799_999_999.5, ANY) == 1_800_000_000
    assert next_after(parse("2027-02-29"), 1_790_000_000, ANY) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2026-02-29", "its years have no such day"),
        ("2026..27-02-29 08:00", "its years have no such day"),
        ("Tue 2026-12-24 08:00", "2026-12-24 is a Thursday"),
        ("Tue 2026-12-24,26 08:00", "no such date is on such a weekday"),
        ("2026-03-29 02:30 Europe/Berlin", "clocks there are set forward over it"),
        ("2020-01-01 08:00", "the last of its times is over"),
        ("@1700000000", "the last of its times is over"),
    ],
)
def test_why_it_never_comes(text: str, why: str) -> None:
    assert why_never(parse(text), 1_800_000_000, ANY) == why


def test_what_comes_has_no_reason_not_to() -> None:
    assert why_never(parse("2028-02-29"), 1_800_000_000, ANY) is None
    assert why_never(parse("0 0 29 2 *"), 1_800_000_000, ANY) is None


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    try:
        spec = parse(text)
    except ValueError:
        return
    at = next_after(spec, 1_800_000_000, ANY)
    assert at is None or at > 1_800_000_000
