"""A wrong state that was planted becomes a report, and that a test, which fails until the profile is mended."""

import json
from pathlib import Path
from typing import Any

import pytest

from synapsed.parts.profile_tools.recordings import prove, read_recordings
from synapsed.parts.profile_tools.reports import drawing
from synapsed.profiles.profile import Profile
from tests.golden.replay import Case
from tests.golden.test_golden import test_marks as check_row
from tests.parts.profile_tools.reports.made import KEY, PI, document, of_pi
from tests.recordings import from_report

WRONG = Profile.model_validate({**PI.model_dump(mode="json", exclude_none=True), "busy": {"screen": ["^ NEVER SHOWN"]}})
"""The profile with a pattern that fits nothing."""


class Row(Case):
    """The row that was made, held against a profile."""

    def held_against(self, profile: Profile) -> None:
        object.__setattr__(self, "against", profile)
        check_row(self, told=False)

    def profile(self) -> Profile:
        against: Profile = self.against  # type: ignore[attr-defined] - set above
        return against


def written(place: Path, **values: Any) -> Path:
    file = place / "r.json"
    file.write_text(json.dumps({**document(), "should_be": "busy", **values}))
    return file


@pytest.mark.night
def test_a_planted_wrong_state_becomes_a_failing_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "LAST", 2000)  # so that there is something before it
    monkeypatch.setattr(from_report, "shipped_profile", lambda name: WRONG)
    file = tmp_path / "r.json"
    made = of_pi(WRONG, before=f"export KEY={KEY[:12]}\x1b[1m{KEY[12:]}\x1b[m\r\n", should_be="busy")
    assert (made["start"], made["drawn"], made["reads"]["activity"]) == ("launch", None, "ready")
    assert KEY[12:] not in made["report"]
    file.write_text(made["report"])

    runs = read_recordings(file)
    assert len(prove(WRONG, runs)[0].differences) == 1
    assert prove(PI, runs)[0].differences == []

    suite = tmp_path / "suite"
    told = from_report.made(file, name="works", should_be=None, suite=suite)
    assert "the test does not fail" not in "".join(told)
    row = Row(suite / "golden" / "pi-0.74.2" / "works.json")
    with pytest.raises(AssertionError, match="reported"):
        row.held_against(WRONG)
    row.held_against(PI)
    assert from_report.main([str(file), "--name", "works", "--suite", str(suite)]) == 1


@pytest.mark.parametrize(
    "values",
    [
        {"profile_name": "../../x"},
        {"profile_name": "nobody"},
        {"versions": {"synapsed": "1", "verified": "x/../../../../../OUTSIDE"}},
        {"versions": {"synapsed": "1", "verified": "1/../../../OUTSIDE"}},
        {"versions": {"synapsed": "1", "program": "2.1.330\nbad/../../x"}},
        {"recording": {**document()["recording"], "size": [1, 3]}},
        {"recording": {**document()["recording"], "output": [[0.0, "\ud800x"]]}},
        {"profile": {"a": "\ud800"}},
        {"should_be": None},
    ],
)
def test_a_hostile_report_writes_nothing(
    tmp_path: Path, values: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, **values)
    assert from_report.main([str(file), "--suite", str(tmp_path / "deep" / "in" / "suite")]) == 1
    assert capsys.readouterr().err.startswith(f"{file}: ")
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_nothing_is_written_over_nor_through_a_link_out_of_the_suite(tmp_path: Path) -> None:
    file, suite = written(tmp_path), tmp_path / "suite"
    (tmp_path / "outside").mkdir()
    (suite / "recordings").mkdir(parents=True)
    (suite / "recordings" / "claude-2.1.330").symlink_to(tmp_path / "outside")
    assert from_report.main([str(file), "--suite", str(suite)]) == 1
    assert from_report.main([str(file), "--name", "../works", "--suite", str(suite)]) == 1
    (tmp_path / "link.json").symlink_to("/dev/zero")
    assert from_report.main([str(tmp_path / "link.json"), "--suite", str(suite)]) == 1
    assert list((tmp_path / "outside").iterdir()) == []


def test_what_a_report_says_is_printed_without_sequences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = {"activity": "\x1b]0;PWNED\x07ready\x1b[2J", "evidence": "\x1b[31mhello\u009b31m"}
    file = written(tmp_path, told=told, profile={"\u009bbusy": {}, "args": ["touch", str(tmp_path / "ran")]})
    assert from_report.main([str(file), "--suite", str(tmp_path / "suite")]) == 0
    out = capsys.readouterr().out
    assert out.replace("\n", "").isprintable()
    assert not (tmp_path / "ran").exists()
