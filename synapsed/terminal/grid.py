"""The visible rows of the emulator: as text, as cells and as bytes, each worked out once while the row stays the same.

The emulator hands out the same `evp.Row` object for a row that shows what it showed, also after it moved, so what is
derived of a row is kept by its identity. What a row does not tell is whether it was wrapped into the next: see
`_wraps`, which asks by moving the cursor or, where that would disturb, by formatting the screen and all its scrollback.
Asking costs more than all the rest: only rows that look like it are asked about, and all of them for `paint`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple

import evp

from synapsed.model.picture import Rgb
from synapsed.terminal import redraw
from synapsed.terminal.rows import CellRun, written
from synapsed.terminal.snapshot import BOLD, OTHER, PLAIN, Cell, Color, ScreenSnapshot

MAX_STYLES = 4096
"""Styles remembered before the table is emptied: a program that paints gradients makes one for each colour."""

MAX_CELLS = 4096
"""Different cells remembered; a screen has some hundreds."""

_GRAYS = 232
"""The first of the palette's 24 grays, dark to light."""

_HUE, _LIGHT, _DARK = 16, 192, 64
"""How far a colour's parts may differ where it has none, and from where on it is nearly white or black."""

MAX_REPLIES = 1024
"""Answers kept: more than a screen has rows. The rest, which programs asked for, is dropped."""


_PROBE_MODES = (6, 7, 45, 69, 1045)
_POSITION = re.compile(rb"\x1b\[(\d+);(\d+)R")
_FLAGS = re.compile(rb"\x1b\[\?(\d{1,3})u")


class Replies:
    """What the emulator answers; of interest only as the answer to our own questions."""

    def __init__(self) -> None:
        self._last: list[bytes] = []

    def __call__(self, data: bytes) -> None:
        """The emulator's callback. Must not raise: what it raises, feeding does."""
        if len(self._last) < MAX_REPLIES:
            self._last.append(data)

    def clear(self) -> None:
        """Forget what was answered before; to be called before asking."""
        self._last.clear()

    def positions(self) -> list[tuple[int, int]]:
        """The cursor positions reported, as (row, column) from 0."""
        return [(int(match[1]) - 1, int(match[2]) - 1) for match in _POSITION.finditer(b"".join(self._last))]

    def keyboard_flags(self) -> int:
        """The flags of the kitty keyboard protocol that were reported; 0 for none."""
        found = _FLAGS.search(b"".join(self._last))
        return int(found[1]) if found else 0


class _Cells(NamedTuple):
    """A part of an `evp.Row`."""

    graphemes: Sequence[str]
    widths: bytes
    styles: Sequence[int]


@dataclass(slots=True)
class _Line:
    """What is derived of one row."""

    text: str
    stripped: str
    full: bool
    """Whether something stands in the last column."""
    wide_first: bool
    rendered: bytes | None = None
    """As `redraw.render_row` makes it, unwrapped."""
    kinds: str | None = None
    """How each character of `text` is drawn."""
    told: tuple[Rgb | bytes, ...] = ()
    row: str = ""
    """The row of a page (`rows.written`), and in which colours it was worked out."""


class Grid:
    """Reads the visible rows of ``terminal``."""

    def __init__(self, terminal: evp.Terminal, replies: "Replies") -> None:
        self._terminal = terminal
        self._replies = replies
        self._start()

    def _start(self) -> None:
        self._state = evp.RenderState(self._terminal)
        self._rows: tuple[evp.Row, ...] = ()
        self._lines: dict[evp.Row, _Line] = {}
        self._movable = True
        self.cursor = (0, 0)
        """(row, column), from 0, as of the last `refresh`."""
        self._styles: list[evp.Style] = []
        self._pens: list[bytes] = []
        self._kinds: list[str] = []
        """How text of each style is drawn, for as many as were asked for."""
        self._cells: dict[tuple[str, int, int], Cell] = {}

    def refresh(self, *, movable: bool) -> evp.Frame:
        """Read what the terminal shows now.

        ``movable``: the cursor can be moved to ask with, because the terminal's parser is between two sequences and no
        scrolling region hinders it.
        """
        if len(self._styles) > MAX_STYLES:
            del self._state  # a terminal has one at a time
            self._start()
        terminal = self._terminal
        hidden = not terminal.mode(25)
        if hidden:
            terminal.set_mode(25, True)
        frame = self._state.frame()
        if hidden:
            terminal.set_mode(25, False)
        for style in frame.new_styles:
            self._styles.append(style)
            pen = redraw.sgr(style)
            self._pens.append(b"" if pen == b"\x1b[m" else pen)
        self._rows = frame.rows
        known = self._lines
        self._lines = {row: known.get(row) or _derive(row) for row in self._rows}
        column, row, _ = frame.cursor or (0, 0, False)
        self.cursor = (row, column)
        self._movable = movable
        return frame

    def lines(self) -> tuple[tuple[str, ...], tuple[bool, ...]]:
        """The rows' texts, and which rows are wrapped into their successors.

        Texts are right-stripped, but for wrapped ones, which hold what has to be joined. A row that was wrapped and
        then written over is still so to the terminal, but not here: it must reach the last column but one. A row with
        nothing in it is gone on in where the cursor stands at its beginning: line editors put it there when what they
        edit fills the row above.
        """
        lines = [self._lines[row] for row in self._rows]
        texts = [line.stripped for line in lines]
        wrapped = [False] * len(lines)
        asked = [
            index
            for index, (line, below) in enumerate(pairwise(lines))
            if (below.stripped or self.cursor == (index + 1, 0)) and len(line.text) - len(line.stripped) <= 1
        ]
        for index in self._wraps(asked):
            wrapped[index] = True
            texts[index] = lines[index].text[:-1] if self._skips_last(index) else lines[index].text
        return tuple(texts), tuple(wrapped)

    def cells(self, index: int) -> list[Cell]:
        """The cells of one row, each character once."""
        row = self._rows[index]
        return [
            self._cell(text, 1 if text == " " else width, style)
            for text, width, style in zip(redraw.graphemes_of(row), row.widths, row.styles, strict=True)
            if text
        ]

    def kinds(self, index: int) -> str:
        """How each character of a row is drawn, PLAIN, BOLD or OTHER; a blank in a colour is a plain one."""
        row = self._rows[index]
        line = self._lines[row]
        if line.kinds is None:
            self._kinds += map(_kind_of, self._styles[len(self._kinds) :])
            kinds = self._kinds
            drawn = zip(redraw.graphemes_of(row), row.styles, strict=True)
            line.kinds = "".join(
                (PLAIN if text == " " and kinds[style] is OTHER else kinds[style]) * len(text) for text, style in drawn
            )
        return line.kinds

    def paint(self) -> bytes:
        """The bytes that draw the rows, on a terminal in the state of `redraw.RESET`."""
        out = [b"\x1b[H"]
        lines = [self._lines[row] for row in self._rows]
        wrapped = self._wraps(range(len(lines) - 1))
        for index, (row, line) in enumerate(zip(self._rows, lines, strict=True)):
            if index in wrapped:
                # Printed to its last column, it is wrapped by the next character: a wide one, which did not fit, or a
                # blank one, which is printed over.
                spacer = self._skips_last(index)
                out.append(redraw.render_row(row, self._pens, full=True, spacer=spacer))
                out.append(b"" if spacer else b" \r")
            else:
                if line.rendered is None:
                    line.rendered = redraw.render_row(row, self._pens, full=False)
                out += [line.rendered, b"\r\n"]
        return b"".join(out[:-1])

    def coloured(self) -> bytes:
        """The rows' texts with their colours, a line each, without the blank cells at its end and without anything else
        that a terminal obeys. Each begins and ends with the default pen."""
        rows = (redraw.render_row(row, self._pens, full=False).removesuffix(b"\x1b[K") for row in self._rows)
        return b"".join(row + b"\n" for row in rows)

    def rows(self, now: ScreenSnapshot) -> list[str]:
        """The rows of a page, each worked out once while it and the colours stay the same."""
        colors = (now.foreground, now.background, now.palette)
        out = []
        for row in self._rows:
            line = self._lines[row]
            if line.told != colors:
                line.told, line.row = colors, written(self._pieces(row), now)
            out.append(line.row)
        return out

    def _pieces(self, row: evp.Row) -> Iterator[CellRun]:
        graphemes, place, at = redraw.graphemes_of(row), 0, 0
        for style, run in groupby(row.styles):
            at += sum(1 for _ in run)
            end = at + (at < len(graphemes) and graphemes[at] == "")  # a wide character is drawn as its first column
            if end > place:
                yield CellRun(self._cell(" ", 1, style), tuple(graphemes[place:end]))
                place = end

    def crop(self, index: int, first: int, columns: int) -> bytes:
        """The bytes that draw `columns` columns of a row from `first` on, and erase the rest of the line where they are
        fewer. Of a wide character at an edge, where only half of it would be shown, a space is."""
        row, end = self._rows[index], first + columns
        part = _Cells(row.graphemes[first:end], row.widths[first:end], row.styles[first:end])
        drawn = redraw.render_row(part, self._pens, full=False)
        return drawn if drawn.endswith(b"\x1b[K") or len(row.graphemes) >= end else drawn + b"\x1b[K"

    def _skips_last(self, index: int) -> bool:
        """Whether a wide character found one column left in this row, and went to the next one.

        It leaves that column blank, in its own pen: a blank of another pen is a space that was printed.
        """
        row, below = self._rows[index], self._rows[index + 1]
        blank = self._lines[below].wide_first and not self._lines[row].full
        return blank and self._pens[row.styles[-1]] == self._pens[below.styles[0]]

    def last_cell(self, index: int) -> tuple[str, int, bytes]:
        """The cell at the end of a row: its text, the column it begins in, and the bytes that print it."""
        row = self._rows[index]
        graphemes = redraw.graphemes_of(row)
        column = len(graphemes) - (1 if graphemes[-1] else 2)
        text = graphemes[column]
        return text, column, self._pens[row.styles[column]] + text.encode("utf-8", "replace") + b"\x1b[m"

    def last_text(self) -> tuple[int, int]:
        """The index of the last row with text on it, and the columns it takes there; (-1, 0) for none."""
        for index in range(len(self._rows) - 1, -1, -1):
            if self._lines[self._rows[index]].stripped:
                graphemes = redraw.graphemes_of(self._rows[index])
                return index, max(column for column, text in enumerate(graphemes) if text != " ") + 1
        return -1, 0

    def _wraps(self, asked: Sequence[int]) -> set[int]:
        """Which of the rows the terminal holds to be wrapped into the next."""
        if not asked:
            return set()
        # A cursor in the last column may be waiting there to wrap, which a movement would end.
        if self._movable and self.cursor[1] < len(self._rows[0].graphemes) - 1:
            return self._probe(asked)
        return self._compare().intersection(asked)

    def _probe(self, asked: Sequence[int]) -> set[int]:
        """Ask the cursor: with reverse wrapping (45) it steps back from a row's start only over a wrapped end."""
        terminal = self._terminal
        before = [(mode, terminal.mode(mode)) for mode in _PROBE_MODES]
        for mode in _PROBE_MODES:
            terminal.set_mode(mode, mode in (7, 45))
        self._replies.clear()
        terminal.feed(
            b"".join(b"\x1b[%d;1H\b\x1b[6n" % (index + 2) for index in asked)
            + b"\x1b[%d;%dH" % (self.cursor[0] + 1, self.cursor[1] + 1)
        )
        for mode, value in before:
            terminal.set_mode(mode, value)
        places = zip(asked, self._replies.positions(), strict=False)
        return {index for index, (row, _) in places if row == index}

    def _compare(self) -> set[int]:
        """Ask the formatter, at the price of all the scrollback: join the rows, and read them from the end."""
        joined = format_screen(self._terminal).rstrip("\n")
        wrapped = set()
        place = len(joined)
        for index in range(self.last_text()[0], 0, -1):
            text = self._lines[self._rows[index]].stripped
            if not joined.endswith(text, 0, place):
                break  # the two do not speak of the same rows: nothing more is known
            place -= len(text)
            if place and joined[place - 1] == "\n":
                place -= 1
            elif place:
                if text:
                    wrapped.add(index - 1)
                place = len(joined[:place].rstrip(" "))
        return wrapped

    def _cell(self, text: str, width: int, index: int) -> Cell:
        known = self._cells.get((text, width, index))
        if known is None:
            if len(self._cells) >= MAX_CELLS:
                self._cells.clear()
            known = self._cells[text, width, index] = _make_cell(text, width, self._styles[index])
        return known


def _make_cell(text: str, width: int, style: evp.Style) -> Cell:
    return Cell(
        text=text,
        width=width,
        fg=style.foreground,
        bg=style.background,
        bold=style.bold,
        dim=style.faint,
        italic=style.italic,
        underline=style.underline,
        underline_color=style.underline_color,
        blink=style.blink,
        inverse=style.inverse,
        invisible=style.invisible,
        strikethrough=style.strikethrough,
        overline=style.overline,
    )


def _kind_of(style: evp.Style) -> str:
    drawn = style.faint or style.italic or style.underline or style.inverse or style.invisible or style.strikethrough
    if drawn or style.background is not None:
        return OTHER
    if style.bold:
        return BOLD
    return PLAIN if _is_ordinary(style.foreground) else OTHER


def _is_ordinary(color: Color) -> bool:
    """Whether text of this colour is ordinary: the default, nearly white or nearly black."""
    if isinstance(color, int):
        if color in (0, 7, 15, 16, 188, 231):
            return True
        return color >= _GRAYS and (color >= _GRAYS + 19 or color < _GRAYS + 5)
    return color is None or (max(color) - min(color) <= _HUE and (min(color) >= _LIGHT or max(color) <= _DARK))


def format_screen(terminal: evp.Terminal) -> str:
    """The active screen and its scrollback as plain text, rows joined where they were wrapped."""
    return evp.Formatter(terminal, format=evp.FormatterFormat.PLAIN, unwrap=True, trim=True).format()


def _derive(row: evp.Row) -> _Line:
    graphemes = redraw.graphemes_of(row)
    text = "".join(graphemes)
    wide_first = row.widths[0] == 2 and graphemes[0] != " "
    return _Line(text, text.rstrip(" "), full=graphemes[-1] != " ", wide_first=wide_first)
