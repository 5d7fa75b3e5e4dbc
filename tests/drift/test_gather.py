"""A release whose row and recordings are there, and a report: what is found in them, without the program."""

import json
import shutil
from pathlib import Path

import pytest

from synapsed.profiles.profile import Profile
from tests.drift import __main__ as drift
from tests.drift import gather
from tests.drift.compare import differs
from tests.drift.packages import Installed, NotInstalled

PI, NEWER = "pi-1.6.0", "pi-1.6.1"
CELLS = {"starts": "yes", "turns": "yes", "draft": "yes"}


def shipped() -> Profile:
    found = gather.shipped("pi")
    assert found is not None
    return found


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Those of a newer release of pi, which is as the verified one."""
    folder = tmp_path / "recordings" / NEWER
    shutil.copytree(gather.TESTS / "recordings" / PI, folder)
    (tmp_path / "row.json").write_text(json.dumps({"cells": CELLS, "faults": [], "told": "", "screen": None}))
    return tmp_path


@pytest.mark.night
def test_a_release_that_is_the_same_does_not_differ(results: Path) -> None:
    found = gather.release(shipped(), Installed("1.6.1", results), results, {})
    assert not differs(found)
    assert found.recorded == ["start", "turn", "interrupt", "long"]
    assert found.unmatched == []
    assert found.proposal is not None
    assert "[composer]" in found.proposal
    assert all(mark.recorded is not None and mark.new is not None for mark in found.marks)


@pytest.mark.night
def test_a_changed_sign_of_work_is_drift(results: Path) -> None:
    """Other dots; and the state that it tells besides is no longer told so."""
    for raw in (results / "recordings" / NEWER).glob("*.raw"):
        raw.write_bytes(raw.read_bytes().replace(b"\xe2\xa0", b"\xe2\xa3").replace(b"]7501;", b"]7502;"))
    found = gather.release(shipped(), Installed("1.6.1", results), results, {})
    assert differs(found)
    assert [each for each in found.unmatched if each.startswith("busy.")]


@pytest.mark.night
def test_a_failure_is_shown_beside_the_recorded_screen(results: Path) -> None:
    row = {"cells": {**CELLS, "draft": "NO"}, "faults": ["draft: gone"], "told": "", "screen": "<svg/>"}
    (results / "row.json").write_text(json.dumps(row))
    found = gather.release(shipped(), Installed("1.6.1", results), results, {"draft": "yes"})
    assert found.failed_at is not None
    assert found.failed_at.new is not None
    assert found.failed_at.new.svg == "<svg/>"
    assert found.failed_at.recorded is not None
    assert "a draft that nobody" in "\n".join(found.failed_at.recorded.lines)


def test_what_cannot_be_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(name: str) -> Installed:
        raise NotInstalled(f"npm: {name}: <no> network")

    monkeypatch.setattr(drift, "install", refused)
    assert drift.main(["pi", "--into", str(tmp_path)]) == 2
    assert capsys.readouterr().out.splitlines()[-1] == "drift: could not be tried: pi (exit code 2)"
    assert "npm: pi: &lt;no&gt; network" in (tmp_path / "drift.html").read_text()
    assert json.loads((tmp_path / "drift.json").read_text())["verdict"]["code"] == 2


def test_a_program_that_is_not_tried_is_refused_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        drift.main(["goose"])
    assert "goose: neither npm nor PyPI has it" in capsys.readouterr().err


def test_a_file_that_is_no_report_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report.json"
    file.write_text("{}")
    assert drift.main(["--report", str(file), "--into", str(tmp_path)]) == 2
    assert f"{file} was not tried" in capsys.readouterr().out
