"""The last row of an attached terminal: whatever a program writes it stays, and the program has all the others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsectl.statusline import StatusRow
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.viewer_filter import ViewerFilter
from tests.support.hostile_output import stream

COLS, ROWS = 20, 8


class Seen:
    """A terminal with a status line, and the same program's in a window without one."""

    def __init__(self, *, titled: bool = True) -> None:
        self.line = StatusRow((COLS, ROWS), shown=True, titled=titled)
        self.line.text = "status"
        self.terminal, self.alone = Screen(COLS, ROWS), Screen(*self.line.window())
        self.terminal.feed(self.line.begin())
        self.terminal.feed(b"\x1b[H")

    def feed(self, data: bytes) -> None:
        self.terminal.feed(self.line.feed(data))
        self.alone.feed(data)

    def same(self) -> None:
        with_line, alone = self.terminal.snapshot(), self.alone.snapshot()
        assert with_line.lines[:-1] == alone.lines
        assert with_line.lines[-1].rstrip() == "status"
        assert with_line.cursor == alone.cursor


SCRIPTS = [
    b"one\r\ntwo\r\n" * 10 + b"end",
    b"\x1b[2J\x1b[Hagain",
    b"text\x1b[3;4H\x1b[Jbelow",
    b"\x1b[99;99Hcorner",
    b"\x1b[99dA\x1b[99Bdown",
    b"\x1b[2;5r\x1b[5;1H" + b"region\n\r" * 6 + b"\x1b[rfree\x1b[7;1Hlast\r\nscrolled",
    b"\x1b[;99r\x1b[7;1Hx\r\ny",
    b"main\x1b[?1049h\x1b[Hfull\x1b[J\x1b[?1049lback",
    b"some\x1bcnew",
    b"a\x1b[!pb",
    b"\x1b7\x1b[3;3Hsaved\x1b[J\x1b8on",
    b"\x1b[s\x1b[2J\x1b[uon",
    b"\x1b[?6h\x1b[2J\x1b[Hx\x1b[?6l\x1b[H",
    "wide 漢字 é".encode(),
    b"text\x1b[?1049hwhere it stood",
    b"\x1b[?7l" + b"all of it " * 4 + b"\x1b[J" + b"in one row" * 4 + b"\x1b[?7h",
    b"\x1b#8\x1b[99;1Hscrolled\r\nup\r\n",
    b"\x1b[2;5r\x1b[?1049h\x1b[?1049l\x1b[5;1Hin\r\nthe region\r\n\x1b[r",
    b"\x1b[?69h\x1b[3;5s\x1b[2J\x1b[?69l",
    b"\x1b[5;2r\x1b[?1049h\x1b[?1049l",
    b"\x1b[?1048h\x1b[3;3H\x1b[J\x1b[?1048lon",
    b"\x1b[2;5;3r\x1b[5;1Hin\r\nthe region\r\n\x1b[;;r\x1b[7;1Hfree\r\nx",
    b"\x1b[;" + b"9" * 5000 + b"r\x1b[7;1Hx\r\ny",
    b"\x1b[" + b"9" * 5000 + b"r\x1b[0002;000000000005r\x1b[5;1Hx\r\ny\x1b[r",
    b"\x1b[99;2;3Hthree\x1b[000000000099;2Hzeros\x1b[" + b"9" * 5000 + b"Hmany",
    b"text\x1b[00Jand\x1b[;Jon",
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_row_stays_and_the_rest_is_the_programs(script: bytes) -> None:
    seen = Seen()
    seen.feed(script)
    seen.same()


@given(st.lists(st.sampled_from(SCRIPTS), max_size=6))
def test_whatever_comes_after_whatever(scripts: list[bytes]) -> None:
    seen = Seen()
    for script in scripts:
        seen.feed(script)
        seen.same()


def test_a_new_text_waits_until_it_can_be_drawn() -> None:
    seen = Seen()
    seen.feed(b"\x1b7\x1b[4;4H")
    seen.line.text = "other"
    assert seen.line.refresh() == b"", "the program's saved cursor would be lost"
    seen.feed(b"\x1b8done")
    assert seen.terminal.snapshot().lines[-1].rstrip() == "other"
    assert seen.terminal.snapshot().cursor == seen.alone.snapshot().cursor
    half = "é".encode()
    seen.feed(half[:1])
    assert seen.line.refresh() == b"", "nor is a character cut in two"
    seen.feed(half[1:])
    assert "é" in seen.terminal.snapshot().lines[0]


STRAYING = [b"\x1b8", b"\x1b[u", b"\x1b[!p", b"\x1b[?1049l", b"\x1b[?1048l", b"\x1b7\x1b8\x1b[J\x1b8"]
"""Goes back to a cursor that the row has replaced, or to what each terminal has otherwise."""


@pytest.mark.parametrize("script", STRAYING)
def test_what_cannot_be_followed_is_told_once(script: bytes) -> None:
    seen = Seen()
    assert not seen.line.strays()
    seen.feed(b"text" + script)
    assert seen.line.strays()
    assert not seen.line.strays()
    seen.terminal.feed(seen.line.screen(seen.alone.redraw()))
    seen.same()
    assert not seen.line.strays()
    seen.feed(b"\x1b7\x1b[2J\x1b8and on")
    assert not seen.line.strays()
    seen.same()


@pytest.mark.parametrize("seed", [seed for seed in range(16) if seed != 3])  # 3 has joiners that no redraw can draw
def test_streams_of_everything(seed: int) -> None:
    seen = Seen()
    watched = ViewerFilter()
    data = stream(seed, 60 + seed * 20, ROWS - 2)
    for start in range(0, len(data), 512):
        piece = data[start : start + 512]
        seen.alone.feed(piece)
        seen.terminal.feed(seen.line.feed(watched.feed(piece)))
        if seen.line.strays():
            watched = ViewerFilter()
            pending = watched.feed(seen.alone.pending)
            seen.terminal.feed(seen.line.screen(seen.alone.redraw() + pending))
    seen.same()


def test_a_terminal_of_hardly_any_rows_keeps_none() -> None:
    line = StatusRow((COLS, 3), shown=True, titled=False)
    assert (line.window(), line.begin(), line.feed(b"\x1b[2J")) == ((COLS, 3), b"", b"\x1b[2J")
    line = StatusRow((COLS, 30), shown=False, titled=False)
    assert (line.window(), line.begin(), line.feed(b"\x1b[99;1H\x1b[r")) == ((COLS, 30), b"", b"\x1b[99;1H\x1b[r")


def test_the_title_tells_how_many_need_a_person() -> None:
    seen = Seen()
    seen.feed(b"\x1b]0;claude\x07")
    assert seen.terminal.snapshot().title == "claude"
    seen.terminal.feed(seen.line.needs(3))
    assert seen.terminal.snapshot().title == "(3) claude"
    seen.feed(b"\x1b]2;busy\x1b\\")
    assert seen.terminal.snapshot().title == "(3) busy"
    assert seen.line.needs(3) == b""
    seen.terminal.feed(seen.line.needs(0))
    assert seen.terminal.snapshot().title == "busy"
    assert StatusRow((COLS, ROWS), shown=True, titled=False).needs(3) == b""
    assert StatusRow((COLS, ROWS), shown=True, titled=True).needs(3) == b"\x1b]2;(3) synapsed\x07"


def test_the_mouse_is_the_programs_while_it_takes_it() -> None:
    line = StatusRow((COLS, ROWS), shown=True, titled=False, wheel=True)
    terminal = Screen(COLS, ROWS)

    def feed(data: bytes) -> frozenset[int]:
        terminal.feed(line.feed(data))
        return terminal.snapshot().modes.dec & {1000, 1002, 1003, 1005, 1006}

    terminal.feed(line.begin())
    assert (feed(b"x"), line.takes_mouse) == ({1000, 1006}, False)
    assert (feed(b"\x1b[?1002h"), line.takes_mouse) == ({1002}, True), "in the form that it has asked for"
    assert feed(b"\x1b[?1006h") == {1002, 1006}
    assert (feed(b"\x1b[?1002;1006l"), line.takes_mouse) == ({1000, 1006}, False)
    assert feed(b"\x1b[?1006h\x1b[?1000h") == {1000, 1006}
    assert (feed(b"\x1bc"), line.takes_mouse) == ({1000, 1006}, False)
