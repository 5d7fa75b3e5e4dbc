"""The visible rows of the emulator: as text, as cells and as bytes.

The text of all rows is read at once, and so are their pens on request; cells only for the rows that need them. The
emulator returns the same object for an unchanged row, also after it moved, so results for a row are kept by its
identity. Wrapping into the next row is read only for rows that look like it, and for all rows in `paint`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from synapsed.model.picture import Rgb
from synapsed.shared.regex import regex
from synapsed.terminal import redraw
from synapsed.terminal.emulator import Emulator
from synapsed.terminal.emulator_rows import ScreenRow
from synapsed.terminal.rows import CellRun, written
from synapsed.terminal.snapshot import BOLD, OTHER, PLAIN, Cell, Color, ScreenSnapshot

MAX_STYLES = 4096
"""Styles remembered before the table is emptied: a program that paints gradients makes one for each colour."""

MAX_CELLS = 4096
"""Different cells remembered; a screen has some hundreds."""

MAX_DRAWN = 256
"""Rows whose kinds are remembered."""

_PENS = regex(r"((?:\x1b\[[\d;:]*m)+)")
_SHOWN = regex("[^ ]")
_DRAWN_OTHERWISE = frozenset({"2", "3", "4", "7", "8", "9", "48"})
"""Codes of a pen that make text `OTHER`: faint, italic, underlined, inverse, invisible, struck, a background."""

_GRAYS = 232
"""The first of the palette's 24 grays, dark to light."""

_HUE, _LIGHT, _DARK = 16, 192, 64
"""Largest difference of a colour's parts for a grey, and the limits of nearly white and nearly black."""


class _Cells(NamedTuple):
    """A part of a row."""

    graphemes: Sequence[str]
    widths: bytes
    styles: Sequence[int]


@dataclass(slots=True)
class _Line:
    """Results for one row."""

    rendered: bytes | None = None
    """Result of `redraw.render_row`, unwrapped."""
    cells: list[Cell] | None = None
    kinds: str | None = None
    """Style of each character of its text, by its cells."""
    told: tuple[Rgb | bytes, ...] = ()
    row: str = ""
    """The row of a page (`rows.written`), and the colours that it was made with."""


class Grid:
    """Reads the visible rows of `emulator`."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._start()

    def _start(self) -> None:
        self._texts: list[str] = []
        """The rows' texts, right-stripped."""
        self.cursor = (0, 0)
        """(row, column), from 0, as of the last `refresh`."""
        self._pens: list[bytes] = []
        """Sequences that set the pen to each style, for as many as were asked for; empty for the default one."""
        self._kinds: dict[str, str | None] = {}
        """Style of each character of a row, by its drawing with pens."""
        self._cells: dict[tuple[str, int, int], Cell] = {}

    def refresh(self) -> None:
        """Reads the present screen of the emulator."""
        if len(self._emulator.rows.styles) > MAX_STYLES:
            self._emulator.forget_styles()
            self._start()
        self._texts = [text.rstrip(" ") for text in self._emulator.read()]
        self.cursor = self._emulator.cursor()

    def lines(self, cols: int) -> tuple[tuple[str, ...], tuple[bool, ...]]:
        """Returns the rows' texts, and True for each row that is wrapped into the next.

        Texts are right-stripped, except wrapped ones, whose spaces are part of the joined line. A row that was wrapped
        and then written over is still wrapped to the terminal, but not here: it must reach the last column but one. An
        empty row continues a wrapped one if the cursor stands at its beginning: line editors put it there when their
        text fills the row above.
        """
        texts = [*self._texts]
        wrapped = [False] * len(texts)
        for index, text in enumerate(self._texts[:-1]):
            if len(text) * (2 - text.isascii()) < cols - 1:  # a character has two columns at the most
                continue
            if (self._texts[index + 1] or self.cursor == (index + 1, 0)) and self._emulator.rows.wrapped(index):
                whole = "".join(redraw.graphemes_of(self._emulator.rows.row(index)))
                if len(whole) - len(text) <= 1:
                    wrapped[index] = True
                    texts[index] = whole[:-1] if self._skips_last(index) else whole
        return tuple(texts), tuple(wrapped)

    def cells(self, index: int) -> Sequence[Cell]:
        """Returns the cells of one row, each character once."""
        row = self._emulator.rows.row(index)
        line = _line(row)
        if line.cells is None:
            line.cells = [
                self._cell(text, 1 if text == " " else width, style)
                for text, width, style in zip(redraw.graphemes_of(row), row.widths, row.styles, strict=True)
                if text
            ]
        return line.cells

    def kinds(self, index: int, length: int) -> str:
        """Returns the style of each of the first `length` characters of a row, PLAIN, BOLD or OTHER; a blank in a
        colour is a plain one."""
        drawn = self._emulator.rows.drawn(index)
        if drawn is None:
            return self._kinds_of_cells(index)[:length]
        if drawn not in self._kinds:
            if len(self._kinds) >= MAX_DRAWN:
                self._kinds.clear()
            self._kinds[drawn] = _kinds_of(drawn)
        kinds = self._kinds[drawn]
        return self._kinds_of_cells(index)[:length] if kinds is None else kinds[:length].ljust(length, PLAIN)

    def _kinds_of_cells(self, index: int) -> str:
        row = self._emulator.rows.row(index)
        line = _line(row)
        if line.kinds is None:
            kinds = {style: _kind_of(self._emulator.rows.styles[style]) for style in {*row.styles}}
            line.kinds = "".join(
                (PLAIN if text == " " and kinds[style] is OTHER else kinds[style]) * len(text)
                for text, style in zip(redraw.graphemes_of(row), row.styles, strict=True)
            )
        return line.kinds

    def paint(self) -> bytes:
        """Returns the bytes that draw the rows, on a terminal in the state of `redraw.RESET`."""
        out = [b"\x1b[H"]
        rows = self._rows()
        for index, row in enumerate(rows):
            if row.wrapped and index < len(rows) - 1:
                # Printed to its last column, it is wrapped by the next character: a wide one, which did not fit, or a
                # blank one, which is printed over.
                spacer = self._skips_last(index)
                out.append(redraw.render_row(row, self._pens, full=True, spacer=spacer))
                out.append(b"" if spacer else b" \r")
            else:
                line = _line(row)
                if line.rendered is None:
                    line.rendered = redraw.render_row(row, self._pens, full=False)
                out += [line.rendered, b"\r\n"]
        return b"".join(out[:-1])

    def coloured(self) -> bytes:
        """Returns the rows' texts with their colours, a line each, without the blank cells at its end and without other
        sequences. Each begins and ends with the default pen."""
        rows = (redraw.render_row(row, self._pens, full=False).removesuffix(b"\x1b[K") for row in self._rows())
        return b"".join(row + b"\n" for row in rows)

    def rows(self, now: ScreenSnapshot) -> list[str]:
        """Returns the rows of a page, each made once while it and the colours stay the same."""
        colors = (now.foreground, now.background, now.palette)
        out = []
        for row in self._rows():
            line = _line(row)
            if line.told != colors:
                line.told, line.row = colors, written(self._pieces(row), now)
            out.append(line.row)
        return out

    def _pieces(self, row: ScreenRow) -> Iterator[CellRun]:
        graphemes, place, at = redraw.graphemes_of(row), 0, 0
        for style, run in groupby(row.styles):
            at += sum(1 for _ in run)
            end = at + (at < len(graphemes) and graphemes[at] == "")  # a wide character is drawn as its first column
            if end > place:
                yield CellRun(self._cell(" ", 1, style), tuple(graphemes[place:end]))
                place = end

    def crop(self, index: int, first: int, columns: int) -> bytes:
        """Returns the bytes that draw `columns` columns of a row from `first` on, and erase the rest of the line if
        they are fewer. A wide character of which only half would be shown becomes a space."""
        row, end = self._row(index), first + columns
        part = _Cells(row.graphemes[first:end], row.widths[first:end], row.styles[first:end])
        drawn = redraw.render_row(part, self._pens, full=False)
        return drawn if drawn.endswith(b"\x1b[K") or len(row.graphemes) >= end else drawn + b"\x1b[K"

    def _row(self, index: int) -> ScreenRow:
        """Returns a row, whose styles have their pens."""
        row = self._emulator.rows.row(index)
        for style in self._emulator.rows.styles[len(self._pens) :]:
            pen = redraw.sgr(style)
            self._pens.append(b"" if pen == b"\x1b[m" else pen)
        return row

    def _rows(self) -> list[ScreenRow]:
        return [self._row(index) for index in range(len(self._texts))]

    def _skips_last(self, index: int) -> bool:
        """Returns True if a wide character found one column left in this row, and went to the next one."""
        below = self._emulator.rows.row(index + 1)
        return self._emulator.rows.row(index).head and below.widths[0] == 2 and below.graphemes[0] != " "

    def last_cell(self, index: int, at: int) -> tuple[int, bytes]:
        """Returns the cell that ends in a column of a row: the column it begins in, and the bytes that print it."""
        row = self._row(index)
        graphemes = redraw.graphemes_of(row)
        column = at if graphemes[at] or not at else at - 1
        return column, self._pens[row.styles[column]] + graphemes[column].encode("utf-8", "replace") + b"\x1b[m"

    def last_text(self) -> tuple[int, int]:
        """Returns the index of the last row with text on it, and its columns there; (-1, 0) without text."""
        for index in range(len(self._texts) - 1, -1, -1):
            if self._texts[index]:
                graphemes = redraw.graphemes_of(self._emulator.rows.row(index))
                return index, max(column for column, text in enumerate(graphemes) if text != " ") + 1
        return -1, 0

    def _cell(self, text: str, width: int, index: int) -> Cell:
        known = self._cells.get((text, width, index))
        if known is None:
            if len(self._cells) >= MAX_CELLS:
                self._cells.clear()
            known = self._cells[text, width, index] = replace(self._emulator.rows.styles[index], text=text, width=width)
        return known


def _kind_of(style: Cell) -> str:
    drawn = style.dim or style.italic or style.underline or style.inverse or style.invisible or style.strikethrough
    if drawn or style.bg is not None:
        return OTHER
    if style.bold:
        return BOLD
    return PLAIN if _is_ordinary(style.fg) else OTHER


def _kinds_of(drawn: str) -> str | None:
    """Returns the style of each character of a row, by its text with its pens. None if the cells are needed: a column
    that was not printed is written in the pen of the text before it, and a bold blank is not a plain one."""
    text, *styled = _PENS.split(drawn)
    kinds = [PLAIN * len(text)]
    for pens, run in zip(styled[::2], styled[1::2], strict=True):
        kind = _kind_of_pen(pens)
        if kind is BOLD and " " in run:
            return None
        kinds.append(_SHOWN.sub(OTHER, run).replace(" ", PLAIN) if kind is OTHER else kind * len(run))
    return "".join(kinds)


@lru_cache(MAX_CELLS)
def _kind_of_pen(pens: str) -> str:
    """Returns the kind of `_kind_of`, by the sequences that set a pen."""
    bold, ordinary = False, True
    for pen in pens.rpartition("\x1b[0m")[2].removeprefix("\x1b[").removesuffix("m").split("m\x1b["):
        match pen.replace(":", ";").split(";"):
            case [code, *_] if code in _DRAWN_OTHERWISE:
                return OTHER
            case ["1"]:
                bold = True
            case ["38", "5", index]:
                ordinary = _is_ordinary(int(index))
            case ["38", "2", red, green, blue]:
                ordinary = _is_ordinary((int(red), int(green), int(blue)))
    if bold:
        return BOLD
    return PLAIN if ordinary else OTHER


def _is_ordinary(color: Color) -> bool:
    """Returns True if text of this colour is ordinary: the default, nearly white or nearly black."""
    if isinstance(color, int):
        if color in (0, 7, 15, 16, 188, 231):
            return True
        return color >= _GRAYS and (color >= _GRAYS + 19 or color < _GRAYS + 5)
    return color is None or (max(color) - min(color) <= _HUE and (min(color) >= _LIGHT or max(color) <= _DARK))


def _line(row: ScreenRow) -> _Line:
    if row.derived is None:
        row.derived = _Line()
    line: _Line = row.derived
    return line
