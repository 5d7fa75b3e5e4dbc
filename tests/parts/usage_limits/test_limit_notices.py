"""Usage limits in the programs' own words."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.parts.usage_limits.limit_notices import UNTIL_MAX_S, find_limit, read_until
from synapsed.profiles.library import ProfileLibrary

NOW = datetime(2026, 11, 21, 23, 24, tzinfo=UTC)
BERLIN_WINTER = timezone(timedelta(hours=1))


def after(text: str, now: datetime = NOW) -> str | None:
    until = read_until(text, now.timestamp(), UTC)
    return datetime.fromtimestamp(until, UTC).strftime("%m-%d %H:%M:%S") if until is not None else None


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("Nov 22nd, 2026 1:24 AM", "11-22 01:24:00"),
        ("Nov 22, 1:24 AM", "11-22 01:24:00"),
        ("1:24 AM", "11-22 01:24:00"),
        ("1:25 AM UTC", "11-22 01:25:00"),
        ("11:30 PM", "11-21 23:30:00"),
        ("12am", "11-22 00:00:00"),
        ("12pm", "11-22 12:00:00"),
        ("3pm (Europe/Berlin)", "11-22 14:00:00"),
        ("1:34 PM GMT+9", "11-22 04:34:00"),
        ("1:34 PM GMT+5:30", "11-22 08:04:00"),
        ("1:34 AM GMT-3", "11-22 04:34:00"),
        ("1:34 PM GMT+99", "11-22 13:34:00"),
        ("3h22m10s", "11-22 02:46:10"),
        ("Dec 1 at 9am (America/New_York)", "12-01 14:00:00"),
        ("13:05", "11-22 13:05:00"),
        ("2 hours 5 minutes", "11-22 01:29:00"),
        ("2h 5m", "11-22 01:29:00"),
        ("7200s", "11-22 01:24:00"),
        ("1.5 hours", "11-22 00:54:00"),
        ("3 days", "11-24 23:24:00"),
        ("2026-11-22T01:00:00Z", "11-22 01:00:00"),
        (str(int(NOW.timestamp()) + 60), "11-21 23:25:00"),
        ("soon", None),
        ("", None),
        ("Nov 20, 2026 1 AM", None),
        ("25:00", None),
        ("Feb 31, 2027 1 AM", None),
        ("9999999999", None),
        ("400 days", None),
    ],
)
def test_when_it_ends(text: str, at: str | None) -> None:
    assert after(text) == at


def test_a_day_in_january_told_in_december_is_next_years() -> None:
    now = datetime(2026, 12, 30, 12, tzinfo=UTC)
    assert read_until("Jan 2, 3pm", now.timestamp(), UTC) == datetime(2027, 1, 2, 15, tzinfo=UTC).timestamp()


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("now", "text", "until"),
    [
        ("2027-03-27T22:00Z", "9am", "2027-03-28T07:00Z"),
        ("2027-03-27T22:00Z", "Mar 29, 9am", "2027-03-29T07:00Z"),
        ("2027-10-30T21:00Z", "9am", "2027-10-31T08:00Z"),
        ("2027-10-30T21:00Z", "11:30pm", "2027-10-30T21:30Z"),
        ("2027-10-31T00:30Z", "2:45am", "2027-10-31T00:45Z"),
        ("2027-10-31T01:30Z", "2:45am", "2027-10-31T01:45Z"),
        ("2027-10-30T21:00Z", "9am (Europe/Berlin)", "2027-10-31T08:00Z"),
        ("2027-10-30T21:00Z", "2027-10-31 09:00", "2027-10-31T08:00Z"),
        ("2027-10-30T21:00Z", "12 hours", "2027-10-31T09:00Z"),
        ("2027-12-31T22:59Z", "12am", "2027-12-31T23:00Z"),
    ],
)
def test_a_night_in_which_clocks_are_set(now: str, text: str, until: str) -> None:
    read = read_until(text, datetime.fromisoformat(now).timestamp())
    assert read is not None
    assert datetime.fromtimestamp(read, UTC) == datetime.fromisoformat(until)


@given(st.text(max_size=60))
def test_whatever_it_says_it_is_a_time_to_come_or_none(text: str) -> None:
    until = read_until(text, NOW.timestamp(), BERLIN_WINTER)
    assert until is None or NOW.timestamp() < until <= NOW.timestamp() + UNTIL_MAX_S


@pytest.mark.parametrize(
    ("profile", "text", "at"),
    [
        ("claude", "You've hit your session limit · resets 3am (UTC)", "11-22 03:00:00"),
        ("claude", "You've hit your org's monthly usage limit · resets 3am (UTC)", "11-22 03:00:00"),
        (
            "claude",
            "You've hit your org's monthly spend limit · visit https://x.org/y · your session limit resets 3am (UTC)",
            "11-22 03:00:00",
        ),
        ("claude", "You're out of usage credits · resets 3am (UTC) · progress saved", "11-22 03:00:00"),
        ("gemini", "You have exhausted your capacity. Your quota will reset after 2h0m10s.", "11-22 01:24:10"),
        ("claude", "API Error: Request rejected (429) · This request would exceed your account's rate limit.", None),
        (
            "codex",
            (
                "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/"
                "settings/\nusage to purchase more credits or try again at Nov 22nd, 2026 1:24 AM."
            ),
            "11-22 01:24:00",
        ),
        ("codex", "You've hit your usage limit. Try again in 3 days 4 hours 9 minutes.", "11-25 03:33:00"),
        (
            "gemini",
            "Usage limit reached for gemini-3.8-flash.\nAccess resets at 1:25 AM UTC.\n/model to switch models.",
            "11-22 01:25:00",
        ),
        ("gemini", "Usage limit reached for all Pro models.\n/model to switch models.", None),
        ("gemini", 'RESOURCE_EXHAUSTED: "You exceeded your current quota. Please retry in 90.5s."', "11-21 23:25:30"),
    ],
)
def test_the_programs_words(profile: str, text: str, at: str | None) -> None:
    limit = find_limit(ProfileLibrary.standard(Path("/nowhere")).get(profile).limit, text, NOW.timestamp(), UTC)
    assert limit is not None
    assert (datetime.fromtimestamp(limit.until, UTC).strftime("%m-%d %H:%M:%S") if limit.until else None) == at


@pytest.mark.parametrize("profile", ["claude", "codex", "gemini", "opencode"])
@pytest.mark.parametrize("text", ["API Error: 400 bad", "timeout", "I cannot", "overloaded", "the limit of x is 3"])
def test_other_failures_are_no_limit(profile: str, text: str) -> None:
    assert find_limit(ProfileLibrary.standard(Path("/nowhere")).get(profile).limit, text, 0.0) is None
