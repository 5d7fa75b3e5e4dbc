"""Messages to a program that is stopped and reads nothing until it goes on: told, never mixed, never taken for read."""

import fcntl
import os
import signal
import struct
import termios
from collections.abc import Iterator

import pytest

from tests.support.daemon import eventually
from tests.synapsectl.pty_tool import PtyTool
from tests.tui.conftest import Tui


class Stopped:
    """The program of an agent: stopped, until it goes on."""

    def __init__(self, tui: Tui) -> None:
        self._pid = tui.state["pid"]
        os.kill(self._pid, signal.SIGSTOP)

    def unread(self) -> int:
        """Bytes that wait in its terminal (asked of /proc: psutil's map of terminals is as old as its first use)."""
        fd = os.open(f"/proc/{self._pid}/fd/0", os.O_RDONLY | os.O_NOCTTY)
        try:
            waiting: int = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0]
            return waiting
        finally:
            os.close(fd)

    def go_on(self) -> None:
        os.kill(self._pid, signal.SIGCONT)


@pytest.fixture
def person(tui: Tui) -> Iterator[PtyTool]:
    """Somebody attached to the program, which is ready."""
    tui.start().ready()
    person = PtyTool("attach", tui.name, env=tui.daemon.env, rows=40, cols=120)
    person.until(b"scripted program")
    yield person
    person.close()


@pytest.mark.parametrize(
    "length",
    [pytest.param(10, marks=pytest.mark.night), 60_000],
    ids=["short", "more than the terminal takes"],
)
def test_message_that_is_not_read_is_told_and_not_mixed_with_the_next(tui: Tui, length: int) -> None:
    program = Stopped(tui.start().ready())
    lost = tui.ended(tui.send("x" * length))
    assert (lost["status"], lost["error"]["code"]) == ("failed", "UNDELIVERED")
    assert "does not read" in lost["error"]["message"]
    task = tui.send("the next one")
    tui.becomes(activity="ready", held="unread", queue=1)
    program.go_on()
    assert tui.answer(tui.ended(task)) == "You said: the next one"
    assert tui.submitted == ["the next one"]


@pytest.mark.night
@pytest.mark.parametrize("length", [10, 60_000], ids=["short", "more than the terminal takes"])
def test_message_that_is_not_read_can_be_canceled(tui: Tui, length: int) -> None:
    program = Stopped(tui.start().ready())
    task = tui.send("x" * length)
    assert tui.daemon.post(f"/control/tasks/{task}/cancel", {}).status == 200
    assert tui.ended(task)["status"] == "canceled"
    program.go_on()
    assert tui.ask("the next one") == "You said: the next one"
    assert tui.submitted == ["the next one"]


@pytest.mark.night
def test_submit_key_that_is_not_read_is_waited_for(tui: Tui) -> None:
    """Neither pressed twice, nor the message reported lost that will be read in a while."""
    task = tui.start(freeze=True).send("a message")
    tui.becomes(held="unread")
    assert tui.daemon.post(f"/control/tasks/{task}/cancel", {}).status == 409, "it will read the key that submits it"
    os.kill(tui.state["pid"], signal.SIGCONT)
    assert tui.answer(tui.ended(task)) == "You said: a message"
    assert tui.submitted == ["a message"]


@pytest.mark.night
def test_keys_of_a_person_that_are_not_read_are_a_draft_when_they_are(tui: Tui, person: PtyTool) -> None:
    program = Stopped(tui)
    person.type(b"a person's words")
    eventually(program.unread, "the keys are with the terminal")
    task = tui.send("a message meanwhile")
    tui.becomes(held="unread")
    program.go_on()
    tui.becomes(held="typing")
    person.type(b"\r")
    assert tui.answer(tui.ended(task)) == "You said: a message meanwhile"
    assert tui.submitted == ["a person's words", "a message meanwhile"]


@pytest.mark.night
def test_dialog_that_a_person_answered_is_not_answered_once_more(tui: Tui) -> None:
    """Their key is not read yet; a second one would go into the message behind the dialog."""
    tui.start(dialog="paste").ready()
    person = PtyTool("attach", tui.name, env=tui.daemon.env, rows=40, cols=120)
    try:
        person.until(b"scripted program")
        task = tui.send("a message")
        tui.becomes(activity="waiting")
        program = Stopped(tui)
        person.type(b"1")
        eventually(program.unread, "the key is with the terminal")
        refused = tui.daemon.ctl("approve", tui.name)
        assert (refused.code, "does not read" in refused.err) == (6, True), refused
        program.go_on()
        assert tui.answer(tui.ended(task)) == "You said: a message"
    finally:
        person.close()
    assert (tui.logged("key"), tui.submitted) == (["1"], ["a message"])


@pytest.mark.night
def test_answer_that_is_not_read_is_not_given_twice(tui: Tui) -> None:
    tui.start(dialog="start").becomes(activity="waiting")
    program = Stopped(tui)
    first, second = (tui.daemon.ctl("approve", tui.name) for _ in range(2))
    assert (first.code, "was typed" in first.err) == (6, True), first
    assert (second.code, "does not read" in second.err) == (6, True), second
    program.go_on()
    assert tui.ask("a message") == "You said: a message"
    assert (tui.logged("key"), tui.submitted) == (["1"], ["a message"])


@pytest.mark.night
@pytest.mark.parametrize("key", [b"\x1a", b"\x1b[122;5u"], ids=["plain", "kitty"])
def test_program_that_a_person_suspends_is_continued(tui: Tui, person: PtyTool, key: bytes) -> None:
    """There is no shell that would do it, and messages would wait for ever."""
    person.type(key)
    eventually(lambda: tui.logged("continued"), "it was suspended, and is continued")
    assert tui.ask("a message") == "You said: a message"
