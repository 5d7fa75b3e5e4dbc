"""What a person reads of agents in `list`: pure."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsectl.agentrows import HEADINGS, by_need, end_of, row, state_of, what
from synapsectl.output import CommandOutput, display_width
from tests.synapsectl.fake_daemon import agent

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC).astimezone()
LATER_TODAY = NOW.replace(hour=18, minute=30)


def seen(name: str = "claude", **changes: Any) -> dict[str, Any]:
    return agent(name, **changes).model_dump(mode="json")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, ""),
        ({"activity": "waiting", "held": "dialog", "asks": "Bash command · rm x"}, "Bash command · rm x"),
        ({"activity": "unknown", "held": "unknown screen", "asks": "The gate"}, "not understood: The gate"),
        ({"activity": "limited", "held": "limit", "until": LATER_TODAY.isoformat()}, "until 18:30"),
        ({"activity": "limited", "evidence": "limit: no more today"}, "limit: no more today"),
        ({"state": "backoff", "evidence": "Error: no key (exit code 1); starting again in 4.0 s"},
         "Error: no key (exit code 1); starting again in 4.0 s"),
        ({"activity": "busy", "held": "busy", "task": "1a2b3c4d-0", "doing": "add tests"}, "add tests"),
        ({"activity": "busy", "task": "1a2b3c4d-0"}, "task 1a2b3c4d"),
        ({"activity": "busy", "held": "busy", "queue": 1}, "1 waits"),
        ({"held": "typing", "queue": 2}, "2 wait · its input line is not empty"),
        ({"activity": "waiting", "asks": "Go on?", "queue": 3, "held": "dialog"}, "3 wait · Go on?"),
        ({"held": "a word of tomorrow"}, "a word of tomorrow"),
        ({"background": 2}, "2 in the background"),
        ({"activity": "busy", "task": "1a2b3c4d-0", "doing": "add tests", "queue": 1, "background": 1},
         "1 waits · add tests · 1 in the background"),
    ],
)  # fmt: skip
def test_what_is_told(changes: dict[str, Any], told: str) -> None:
    assert what(seen(**changes), NOW) == told


def test_a_screen_that_nobody_understands_needs_a_person_whatever_its_program_says() -> None:
    stuck = seen("stuck", activity="ready", held="unknown screen", asks="k keep, esc close")
    assert state_of(stuck) == "unknown"
    assert [one["name"] for one in by_need([seen("at-rest"), stuck])] == ["stuck", "at-rest"]


def test_a_limit_of_another_day_has_the_day() -> None:
    assert what(seen(activity="limited", until="2026-01-04T12:00:00Z"), NOW).startswith("until Sun 04 Jan ")
    assert what(seen(activity="limited", until="soon"), NOW) == "until soon"


def test_who_needs_a_person_stands_first_and_who_waits_longest_before_the_others() -> None:
    rows = [
        seen("rests"),
        seen("works", activity="busy"),
        seen("stopped", state="stopped"),
        seen("asked-late", activity="waiting", since="2026-01-02T11:00:00.000Z"),
        seen("falls", state="backoff"),
        seen("asked-early", activity="waiting", since="2026-01-02T09:00:00.000Z"),
        seen("limited", activity="limited"),
        seen("given-up", state="failed"),
        seen("rests-too"),
    ]
    assert [one["name"] for one in by_need(rows)] == [
        "asked-early", "asked-late", "given-up", "falls", "limited", "works", "rests", "rests-too", "stopped",
    ]  # fmt: skip


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(name=WORDS, asks=WORDS, cwd=WORDS, columns=st.integers(1, 200), coloured=st.booleans())
def test_every_line_fits_whatever_stands_in_it(name: str, asks: str, cwd: str, columns: int, *, coloured: bool) -> None:
    """And brings no control character of its own."""
    out = CommandOutput(None, None, columns=columns, coloured=coloured)  # type: ignore[arg-type]  # nothing is written
    agents = [seen("claude"), {**seen(activity="waiting"), "name": name, "asks": asks, "cwd": cwd}]
    rows = [row(one, NOW, age="3h", folder=one["cwd"], columns=columns) for one in agents]
    for line in out.table_lines(HEADINGS, rows, grows="WHAT"):
        plain = line
        for piece in ("\x1b[0m", *(f"\x1b[{style}m" for style in ("1", "2", "1;33", "32"))):
            plain = plain.replace(piece, "")
        assert display_width(plain) <= columns
        assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in plain)
        assert coloured or plain == line


@given(WORDS, st.integers(1, 40))
def test_the_end_of_a_path(path: str, columns: int) -> None:
    shown = end_of(path, columns)
    assert display_width(shown) <= columns
    assert path.endswith(shown.removeprefix("…")) or path == shown


def test_a_question_is_readable_in_eighty_columns() -> None:
    out = CommandOutput(None, None, columns=80)  # type: ignore[arg-type]  # nothing is written
    one = seen("a-rather-long-name-of-an-agent", activity="waiting", asks="Bash command · rm -rf build · Proceed?")
    line = out.table_lines(
        HEADINGS, [row(one, NOW, age="12m", folder="~/work/of/mine/in/a/deep/folder", columns=80)], grows="WHAT"
    )[1]
    assert line == "a-rather-long-name-…  waiting  12m  Bash command · rm -rf bui…  …n/a/deep/folder"
