"""In which order a process of screens does what it is told and asked."""

import itertools

import pytest

from synapsed.screens import protocol
from synapsed.screens.protocol import AS_DRAWN, FrameKind, ScreenFrame
from synapsed.screens.worker import Screens
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.screen_messages import Ask, LinesWanted
from tests.screens.conftest import PROFILE

LINE = b"a line of output\r\n"
WANTED = LinesWanted(start=0, output=LINE * 20_000, prompt="$ ", message="x", one_by_one=False, edits=False)


class Process:
    """One whose every step takes as long as a turn may."""

    def __init__(self) -> None:
        self.said: list[ScreenFrame] = []
        ticks = itertools.count()
        self.screens = Screens(self.said.append, clock=lambda: float(next(ticks)))
        self.offset = 0
        opening = protocol.Opening(PROFILE, 80, 24, 0, None, None, 0.0)
        self.tell(FrameKind.OPEN, blob=protocol.write_opening(opening))

    def tell(self, kind: FrameKind, *, offset: int = 0, flag: int = 0, text: bytes = b"", blob: bytes = b"") -> None:
        self.screens.take(ScreenFrame(kind, 1, 7, offset, flag=flag, text=text, blob=blob))

    def print(self, data: bytes) -> None:
        self.tell(FrameKind.FEED, offset=self.offset, blob=data)
        self.offset += len(data)

    def look(self) -> None:
        self.tell(FrameKind.LOOK, text=protocol.write_value(Ask(now=1.0)))

    def until_answered(self) -> int:
        """The turns that this took."""
        for turns in itertools.count():
            if any(frame.kind == FrameKind.ANSWER for frame in self.said):
                return turns
            self.screens.turn(lambda: None)
        raise AssertionError

    def finish(self) -> None:
        while self.screens.busy:
            self.screens.turn(lambda: None)


def test_what_is_passed_over_is_not_drawn_and_what_follows_is() -> None:
    process = Process()
    process.finish()
    for _ in range(100):
        process.print(b"flood\r\n")
    process.print(b"\x1b[2J\x1b[Hthe end")
    process.tell(FrameKind.PASS, offset=700)
    process.look()
    assert process.until_answered() <= 4
    seat = process.screens._seats[1]
    assert seat.screen.screen.text(scrollback=True).split() == ["the", "end"]
    assert [frame.offset for frame in process.said if frame.kind == FrameKind.ANSWER] == [process.offset]


def test_all_of_it_may_be_passed_over() -> None:
    process = Process()
    process.print(b"flood")
    process.tell(FrameKind.PASS, offset=9_000)
    process.finish()
    assert process.said[-1].kind == FrameKind.DRAWN
    assert process.said[-1].offset == 9_000


@pytest.mark.parametrize(
    ("kind", "text"),
    [(FrameKind.TEXT, b""), (FrameKind.SHOWN, b"json"), (FrameKind.EXPLAIN, protocol.write_value(Ask(now=1.0)))],
)
def test_who_asks_for_it_as_it_is_drawn_waits_for_no_output(kind: FrameKind, text: bytes) -> None:
    process = Process()
    process.tell(kind, flag=AS_DRAWN, text=text)  # it is not opened yet
    assert not process.said
    process.print(b"first")
    process.finish()
    assert [frame.kind for frame in process.said].count(FrameKind.ANSWER) == 1
    for _ in range(100):
        process.print(b"flood\r\n")
    process.tell(kind, flag=AS_DRAWN, text=text)
    told = process.said[-1]
    assert (told.kind, told.offset) == (FrameKind.ANSWER, len(b"first"))
    process.finish()
    assert process.screens._seats[1].screen.offset == process.offset, "it is drawn all the same"


def test_nobody_who_looks_waits_for_an_answer_that_is_read_off_output() -> None:
    process = Process()
    process.finish()
    process.tell(FrameKind.LINES, text=protocol.write_value((WANTED, (80, 24))), blob=WANTED.output)
    for _ in range(3):
        process.screens.turn(lambda: None)
    process.look()
    assert process.until_answered() <= 2
    process.finish()
    assert len([frame for frame in process.said if frame.kind == FrameKind.ANSWER]) == 2


def test_an_answer_goes_with_the_screen_that_is_closed() -> None:
    process = Process()
    process.finish()
    process.tell(FrameKind.LINES, text=protocol.write_value((WANTED, (80, 24))), blob=WANTED.output)
    process.tell(FrameKind.CLOSE)
    process.finish()
    assert not any(frame.kind == FrameKind.ANSWER for frame in process.said)


def test_a_kept_screen_that_is_left_before_it_is_drawn() -> None:
    """Whoever asked for it is gone: the other screens of the process go on."""
    process = Process()
    process.print(b"another agent's")
    shown = TerminalObserver(PROFILE, cols=80, rows=24, offset=0).checkpoint()
    kept = ScreenFrame(FrameKind.KEPT, 2, 1, blob=protocol.write_value((shown, "text")))
    process.screens.take(kept)
    process.screens.take(ScreenFrame(FrameKind.CLOSE, 2))
    process.finish()
    process.look()
    process.finish()
    assert [frame.agent for frame in process.said if frame.kind == FrameKind.ANSWER] == [2, 1]
