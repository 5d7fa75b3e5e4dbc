"""`profiles show` and `profiles check`."""

import signal
import tomllib
from pathlib import Path

import pytest

from synapsed.cli import main
from synapsed.profiles.library import ProfileLibrary


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


def test_signals_are_left_as_they_are(home: Path) -> None:
    """Who calls it has sockets too."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as Python has it
    assert main(["profile", "show", "dummy"]) == 0
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN


def test_a_profile_is_shown_whatever_is_wrong_in_others(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profiles = home / "config" / "profiles"
    (profiles / "broken.toml").write_text("no = toml = at all")
    (profiles / "claude.toml").write_text("description = 'ours'\n")
    (profiles / "mine.toml").write_text("extends = 'claude'\ncommand = 'mine'\n")
    for name, word in (("claude", "ours"), ("mine", "mine")):
        assert main(["profile", "show", name]) == 0
        shown = capsys.readouterr().out
        assert word in shown
        assert "SessionStart" in shown, "what is built in counts"
    assert main(["profile", "show", "broken"]) == 2
    assert "broken.toml" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["nothing", "../profiles/mine", ".", ""])
def test_what_is_no_name_of_a_profile_is_told(name: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "config" / "profiles" / "mine.toml").write_text("command = 'mine'\n")
    assert main(["profile", "show", name]) == 2
    assert f"no profile {name!r}" in capsys.readouterr().err


def test_a_line_program_needs_a_command_and_a_pattern(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = home / "mine.toml"
    file.write_text("command = 'mine'\n[composer]\nat_cursor = true\nline = '^mine> (?P<text>.*)$'\n")
    assert main(["profile", "check", str(file)]) == 0
    assert "nothing interrupts it" in capsys.readouterr().err


def test_what_will_not_work_well_is_advice(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = home / "no-such-program-anywhere.toml"
    file.write_text("[composer]\nline = '^> (?P<text>.*)$'\n[interrupt]\nkeys = 'ctrl-c'\n[exit]\nkeys = ['\\u0004']\n")
    assert main(["profile", "check", str(file)]) == 0
    told = capsys.readouterr()
    assert told.out == f"{file}: fine, with advice\n"
    for words in (
        "other agents cannot write to it",
        "[interrupt] types the letters 'ctrl-c'",
        "'no-such-program-anywhere' is not on this shell's PATH",
    ):
        assert words in told.err


@pytest.mark.parametrize(
    "args", ['[\'-c\', \'servers.x.args=["-m","synapsectl","mcp"]\']', "['-m', 'synapsectl', 'mcp']"]
)
def test_a_server_that_is_found_by_its_name_is_advised_against(
    args: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / "mine.toml"
    file.write_text(f"command = 'mine'\n[mcp]\nargs = {args}\n")
    assert main(["profile", "check", str(file)]) == 0
    assert "[mcp] would run a synapsectl of the agent's folder" in capsys.readouterr().err
    file.write_text("command = 'mine'\n[mcp]\nargs = ['{mcp}']\n")
    assert main(["profile", "check", str(file)]) == 0
    assert "synapsectl" not in capsys.readouterr().err


@pytest.mark.parametrize(("busy", "told"), [("", True), ("[busy]\nprogress = ['normal']\n", False)])
def test_a_progress_bar_shows_that_it_is_busy(
    busy: str, told: bool, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / "mine.toml"
    file.write_text(f"command = 'mine'\n[composer]\nline = '^> (?P<text>.*)$'\n{busy}")
    assert main(["profile", "check", str(file)]) == 0
    assert ("nothing shows that it is busy" in capsys.readouterr().err) is told


def test_what_is_wrong_in_another_file_is_not_told_of_this_one(home: Path) -> None:
    (home / "config" / "profiles" / "broken.toml").write_text("comand = 'x'\n")
    (home / "config" / "profiles" / "mine.toml").write_text("command = 'mine'\n")
    assert main(["profile", "check", str(home / "config" / "profiles" / "mine.toml")]) == 0


def test_a_byte_order_mark_is_passed_over(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = home / "mine.toml"
    file.write_text("command = 'mine'\n", encoding="utf-8-sig")
    assert main(["profile", "check", str(file)]) == 0


def test_a_prompt_that_matches_everything_is_advised_against(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = home / "mine.toml"
    file.write_text("command = 'mine -i'\n[composer]\nat_cursor = true\nline = '(?P<text>.*)'\n")
    assert main(["profile", "check", str(file)]) == 0
    told = capsys.readouterr().err
    assert "matches an empty line" in told
    assert "arguments stand in 'args'" in told


@pytest.mark.parametrize("name", ["gone.toml", ""])
def test_a_file_that_cannot_be_read(name: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "check", str(home / name)]) == 2
    assert "Errno" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[composer]\nline = '^> (.*)$'\n", ["mine.toml:2", "(?P<text>…)"]),
        ("[composer]\nlime = 'x'\n", ["mine.toml:2", "'composer.lime'", "'line'"]),
        ("[ready]\ntitle = '('\n", ["mine.toml:2", "not a regular expression"]),
        ("[[prompts.dialogs]]\ntype = 'permission'\nwhen = ['a']\noption = 'x'\n", ["(?P<key>…) and (?P<label>…)"]),
        ("command = \n", ["mine.toml:1: Invalid value at column 11"]),
        ('[composer]\nline = "^\\d> (?P<text>.*)$"\n', ["mine.toml:2: ", "single quotes"]),
        ("name = 'other'\n", ["mine.toml:1: unknown key 'name': a profile is named by its file"]),
        ("command = ['mine', '-i']\n", ["mine.toml:1: command: ", "stand in 'args'"]),
        ("args = '-i'\n", ['mine.toml:1: args: must be a list: ["-i"]']),
        ("args = [1]\n", ["mine.toml:1: args.0: must be a string"]),
        ("env = ['A=1']\n", ["mine.toml:1: env: must be one table: [env]"]),
        ("[[composer]]\nline = 'x'\n", ["mine.toml:1: composer: must be one table: [composer]"]),
        ("[error]\npattern = '!'\n", ["mine.toml:1: error: must be a list", "[[error]]"]),
        ("[interrupt]\nkeys = ['\\u0003']\n", ["mine.toml:2: interrupt.keys: must be a string, not a list"]),
        ("[interrupt]\nkeys = ''\n", ["mine.toml:2: interrupt.keys: must have at least 1 character"]),
        ("[delivery]\nsubmit = ''\n", ["mine.toml:2: delivery.submit: must have at least 1 character"]),
        ("status_records = 3\n", ["mine.toml:1: status_records: must be true or false, or must be a string"]),
        ("cols = 0\n", ["mine.toml:1: cols: must be at least 20"]),
        ("[[prompts.dialogs]]\nwhen = ['x']\n", ["mine.toml:1: prompts.dialogs.0.type: is missing"]),
        ("command = ''\n", ["mine.toml:1: command: "]),
        ("ports = [9, 8]\n", ["mine.toml:1: ports: ", "the first and the last port"]),
        ("ports = [8000, 80000]\n", ["mine.toml:1: ports.1: ", "65535"]),
        ("[interrupt]\nsignal = 'SIGSTOPP'\n", ["mine.toml:2: interrupt.signal: ", "like SIGINT"]),
        ("[[error]]\npattern = '!'\ncode = 'OTHER'\n", ["mine.toml:3: error.0.code: ", "'MODEL_ERROR', "]),
        (
            "[[prompts.dialogs]]\nwhen = []\ntype = 'trust'\n[[prompts.dialogs]]\ntype = 'trust'\nwhen = ['b', '(']\n",
            ["mine.toml:6: prompts.dialogs.1.when.1: not a regular expression"],
        ),
        ("[[prompts.dialogs]]\ntype = 'trust'\n", ["mine.toml:1: prompts.dialogs.0.when: "]),
        ("rights = ['all']\n", ["mine.toml:1: rights.0: "]),
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
