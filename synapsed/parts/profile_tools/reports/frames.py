"""Screens at their times, and the bytes that draw them one after the other: a recording of what a program showed. Pure.

These bytes are not the program's output. They contain, written again, only the letters on its screens with their
styles, its title, its modes of input, and its reports of its state. All else that it sent is left out: text for a
clipboard, an address behind a link, a picture, letters that it erased at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Final

from synapsed.terminal.sandboxed import Cell, ScreenSnapshot, sgr

MODES: Final = (1, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 2004, 2027, 2031)
"""Private modes that are written, besides those of the cursor and the alternate screen; none of them moves a letter."""
RESET: Final = b"\x1bc"
EDITS: Final = b"\x1b[?2004h"
"""Sequences that begin a new screen, and the reading of a line."""
_look = attrgetter(
    *("fg", "bg", "bold", "dim", "italic", "underline", "underline_color"),
    *("blink", "inverse", "invisible", "strikethrough", "overline"),
)
_PLAIN = _look(Cell(" "))


@dataclass(frozen=True, slots=True)
class DrawnScreen:
    """A screen that is shown from `at` on. `told` are the sequences with which the program reported its state since the
    screen before."""

    at: float
    now: ScreenSnapshot
    rows: Sequence[Sequence[Cell]]
    title: str
    told: Sequence[bytes] = ()


class Redrawing:
    """Draws frames, each from the one before."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._alternate = False
        self._modes = frozenset({1007})
        self._title = ""
        self._cursor = b""
        self._rows: list[tuple[bytes, bool]] | None = None
        """The bytes of each row that is there, and True if it is wrapped."""

    def draw(self, frame: DrawnScreen) -> bytes:
        """Returns the bytes that change a terminal from the last frame to this one; empty if they look the same."""
        out = [*frame.told]
        if RESET in frame.told:
            self._begin()
        if EDITS in frame.told:
            self._modes |= {2004}
        if frame.now.alternate != self._alternate:
            self._alternate, self._rows = frame.now.alternate, None
            out.append(b"\x1b[?1049%c" % _set(on=self._alternate))
        modes = frame.now.modes.dec.intersection(MODES)
        out += [b"\x1b[?%d%c" % (mode, _set(on=mode in modes)) for mode in sorted(modes ^ self._modes)]
        self._modes = modes
        if frame.title != self._title:
            self._title = frame.title
            out.append(b"\x1b]2;%b\x1b\\" % frame.title.encode("utf-8", "replace"))
        moved = self._draw_rows(frame)
        row, column = frame.now.cursor
        cursor = b"\x1b[%d;%dH\x1b[?25%c" % (row + 1, column + 1, _set(on=frame.now.cursor_visible))
        if moved or cursor != self._cursor:
            out += [moved, cursor]
        self._cursor = cursor
        return b"".join(out)

    def _draw_rows(self, frame: DrawnScreen) -> bytes:
        wrapped = frame.now.wrapped
        rows = [(_drawn(cells, full=wraps), wraps) for cells, wraps in zip(frame.rows, wrapped, strict=True)]
        before, self._rows = self._rows, rows
        out, first = [], 0
        for at in range(len(rows)):
            if rows[at][1] and at + 1 < len(rows):
                continue  # it is drawn with the rows that it is wrapped into
            if before is None or rows[first : at + 1] != before[first : at + 1]:
                out.append(b"\x1b[%d;1H" % (first + 1))
                out += [_into_next(rows[number][0], frame.rows[number + 1]) for number in range(first, at)]
                out += [b"\x1b[K", rows[at][0]]
            first = at + 1
        return b"".join(out)


def _into_next(row: bytes, following: Sequence[Cell]) -> bytes:
    """Returns the bytes that print a whole row and wrap into the next one. After the last column, the next letter makes
    the terminal wrap: a blank, which is printed over later, or a wide letter, for which one column was left."""
    if row.endswith(b" ") and following[0].width == 2:
        return b"\x1b[K" + row[:-1] + "〓".encode() + b"\r"
    return b"\x1b[K" + row + b" \r"


def _set(*, on: bool) -> int:
    return ord("h" if on else "l")


def _drawn(cells: Sequence[Cell], *, full: bool) -> bytes:
    """Returns the bytes that print a row, `full`: with the blank cells at its end."""
    end = len(cells)
    while not full and end and cells[end - 1].text == " " and _look(cells[end - 1]) == _PLAIN:
        end -= 1
    out = []
    for look, run in groupby(cells[:end], _look):
        alike = list(run)
        text = "".join(cell.text for cell in alike).encode("utf-8", "replace")
        out.append(text if look == _PLAIN else sgr(alike[0]) + text + b"\x1b[m")
    return b"".join(out)
