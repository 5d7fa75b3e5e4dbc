"""The screen: what it shows, keeps back and never lets through. The emulator's contract is tests/emulator."""

import re

import pytest

from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.emulator_input import fewer_repeats
from synapsed.terminal.snapshot import CELLS_MAX, COLS_MAX, ROWS_MAX, ROWS_MIN, Cell
from synapsed.terminal.tokenizer import MAX_SEQUENCE


def fed(data: bytes, cols: int = 20, rows: int = 4) -> Screen:
    screen = Screen(cols, rows)
    screen.feed(data)
    return screen


def test_an_empty_screen() -> None:
    snapshot = Screen(20, 4).snapshot()
    assert (snapshot.cols, snapshot.rows) == (20, 4)
    assert snapshot.lines == ("",) * 4
    assert snapshot.cursor == (0, 0)
    assert snapshot.cursor_visible
    assert not snapshot.alternate
    assert snapshot.title == ""
    assert snapshot.text() == ""


def test_the_snapshot_is_the_same_until_something_is_fed() -> None:
    screen = fed(b"x")
    assert screen.snapshot() is screen.snapshot()
    before = screen.snapshot()
    screen.feed(b"y")
    assert before.lines[0] == "x"
    assert screen.snapshot().lines[0] == "xy"


def test_wrapped_rows_are_joined() -> None:
    screen = fed(b"a line that is longer than twenty\r\nnext")
    snapshot = screen.snapshot()
    assert snapshot.lines == ("a line that is longe", "r than twenty", "next", "")
    assert snapshot.wrapped == (True, False, False, False)
    assert snapshot.text() == "a line that is longer than twenty\nnext"
    assert screen.text(scrollback=False) == snapshot.text()


def test_a_space_in_the_last_column_is_not_lost() -> None:
    assert fed(b"1234567890123456789 more").snapshot().text() == "1234567890123456789 more"


def test_a_full_row_that_was_ended_is_not_wrapped() -> None:
    assert fed(b"x" * 20 + b"\r\nnext").snapshot().wrapped == (False, False, False, False)


def test_a_wrapped_row_that_is_written_over_is_not_joined() -> None:
    screen = fed(b"x" * 30 + b"\x1b[1;1Hshort\x1b[K\x1b[2;1Hother\x1b[K")
    assert screen.snapshot().text() == "short\nother"


def test_rows_above_the_screen() -> None:
    screen = fed(b"".join(b"line %d\r\n" % number for number in range(10)))
    assert screen.snapshot().lines == ("line 7", "line 8", "line 9", "")
    assert screen.text(scrollback=True).split("\n") == [f"line {number}" for number in range(10)]


def test_the_position_of_a_hidden_cursor() -> None:
    snapshot = fed(b"\x1b[?25l\x1b[3;7H").snapshot()
    assert snapshot.cursor == (2, 6)
    assert not snapshot.cursor_visible


def test_modes() -> None:
    modes = fed(b"\x1b[?2004h\x1b[?1h\x1b[?1004h\x1b[?1002;1006h\x1b[?2026h\x1b[?66h").snapshot().modes
    assert modes.bracketed_paste
    assert modes.synchronized
    assert modes.dec >= {1, 66, 1002, 1004, 1006, 2004, 2026}
    assert modes.state(2004) is True
    assert modes.state(2048) is False
    assert modes.state(31337) is None
    assert modes.state(4, ansi=True) is False
    plain = Screen(5, 5).snapshot().modes
    assert not plain.dec & {1, 66, 1000, 1002, 1003, 1004, 1006, 2004}


def test_the_alternate_screen_and_back() -> None:
    screen = fed(b"main\x1b[?1049h\x1b[Halternate")
    assert screen.snapshot().alternate
    assert screen.snapshot().lines[0] == "alternate"
    screen.feed(b"\x1b[?1049l")
    assert not screen.snapshot().alternate
    assert screen.snapshot().lines[0] == "main"
    assert screen.snapshot().cursor == (0, 4)


def test_the_main_screen_is_redrawn_under_the_alternate_one() -> None:
    screen = fed(b"first\r\n\x1b[31msecond\x1b[m\x1b[?1049h\x1b[Halternate")
    copy = fed(screen.redraw(scrollback=True))
    assert copy.snapshot() == screen.snapshot()
    copy.feed(b"\x1b[?1049l")
    assert copy.snapshot().lines[:2] == ("first", "second")
    assert copy.snapshot().cursor == (1, 6)
    assert copy.row_cells(1)[0].fg == 1


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_where_the_main_screen_goes_on_is_kept_whatever_the_pieces(piece: int) -> None:
    """It is left and entered again in one piece where output is read that nobody has followed."""
    screen = fed(b"one\x1b[?1049h\x1b[Halternate")
    data = b"\x1b[?1049l\r\ntwo\r\nthree\x1b[?1049h\x1b[Hagain"
    for start in range(0, len(data), piece):
        screen.feed(data[start : start + piece])
    copy = fed(screen.redraw(scrollback=True))
    for both in (screen, copy):
        both.feed(b"\x1b[?1049l\r\nfour")
        assert both.snapshot().lines == ("one", "two", "three", "four")


def test_cells_tell_typed_text_from_a_placeholder() -> None:
    screen = fed("> \x1b[2mTry \x1b[0;7m漢\x1b[0;4:3;38;5;99m!".encode(), cols=8)
    cells = screen.row_cells(0)
    assert [cell.text for cell in cells] == [">", " ", "T", "r", "y", " ", "漢"]
    assert [cell.dim for cell in cells] == [False, False, True, True, True, True, False]
    assert cells[6] == Cell("漢", 2, inverse=True)
    assert screen.row_cells(1)[0] == Cell("!", 1, fg=99, underline=3)
    with pytest.raises(IndexError):
        screen.row_cells(4)


def test_the_title_and_colours_of_the_program() -> None:
    snapshot = fed("\x1b]2;✳ Claude Code\x07\x1b]11;#102030\x07\x1b]4;1;#010203\x07".encode()).snapshot()
    assert snapshot.title == "✳ Claude Code"
    assert snapshot.background == (16, 32, 48)
    assert snapshot.palette[3:6] == b"\x01\x02\x03"


@pytest.mark.parametrize(
    "tail", [b"\x1b", b"\x1b[3", b"\x1b]0;ti", b"\x1b]0;title\x1b", b"\xe6\xbc", b"\x1bPx", b"\xf0"]
)
def test_an_unfinished_sequence_is_kept_back(tail: bytes) -> None:
    screen = fed(b"text" + tail)
    assert screen.pending == tail
    assert screen.snapshot().lines[0] == "text"
    copy = fed(screen.redraw())
    copy.feed(screen.pending)
    for both in (screen, copy):
        both.feed(b"0 \x1b\\\x1b[1;1H")
    assert copy.snapshot() == screen.snapshot()


def test_an_endless_string_is_not_kept_for_ever() -> None:
    screen = Screen(20, 4)
    for _ in range(10):
        screen.feed(b"\x1bP" if not screen.pending else b"x" * MAX_SEQUENCE)
        assert len(screen.pending) <= MAX_SEQUENCE
    assert screen.redraw(scrollback=True)
    screen.feed(b"\x18here")
    assert screen.snapshot().lines[0] == "here"


def test_control_characters_are_not_text() -> None:
    assert fed(b"a\x00b\x10c\x18d\x1ae\x1ff\x7fg").snapshot().lines[0] == "abcdefg"


def test_control_characters_in_utf8_become_replacement_characters() -> None:
    assert fed("a\x9b31mb\x85\x80c".encode()).snapshot().lines[0] == "a\ufffd31mb\ufffd\ufffdc"
    assert fed(b"\x1b]0;t\xc2\x9cu\x07").snapshot().title == "t\ufffdu"


def test_invalid_bytes_become_replacement_characters() -> None:
    assert fed(b"a\xff\xc3(\xe2\x82z").snapshot().lines[0] == "a��(�z"


@pytest.mark.parametrize(
    "columns", [b"\x1b[?40h\x1b[?3h", b"\x1b[?40;3h", b"\x1b[?040h\x1b[?3h", b"\x1b[?4\n0h\x1b[?3h"], ids=repr
)
def test_the_program_cannot_change_the_size(columns: bytes) -> None:
    screen = fed(columns + b"\x1b[8;50;100t")
    assert (screen.snapshot().cols, screen.snapshot().rows) == (20, 4)
    screen.feed(b"\x1b[2J\x1b[H" + b"x" * 50)
    assert screen.snapshot().lines == ("x" * 20, "x" * 20, "x" * 10, "")


def test_sizes_are_bounded() -> None:
    """By columns and rows, and by cells: too many, or fewer rows than three, end the emulator."""
    screen = Screen(0, 10**9)
    assert (screen.snapshot().cols, screen.snapshot().rows) == (1, ROWS_MAX)
    for wanted, becomes in (
        ((10**9, -1), (COLS_MAX, ROWS_MIN)),
        ((10**9, 10**9), (COLS_MAX, 30)),
        ((500, 200), (500, 60)),
    ):
        screen.resize(*wanted)
        assert (screen.snapshot().cols, screen.snapshot().rows) == becomes
        assert becomes[0] * becomes[1] <= CELLS_MAX


def test_a_gradient_does_not_grow_memory_for_ever() -> None:
    screen = Screen(20, 4)
    for number in range(9000):
        screen.feed(b"\x1b[1;1H\x1b[38;2;%d;%d;7mx" % (number % 256, number // 256))
        screen.snapshot()
    assert len(screen._emulator.rows.styles) < 5000
    assert screen.row_cells(0)[0].fg == (8999 % 256, 8999 // 256, 7)


def test_a_resize_wraps_anew() -> None:
    screen = fed(b"words that go on and on\r\n$ ")
    screen.resize(10, 6)
    assert screen.snapshot().text() == "words that go on and on\n$"
    assert screen.snapshot().lines[0] == "words that"
    screen.resize(40, 4)
    assert screen.snapshot().lines[:2] == ("words that go on and on", "$")


def test_a_cursor_that_waits_to_wrap_still_waits_after_a_redraw() -> None:
    for tail in (b"", b"\x1b[31m", b"\x1b]2;t\x07\x1b[?2004h"):
        screen = fed(b"x" * 20 + tail)
        copy = fed(screen.redraw())
        for both in (screen, copy):
            both.feed(b"y")
        assert copy.snapshot() == screen.snapshot()
        assert copy.snapshot().cursor == (1, 1)


SPOILT = {
    b"\xe2\x80\x18\x80z": ("��z", b""),
    b"\xe2\x00\x80\x8bz": ("���z", b""),
    b"\x80": ("�", b""),
    b"\x1b[3\x801mz": ("z", b""),
    b"\x1b\x80[1mz": ("z", b""),
    b"\x1b\x80[\x18z": ("z", b""),
    b"\x1b[\n1mz": ("", b""),
    b"\x1b^a\xcc\x81b\x1b\\z": ("z", b""),
    b"\x1bPq\x9cb\x1b\\z": ("z", b""),
    b"\x1b[3\xe2\x80": ("", b"\x1b[3\xe2\x80"),
    b"\x1b\xff": ("", b"\x1b\xff"),
}
"""Bytes that have no place where they stand, and what the first row shows; what waits for its end."""


@pytest.mark.parametrize("data", SPOILT, ids=repr)
def test_stray_bytes_show_the_same_however_they_are_cut(data: bytes) -> None:
    whole = fed(data)
    assert (whole.snapshot().lines[0], whole.pending) == SPOILT[data]
    for cut in range(1, len(data)):
        pieces = fed(data[:cut])
        pieces.snapshot()
        pieces.feed(data[cut:])
        assert (pieces.snapshot(), pieces.pending) == (whole.snapshot(), whole.pending), cut


def test_stray_bytes_in_a_string_that_is_too_long_to_be_kept_back() -> None:
    screen = fed(b"\x1b^" + b"x" * MAX_SEQUENCE + b"\x81")
    for piece in (b"\x80\x81a", "é".encode(), b"\x1b\\z"):
        screen.feed(piece)
    assert screen.snapshot().lines[0] == "z"


@pytest.mark.parametrize("count", [100, 119, 120, 121, 999, 65535, 10**9])
def test_a_character_is_repeated_as_if_it_had_been_printed(count: int) -> None:
    """REP of more than the screen holds takes no longer than filling it, and shows what the whole would."""
    repeated, printed = Screen(12, 10, scrollback_lines=0), Screen(12, 10, scrollback_lines=0)
    repeated.feed(b"before\x1b[%db" % count)
    printed.feed(b"before" + b"e" * min(count, 65535))
    assert repeated.snapshot().lines == printed.snapshot().lines
    assert repeated.snapshot().cursor == printed.snapshot().cursor


def test_few_characters_are_repeated_for_a_large_number() -> None:
    for sequence in (b"\x1b[65535b", b"\x1b[00065535b", b"\x1b[99999999999999b"):
        count = int(fewer_repeats(sequence, 80, 24)[2:-1])
        assert count < 80 * 24 + 80, sequence
    for sequence in (b"\x1b[5b", b"\x1b[1920b", b"\x1b[1000m", b"\x1b[1000;1H"):
        assert fewer_repeats(sequence, 80, 24) == sequence


@pytest.mark.parametrize(
    "before",
    [b"", b"\x1b[?1049h", b"\x1b[2;10r\x1b[?6h", b"\x1b[?2004h\x1b[>1u\x1b]0;title\x07"],
    ids=["plain", "alternate", "region", "modes"],
)
def test_lines_with_colours_hold_nothing_else_and_stand_each_by_itself(before: bytes) -> None:
    text = "plain \x1b[1;31mred\r\nand on\x1b[0m " + "wrapped " * 5 + "\r\n\x1b[48;2;1;2;3m  \x1b[m\r\n日本"
    screen = Screen(20, 10)
    screen.feed(before + b"\x1b[H" + text.encode() + b"\x1b[33m")
    *lines, end = screen.coloured().decode().split("\n")
    assert (len(lines), end) == (10, "")
    bare = [re.sub(r"\x1b\[[0-9;:]*m", "", line) for line in lines]
    assert "\x1b" not in "".join(bare)
    assert [line.rstrip() for line in bare] == [line.rstrip() for line in screen.snapshot().lines]
    assert any(line.startswith("\x1b[0;1;31mand on\x1b[m ") for line in lines), (
        "a colour goes on over the end of a line"
    )
    assert "\x1b[0;48;2;1;2;3m  \x1b[m" in lines, "a coloured blank is something"


@pytest.mark.parametrize("erased", ["\x1b[2K", "\x1b[K", "\x1b[31m\x1b[2K\x1b[m"])
def test_rows_that_are_erased_and_written_anew_are_not_joined_in_a_wider_window(erased: str) -> None:
    """As programs do that draw their last rows again: gemini does."""
    screen = Screen(20, 6)
    rows = ("\x1b[2A\r", *(f"{erased}{row}\r\n" for row in ("one", "two")))
    screen.feed(("-" * 30 + "\r\n" + "".join(rows) + "three").encode())
    screen.resize(40, 6)
    assert [line.rstrip() for line in screen.snapshot().lines[:3]] == ["one", "two", "three"]
