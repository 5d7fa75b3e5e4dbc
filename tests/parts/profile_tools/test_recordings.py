"""Recordings of programs, read by a profile in a process without rights."""

import json
import shutil
from pathlib import Path

import pytest

from synapsed.errors import ConfigError
from synapsed.parts.profile_tools.recordings import EXPECTED, prove, read_recordings
from synapsed.profiles.library import ProfileLibrary

TESTS = Path(__file__).parent.parent.parent
PI = "pi-0.74.2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Recordings of pi, with what is expected of them."""
    for raw in sorted((TESTS / "recordings" / PI).glob("*.raw")):
        for end in (".raw", ".json"):
            shutil.copy(raw.with_suffix(end), tmp_path)
        shutil.copy(TESTS / "golden" / PI / f"{raw.stem}.json", tmp_path / f"{raw.stem}{EXPECTED}")
    return tmp_path


def test_the_shipped_profile_reads_its_recordings_as_they_say(folder: Path) -> None:
    proofs = prove(ProfileLibrary.builtin().get("pi"), read_recordings(folder))
    assert [proof.name for proof in proofs] == ["delayed", "interrupt", "long", "start"]
    assert [each for proof in proofs for each in proof.differences] == []
    start = next(proof for proof in proofs if proof.name == "start")
    assert {mark["mark"]: mark["activity"] for mark in start.marks}["ready"] == "ready"


def test_another_profile_does_not(folder: Path) -> None:
    pi = ProfileLibrary.builtin().get("pi")
    blind = pi.model_copy(update={"busy": type(pi.busy)(), "channels": {}})
    differences = [each for proof in prove(blind, read_recordings(folder)) for each in proof.differences]
    assert any("activity" in each for each in differences), differences


@pytest.mark.parametrize("end", [".raw", ".json", EXPECTED])
def test_one_is_named_by_any_of_its_files(end: str, folder: Path) -> None:
    (run,) = read_recordings(folder / f"start{end}")
    assert run.name == "start"
    assert run.expected is not None


def test_without_an_expectation_it_is_only_told(folder: Path) -> None:
    (folder / f"start{EXPECTED}").unlink()
    (proof,) = prove(ProfileLibrary.builtin().get("pi"), read_recordings(folder / "start.raw"))
    assert proof.differences == []
    assert proof.marks


def test_an_expectation_of_other_marks_is_a_difference(folder: Path) -> None:
    expected = folder / f"start{EXPECTED}"
    told = json.loads(expected.read_text())
    expected.write_text(json.dumps({"marks": told["marks"][:-1]}))
    (proof,) = prove(ProfileLibrary.builtin().get("pi"), read_recordings(folder / "start.raw"))
    assert proof.differences == ["its expectation has other marks than it has"]


WRONG = [
    {"chunks": [[0.0, 10_000_000]]},
    {"chunks": [[-1.0, 0]]},
    {"chunks": [["x", 0]]},
    {"chunks": [[0.0, 1]], "marks": [[0.0, 1]]},
    {"chunks": [], "size": [1, 1]},
    {"chunks": [], "size": [100_000, 100_000]},
    {"chunks": [[float("nan"), 0]]},
]


@pytest.mark.parametrize("told", WRONG)
def test_a_recording_of_another_form_is_refused(told: dict[str, object], folder: Path) -> None:
    (folder / "start.json").write_text(json.dumps({"marks": [], **told}))
    with pytest.raises(ConfigError, match=r"start\.json"):
        read_recordings(folder / "start.raw")


def test_one_that_ends_before_its_marks_is_refused(folder: Path) -> None:
    (folder / "start.raw").write_bytes(b"")
    with pytest.raises(ConfigError, match="behind the end"):
        read_recordings(folder / "start.raw")
    (folder / "start.raw").unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        read_recordings(folder / "start.json")
    (folder / "empty").mkdir()
    with pytest.raises(ConfigError, match="no recording"):
        read_recordings(folder / "empty")
