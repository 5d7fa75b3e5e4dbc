"""Rows above the screen that a program erases (ED 3): nothing of them comes back, and nothing else is changed by it."""

import pytest

from synapsed.terminal.emulated_screen import Screen

COLS, ROWS = 40, 10
WRAPPED = b"".join(b"A" * (COLS + 20) + b"\r\n" for _ in range(300))
CLEARS = {"clear": b"\x1b[H\x1b[2J\x1b[3J", "ink": b"\x1b[2J\x1b[3J\x1b[H", "selective": b"\x1b[2J\x1b[?3J\x1b[H"}
STATES = {
    "nothing": b"",
    "a pen with a background": b"\x1b[2;3H\x1b[1;4:3;38;5;200;48;2;1;2;3m",
    "a region": b"\x1b[3;7r\x1b[5;9H",
    "a region, margins and origin": b"\x1b[3;7r\x1b[?69h\x1b[5;30s\x1b[?6h\x1b[3;4H",
    "tab stops": b"\x1b[3g\x1b[7G\x1bH\x1b[2;2H",
    "a frame": b"\x1b[?2026h\x1b[3;3H",
    "a full row": b"\x1b[3;1H\x1b[41m" + b"f" * COLS,
    "a screen that is full": b"\r\n".join(b"row %d" % row for row in range(ROWS)),
    "rows that are wrapped": b"w" * (COLS * 3),
    "another character set": b"\x1b(0\x1b[2;2H",
    "a hidden cursor": b"\x1b[?25l\x1b[6;6H",
    "the alternate screen": b"main\x1b[?1049h\x1b[5;5Halt",
}
THEN = b"\xe2\x94\x80x\tlqx\x1b[5b\x1b[K\r\nnext\r\n" + b"\x1b[1;1H\x1b[2L" + b"under"


@pytest.mark.parametrize("clear", CLEARS.values(), ids=CLEARS)
@pytest.mark.parametrize("cut", [1, 7, 1 << 20])
def test_what_is_printed_later_is_not_joined(clear: bytes, cut: int) -> None:
    screen = Screen(COLS, ROWS)
    lines = [f"line {number}" for number in range(600)]
    output = WRAPPED + clear + "\r\n".join(lines).encode()
    for start in range(0, len(output), cut):
        screen.feed(output[start : start + cut])
    assert screen.text(scrollback=True).split("\n") == lines


@pytest.mark.parametrize("cols", [1, 3, 215, 1000])
def test_a_page_of_any_width_is_cleaned(cols: int) -> None:
    screen = Screen(cols, 5, scrollback_lines=100_000)
    rows = 400_000 // (8 * (cols + 1))
    lines = ["L"] * rows
    screen.feed(b"A" * (cols * (rows - 4)) + b"\x1b[2J\x1b[3J\x1b[H" + "\r\n".join(lines).encode())
    assert screen.text(scrollback=True).split("\n") == lines


def test_rows_that_another_width_has_wrapped_are_forgotten_too() -> None:
    screen = Screen(COLS, ROWS)
    screen.feed(b"\x1b[3J" + b"A" * COLS * ROWS)
    screen.resize(4, ROWS)
    screen.feed(b"\x1b[2J\x1b[3J\x1b[H" + b"\r\n".join([b"one"] * 60))
    assert screen.text(scrollback=True).split("\n") == ["one"] * 60


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_all_else_stays_as_it_was(state: bytes) -> None:
    never, erased = Screen(COLS, ROWS), Screen(COLS, ROWS)
    erased.feed(WRAPPED + b"\x1b[2J\x1b[H")
    never.feed(state)
    erased.feed(state + b"\x1b[3J")
    assert erased.synchronized == never.synchronized
    never.feed(THEN)
    erased.feed(THEN)
    assert erased.redraw() == never.redraw()
    assert erased.text(scrollback=True) == never.text(scrollback=True)


def test_the_cursor_that_the_program_saved_is_kept() -> None:
    screen = Screen(COLS, ROWS)
    screen.feed(WRAPPED + b"\x1b[4;7H\x1b7\x1b[2;2H\x1b[3J\x1b8")
    assert screen.snapshot().cursor == (3, 6)
