"""The scripted agent in a real terminal, and in a pipe."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.terminal import Terminal

DUMMY = Path(__file__).parent.parent.parent / "examples" / "dummy_agent.py"
COMMAND = [sys.executable, "-S", "-E", "-I", str(DUMMY)]
ENV = {"PATH": os.defpath, "TERM": "xterm-256color", "LANG": "C.UTF-8"}


@pytest.fixture
def dummy(tmp_path: Path) -> Iterator[Terminal]:
    with Terminal(COMMAND, env=ENV, cwd=tmp_path) as terminal:
        at_prompt(terminal)
        yield terminal


def at_prompt(terminal: Terminal) -> None:
    terminal.wait(lambda: terminal.screen().split("\n")[-1] == "dummy>", "its prompt")


def answers(terminal: Terminal, message: str) -> list[str]:
    """The lines between the typed message and the next prompt."""
    before = len(terminal.screen().split("\n"))
    terminal.send(message + "\r")
    terminal.wait(lambda: len(terminal.screen().split("\n")) > before, "an answer")
    at_prompt(terminal)
    return terminal.screen().split("\n")[before:-1]


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("hello world", ["You said: hello world"]),
        ("echo a  b", ["a  b"]),
        ("reverse abc", ["cba"]),
        ("count 5", ["1 2 3 4 5"]),
        ("lines 3", ["line 1", "line 2", "line 3"]),
        ("fail badly", ["!! badly"]),
        ("sleep 0.01", ["Slept 0.01 s."]),
        ("busy 0.15", ["Busy for 0.15 s."]),
        ("until /", ["It is there."]),
        ("[A2A:12345678:bob] reverse abc", ["cba"]),
        ("[from bob] hi", ["You said: hi"]),
        ("日本語 🙂", ["You said: 日本語 🙂"]),
        ("echo", [""]),
    ],
)
def test_answer(dummy: Terminal, message: str, answer: list[str]) -> None:
    assert answers(dummy, message) == answer


def test_paste_of_several_lines_is_one_message(dummy: Terminal) -> None:
    dummy.send("\x1b[200~one\nreverse two\n\tthree\x1b[201~\r")
    dummy.wait_screen("You said: one")
    at_prompt(dummy)
    echo = ["dummy> one", "dummy| reverse two", "dummy|  three"]
    assert dummy.screen().split("\n")[1:] == [*echo, "owt", "You said: one", "        three", "dummy>"]


def test_lines_that_are_typed_are_a_message_each(dummy: Terminal) -> None:
    dummy.send("echo 1\recho 2\r")
    dummy.wait_screen(r"\n2\ndummy>")
    assert dummy.screen().endswith("dummy> echo 1\n1\ndummy> echo 2\n2\ndummy>")


def test_long_line_is_not_cut(dummy: Terminal) -> None:
    dummy.submit("echo " + "x" * 6000 + "END")
    dummy.wait_screen(r"END\ndummy>")
    assert bytes(dummy.raw).count(b"x" * 6000) == 2  # its echo and its answer


def test_line_editing(dummy: Terminal) -> None:
    assert answers(dummy, "wrong\x15echo ab\x7fc") == ["ac"]


def test_interrupt_stops_the_answer_and_nothing_else(dummy: Terminal) -> None:
    dummy.send("busy 600\r")
    dummy.wait_screen("working 0")
    dummy.send("\x03")
    dummy.wait_screen(r"\[interrupted\]")
    at_prompt(dummy)
    assert answers(dummy, "echo on") == ["on"]


@pytest.mark.parametrize(
    ("question", "asked", "given", "answer"),
    [
        ("ask y/n", r"Proceed\? \(y/n\)", "y", "Answered: y"),
        ("ask 1/2/3", r"Which one \[1/2/3\]:", "2", "Answered: 2"),
        ("ask menu", r"3\. Water\nChoose a number:", "3", "Answered: 3"),
        ("ask password", r"Password:", "secret", "A password of 6 characters."),
    ],
)
def test_question(dummy: Terminal, question: str, asked: str, given: str, answer: str) -> None:
    dummy.send(question + "\r")
    dummy.wait_screen(asked + "$")
    dummy.send(given + "\r")
    dummy.wait_screen(answer)
    at_prompt(dummy)
    assert ("secret" in dummy.screen()) is False


@pytest.mark.parametrize(("message", "code"), [("exit 7", 7), ("exit 0", 0), ("crash", -signal.SIGKILL), ("\x04", 0)])
def test_end(dummy: Terminal, message: str, code: int) -> None:
    dummy.send(message if message == "\x04" else message + "\r")
    assert dummy.wait_exit() == code


def test_without_a_terminal() -> None:
    done = subprocess.run(COMMAND, input=b"hello\nreverse abc\n", capture_output=True, timeout=30, check=False)
    assert done.returncode == 0
    assert done.stdout.decode() == "dummy agent; Ctrl-D ends it\ndummy> \nYou said: hello\ndummy> \ncba\ndummy> \n"
