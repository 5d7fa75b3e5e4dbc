"""The visible rows of a terminal of libghostty-vt: the text of all, as the library writes it, and the cells of one row
on request.

Cells are read as 64 bits each. The library marks every row as changed when one is scrolled, so the results for a row
are found again by these bits: the facts in the bits alone are computed once (`_Layout`), and the styles, which each
page numbers in its own way, are read once a look and page.
"""

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from synapsed.model.outer_terminal import Rgb
from synapsed.terminal.ghostty import (
    CELL_BYTES,
    CELLS_DATA,
    COLOR,
    CONTENT_AT,
    DIRTY,
    FORMAT,
    HEAD,
    JOINED,
    OUT_OF_SPACE,
    PALETTE,
    ROW_DATA,
    STATE_DATA,
    STYLE_AT,
    TAIL,
    WIDTH_AT,
    WRAPPED,
    check,
    ffi,
    lib,
    sized,
)
from synapsed.terminal.redraw import graphemes_of
from synapsed.terminal.snapshot import Cell, Color

codecs.lookup("utf-32-le")  # now: a process that has given up its rights cannot load it

_COLUMNS = bytes([1, 2, 0, 1]) + bytes(252)
"""The columns that a cell of each width takes."""

_LAYOUTS, _VARIANTS, _TOLD = 32, 8, 4096
"""Rows that are remembered beyond twice the visible ones; variants of each row; remembered styles of the library."""

_GRAPHEME_BYTES = 1024
"""Bytes of a cell's text that are read at once; a longer text needs a second read."""


@dataclass(slots=True, eq=False)
class ScreenRow:
    """The cells of one visible row: the text of each column, its number of columns and the index of its style.
    `wrapped`: it goes on in the next one. `head`: its last column is blank, because a wide character did not fit."""

    cells: bytes
    graphemes: Sequence[str]
    widths: bytes
    styles: Sequence[int]
    wrapped: bool
    head: bool
    derived: Any = None
    """Results that readers of the rows have made of this one."""


class _Layout:
    """The layout of a row, from its cells; the same cells may have other styles, or hold other clusters.

    `numbers` has the style of each column, as the row's page numbers them (empty if all are the default one), and
    `named` the different ones among them; `painted` columns have only that background; `joined` columns have more than
    one code point. `known` are the rows that were made of the layout.
    """

    __slots__ = ("cells", "graphemes", "head", "joined", "known", "named", "numbers", "painted", "widths")

    def __init__(self, cells: bytes) -> None:
        self.cells = cells
        length = len(cells)
        number = int.from_bytes(cells, "little")  # one operation for all cells
        codes, tags, styles, widths = _masks(length)
        # Each cell becomes two characters, of which the second is nothing.
        text = (number >> CONTENT_AT & codes).to_bytes(length, "little").decode("utf-32-le", "replace")[::2]
        self.graphemes: Sequence[str] = text.replace("\0", " ")
        self.numbers = _parts(number, STYLE_AT, length, "H") if number & styles else ()
        self.named = (*{*self.numbers},)
        self.painted: dict[int, Color] = {}
        self.joined: list[int] = []
        if number & tags:
            self._look_closer(number, _parts(number & tags, 0, length, "B"))
        self.widths, self.head = b"\1" * (length // CELL_BYTES), False
        if number & widths:
            kinds = bytes(_parts(number & widths, WIDTH_AT, length, "B"))
            self.graphemes = ["" if kind == TAIL else text for kind, text in zip(kinds, self.graphemes, strict=True)]
            self.widths, self.head = kinds.translate(_COLUMNS), kinds[-1] == HEAD
        self.known: dict[tuple[bool, tuple[int, ...], tuple[str, ...]], ScreenRow] = {}

    def _look_closer(self, number: int, tags: Sequence[int]) -> None:
        graphemes = [*self.graphemes]
        for column, tag in enumerate(tags):
            if tag == JOINED:
                self.joined.append(column)
            elif tag:
                content = number >> 64 * column + CONTENT_AT
                red, green, blue = content & 0xFF, content >> 8 & 0xFF, content >> 16 & 0xFF
                self.painted[column] = red if tag == PALETTE else (red, green, blue)
                graphemes[column] = " "
        self.graphemes = graphemes

    def row(
        self, styles: Sequence[int], painted: Sequence[int], clusters: Sequence[str], *, wrapped: bool
    ) -> ScreenRow:
        """Makes the row. `styles` are the indexes of the `named` styles, `painted` are those of the `painted` columns,
        and `clusters` are the texts of the `joined` columns."""
        graphemes = self.graphemes
        if self.joined:
            graphemes = [*graphemes]
            for column, cluster in zip(self.joined, clusters, strict=True):
                graphemes[column] = cluster
        columns = [0] * len(self.widths)
        if self.numbers:
            columns = [*map(dict(zip(self.named, styles, strict=True)).__getitem__, self.numbers)]
        for column, style in zip(self.painted, painted, strict=True):
            columns[column] = style
        return ScreenRow(self.cells, graphemes, self.widths, columns, wrapped, self.head)


@lru_cache(8)
def _masks(length: int) -> tuple[int, int, int, int]:
    """Returns the masks of code points (after a shift), tags, styles and widths, for a row's cells as one number."""
    parts = (0x1FFFFF, 3, 0xFFFF << STYLE_AT, 3 << WIDTH_AT)
    codes, tags, styles, widths = (
        int.from_bytes(part.to_bytes(CELL_BYTES, "little") * (length // CELL_BYTES), "little") for part in parts
    )
    return codes, tags, styles, widths


def _parts(number: int, at: int, length: int, form: Literal["B", "H"]) -> list[int]:
    """Returns the part of each cell, of the size of `form`, that begins at bit `at`."""
    view = memoryview((number >> at).to_bytes(length, "little")).cast(form)
    parts: list[int] = view[:: CELL_BYTES // view.itemsize].tolist()
    return parts


_row_get_multi, _NULL = lib.ghostty_render_state_row_get_multi, ffi.NULL


class RowReader:
    """Reads the visible rows of a terminal, and keeps them until they change."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal
        self._rows_out = ffi.new("GhosttyRenderStateRowIterator*")
        check(lib.ghostty_render_state_row_iterator_new(ffi.NULL, self._rows_out), "row_iterator_new")
        self._iterator = ffi.gc(self._rows_out[0], lib.ghostty_render_state_row_iterator_free)
        self._cells_out = ffi.new("GhosttyRenderStateRowCells*")
        check(lib.ghostty_render_state_row_cells_new(ffi.NULL, self._cells_out), "row_cells_new")
        self._cells = ffi.gc(self._cells_out[0], lib.ghostty_render_state_row_cells_free)
        self._dirty, self._y = ffi.new("int*"), ffi.new("uint16_t*")
        self._view, self._raw = ffi.new("GhosttyCellsView*"), ffi.new("uint64_t*")
        self._id = ffi.new("GhosttyRenderStateRowId*")
        self._page = ffi.buffer(self._id, ffi.sizeof("uint64_t"))  # the name of a row begins with that of its page
        self._row_keys = ffi.new("int[]", [ROW_DATA["CELLS_RAW"], ROW_DATA["RAW"], ROW_DATA["ID"]])
        self._row_values = ffi.new("void*[]", [self._view, self._raw, self._id])
        self._style = sized("GhosttyStyle")
        self._style_bytes = ffi.buffer(self._style)
        self._buffer, self._bytes = ffi.new("GhosttyBuffer*"), ffi.new("uint8_t[]", _GRAPHEME_BYTES)
        self._colors, self._cursor = sized("GhosttyRenderStateColors"), sized("GhosttyRenderStateCursor")
        self._color_bytes = ffi.buffer(self._colors)
        self._colors_told: tuple[bytes, tuple[Rgb, Rgb, bytes]] = (b"", ((0, 0, 0), (0, 0, 0), b""))
        self._text = sized("GhosttyTerminalSelectionFormatOptions")
        self._selection = self._text.selection = sized("GhosttySelection")
        self._point, self._ends = ffi.new("Point*"), [ffi.addressof(self._selection[0], at) for at in ("start", "end")]
        self._written, self._length = ffi.new("uint8_t**"), ffi.new("size_t*")
        self._texts: list[str] = []
        self._drawn: list[str | None] = []
        self._cols, self._by_cells = 0, False
        self._rows: list[ScreenRow | None] = []
        self.styles = [Cell(" ")]
        """The styles that rows name by their index, each as a blank cell."""
        self._indexes = {self.styles[0]: 0}
        self._told: dict[bytes, int] = {}
        """Indexes of styles, by the bytes of the library's own form of them."""
        self._named: dict[bytes, dict[int, int]] = {}
        """Indexes of styles, by page and number: these are valid until the next `read`."""
        self._layouts: dict[bytes, _Layout] = {}
        self._at, self._entered = -1, False
        """The row that the iterator stands at, and True if its cells were read."""
        self.begin()

    def begin(self) -> None:
        """Makes the next read read all rows, as if for the first time."""
        made = ffi.new("GhosttyRenderState*")
        check(lib.ghostty_render_state_new(ffi.NULL, made), "render_state_new")
        self._state = ffi.gc(made[0], lib.ghostty_render_state_free)
        self._texts = []

    def read(self, cols: int, rows: int, *, by_cells: bool) -> list[str]:
        """Returns the text of each row, without the blank cells at its end, or with some of them. `by_cells`: there may
        be halves of wide characters, or wide blanks, which the library writes as they are."""
        check(lib.ghostty_render_state_update(self._state, self._terminal), "render_state_update")
        self._cols, self._by_cells = cols, by_cells
        self._rewind()
        self._get("DIRTY", self._dirty)
        whole = self._dirty[0] == DIRTY["FULL"] or len(self._texts) != rows
        if not whole and self._dirty[0] == DIRTY["FALSE"]:
            return self._texts
        self._named.clear()
        changed: Sequence[int] = range(rows)
        if whole:
            self._texts, self._rows, self._drawn = [""] * rows, [None] * rows, [None] * rows
        else:
            changed = [*self._changed()]
        if by_cells:
            for y in changed:
                self._rows[y] = self._drawn[y] = None
                self._texts[y] = "".join(graphemes_of(self.row(y)))
        elif changed:
            texts = self._write("PLAIN", changed[0], changed[-1]).split("\n")
            texts += [""] * (changed[-1] - changed[0] + 1 - len(texts))  # blank rows at the end are left out
            for y in changed:
                self._rows[y] = self._drawn[y] = None
                self._texts[y] = texts[y - changed[0]]
        check(lib.ghostty_render_state_clean(self._state), "render_state_clean")
        return self._texts

    def drawn(self, y: int) -> str | None:
        """Returns the text of a row, as of the last `read`, with the sequences that set its pens: each pen is complete,
        and the last one ends with the row. None if the text has to be made of the cells."""
        if self._by_cells:
            return None
        if self._drawn[y] is None:
            unknown = [row for row, drawn in enumerate(self._drawn) if drawn is None]
            # The library writes the palette before the rows, and after them the pen and the link of the next text.
            written = self._write("VT", unknown[0], unknown[-1]).partition("\x1b]4;255;")[2].partition("\x1b\\")[2]
            drawn = written.partition("\x1b]8;")[0].split("\r\n")
            for row in unknown:
                self._drawn[row] = drawn[row - unknown[0]] if row - unknown[0] < len(drawn) else ""
        return self._drawn[y]

    def row(self, y: int) -> ScreenRow:
        """Returns the cells of a row, as of the last `read`. A row like an earlier one is the same object."""
        row = self._rows[y]
        if row is None:
            self._stand_at(y)
            row = self._rows[y] = self._row()
            if len(self._layouts) > 2 * len(self._rows) + _LAYOUTS:
                shown = [row.cells for row in self._rows if row is not None]
                self._layouts = {cells: self._layouts[cells] for cells in shown if cells in self._layouts}
        return row

    def wrapped(self, y: int) -> bool:
        """Returns True if a row goes on in the next one."""
        self._stand_at(y)
        check(lib.ghostty_render_state_row_get(self._iterator, ROW_DATA["RAW"], self._raw), "row")
        return bool(self._raw[0] & WRAPPED)

    def _changed(self) -> Iterator[int]:
        while lib.ghostty_render_state_row_iterator_next_dirty(self._iterator, self._y):
            yield self._y[0]
        self._rewind()

    def _write(self, form: str, first: int, last: int) -> str:
        """Returns rows `first` to `last`, as the library writes them."""
        self._text.emit = FORMAT[form]
        for end, place in zip(self._ends, ((0, first), (self._cols - 1, last)), strict=True):
            self._point.value.x, self._point.value.y = place
            check(lib.ghostty_terminal_grid_ref(self._terminal, self._point[0], end), "grid_ref")
        written, length = self._written, self._length
        formatted = lib.ghostty_terminal_selection_format_alloc(
            self._terminal, ffi.NULL, self._text[0], written, length
        )
        check(formatted, "format")
        text: bytes = ffi.buffer(written[0], length[0])[:] if length[0] else b""
        lib.ghostty_free(ffi.NULL, written[0], length[0])
        return text.decode("utf-8", "replace")

    def _rewind(self) -> None:
        self._rows_out[0] = self._iterator
        self._get("ROW_ITERATOR", self._rows_out)
        self._at = -1

    def _stand_at(self, y: int) -> None:
        if self._at > y:
            self._rewind()
        self._entered &= self._at == y
        while self._at < y:
            lib.ghostty_render_state_row_iterator_next(self._iterator)
            self._at += 1

    def shape(self) -> tuple[int, bool]:
        """Returns the cursor's shape, and True if it blinks."""
        self._get("CURSOR", self._cursor)
        return self._cursor.visual_style, self._cursor.blinking

    def colors(self) -> tuple[Rgb, Rgb, bytes]:
        """Returns foreground, background and palette."""
        self._get("COLORS", self._colors)
        told = self._color_bytes[:]
        if told != self._colors_told[0]:
            self._colors_told = (
                told,
                (_rgb(self._colors.foreground), _rgb(self._colors.background), ffi.buffer(self._colors.palette)[:]),
            )
        return self._colors_told[1]

    def _get(self, what: str, out: Any) -> None:
        check(lib.ghostty_render_state_get(self._state, STATE_DATA[what], out), what)

    def _row(self) -> ScreenRow:
        """Returns the row that the iterator stands at."""
        check(_row_get_multi(self._iterator, 3, self._row_keys, self._row_values, _NULL), "row")
        cells = ffi.buffer(self._view.ptr, self._view.len * CELL_BYTES)[:]
        layout = self._layouts.get(cells)
        if layout is None:
            layout = self._layouts[cells] = _Layout(cells)
        key = bool(self._raw[0] & WRAPPED), self._styles(layout), (*map(self._cluster, layout.joined),)
        row = layout.known.get(key)
        if row is None:
            if len(layout.known) >= _VARIANTS:
                layout.known.clear()
            wrapped, styles, clusters = key
            painted = [self._index(Cell(" ", bg=color)) for color in layout.painted.values()]
            row = layout.known[key] = layout.row(styles, painted, clusters, wrapped=wrapped)
        return row

    def _styles(self, layout: _Layout) -> tuple[int, ...]:
        """Returns the indexes of the styles of the row that the iterator stands at."""
        if not layout.named:
            return ()
        page = self._page[:]
        named = self._named.get(page)
        if named is None:
            named = self._named[page] = {0: 0}
        try:
            return (*map(named.__getitem__, layout.named),)
        except KeyError:
            return (*(self._index_of(named, number, layout) for number in layout.named),)

    def _index_of(self, named: dict[int, int], number: int, layout: _Layout) -> int:
        """Returns the index of a style of the row that the iterator stands at."""
        index = named.get(number)
        if index is None:
            self._enter(layout.numbers.index(number))
            check(lib.ghostty_render_state_row_cells_get(self._cells, CELLS_DATA["STYLE"], self._style), "style")
            told = self._style_bytes[:]
            index = self._told.get(told)
            if index is None:
                if len(self._told) >= _TOLD:
                    self._told.clear()
                index = self._told[told] = self._index(_cell_of(self._style))
            named[number] = index
        return index

    def _index(self, style: Cell) -> int:
        index = self._indexes.setdefault(style, len(self.styles))
        if index == len(self.styles):
            self.styles.append(style)
        return index

    def _cluster(self, column: int) -> str:
        """Returns the text in a column, with more than one code point, of the row that the iterator stands at."""
        self._enter(column)
        buffer = self._buffer
        buffer.ptr, buffer.cap, buffer.len = self._bytes, len(self._bytes), 0
        result = lib.ghostty_render_state_row_cells_get(self._cells, CELLS_DATA["GRAPHEMES_UTF8"], buffer)
        if result == OUT_OF_SPACE:
            self._bytes = ffi.new("uint8_t[]", buffer.len)
            return self._cluster(column)
        check(result, "graphemes")
        cluster: bytes = ffi.buffer(buffer.ptr, buffer.len)[:]
        return cluster.decode("utf-8", "replace")

    def _enter(self, column: int) -> None:
        if not self._entered:
            self._cells_out[0] = self._cells
            check(lib.ghostty_render_state_row_get(self._iterator, ROW_DATA["CELLS"], self._cells_out), "cells")
            self._entered = True
        check(lib.ghostty_render_state_row_cells_select(self._cells, column), "select")


def _cell_of(style: Any) -> Cell:
    return Cell(
        text=" ",
        fg=_color(style.fg_color),
        bg=_color(style.bg_color),
        bold=style.bold,
        dim=style.faint,
        italic=style.italic,
        underline=style.underline,
        underline_color=_color(style.underline_color),
        blink=style.blink,
        inverse=style.inverse,
        invisible=style.invisible,
        strikethrough=style.strikethrough,
        overline=style.overline,
    )


def _color(color: Any) -> Color:
    if color.tag == COLOR["PALETTE"]:
        return int(color.value.palette)
    return _rgb(color.value.rgb) if color.tag == COLOR["RGB"] else None


def _rgb(color: Any) -> Rgb:
    return color.r, color.g, color.b
