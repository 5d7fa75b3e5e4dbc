"""Command lines of the first hour, and such that are nearly right: done as they were meant, or refused
with the nearest right word."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsectl.commands.keys import KEYS, meant_key
from synapsectl.output import display_width, fold
from synapsectl.parsing import command_line, parsers
from synapsed.cli import main as daemon_main
from synapsed.errors import Busy, UnknownProfile
from synapsed.model.agent import Activity, ProcessState
from synapsed.parts.schedules.ctl.schedule import _at
from synapsed.terminal.keynames import encode
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon, agent
from tests.synapsectl.pty_tool import LAST, PtyTool


@pytest.mark.parametrize(
    ("typed", "at", "message"),
    [
        ("Mon..Fri 25:00 x", "Mon..Fri 25:00", "x"),
        ("Mon..Fri 08:00 Europe/Berlin say so", "Mon..Fri 08:00 Europe/Berlin", "say so"),
        ("Mon *-*-01 06:00 UTC x", "Mon *-*-01 06:00 UTC", "x"),
        ("*-*-01 06:00:00 x", "*-*-01 06:00:00", "x"),
        ("2026-12-24 18:00 x", "2026-12-24 18:00", "x"),
        ("daily 8am x", "daily 8am", "x"),
        ("0 8 * * 1-5 x y", "0 8 * * 1-5", "x y"),
        ("08:00 look at src/main", "08:00", "look at src/main"),
        ("08:00 12:30 is lunch", "08:00", "12:30 is lunch"),
        ("Mon 3 things to do", "Mon", "3 things to do"),
        ("daily UTC is what clocks show", "daily", "UTC is what clocks show"),
        ("08:00", "08:00", ""),
    ],
)
def test_a_time_without_its_quotes_is_no_message(typed: str, at: str, message: str) -> None:
    assert _at(typed.split()) == (at, message.split())


def test_a_message_in_quotes_is_no_time() -> None:
    assert _at(["Mon..Fri", "08:00 is too early"]) == ("Mon..Fri", ["08:00 is too early"])
    assert _at(["Mon..Fri 08:00", "12:30", "is lunch"]) == ("Mon..Fri 08:00", ["12:30", "is lunch"])


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("Entr", "Enter"),
        ("enter", "Enter"),
        ("ENTER", "Enter"),
        ("<Enter>", "Enter"),
        ("Entre", "Enter"),
        ("esc", "Esc"),
        ("Escap", "Escape"),
        ("up", "Up"),
        ("pgdn", "PgDn"),
        ("^C", "C-c"),
        ("^[", "C-["),
        ("Ctrl-C", "C-c"),
        ("ctrl+space", "C-Space"),
        ("Alt-x", "M-x"),
        ("alt-enter", "M-Enter"),
        ("Shift-Tab", "S-Tab"),
        ("F13", "one of F1 to F12"),
    ],
)
def test_a_text_that_is_nearly_a_key_is_refused(daemon: FakeDaemon, ctl: Ctl, typed: str, key: str) -> None:
    told = ctl("keys", "claude", typed)
    assert told.code == 2
    assert f"did you mean {key}?" in told.err
    assert not [path for method, path, _ in daemon.requests if method == "POST"], "nothing is typed"


@pytest.mark.parametrize(
    "text", ["y", "1", "yes", "some", "come", "hello there", "Entering", "/exit", "^", "[", "é", "E"]
)
def test_other_text_is_text(text: str) -> None:
    assert meant_key(text) is None


def test_the_tool_knows_the_daemons_keys() -> None:
    assert all(encode([key]) != [key.encode()] for key in KEYS)


def no_profile(name: str) -> UnknownProfile:
    profiles = ["acp", "claude", "generic"]
    return UnknownProfile(f"no profile {name!r}: there are {', '.join(profiles)}", profile=name, profiles=profiles)


def test_a_program_without_a_profile_is_told_the_one_for_any(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.refuse("POST", "/control/start", no_profile("aider"))
    told = ctl("start", "aider", "--", "--dark")
    assert told.code == 2
    assert "started as 'generic': synapsectl start generic --name aider -- aider --dark" in told.err


def test_a_profiles_name_with_a_slip_is_no_program(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.refuse("POST", "/control/start", no_profile("cluade"))
    assert "-- cluade" not in ctl("start", "cluade").err


def test_a_second_one_in_a_folder_is_told_of_the_first(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.agents["claude"] = agent("claude", cwd=os.path.realpath("."))
    daemon.starts_as = {"port": 8101}
    assert "claude runs in this folder already" in ctl("start", "claude").err
    assert "already" not in ctl("start", "claude", "--name", "second").err, "that was meant"
    del daemon.agents["second"]
    daemon.agents["claude"] = agent("claude", cwd="/elsewhere")
    assert "already" not in ctl("start", "claude").err
    daemon.agents["claude"] = agent("claude", cwd=os.path.realpath("."), pid=None, state=ProcessState.STOPPED)
    assert "'synapsectl restart claude' goes on with what claude had begun" in ctl("start", "claude").err


def test_a_home_that_the_shell_left_to_the_tool(
    daemon: FakeDaemon, ctl: Ctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bash and zsh pass on `--cwd=~/work` as it is typed."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path / "work", tmp_path / "~" / "odd"):
        folder.mkdir(parents=True)
    for typed, folder in (("~/work", tmp_path / "work"), ("~", tmp_path / "~"), ("~/odd", tmp_path / "~/odd")):
        assert ctl("start", "dummy", f"--cwd={typed}").code == 0
        assert daemon.requests[-1][2]["cwd"] == os.path.realpath(folder), "one that is named so is meant"
    (tmp_path / "work/note.txt").write_text("hi")
    assert ctl("send", "claude", "look", "--file=~/work/note.txt").code == 0
    missing = ctl("start", "dummy", "--cwd=~/gone")
    assert (missing.code, f"{tmp_path}/gone is no directory" in missing.err) == (2, True), missing


EXPAND_THEMSELVES = ("synapsectl report", "synapsectl profiles")
"""These make the path absolute when they use it."""


def test_every_option_that_names_a_file_may_begin_at_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else `--save=~/out` makes a folder that is called `~`."""
    monkeypatch.setenv("HOME", "/home/me")
    found = 0
    for parser in parsers(command_line()):
        for action in parser.own_actions:
            if action.option_strings and (action.metavar in ("FILE", "DIR") or action.dest == "cwd"):
                if parser.prog.startswith(EXPAND_THEMSELVES):
                    continue
                assert callable(action.type), (parser.prog, action.option_strings)
                assert str(action.type("~/it")) == "/home/me/it"
                assert str(action.type("it")) == "it"
                found += 1
    assert found > 9


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_in_a_start_ends_what_it_began(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.on_start = interrupt
    ended = ctl("start", "dummy")
    assert ended.code == 130
    assert ended.out == ""
    assert daemon.requests[-1] == ("POST", "/control/agents/synapse-dummy-8190/stop", {"remove": True})
    assert "dummy was started, and is stopped and removed again" in ended.err


def test_ctrl_c_while_it_is_looked_at_ends_it_too(
    daemon: FakeDaemon, ctl: Ctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.starts_as = {"activity": Activity.STARTING, "drift": "profile verified on 2.0, this is 1.9"}
    monkeypatch.setattr("synapsectl.launching.time.sleep", lambda _: interrupt())
    assert ctl("start", "dummy").code == 130
    assert daemon.requests[-1][1] == "/control/agents/synapse-dummy-8190/stop"


def test_what_ctrl_c_could_not_end_is_said_to_go_on(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.on_start = interrupt
    daemon.refuse("POST", "/control/agents/synapse-dummy-8190/stop", Busy("not now"))
    ended = ctl("start", "dummy")
    assert ended.code == 130
    assert "dummy goes on: 'synapsectl stop dummy --remove' ends it (not now)" in ended.err


def test_a_second_ctrl_c_does_not_wait_for_the_daemon(daemon: FakeDaemon, ctl: Ctl) -> None:
    def twice() -> None:
        interrupt()
        interrupt()

    daemon.on_start = twice
    ended = ctl("start", "dummy")
    assert ended.code == 130
    assert "dummy" in ended.err


def test_long_lines_break_at_words_and_commands_stay_whole() -> None:
    told = "synapsectl: claude runs in this folder already, and web is another: 'synapsectl stop web --remove' ends it"
    lines = fold(told, 40).split("\n")
    assert all(display_width(line) <= 40 for line in lines)
    assert " ".join(line.strip() for line in lines) == told
    assert any("'synapsectl stop web --remove'" in line for line in lines)
    command = "answer with: synapsectl input 0123abcd some words"
    assert fold(command, 36) == "answer with:\n  synapsectl input 0123abcd some words"
    assert fold("  a  word", 80) == "  a  word"
    assert fold("x" * 50, 40) == "x" * 50
    assert fold("どこで 折り返すか わからない", 20) == "どこで 折り返すか\n  わからない"


@given(st.text(st.sampled_from("ab 'synapsectl:\nか"), max_size=200), st.integers(0, 60))
def test_no_word_is_lost_in_folding(text: str, columns: int) -> None:
    assert fold(text, columns).split() == text.split()


def test_a_remark_breaks_at_the_terminals_width(home: Path) -> None:
    tool = PtyTool("send", "claude", "x", "--no-spawn-daemon", cols=40)
    assert tool.end() == 3
    lines = tool.shown.decode().replace(LAST.decode(), "").splitlines()
    assert len(lines) > 1
    assert all(len(line) <= 40 for line in lines)


@pytest.mark.parametrize("text", ["/clear", "/model opus", "!ls -l", " /compact"])
def test_what_looks_like_a_command_names_the_option(daemon: FakeDaemon, ctl: Ctl, text: str) -> None:
    told = ctl("send", "claude", text)
    assert told.code == 0
    assert f"{text.split()[0]} goes as a part of the message" in told.err
    assert "send it with --command" in told.err
    assert "--command" not in ctl("send", "claude", "--command", text).err


@pytest.mark.parametrize("text", ["/etc/passwd is odd", "what is /clear?", "! is no word", "/"])
def test_other_messages_are_only_sent(daemon: FakeDaemon, ctl: Ctl, text: str) -> None:
    assert "--command" not in ctl("send", "claude", text).err


def test_the_daemon_alone_says_the_two_commands_that_come_next(capsys: pytest.CaptureFixture[str]) -> None:
    assert daemon_main([]) == 2
    told = capsys.readouterr().err
    assert [line.split("#")[0].strip() for line in told.splitlines() if "#" in line] == [
        "synapsectl start claude",
        "synapsectl",
    ]
