"""Rows as they are read look after look show what those of a reader do that has read nothing before."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.redraw import graphemes_of
from tests.emulator.streams import Stream, made, recordings

type Piece = bytes | tuple[int, int]
"""Output, or a size in columns and rows."""

FULL = "漢字漢字".encode()
"""As wide as the screen."""

PIECES: list[Piece] = [
    *(b"a", b"word ", b"x" * 9, b"  ", b"\t", b"\b", b"\r\n", b"\x1b[3b", b"\x1b#8"),
    *(
        "漢".encode(),
        "漢字漢字漢".encode(),
        "각".encode(),
        "👨‍👩‍👧".encode(),
        "é✳".encode(),
        "กำ".encode(),
        "\u00ad".encode(),
    ),
    *("\u0301".encode(), "\u200d".encode(), "\ufe0f".encode(), "\U0001f3fb".encode(), b"\x1b[?2027h", b"\x1b[?2027l"),
    *(
        b"\x1b[31m",
        b"\x1b[m",
        b"\x1b[1m",
        b"\x1b[1;34m",
        b"\x1b[4;2m",
        b"\x1b[38;5;15m",
        b"\x1b[1;48;5;7m",
        b"\x1b[38;2;1;2;3m",
        b"\x1b[38;2;1;2;4m",
        b"\x1b[41m\x1b[K",
    ),
    *(b"\x1b[H", b"\x1b[2;3H", b"\x1b[99;99H", b"\x1b[A", b"\x1b[C", b"\x1b[D", b"\x1bM", b"\n\n\n", b"\x1b[S"),
    *(b"\x1b[J", b"\x1b[2J", b"\x1b[K", b"\x1b[1K", b"\x1b[X", b"\x1b[P", b"\x1b[@", b"\x1b[L", b"\x1b[M", b"\x1b[4h"),
    *(
        b"\x1b[?7l",
        b"\x1b[?7h",
        b"\x1b[?69h\x1b[2;5s",
        b"\x1b[?69l",
        b"\x1b[2;3r",
        b"\x1b[r",
        b"\x1bc",
        b"\x1b7",
        b"\x1b8",
    ),
    *(b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?47h", b"\x1b[?47l", b"\x1b(0", b"\x1b)0\x0e", b"\x1b(B\x0f", b"\x1b(A"),
    *(b"\x1b]8;;http://x\x07", b"\x1b]8;;\x07", b"\x1b]10;#123456\x07"),
    *((4, 3), (7, 4), (8, 5), (12, 3)),
]


def apply(screen: Screen, piece: Piece) -> None:
    if isinstance(piece, bytes):
        screen.feed(piece)
    else:
        screen.resize(*piece)


def read_all_again(screen: Screen) -> None:
    """The next look reads all rows, cell by cell."""
    screen._emulator.forget_styles()
    screen._emulator._halves = {False, True}
    screen._grid._start()
    screen._snapshot = None


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.lists(st.sampled_from(PIECES), max_size=3), st.booleans()), max_size=30))
@example([([b"\x1b[?1049h", FULL, (7, 4)], True)])
@example([([b"\x1b[?7l", FULL, (7, 4)], True)])
@example([([b"\x1b[?47h", FULL, b"\x1b[?47l"], False), ([(7, 4), b"\x1b[?47h"], False)])
@example([([b"\x1b(0", FULL], False)])
@example([([b"word "], True), (["\u0301".encode()], True)])
@example([([b"\x1b[1;34m", b"word ", b"\x1b[m", b"\x1b[C", b"a"], True)])
@example([([b"\x1b[31m", b"\x1b]8;;http://x\x07", b"a"], True)])
def test_rows_are_as_a_reader_has_them_that_has_read_nothing(looks: list[tuple[list[Piece], bool]]) -> None:
    """All rows are asked for, or the text alone."""
    screen, fresh = Screen(8, 4), Screen(8, 4)
    for pieces, asked in looks:
        for piece in pieces:
            apply(screen, piece)
            apply(fresh, piece)
        read_all_again(fresh)
        assert screen.snapshot() == fresh.snapshot()
        if asked:
            rows = range(screen.snapshot().rows)
            assert [screen.row_cells(row) for row in rows] == [fresh.row_cells(row) for row in rows]
            assert screen.kinds() == fresh.kinds()
            assert screen.redraw() == fresh.redraw()


@pytest.mark.recorded
@pytest.mark.parametrize("stream", [*made(), *recordings()], ids=str)
def test_text_and_cells_say_the_same(stream: Stream) -> None:
    screen = Screen(stream.cols, stream.rows)
    step = max(len(stream.data) // 40, 1)
    for start in range(0, len(stream.data), step):
        screen.feed(stream.data[start : start + step])
        screen.snapshot()
        rows = ["".join(graphemes_of(screen._emulator.rows.row(row))).rstrip(" ") for row in range(stream.rows)]
        assert screen._grid._texts == rows
