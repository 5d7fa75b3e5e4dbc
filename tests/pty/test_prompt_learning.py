"""A person's line teaches the prompt before it, however the keys and the screen come."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from synapsed.profiles.screen_spec import Composer
from synapsed.pty.prompt_learning import KeptPrompts, PromptLearning
from synapsed.terminal.line_prompts.evidence import TerminalFacts
from synapsed.terminal.line_prompts.learned import FOLDER, LearnedPrompt
from synapsed.terminal.observer import TerminalObserver
from tests.pty.turn_terminal import LINES

SPEC = Composer(at_cursor=True, usual=True, line="^(?P<text>.*)$")


class Person:
    """A person at a program that reads lines, on a machine that draws when the test says so."""

    def __init__(self) -> None:
        self.learning = PromptLearning(SPEC)
        self.screen = TerminalObserver(LINES, cols=80, rows=24, offset=0)
        self.at = 0
        self.look: Any = None

    def drawn(self, output: bytes) -> bool:
        """The output is drawn, and looked at; True if a prompt was learned."""
        self.screen.feed(self.at, output, 0.0)
        self.at += len(output)
        look = self.screen.look(9.0)
        self.look = SimpleNamespace(
            offset=self.at, screen=look.screen, composer=look.composer, verdict=SimpleNamespace(asked=None, evidence="")
        )
        facts: Any = {"offset": self.at, "line_mode": True, "echo": True, "reads": "yes", "group": 7, "names": ("p",)}
        self.learning.inform(TerminalFacts(**facts), own=True)
        return self.learning.looked(self.look)


@pytest.mark.parametrize("late", [False, True], ids=["drawn", "not drawn yet"])
@pytest.mark.parametrize("keys", [(b"x", b"\r"), (b"two", b" words", b"\r"), (b"x\r",)], ids=repr)
def test_a_line_that_is_typed_key_by_key_teaches_the_prompt(keys: tuple[bytes, ...], late: bool) -> None:
    person, echo = Person(), b""
    person.drawn(b"Tip: ask?\r\ncommand> ")
    for data in keys:
        person.learning.typed(data, person.look)
        echo += data.rstrip(b"\r")
        if not late and not data.endswith(b"\r"):
            person.drawn(data)
    assert person.drawn((echo if late or len(keys) == 1 else b"") + b"\r\n=x\r\ncommand> ")
    (learned,) = person.learning.known
    assert learned.text == "command>"


def test_a_line_of_nothing_teaches_none() -> None:
    person = Person()
    person.drawn(b"command> ")
    for data in (b" ", b"\r"):
        person.learning.typed(data, person.look)
    assert not person.drawn(b" \r\ncommand> ")


def test_a_line_that_is_taken_away_again_teaches_none() -> None:
    person = Person()
    person.drawn(b"command> ")
    for data in (b"x", b"\x7f", b"\r"):
        person.learning.typed(data, person.look)
    assert not person.drawn(b"\r\ncommand> ")


COMMAND = ("generic", "sh", "gdb", "-q")
KEPT = LearnedPrompt("command>", "command>", "gdb", "lines")


@pytest.mark.parametrize(
    ("command", "program", "there"),
    [
        (COMMAND, "/bin/sh", True),
        (("generic", "sh", "gdb", "-q", "core"), "/bin/sh", False),
        (("generic", "sh", "gdb -q"), "/bin/sh", False),
        (("other", *COMMAND[1:]), "/bin/sh", False),
        (COMMAND, "/opt/other/sh", False),
        (COMMAND, "", True),
    ],
    ids=["the same", "another argument", "other words", "another profile", "another program", "program not known"],
)
def test_what_was_learned_counts_for_the_same_command_only(
    tmp_path: Path, command: tuple[str, ...], program: str, there: bool
) -> None:
    KeptPrompts(tmp_path / "kept", COMMAND, program="/bin/sh").save([KEPT])
    found = KeptPrompts(tmp_path / "kept", command, program=program).load()
    assert found == ((KEPT,) if there else ())


def test_what_an_older_daemon_learned_and_takes_hours_to_find_is_left_out(tmp_path: Path) -> None:
    slow = KEPT._replace(pattern=rf"{FOLDER}\ " * 9)
    KeptPrompts(tmp_path / "kept", COMMAND).save([slow, KEPT])
    assert KeptPrompts(tmp_path / "kept", COMMAND).load() == (KEPT,)


def test_what_a_person_said_is_not_kept_as_learned(tmp_path: Path) -> None:
    kept = KeptPrompts(tmp_path / "kept", COMMAND, told="mine:")
    kept.save([*kept.load(), KEPT])
    assert KEPT in kept.load()
    assert KeptPrompts(tmp_path / "kept", COMMAND).load() == (KEPT,)
    assert [one.text for one in KeptPrompts(tmp_path / "kept", ("x",), told="mine:").load()] == ["mine:"]


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"command": 1, "prompts": 2}', b"\xff"])
def test_a_file_that_is_damaged_is_no_prompt(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "kept").write_bytes(content)
    assert KeptPrompts(tmp_path / "kept", COMMAND, program="/bin/sh").load() == ()
