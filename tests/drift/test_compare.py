"""What counts as drift, and what is said of it."""

import re
from pathlib import Path
from typing import Any

import pytest

from synapsed.profiles.library import ProfileLibrary
from tests.drift.compare import AtMark, Release, Reported, at_marks, patterns, unmatched, verdict
from tests.drift.drawing import Drawn

SAME = AtMark("start", "ready", ())
OTHER = AtMark("start", "ready", ('\'ready\': activity is "busy", and "ready" is expected',))
READY = {"mark": "ready", "activity": "ready", "composer": "empty"}


def release(**told: Any) -> Release:
    return Release(name="codex", verified="1.0.0", version="1.1.0", **told)


def report(*differences: str) -> Reported:
    return Reported(
        file="r.json", profile="codex", version="1", says="", told="", reads="busy", should_be=None,
        differences=differences,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("releases", "reports", "unread", "code", "line"),
    [
        ([release(cells={"turns": "yes"}, marks=[SAME])], [], [], 0, "none found"),
        ([release(cells={"turns": "NO"}, before={"turns": "yes"})], [], [], 1, "codex 1.1.0 differs"),
        ([release(cells={"turns": "NO"}, before={"turns": "NO"})], [], [], 2, "could not be tried: codex"),
        ([release(cells={"turns": "yes"}, marks=[OTHER])], [], [], 1, "codex 1.1.0 differs"),
        ([release(reason="npm: no network")], [], [], 2, "could not be tried: codex"),
        ([release(marks=[OTHER]), release(reason="x")], [], [], 1, "differs; could not be tried: codex"),
        ([], [report("'reported': activity")], [], 1, "the report r.json differs"),
        ([], [report()], [], 0, "none found"),
        ([], [report()], ["other.json"], 2, "could not be tried: other.json"),
    ],
)
def test_the_verdict(releases: list[Release], reports: list[Reported], unread: list[str], code: int, line: str) -> None:
    found = verdict(releases, reports, unread)
    assert found.code == code
    assert line in found.line
    assert f"exit code {code}" in found.line


def test_a_mark_that_is_read_as_expected_does_not_differ() -> None:
    """What only a running agent has is not compared."""
    assert at_marks("start", [READY], [{**READY, "receives": True}]) == [SAME]


def test_a_mark_that_is_read_otherwise_does() -> None:
    (found,) = at_marks("start", [{**READY, "activity": "busy"}], [READY])
    assert found.mark == "ready"
    assert "activity" in found.differences[0]


@pytest.mark.parametrize("told", [[READY], [READY, {**READY, "mark": "failed"}]])
def test_a_scenario_that_did_not_come_through_says_where(told: list[dict[str, Any]]) -> None:
    first, missed = at_marks("start", told, [READY, {**READY, "mark": "dialog"}, {**READY, "mark": "answered"}])
    assert first == SAME
    assert missed.mark == "dialog"
    assert "never seen" in missed.differences[0]


def test_patterns_that_no_new_screen_shows_are_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        "[composer]\nline = '^> (?P<text>.*)$'\n[busy]\nscreen = ['esc to stop', 'never anywhere']\n"
        "[ready]\ntitle = '^mine$'\n"
    )
    profile = ProfileLibrary.builtin().check(file)
    old = Drawn(("esc to stop", "> "), "mine", "")
    new = Drawn(("Esc stops", "> "), "mine", "")
    assert [found.partition(" = ")[0] for found in unmatched(profile, [old], [new])] == ["busy.screen[0]"]
    assert unmatched(profile, [old], [new, old]) == []
    assert all(isinstance(pattern, re.Pattern) for _, pattern in patterns(profile))
    assert {place for place, _ in patterns(profile)} >= {"composer.line", "ready.title"}
