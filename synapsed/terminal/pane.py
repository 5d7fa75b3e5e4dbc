"""A screen as a terminal of another size shows it: a part around the cursor, or all of it in the upper left corner.

Drawn from the cells, because what a program writes for a window of one size is rubbish in every other. Nothing scrolls,
so that no line gets into the other terminal's scrollback, and nothing needs the alternate screen.
"""

from collections.abc import Sequence
from typing import NamedTuple

_MODES = b"\x1b[?9;1000;1002;1003;1004;1005;1006;1015;1016l\x1b[?1;5;66;2004;2031;2048l"
_KEYBOARD = b"\x1b[<99u\x1b[>4m"
_LOOKS = b"\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\\x1b]8;;\x1b\\\x1b[0 q"
UNDO_ON_ONE_SCREEN = _MODES + _KEYBOARD + _LOOKS
UNDO = _MODES + _KEYBOARD + b"\x1b[?1049l" + _KEYBOARD + _LOOKS
"""What takes back whatever a program has set in a terminal that showed its output, before that is drawn in another way;
modes that are not set are left so by it. The first one leaves the terminal on the screen that it is on."""

_KEPT = (1, 2004)
"""Modes that the keys of whoever looks on have to follow: the next one may be for the program."""


class Part(NamedTuple):
    """What of a screen is shown: its first row and column."""

    top: int
    left: int


def part_of(
    screen: tuple[int, int], view: tuple[int, int], cursor: tuple[int, int], last: int, *, follows: bool
) -> Part:
    """The part of a screen of (columns, rows) that a view of (columns, rows) shows: the `cursor` (row, column) is in
    it, three quarters down and, where it `follows` to the right, across; `last` is the last row with text."""
    (cols, rows), (width, height), (row, column) = screen, view, cursor
    top = max(0, min(row - height * 3 // 4, max(last, row) + 1 - height, rows - height))
    left = 0
    if follows and column >= width:
        left = max(0, min(column - width * 3 // 4, cols - width))
    return Part(top, left)


def draw(
    rows: Sequence[bytes],
    *,
    size: tuple[int, int],
    cursor: tuple[int, int] | None,
    shape: bytes,
    modes: frozenset[int],
    keyboard: int,
    notice: bytes,
) -> bytes:
    """The bytes that show `rows` in a terminal of `size` (columns, rows), the cursor at (row, column), or hidden.
    `keyboard` are the flags of the kitty keyboard protocol."""
    out = [b"\x1b[?2026h\x1b[?69l\x1b[?6l\x1b[4l\x1b[20l\x1b[?7l\x1b[r\x1b(B\x0f\x1b[m\x1b[?25l"]
    out += [b"\x1b[%d;1H%b" % (number + 1, row) for number, row in enumerate(rows)]
    if len(rows) < size[1]:
        out.append(b"\x1b[%d;1H\x1b[J" % (len(rows) + 1))
    out.append(notice)
    out += [b"\x1b[?%d%c" % (mode, ord("h" if mode in modes else "l")) for mode in _KEPT]
    out.append(b"\x1b[=%d;1u" % keyboard)
    out.append(b"\x1b[?7h\x1b[%b q" % shape)
    if cursor is not None:
        out.append(b"\x1b[%d;%dH\x1b[?25h" % (cursor[0] + 1, cursor[1] + 1))
    out.append(b"\x1b[?2026l")
    return b"".join(out)
