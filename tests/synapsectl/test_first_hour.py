"""What a person types in the first hour, and nearly: done as it was meant, or refused with the nearest right word."""

import pytest

from synapsectl.commands.keys import KEYS, meant_key
from synapsectl.commands.schedule import _at
from synapsed.terminal.keynames import encode
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon


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


@pytest.mark.parametrize("text", ["y", "1", "yes", "some", "come", "hello there", "Entering", "/exit", "^", "[", "é", "E"])
def test_other_text_is_text(text: str) -> None:
    assert meant_key(text) is None


def test_the_tool_knows_the_daemons_keys() -> None:
    assert all(encode([key]) != [key.encode()] for key in KEYS)
