"""A screen as a terminal of another size shows it: a part around the cursor, or all of it in the upper left corner; and
a notice of synapsed's own, laid out for its last rows. Pure.

The screen is drawn from its cells, because output for a window of one size is unreadable in every other. The drawing
does not scroll, so that no line gets into the other terminal's scrollback, and it does not need the alternate screen.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_MODES = b"\x1b[?9;1000;1002;1003;1004;1005;1006;1015;1016l\x1b[?1;5;66;2004;2031;2048l"
_KEYBOARD = b"\x1b[<99u\x1b[>4m"
_LOOKS = b"\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\\x1b]8;;\x1b\\\x1b[0 q"
UNDO_ON_ONE_SCREEN = _MODES + _KEYBOARD + _LOOKS
UNDO = _MODES + _KEYBOARD + b"\x1b[?1049l" + _KEYBOARD + _LOOKS
"""Takes back all settings of a program in a terminal that showed its output, before that is drawn in another way; modes
that are not set stay so. The first one leaves the terminal on its present screen."""

_KEPT = (1, 2004)
"""Modes that the viewer's keys have to follow: the next one may be for the program."""


class Part(NamedTuple):
    """Part of a screen that is shown: its first row and column."""

    top: int
    left: int


def part_of(
    screen: tuple[int, int], view: tuple[int, int], cursor: tuple[int, int], last: int, *, follows: bool
) -> Part:
    """Returns the part of a screen of (columns, rows) that a view of (columns, rows) shows: the `cursor` (row, column)
    is in it, three quarters down and, if it `follows` to the right, across; `last` is the last row with text."""
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
    """Returns the bytes that show `rows` in a terminal of `size` (columns, rows), the cursor at (row, column), or
    hidden. `keyboard` are the flags of the kitty keyboard protocol."""
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


def notice_rows(text: str, cols: int, most: int) -> tuple[str, ...]:
    """Returns `text` in rows of at most `cols` columns, at least one and at most `most` of them; a longer text is cut,
    with an ellipsis at the end. Control characters are left out."""
    from synapsed.terminal.delivery import clean  # it needs the profiles, which drawing alone does not

    rows = [piece for line in clean(text).expandtabs(4).split("\n") for piece in _wrapped(line, cols)]
    most = max(most, 1)
    if len(rows) > most:
        rows = rows[:most]
        rows[-1] = next(_wrapped(rows[-1], max(cols - 1, 1)), "") + "…"
    return tuple(rows)


def draw_notice(rows: Sequence[str], screen_rows: int, cols: int) -> bytes:
    """Returns the bytes that draw `rows` in reverse over the last rows of a screen of that size. Cursor and pen are
    left anywhere."""
    first = screen_rows - len(rows) + 1
    drawn = (
        f"\x1b[{first + n};1H\x1b[0;7m{row}{' ' * (cols - sum(map(_char_width, row)))}\x1b[m".encode("utf-8", "replace")
        for n, row in enumerate(rows)
    )
    return b"".join(drawn)


def _wrapped(line: str, cols: int) -> Iterator[str]:
    start = width = 0
    for at, char in enumerate(line):
        step = _char_width(char)
        if width + step > cols:
            yield line[start:at]
            start, width = at, 0
        width += step
    yield line[start:]


def _char_width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
