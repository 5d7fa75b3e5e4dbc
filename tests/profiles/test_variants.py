"""Profiles hold for a range of versions: what differs in some is data."""

from pathlib import Path

import pytest

from synapsed.cli import main
from synapsed.errors import ConfigError
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Resume
from synapsed.profiles.releases import key, within

PROFILE = """
args = ["--new"]
verified = "3.0"
version = { since = "1.5" }
[composer]
line = '^> (?P<text>.*)$'

[[versions]]
below = "2.0"
args = []
composer = { placeholder = '^Ask' }

[[versions]]
since = "1.2"
below = "1.8"
note = "it takes no messages of several lines"
env = { OLD = "1" }
"""


@pytest.fixture
def library(tmp_path: Path) -> ProfileLibrary:
    for folder in ("builtin", "user"):
        (tmp_path / folder).mkdir()
    (tmp_path / "builtin" / "tool.toml").write_text(PROFILE)
    return ProfileLibrary([tmp_path / "builtin", tmp_path / "user"])


@pytest.mark.parametrize(
    ("version", "args", "env"),
    [
        ("0.9", [], {}),
        ("1.2", [], {"OLD": "1"}),
        ("1.8.0-beta.1", [], {"OLD": "1"}),
        ("1.8.0", [], {}),
        ("2.0.0-rc.1", [], {}),
        ("2.0", ["--new"], {}),
        ("17", ["--new"], {}),
        (None, ["--new"], {}),
        ("nightly", ["--new"], {}),
    ],
)
def test_what_counts_for_a_version(library: ProfileLibrary, version: str, args: list[str], env: dict[str, str]) -> None:
    profile = library.get("tool").at(version)
    assert (profile.args, profile.env) == (args, env)
    assert profile.composer.line.pattern == "^> (?P<text>.*)$", "tables are merged key by key"


def test_what_a_user_writes_counts_for_every_version(library: ProfileLibrary, tmp_path: Path) -> None:
    (tmp_path / "user" / "tool.toml").write_text('args = ["--mine"]\n[[versions]]\nbelow = "1"\nargs = ["--first"]\n')
    library.reload()
    profile = library.get("tool")
    assert [profile.at(version).args for version in ("0.5", "1.5", "2.5")] == [["--first"], ["--mine"], ["--mine"]]
    assert profile.at("1.5").env == {"OLD": "1"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[versions]]\nargs = []", ":1: versions.0: must say for which versions it is: 'below', 'since' or both"),
        ('[[versions]]\nbelow = "2"\nports = [1, 2]', ":1: versions.0: 'ports' cannot differ from version to version"),
        ('[[versions]]\nbelow = "two"', ":2: versions.0.below: 'two' is no version: numbers with dots between them"),
        (
            '[[versions]]\nsince = "1"\n\n[[versions]]\nbelow = "2"\n[versions.composer]\nlien = "x"',
            ":7: unknown key 'versions.1.composer.lien'; did you mean 'line'?",
        ),
        ('[[versions]]\nbelow = "2"\ncompozer = {}', ":3: unknown key 'versions.0.compozer'; did you mean 'composer'?"),
    ],
)
def test_mistakes_are_told_with_their_place(library: ProfileLibrary, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "user" / "tool.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        library.reload()
    assert error.value.message.startswith(f"{file}{said}")
    with pytest.raises(ConfigError) as error:
        library.check(file)
    assert error.value.message.startswith(f"{file}{said}")


def test_the_difference_is_told_to_a_person(library: ProfileLibrary) -> None:
    profile = library.get("tool")
    assert profile.drift("3.0") is None
    assert profile.drift(None) is None
    assert profile.drift("3.1") == "profile verified on 3.0, this is 3.1"
    assert profile.drift("1.7") == "profile verified on 3.0, this is 1.7; it takes no messages of several lines"
    assert profile.drift("1.1.9") == (
        "profile verified on 3.0, this is 1.1.9, older than any it is known to work with (1.5 and later): update it"
    )


def test_show_and_check_know_of_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SYNAPSED_HOME", str(tmp_path))
    folder = tmp_path / "config" / "profiles"
    folder.mkdir(parents=True)
    (folder / "tool.toml").write_text(PROFILE)
    assert main(["profile", "show", "tool", "--version", "1.6"]) == 0
    shown = capsys.readouterr()
    assert "args = []" in shown.out
    assert "profile verified on 3.0, this is 1.6" in shown.err
    assert main(["profile", "check", str(folder / "tool.toml"), "--version", "1.6"]) == 0
    assert "differs below 2.0: args, composer" in capsys.readouterr().err
    assert main(["profile", "show", "tool", "--version", "new"]) == 2
    assert "is no version" in capsys.readouterr().err


def test_versions_are_ordered_by_their_numbers() -> None:
    ordered = ["0.9", "1.2.9", "1.2.10-beta", "1.2.10", "1.10", "2"]
    assert sorted(ordered, key=lambda version: key(version) or ()) == ordered
    assert key("1.2") == key("v1.2.0")
    assert not within("unknown", None, None)


OWN = Resume(own=["--resume ID", "-r ID", "--continue", "resume ID"])


@pytest.mark.parametrize(
    ("args", "rest"),
    [
        ([], []),
        (["--model", "resume"], ["--model", "resume"]),
        (["--continue"], []),
        (["--resume"], []),
        (["--resume", "1234", "--model", "x"], ["--model", "x"]),
        (["--resume=1234", "words"], ["words"]),
        (["-r1234", "words"], ["words"]),
        (["-r=1234", "words"], ["words"]),
        (["re"], ["re"]),
        (["-r", "--model", "x"], ["--model", "x"]),
        (["resume", "1234", "-v"], ["-v"]),
        (["say", "resume"], ["say", "resume"]),
        (["-v", "--", "--continue"], ["-v", "--", "--continue"]),
    ],
)
def test_a_persons_own_arguments_choose_the_conversation(args: list[str], rest: list[str]) -> None:
    assert OWN.without_choice(args) == rest
    assert OWN.chosen_by(args) is (args != rest)


def test_what_extends_it_for_another_program_has_none_of_its_versions(library: ProfileLibrary, tmp_path: Path) -> None:
    (tmp_path / "user" / "other.toml").write_text('extends = "tool"\ncommand = "other"\n')
    (tmp_path / "user" / "same.toml").write_text('extends = "tool"\nenv = { MINE = "1" }\n')
    library.reload()
    assert library.get("other").at("1.5").args == ["--new"]
    assert library.get("other").version is None
    assert library.get("same").at("1.5").args == []
    assert library.get("same").at("1.5").env == {"MINE": "1", "OLD": "1"}
