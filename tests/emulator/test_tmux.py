"""Wrapping, reflow and the cursor as tmux has them."""

import tempfile
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import pytest

from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.ghostty_abi import ffi
from tests.emulator.streams import Stream, recordings
from tests.emulator.tmux import TmuxScreen
from tests.support.gated import chosen

pytestmark = pytest.mark.skipif(not TmuxScreen.available(), reason="tmux is not installed")

COLS, ROWS = 40, 10

TEXTS = {
    "short lines": b"one\r\ntwo\r\nthree\r\n$ ",
    "a wrapped line": b"word " * 30 + b"\r\n$ typed",
    "many wrapped lines": b"".join(b"%d: " % n + b"abcdefgh " * 9 + b"\r\n" for n in range(12)) + b"> ",
    "exactly full": b"x" * 40 + b"\r\n" + b"y" * 80 + b"\r\n$ ",
    "wide": "漢字テスト".encode() * 9 + b"\r\nend",
    "coloured": b"\x1b[31m" + b"red and long " * 8 + b"\x1b[m\r\nplain",
}
SIZES = [(20, 10), (60, 10), (40, 5), (40, 20), (33, 7), (40, 10)]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: sockets have at most a hundred characters or so."""
    with tempfile.TemporaryDirectory(prefix="tm", dir="/tmp") as name:
        yield Path(name)


def fed(data: bytes, folder: Path, cols: int, rows: int) -> tuple[Screen, TmuxScreen]:
    screen = Screen(cols, rows)
    screen.feed(data)
    return screen, TmuxScreen(folder, cols, rows)


def all_rows(screen: Screen) -> tuple[int, list[str]]:
    """How many rows are above the screen, and those with its own, right-stripped, blank ones at the end left out."""
    emulator, above = screen._emulator, ffi.new("size_t*")
    emulator._get_into("SCROLLBACK_ROWS", above)
    rows = [row.rstrip(" ") for row in emulator._format("PLAIN", trim=True, unwrap=False).decode().split("\n")]
    while rows and not rows[-1]:
        del rows[-1]
    return above[0], rows


@pytest.mark.parametrize("name", TEXTS)
def test_reflow_and_cursor(name: str, folder: Path) -> None:
    """Rows and cursor, counted from the oldest row kept: which of the rows are on the screen is each one's own choice.

    (tmux scrolls when lines are wrapped again, even where rows below are free; ours uses those first.)
    """
    screen, reference = fed(TEXTS[name], folder, COLS, ROWS)
    with reference as tmux:
        tmux.feed(TEXTS[name])
        assert stripped(screen) == tmux.lines()
        assert screen.snapshot().cursor == tmux.cursor()
        for cols, rows in SIZES:
            screen.resize(cols, rows)
            tmux.resize(cols, rows)
            above, rows_now = all_rows(screen)
            assert rows_now == tmux.all_rows(), (cols, rows)
            row, column = screen.snapshot().cursor
            tmux_row, tmux_column = tmux.cursor()
            assert (above + row, column) == (tmux.history() + tmux_row, tmux_column), (cols, rows)


@pytest.mark.parametrize("stream", chosen(recordings(), attrgetter("recording")), ids=str)
def test_recordings_look_as_in_tmux(stream: Stream, folder: Path) -> None:
    screen, reference = fed(stream.data, folder, stream.cols, stream.rows)
    with reference as tmux:
        tmux.feed(stream.data)
        assert stripped(screen) == tmux.lines()
        assert screen.snapshot().cursor == tmux.cursor()


def stripped(screen: Screen) -> tuple[str, ...]:
    return tuple(line.rstrip(" ") for line in screen.snapshot().lines)
