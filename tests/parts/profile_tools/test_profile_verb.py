"""`synapsed profile`, as people, `synapsectl` and bundles call it."""

import json
from pathlib import Path

import pytest

from synapsectl.parsing import command_line
from synapsed import cli


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SYNAPSED_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("words", [("file", "nothing"), ("show", "nothing", "--json")])
def test_who_reads_json_gets_errors_as_json(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["profile", *words]) == cli.EXIT_CONFIG
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "UNKNOWN_PROFILE"


def test_what_cannot_be_a_version_is_told_to_programs_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["profile", "show", "dummy", "--version", "new", "--json"]) == cli.EXIT_CONFIG
    told = capsys.readouterr()
    assert "'new' is no version" in json.loads(told.out)["error"]["message"]
    assert told.err.startswith("synapsed: --version: 'new' is no version")


@pytest.mark.parametrize(("what", "refused"), [("show", False), ("new", True)])
def test_root_reads_what_is_somebody_elses_and_writes_nothing(
    what: str, refused: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synapsed.process.file_owners.why_not_as_root", lambda *_: "this home is alice's")
    assert cli.main(["profile", what, "dummy"]) == (cli.EXIT_CONFIG if refused else cli.EXIT_OK)
    assert ("this home is alice's" in capsys.readouterr().err) is refused


def test_without_the_part_its_verbs_are_told_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_of_parts", dict)
    assert cli.main(["profile", "show", "dummy"]) == cli.EXIT_CONFIG
    belongs = "belongs to the part profile_tools, which is not installed\n"
    assert capsys.readouterr().err == f"synapsed: 'profile' {belongs}"
    monkeypatch.setattr("synapsectl.parsing.subverbs_of_parts", lambda _: {})
    with pytest.raises(SystemExit):
        command_line().parse_args(["profiles", "show", "dummy"])
    assert capsys.readouterr().err.startswith(f"synapsectl profiles: 'profiles show' {belongs}")
