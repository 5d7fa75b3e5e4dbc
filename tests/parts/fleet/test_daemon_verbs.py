"""`synapsed broker` and `synapsed fleet`, as installed units and the tool call them."""

import io
import json
from pathlib import Path

import pytest

from synapsectl.verbs import DaemonVerb
from synapsed import cli


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SYNAPSED_HOME", str(tmp_path))
    return tmp_path


def test_a_host_in_no_fleet_is_told_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("{}"))
    assert cli.main(["fleet", "status"]) == cli.EXIT_OK
    assert json.loads(capsys.readouterr().out)["member"] is None


def test_what_is_wrong_is_told_to_programs_and_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fleet", "nothing"]) == cli.EXIT_CONFIG
    told = capsys.readouterr()
    error = json.loads(told.out)["error"]
    assert (error["code"], error["message"]) == ("INVALID_REQUEST", "'nothing' is nothing that is done for a fleet")
    assert told.err == "synapsed: 'nothing' is nothing that is done for a fleet\n"


def test_a_daemon_that_runs_loads_no_verbs_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> dict[str, DaemonVerb]:
        raise AssertionError("they are loaded")

    monkeypatch.setattr(cli, "_of_parts", fail)
    assert cli.main(["version"]) == cli.EXIT_OK


@pytest.mark.parametrize("verb", ["broker", "fleet"])
def test_without_the_part_a_verb_says_what_brings_it(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_of_parts", dict)
    assert cli.main([verb]) == cli.EXIT_CONFIG
    words = f"synapsed: {verb!r} belongs to the part fleet, which is not installed: pip install 'synapsed[fleet]'\n"
    assert capsys.readouterr().err == words
