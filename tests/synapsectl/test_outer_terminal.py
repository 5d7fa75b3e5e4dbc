"""What the person's terminal says of itself, and that none of it gets anywhere else."""

import os
from collections.abc import Iterator
from typing import Any, cast

import pytest

from synapsectl.attachment import AttachedTerminal
from synapsectl.client import Client
from synapsectl.outer_terminal import ANSWERED_S, QUESTIONS, TerminalAnswers
from synapsectl.terminal_keys import ESCAPE_HOLD, REPLY_HOLD, KeyFilter
from synapsectl.tty import Terminal

ANSWERS = (
    b"\x1b]10;rgb:1010/1010/1010\x1b\\",
    b"\x1b]11;rgb:fafa/f0f0/e6e6\x07",
    b"\x1b[6;23;11t",
    b"\x1b[?0u",
    b"\x1b[?62;22c",
)
LIGHT = {"foreground": [16, 16, 16], "background": [250, 240, 230], "cell": [11, 23], "keyboard": True}
UNKNOWN = {"foreground": None, "background": None, "cell": None, "keyboard": False}


def told(*answers: bytes, pixels: tuple[int, int] | None = None) -> dict[str, Any] | None:
    outer = TerminalAnswers(lambda: pixels)
    assert outer.ask(1.0) == QUESTIONS
    for answer in answers:
        outer.hear(answer)
    return outer.told


def test_a_terminal_that_answers_all() -> None:
    assert told(*ANSWERS) == LIGHT


def test_one_that_answers_nothing_but_what_every_one_does() -> None:
    assert told(ANSWERS[-1]) == UNKNOWN


def test_nothing_is_told_before_the_last_answer() -> None:
    assert told(*ANSWERS[:-1]) is None


def test_the_kernel_may_know_the_size_of_a_cell() -> None:
    assert told(ANSWERS[-1], pixels=(9, 18)) == UNKNOWN | {"cell": [9, 18]}
    assert told(ANSWERS[2], ANSWERS[-1], pixels=(9, 18)) == UNKNOWN | {"cell": [11, 23]}
    assert told(ANSWERS[-1], pixels=(9000, 18)) == UNKNOWN


@pytest.mark.parametrize(
    ("answer", "background"),
    [
        (b"\x1b]11;rgb:f/0/8\x07", [255, 0, 136]),
        (b"\x1b]11;rgb:ff/00/80\x07", [255, 0, 128]),
        (b"\x1b]11;rgb:fff/000/800\x07", [255, 0, 128]),
        (b"\x1b]11;rgba:ffff/0000/8000/dddd\x07", [255, 0, 128]),
        (b"\x1b]11;#ff0080\x1b\\", [255, 0, 128]),
        (b"\x1b]11;rgb:12345/0/0\x07", None),
        (b"\x1b]11;rgb:////\x07", None),
        (b"\x1b]11;rgb:ff/ff/\x07", None),
        (b"\x1b]11;red\x07", None),
        (b"\x1b]11;rgb:ff/ff/ff;rm -rf x\r\x07", None),
        (b"\x1b]12;rgb:ff/ff/ff\x07", None),
        (b"\x1b]4;11;rgb:ff/ff/ff\x07", None),
    ],
    ids=repr,
)
def test_forms_of_a_colour(answer: bytes, background: list[int] | None) -> None:
    assert told(answer, ANSWERS[-1]) == UNKNOWN | {"background": background}


@pytest.mark.parametrize("answer", [b"\x1b[6;0;0t", b"\x1b[6;9999;9999t", b"\x1b[4;23;11t", b"\x1b[6;23t"])
def test_what_is_no_size_of_a_cell(answer: bytes) -> None:
    assert told(answer, ANSWERS[-1]) == UNKNOWN


def test_it_is_asked_once_at_a_time_and_waited_for_only_so_long() -> None:
    outer = TerminalAnswers(lambda: None)
    assert outer.wait(1.0) == 0.0
    assert outer.ask(1.0) == QUESTIONS
    assert outer.ask(1.5) == b""
    assert outer.wait(1.5) == ANSWERED_S - 0.5
    assert outer.wait(1.0 + ANSWERED_S) == 0.0
    assert outer.ask(1.0 + ANSWERED_S) == QUESTIONS, "it may have lost the first"
    for answer in ANSWERS:
        outer.hear(answer)
    assert outer.wait(2.5) == 0.0
    outer.hear(b"\x1b]11;rgb:00/00/00\x07")
    assert outer.told == LIGHT, "nobody has asked for that"


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_what_is_typed_between_the_answers_is_typed_once(size: int) -> None:
    outer = TerminalAnswers(lambda: None)
    outer.ask(1.0)
    sorter = KeyFilter((), None, outer.hear)
    stream = b"l" + b"s".join(ANSWERS) + b" -l\r"
    typed = b"".join(sorter.feed(stream[at : at + size]).data for at in range(0, len(stream), size))
    assert typed + sorter.flush() == b"lssss -l\r"
    assert outer.told == LIGHT


@pytest.mark.parametrize(
    ("begun", "hold"), [*((answer[:4], REPLY_HOLD) for answer in ANSWERS), (b"\x1b[6", ESCAPE_HOLD)]
)
def test_the_rest_of_an_answer_is_waited_for_longer_than_that_of_a_key(begun: bytes, hold: float) -> None:
    sorter = KeyFilter(())
    assert sorter.feed(begun).data == b""
    assert sorter.hold == hold


class Pipe:
    """A terminal as far as it is read."""

    def __init__(self) -> None:
        self._out, self.into = os.pipe()
        os.set_blocking(self._out, False)

    def fileno(self) -> int:
        return self._out

    def size(self) -> tuple[int, int]:
        return 80, 24

    def cell(self) -> None:
        return None

    def write(self, data: bytes | bytearray) -> int:
        return len(data)

    def read(self) -> bytes | None:
        try:
            return os.read(self._out, 7)
        except BlockingIOError:
            return None

    def close(self) -> None:
        os.close(self._out)
        os.close(self.into)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


def test_answers_on_their_way_are_not_left_to_whoever_reads_the_terminal_next(pipe: Pipe) -> None:
    viewer = AttachedTerminal(
        client=cast("Client", None), agent="claude", terminal=cast("Terminal", pipe), detach=(), read_only=False
    )
    viewer._configure({})
    viewer._ask()
    os.write(pipe.into, b"".join(ANSWERS))
    viewer._hear_out()
    assert pipe.read() is None
    assert viewer._outer.told == LIGHT
