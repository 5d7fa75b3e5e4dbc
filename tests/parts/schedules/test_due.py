"""What is due after a moment, a sleep, a clock that was set."""

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.parts.schedules.due import LATE_S, Due, due
from synapsed.parts.schedules.spec import next_after, parse

UTC = ZoneInfo("UTC")
HOUR, DAY = 3600, 86_400
EIGHT = 20_833 * DAY + 8 * HOUR
"""A day's 08:00."""
DAILY = parse("08:00")


def test_nothing_is_due_before_its_time() -> None:
    assert due(DAILY, UTC, cursor=EIGHT - HOUR, now=EIGHT - 0.001, missed="once") == Due()
    assert due(DAILY, UTC, cursor=EIGHT, now=EIGHT + HOUR, missed="once") == Due()


@pytest.mark.parametrize("missed", ["skip", "once"])
def test_on_time(missed) -> None:
    for late in (0, 0.5, LATE_S - 0.001):
        assert due(DAILY, UTC, cursor=EIGHT - HOUR, now=EIGHT + late, missed=missed) == Due(send=EIGHT)


def test_one_that_was_missed() -> None:
    now = EIGHT + LATE_S
    assert due(DAILY, UTC, cursor=EIGHT - HOUR, now=now, missed="skip") == Due(missed=(EIGHT, EIGHT))
    assert due(DAILY, UTC, cursor=EIGHT - HOUR, now=now, missed="once") == Due(send=EIGHT, missed=(EIGHT, EIGHT))


def test_many_that_were_missed_are_one_message_at_most() -> None:
    last, now = EIGHT + 9 * DAY, EIGHT + 9 * DAY + HOUR
    assert due(DAILY, UTC, cursor=EIGHT - 1, now=now, missed="skip") == Due(missed=(EIGHT, last))
    assert due(DAILY, UTC, cursor=EIGHT - 1, now=now, missed="once") == Due(send=last, missed=(EIGHT, last))


@pytest.mark.parametrize("missed", ["skip", "once"])
def test_who_wakes_on_time_has_missed_those_before(missed) -> None:
    now = EIGHT + 3 * DAY + 5
    expected = Due(send=EIGHT + 3 * DAY, missed=(EIGHT, EIGHT + 2 * DAY))
    assert due(DAILY, UTC, cursor=EIGHT - 1, now=now, missed=missed) == expected


def test_years_of_minutes_are_not_counted_one_by_one(monkeypatch) -> None:
    asked = 0
    spec = parse("* * * * *")

    def counted(*args):
        nonlocal asked
        asked += 1
        return next_after(*args)

    monkeypatch.setattr("synapsed.parts.schedules.due.next_after", counted)
    now = EIGHT + 3000 * DAY + 30
    found = due(spec, UTC, cursor=EIGHT, now=now, missed="once")
    assert found == Due(send=EIGHT + 3000 * DAY, missed=(EIGHT + 60, EIGHT + 3000 * DAY - 60))
    assert asked < 100


@given(
    text=st.sampled_from(["*:0/30", "08:00", "Mon 09:30", "*-*-01 06:00", "*-01,07-01", "*/20 * * * *"]),
    begin=st.integers(0, 4 * 366 * DAY),
    length=st.sampled_from([1, 59, 61, HOUR, DAY, DAY + 30, 9 * DAY]),
    missed=st.sampled_from(["skip", "once"]),
)
def test_it_is_what_looking_at_each_one_finds(text, begin, length, missed) -> None:
    spec, cursor = parse(text), EIGHT + begin
    now = cursor + length
    each, at = [], next_after(spec, cursor, UTC)
    while at is not None and at <= now:
        each.append(at)
        at = next_after(spec, at, UTC)
    expected = Due()
    if each and now - each[-1] < LATE_S:
        expected = Due(send=each[-1], missed=(each[0], each[-2]) if len(each) > 1 else None)
    elif each:
        expected = Due(send=each[-1] if missed == "once" else None, missed=(each[0], each[-1]))
    assert due(spec, UTC, cursor=cursor, now=now, missed=missed) == expected
