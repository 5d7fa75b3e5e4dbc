"""A report is a document that may come from anyone."""

import json
from pathlib import Path
from typing import Any

import pytest

from synapsed.errors import ConfigError, InvalidRequest
from synapsed.parts.profile_tools.recordings import prove, read_recordings
from synapsed.parts.profile_tools.reports.report import FILE_MAX, OUTPUT_MAX, StateReport, read, written
from synapsed.profiles.library import ProfileLibrary
from tests.parts.profile_tools.reports.made import document


def changed(**values: Any) -> bytes:
    return json.dumps({**document(), **values}).encode()


def recorded(**values: Any) -> bytes:
    return changed(recording={**document()["recording"], **values})


def test_it_comes_back_as_it_was() -> None:
    report = read(recorded(output=[(0.0, "日本 🟥 › \x1b[31m"), (0.5, "b")]))
    assert report.record()["chunks"] == [(0.0, len("日本 🟥 › \x1b[31m".encode())), (0.5, len(report.raw()))]
    assert read(written(report)) == report
    assert "日本 🟥 › ".encode() in written(report)  # a person can search it


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "valid dictionary"),
        (b" " * (FILE_MAX + 1), "larger than"),
        (b"\xff\xfe", "no JSON"),
        (changed(synapsed_report=2), "synapsed_report"),
        (changed(profile_name="../../etc"), "profile_name"),
        (changed(profile_name="claude\n"), "profile_name"),
        (changed(profile_name="/etc/passwd"), "profile_name"),
        (changed(versions={"synapsed": "1", "program": "../1"}), "versions.program"),
        (changed(versions={"synapsed": "1", "program": "1/2"}), "versions.program"),
        (changed(versions={"synapsed": "1", "verified": "x/../../../OUTSIDE"}), "versions.verified"),
        (changed(versions={"synapsed": "1", "verified": "2.1.330\nbad/../../x"}), "versions.verified"),
        (changed(versions={"synapsed": "1", "verified": "1/../../x"}), "versions.verified"),
        (changed(should_be="root"), "should_be"),
        (changed(says="x" * 20_000), "says"),
        (changed(says="\udcff"), "no JSON document|says"),
        (changed(profile={"a": "\ud800"}), "no JSON document"),
        (changed(profile={"a": "x" * 600_000}), "too long"),
        (recorded(size=[100_000, 40]), "recording.size"),
        (recorded(size=[0, 40]), "recording.size"),
        (recorded(output=[]), "recording.output"),
        (recorded(output=[[0.0, "x" * (OUTPUT_MAX + 1)]]), "read at most"),
        (recorded(output=[[2.0, "a"], [1.0, "b"]], end=3.0), "must not go back"),
        (recorded(output=[[5.0, "a"]], end=1.0), "must not go back"),
        (recorded(output=[[-1.0, "a"]]), "recording.output"),
        (recorded(output=[[0.0, "\ud800"]]), "no JSON document|recording.output"),
        (recorded(screen=["\ud800"]), "no JSON document|recording.screen"),
        (recorded(end=float("nan")), "recording.end"),
    ],
)
def test_what_is_refused(data: bytes, told: str) -> None:
    with pytest.raises(InvalidRequest, match=told):
        read(data)


def test_what_is_right_follows_from_the_state_that_is_said_to_be() -> None:
    reads = {"activity": "ready", "composer": "empty", "prompt": {"prompt": "?"}, "evidence": "x"}
    report = read(recorded(reads=reads))
    assert report.expected() is None
    assert report.expected("busy") == {"mark": "reported", "activity": "busy", "composer": "empty"}
    assert report.expected("waiting") == {
        "mark": "reported",
        "activity": "waiting",
        "composer": "empty",
        "prompt": {"prompt": "?"},
    }


def test_a_profile_is_held_against_a_report_as_against_a_recording(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_bytes(written(StateReport.model_validate({**document(), "should_be": "busy"})))
    (run,) = read_recordings(file)
    (proof,) = prove(ProfileLibrary.builtin().get("claude"), [run])
    assert (proof.name, len(proof.marks)) == ("r", 1)
    assert "'reported': activity is" in proof.differences[0]
    file.write_bytes(recorded(size=[3, 3]))
    with pytest.raises(ConfigError, match="size must be"):
        read_recordings(file)
