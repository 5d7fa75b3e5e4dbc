"""`profiles show` and `profiles check`."""

import tomllib
from pathlib import Path

import pytest

from synapsed.cli import main
from synapsed.profiles import ProfileLibrary


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SYNAPSED_HOME", str(tmp_path))
    (tmp_path / "config" / "profiles").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "opencode", "dummy", "generic"])
def test_a_shown_profile_is_the_profile(name: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "show", name]) == 0
    shown = tomllib.loads(capsys.readouterr().out)
    (home / "config" / "profiles" / "copy.toml").write_text("")
    known = ProfileLibrary.standard(home / "config" / "profiles").get(name)
    assert known.model_validate({**shown, "name": name, "source": known.source}) == known


def test_a_line_program_needs_a_command_and_a_pattern(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = home / "mine.toml"
    file.write_text("command = 'mine'\n[composer]\nat_cursor = true\nline = '^mine> (?P<text>.*)$'\n")
    assert main(["profile", "check", str(file)]) == 0
    assert "nothing interrupts it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[composer]\nline = '^> (.*)$'\n", ["mine.toml:2", "(?P<text>…)"]),
        ("[composer]\nlime = 'x'\n", ["mine.toml:2", "'composer.lime'", "'line'"]),
        ("[ready]\ntitle = '('\n", ["mine.toml:2", "not a regular expression"]),
        ("[[prompts.dialogs]]\ntype = 'permission'\nwhen = ['a']\noption = 'x'\n", ["(?P<key>…) and (?P<label>…)"]),
        ("command = \n", ["mine.toml", "line 1"]),
    ],
)
def test_a_wrong_profile_is_told_by_place_and_reason(
    text: str, words: list[str], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / "mine.toml"
    file.write_text(text)
    assert main(["profile", "check", str(file)]) == 2
    told = capsys.readouterr().err
    assert all(word in told for word in words), told
