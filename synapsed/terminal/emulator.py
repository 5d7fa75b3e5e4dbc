"""The emulator behind `Screen`: libghostty-vt, by its C API, as the package `pyghostty` ships it.

Of that package only the shared library is used: importing it parses its declarations for half a second. Ours are in
`ghostty_abi`, compiled (`scripts.ghostty_abi`). A wrong type in a call ends the process, so a library that lays
anything out otherwise than it is declared is refused when this is imported.

- History is bounded by bytes: bounded by lines the library corrupts its memory.
- Answers to queries go nowhere: the daemon answers them itself (`queries`).
- 132-column mode (DECCOLM) would resize the emulator behind its owner's back: it is never allowed (40 is not passed
  on), and where it was set in another way the size is what it was when the piece is over.
"""

import codecs
import importlib.util
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from synapsed.model.outer_terminal import Rgb
from synapsed.terminal.ghostty_abi import ffi
from synapsed.terminal.redraw import Extras
from synapsed.terminal.snapshot import ANSI, DEC, Cell, Color, Modes

LIBRARIES = ("libghostty-vt.so", "libghostty-vt.dylib")
VERSION = "0.1.0-dev"

codecs.lookup("utf-32-le")  # now: a process that has given up its rights cannot load it


class EmulatorError(RuntimeError):
    """A call of the library failed: nothing but a lack of memory is known to do that."""


def _library() -> Any:
    spec = importlib.util.find_spec("pyghostty")
    if spec is None or spec.origin is None:
        raise ImportError("pyghostty is not installed")
    folder = Path(spec.origin).parent / "_lib"
    found = next((folder / name for name in LIBRARIES if (folder / name).exists()), None)
    if found is None:
        raise ImportError(f"there is no libghostty-vt in {folder}")
    return ffi.dlopen(str(found))


_lib = _library()


def _types() -> dict[str, Any]:
    """Returns what the library says of its types, which are checked to be as they are declared."""
    told = json.loads(ffi.string(_lib.ghostty_type_json()))
    if told["library_version"] != VERSION:
        raise ImportError(f"libghostty-vt is {told['library_version']}, not {VERSION}")
    types: dict[str, Any] = told["types"]
    for name in (name for name in ffi.list_types()[0] if name in types and types[name]["kind"] != "opaque"):
        kind, said = ffi.typeof(name), types[name]
        fields = {field: (at.offset, ffi.sizeof(at.type)) for field, at in getattr(kind, "fields", None) or ()}
        expected = {field: (at.get("offset", 0), at["size"]) for field, at in said.get("fields", {}).items()}
        if ffi.sizeof(kind) != said["size"] or fields != expected:
            raise ImportError(f"{name} of libghostty-vt is laid out otherwise")
    if ffi.sizeof("Point") != types["GhosttyPoint"]["size"]:
        raise ImportError("GhosttyPoint of libghostty-vt is laid out otherwise")
    return types


_TYPES = _types()


def _values(name: str) -> dict[str, int]:
    values: dict[str, int] = _TYPES[name]["values"]
    return values


_DATA, _OPTION = _values("GhosttyTerminalData"), _values("GhosttyTerminalOption")
_STATE, _ROW = _values("GhosttyRenderStateData"), _values("GhosttyRenderStateRowData")
_CELLS = _values("GhosttyRenderStateRowCellsData")
_DIRTY = _values("GhosttyRenderStateDirty")
_FORMAT = _values("GhosttyFormatterFormat")
_CURSOR = _values("GhosttyRenderStateCursorVisualStyle")
_COLOR = _values("GhosttyStyleColorTag")
_OUT_OF_SPACE = _values("GhosttyResult")["OUT_OF_SPACE"]

# A cell is 64 bits, as `_check_cells` holds it to: 2 of what it holds, 24 of a code point or a colour, 16 of its style,
# 2 of its width.
_CONTENT_AT, _STYLE_AT, _WIDTH_AT = 2, 26, 42
_CODE_POINT, _JOINED, _PALETTE, _RGB = range(4)
_NARROW, _WIDE, _TAIL, _HEAD = range(4)
_COLUMNS = bytes([1, 2, 0, 1]) + bytes(252)
"""The columns that a cell of each width takes."""
_CELL_BYTES = 8

_LAYOUTS, _VARIANTS, _TOLD = 32, 8, 4096
"""Rows remembered beside those that are shown, and beside as many again; how many of each; styles of the library."""

_SCROLLBACK_BYTES_PER_CELL = 12
"""What is kept is less than what is asked for, by as much as pages are not full."""

_CELL_PIXELS = (8, 16)
_GRAPHEME_BYTES = 1024
"""Of what stands in a cell; more is asked for once more."""

_SHAPES = {"BLOCK": (1, 2), "UNDERLINE": (3, 4), "BAR": (5, 6)}
_SHAPE_NUMBERS = {_CURSOR[name]: numbers for name, numbers in _SHAPES.items()}
"""DECSCUSR's numbers of each shape that a program can set, blinking and not."""

_SETS = re.compile(rb"\x1b\[\?(?=[\d;]*?(?:1049|40))(?P<modes>[\d;]+)h")
_ANSI = 1 << 15
_MODES = [*DEC, *(number + _ANSI for number in ANSI)]


def _check(result: int, what: str) -> None:
    if result:
        raise EmulatorError(f"{what}: {result}")


def _sized(kind: str) -> Any:
    made = ffi.new(f"{kind}*")
    _set_sizes(made)
    return made


def _set_sizes(made: Any) -> None:
    """The library is told the size of each struct that may grow, in the struct."""
    kind = ffi.typeof(made).item
    for name, field in kind.fields:
        if name == "size":
            made.size = ffi.sizeof(kind)
        elif field.type.kind == "struct":
            _set_sizes(ffi.addressof(made[0], name))


_WRITTEN = re.compile(
    rb"(?P<tabs>\x1b\[3g(?P<stops>(?:\x1b\[\d+G\x1bH)*))\x1b\[H"
    rb".*?(?P<region>\x1b\[\d+;\d+r)?(?P<margins>\x1b\[\d+;\d+s)?(?P<modify>\x1b\[>4;\d+m)?\x1b\[\d+;\d+H"
    rb"(?:(?:\x1b\[[\d;:]*m)*[^\x1b\x0e\x0f]+)?(?P<pen>(?:\x1b\[[\d;:]*m)*)(?P<protection>\x1b\[1\"q)?(?P<flags>\x1b\[=\d+;\d+u)?"
    rb"(?P<charsets>(?:\x1b[()*+].|[\x0e\x0f]|\x1b[no|}~])*)",
    re.DOTALL,
)
_CHARSETS = re.compile(rb"\x1b[()*+].|[\x0e\x0f]|\x1b[no|}~]")
_DEFAULT_CHARSETS = frozenset({b"\x1b(B", b"\x1b)B", b"\x1b*B", b"\x1b+B", b"\x0f"})
_PLAIN = b"\x1b[0m"
_TAB_WIDTH = 8


def _read_state(written: bytes, cols: int) -> Extras:
    """Takes apart what the formatter wrote around a cell. If the cursor waits to wrap, the character before it follows
    its position."""
    state = _WRITTEN.fullmatch(written)
    if state is None:
        return Extras()
    default_tabs = b"".join(b"\x1b[%dG\x1bH" % (column + 1) for column in range(_TAB_WIDTH, cols - 1, _TAB_WIDTH))
    return Extras(
        pen=state["pen"][state["pen"].rfind(_PLAIN) :].removeprefix(_PLAIN),
        protection=state["protection"] or b"",
        charsets=b"".join(part for part in _CHARSETS.findall(state["charsets"]) if part not in _DEFAULT_CHARSETS),
        keyboard=(state["flags"] or b"") + (state["modify"] or b""),
        tabs=state["tabs"] if state["stops"] != default_tabs else b"",
        region=_bounds(state["region"]),
        margins=_bounds(state["margins"]),
    )


def _bounds(sequence: bytes | None) -> tuple[int, int] | None:
    if sequence is None:
        return None
    first, _, last = sequence[2:-1].partition(b";")
    return int(first) - 1, int(last) - 1


class Row:
    """One visible row: what stands in each column, the columns that it takes and the index of its style.

    `wrapped`: it goes on in the next one. `head`: its last column is blank, because a wide character did not fit.
    """

    __slots__ = ("_made_of", "_styles", "cells", "derived", "graphemes", "head", "widths", "wrapped")

    def __init__(self, layout: "_Layout", styles: Sequence[int], painted: Sequence[int], *, wrapped: bool) -> None:
        """`styles` are the indexes of the layout's `named` styles, `painted` those of its painted columns."""
        self.cells = layout.cells
        self.graphemes = layout.graphemes
        self.widths = layout.widths
        self.head = layout.head
        self.wrapped = wrapped
        self.derived: Any = None
        """What whoever reads the rows has made of this one."""
        self._styles: Sequence[int] = ()
        self._made_of = layout, styles, painted

    @property
    def styles(self) -> Sequence[int]:
        if not self._styles:  # they are not looked at as often as the text
            layout, styles, painted = self._made_of
            columns = [0] * len(self.widths)
            if layout.named:
                indexes = dict(zip(layout.named, styles, strict=True))
                columns = [*map(indexes.__getitem__, layout.numbers())]
            for column, style in zip(layout.painted, painted, strict=True):
                columns[column] = style
            self._styles = columns
        return self._styles


class Emulator:
    """One terminal: bytes in, whole sequences and valid UTF-8 only; its rows, cursor and modes out.

    `read` reads the rows; what is said of rows is of those that were read last.
    """

    def __init__(self, cols: int, rows: int, *, scrollback_lines: int) -> None:
        self._cols, self._rows = cols, rows
        made = ffi.new("GhosttyTerminal*")
        _check(_lib.ghostty_terminal_new(ffi.NULL, made, cols, rows), "terminal_new")
        self._terminal = ffi.gc(made[0], _lib.ghostty_terminal_free)
        self._number, self._flag = ffi.new("uint16_t*"), ffi.new("bool*")
        self._mode = ffi.new("GhosttyTerminalModeConfig*")
        self._modes = ffi.new("GhosttyTerminalModeConfig[]", [{"mode": number} for number in _MODES])
        self._mode_flags, self._modes_told = ffi.buffer(self._modes), (b"", Modes())
        self._mode_keys = ffi.new("int[]", [_DATA["MODE"]] * len(_MODES))
        self._mode_values = ffi.new("void*[]", [ffi.addressof(self._modes, index) for index in range(len(_MODES))])
        self._set("SCROLLBACK_MAX_BYTES", ffi.new("size_t*", scrollback_lines * cols * _SCROLLBACK_BYTES_PER_CELL))
        self._set("KITTY_IMAGE_STORAGE_LIMIT", ffi.new("uint64_t*", 0))
        # Programs cannot ask for this one: so that it is told whether they have asked for another.
        self._set("DEFAULT_CURSOR_STYLE", ffi.new("int*", _CURSOR["BLOCK_HOLLOW"]))
        self._main_cursor = (0, 0)
        self._reader = _Reader(self._terminal)
        self.colors: tuple[Rgb, Rgb, bytes] = ((0, 0, 0), (0, 0, 0), b"")
        """Foreground, background and palette, as of the last `read`."""

    def feed(self, data: bytes) -> None:
        done = 0
        for found in _SETS.finditer(data):
            self._write(data[done : found.start()])
            done = found.end()
            modes = [mode.lstrip(b"0") for mode in found["modes"].split(b";")]
            if b"1049" in modes and not self.alternate:
                self._main_cursor = self.cursor()
            if allowed := b";".join(mode for mode in modes if mode != b"40"):
                self._write(b"\x1b[?%bh" % allowed)
        self._write(data[done:] if done else data)
        if (self._get("COLS"), self._get("ROWS")) != (self._cols, self._rows):
            self._set_mode(40, value=False)
            self._set_mode(3, value=False)
            self._resize()

    def resize(self, cols: int, rows: int) -> None:
        self._cols, self._rows = cols, rows
        self._resize()
        self._main_cursor = (min(self._main_cursor[0], rows - 1), min(self._main_cursor[1], cols - 1))

    def set_default_colors(self, foreground: Rgb, background: Rgb) -> None:
        self._set("COLOR_FOREGROUND", ffi.new("GhosttyColorRgb*", foreground))
        self._set("COLOR_BACKGROUND", ffi.new("GhosttyColorRgb*", background))

    def mode(self, number: int) -> bool:
        self._mode.mode = number
        self._get_into("MODE", self._mode)
        return bool(self._mode.value)

    def modes(self) -> Modes:
        keys, values = self._mode_keys, self._mode_values
        _check(_lib.ghostty_terminal_get_multi(self._terminal, len(_MODES), keys, values, ffi.NULL), "modes")
        flags = self._mode_flags[:]
        if flags != self._modes_told[0]:
            on = [number for number, mode in zip(_MODES, self._modes, strict=True) if mode.value]
            dec = frozenset(number for number in on if number < _ANSI)
            self._modes_told = flags, Modes(dec, frozenset(number - _ANSI for number in on if number >= _ANSI))
        return self._modes_told[1]

    @property
    def alternate(self) -> bool:
        """The alternate screen is shown."""
        out = ffi.new("int*")
        self._get_into("ACTIVE_SCREEN", out)
        return bool(out[0])

    def cursor(self) -> tuple[int, int]:
        """Returns (row, column)."""
        return self._get("CURSOR_Y"), self._get("CURSOR_X")

    def waits_to_wrap(self) -> bool:
        """Returns whether the next character wraps first."""
        self._get_into("CURSOR_PENDING_WRAP", self._flag)
        return bool(self._flag[0])

    def shape(self) -> bytes:
        """Returns the number that sets the cursor's shape (DECSCUSR), as of the last `read`; empty for the usual
        one."""
        shape, blinks = self._reader.shape()
        numbers = _SHAPE_NUMBERS.get(shape)
        return b"%d" % numbers[not blinks] if numbers else b""

    def keyboard_flags(self) -> int:
        out = ffi.new("uint8_t*")
        self._get_into("KITTY_KEYBOARD_FLAGS", out)
        return int(out[0])

    def title(self) -> str:
        out = ffi.new("GhosttyString*")
        self._get_into("TITLE", out)
        return ffi.buffer(out.ptr, out.len)[:].decode("utf-8", "replace") if out.len else ""

    @property
    def styles(self) -> list[Cell]:
        """The styles that rows name by their index, each as a blank cell."""
        return self._reader.styles

    def read(self) -> tuple[Row, ...]:
        """Returns the visible rows. A row that shows what it showed is the same object, also after it moved."""
        rows = self._reader.read(self._rows)
        self.colors = self._reader.colors()
        return rows

    def forget_styles(self) -> None:
        """Begins `styles` anew; the next rows are no longer those of before."""
        self._reader = _Reader(self._terminal)

    def text(self) -> str:
        """Returns the active screen and its scrollback as plain text, rows joined where they were wrapped."""
        return self._format("PLAIN", trim=True).decode("utf-8", "replace")

    def content(self) -> bytes:
        """Returns the same with the sequences that draw it."""
        return self._format("VT", trim=False)

    def extras(self) -> Extras:
        """Returns the state around the rows: written around a single cell, so that it costs nothing."""
        selection = _sized("GhosttySelection")
        point = ffi.new("Point*")
        _check(_lib.ghostty_terminal_grid_ref(self._terminal, point[0], ffi.addressof(selection[0], "start")), "ref")
        _check(_lib.ghostty_terminal_grid_ref(self._terminal, point[0], ffi.addressof(selection[0], "end")), "ref")
        return _read_state(self._format("VT", trim=False, only=selection), self._cols)

    @contextmanager
    def main_screen(self) -> Iterator[tuple[int, int]]:
        """Shows the main screen under the alternate one meanwhile; gives where its cursor stands. Mode 47 changes
        between the two and touches nothing else."""
        was_set = self.mode(47)
        self._write(b"\x1b[?47l")
        try:
            yield self._main_cursor
        finally:
            self._write(b"\x1b[?47h")
            self._set_mode(47, value=was_set)

    def _write(self, data: bytes) -> None:
        _lib.ghostty_terminal_vt_write(self._terminal, data, len(data))

    def _resize(self) -> None:
        _check(_lib.ghostty_terminal_resize(self._terminal, self._cols, self._rows, *_CELL_PIXELS), "resize")

    def _set(self, option: str, value: Any) -> None:
        _check(_lib.ghostty_terminal_set(self._terminal, _OPTION[option], value), option)

    def _set_mode(self, number: int, *, value: bool) -> None:
        self._mode.mode, self._mode.value = number, value
        self._set("MODE", self._mode)

    def _get_into(self, what: str, out: Any) -> None:
        _check(_lib.ghostty_terminal_get(self._terminal, _DATA[what], out), what)

    def _get(self, what: str) -> int:
        self._get_into(what, self._number)
        return int(self._number[0])

    def _format(self, form: str, *, trim: bool, unwrap: bool = True, only: Any = None) -> bytes:
        options = _sized("GhosttyFormatterTerminalOptions")
        options.emit, options.unwrap, options.trim = _FORMAT[form], unwrap, trim
        if only is not None:
            options.selection = only
            extra, screen = options.extra, options.extra.screen
            extra.scrolling_region = extra.tabstops = extra.keyboard = True
            screen.cursor = screen.style = screen.protection = screen.kitty_keyboard = screen.charsets = True
        formatter = ffi.new("GhosttyFormatter*")
        _check(_lib.ghostty_formatter_terminal_new(ffi.NULL, formatter, self._terminal, options[0]), "formatter")
        try:
            out, length = ffi.new("uint8_t**"), ffi.new("size_t*")
            _check(_lib.ghostty_formatter_format_alloc(formatter[0], ffi.NULL, out, length), "format")
            written = ffi.buffer(out[0], length[0])[:] if length[0] else b""
            _lib.ghostty_free(ffi.NULL, out[0], length[0])
            return written
        finally:
            _lib.ghostty_formatter_free(formatter[0])


class _Layout:
    """What the cells of a row tell by themselves; the same cells may be of other styles, or hold other clusters.

    `named` are the styles that are met, as the row's page has them; `painted` columns have nothing but that background;
    in `joined` columns there is more than a code point. `known` are the rows that were made of it; `plain` is the row,
    and the same one wrapped, where it can be no other.
    """

    __slots__ = ("cells", "graphemes", "head", "joined", "known", "named", "painted", "plain", "widths")

    def __init__(self, cells: bytes) -> None:
        self.cells = cells
        length = len(cells)
        number = int.from_bytes(cells, "little")  # one operation for all cells
        codes, tags, styles, widths = _masks(length)
        # Of each cell two characters, of which the second is nothing.
        text = (number >> _CONTENT_AT & codes).to_bytes(length, "little").decode("utf-32-le", "replace")[::2]
        self.graphemes: Sequence[str] = text.replace("\0", " ")
        self.named = (*{*self.numbers()},) if number & styles else ()
        self.painted: dict[int, Color] = {}
        self.joined: list[int] = []
        if number & tags:
            self._look_closer(number, _parts(number & tags, 0, length, "B"))
        self.widths, self.head = b"\1" * (length // _CELL_BYTES), False
        if number & widths:
            kinds = bytes(_parts(number & widths, _WIDTH_AT, length, "B"))
            self.graphemes = ["" if kind == _TAIL else text for kind, text in zip(kinds, self.graphemes, strict=True)]
            self.widths, self.head = kinds.translate(_COLUMNS), kinds[-1] == _HEAD
        self.known: dict[tuple[bool, tuple[int, ...], tuple[str, ...]], Row] = {}

        self.plain: tuple[Row, ...] = ()
        if not (self.named or self.painted or self.joined):
            self.plain = self.row((), (), (), wrapped=False), self.row((), (), (), wrapped=True)

    def _look_closer(self, number: int, tags: Sequence[int]) -> None:
        graphemes = [*self.graphemes]
        for column, tag in enumerate(tags):
            if tag == _JOINED:
                self.joined.append(column)
            elif tag:
                content = number >> 64 * column + _CONTENT_AT
                red, green, blue = content & 0xFF, content >> 8 & 0xFF, content >> 16 & 0xFF
                self.painted[column] = red if tag == _PALETTE else (red, green, blue)
                graphemes[column] = " "
        self.graphemes = graphemes

    def numbers(self) -> list[int]:
        """Returns the styles of the columns, as the row's page has them."""
        return _parts(int.from_bytes(self.cells, "little"), _STYLE_AT, len(self.cells), "H")

    def row(self, styles: Sequence[int], painted: Sequence[int], clusters: Sequence[str], *, wrapped: bool) -> Row:
        """Makes the row; `clusters` are what stands in `joined` columns."""
        row = Row(self, styles, painted, wrapped=wrapped)
        if self.joined:
            whole = [*self.graphemes]
            for column, cluster in zip(self.joined, clusters, strict=True):
                whole[column] = cluster
            row.graphemes = whole
        return row


@lru_cache(8)
def _masks(length: int) -> tuple[int, int, int, int]:
    """Returns, for the cells of a row as one number, where code points (when it is shifted to them), tags, styles and
    widths are."""
    parts = (0x1FFFFF, 3, 0xFFFF << _STYLE_AT, 3 << _WIDTH_AT)
    codes, tags, styles, widths = (
        int.from_bytes(part.to_bytes(_CELL_BYTES, "little") * (length // _CELL_BYTES), "little") for part in parts
    )
    return codes, tags, styles, widths


def _parts(number: int, at: int, length: int, form: Literal["B", "H"]) -> list[int]:
    """Returns of each cell the part, of the size of `form`, that begins at bit `at`."""
    view = memoryview((number >> at).to_bytes(length, "little")).cast(form)
    parts: list[int] = view[:: _CELL_BYTES // view.itemsize].tolist()
    return parts


_row_get_multi, _NULL = _lib.ghostty_render_state_row_get_multi, ffi.NULL


class _Reader:
    """Reads the visible rows of a terminal, of which it keeps what they were."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal
        made = ffi.new("GhosttyRenderState*")
        _check(_lib.ghostty_render_state_new(ffi.NULL, made), "render_state_new")
        self._state = ffi.gc(made[0], _lib.ghostty_render_state_free)
        self._rows_out = ffi.new("GhosttyRenderStateRowIterator*")
        _check(_lib.ghostty_render_state_row_iterator_new(ffi.NULL, self._rows_out), "row_iterator_new")
        self._iterator = ffi.gc(self._rows_out[0], _lib.ghostty_render_state_row_iterator_free)
        self._cells_out = ffi.new("GhosttyRenderStateRowCells*")
        _check(_lib.ghostty_render_state_row_cells_new(ffi.NULL, self._cells_out), "row_cells_new")
        self._cells = ffi.gc(self._cells_out[0], _lib.ghostty_render_state_row_cells_free)
        self._dirty, self._y = ffi.new("int*"), ffi.new("uint16_t*")
        self._view, self._raw = ffi.new("GhosttyCellsView*"), ffi.new("uint64_t*")
        self._id = ffi.new("GhosttyRenderStateRowId*")
        self._page = ffi.buffer(self._id, ffi.sizeof("uint64_t"))  # of a row's name that of its page comes first
        self._row_keys = ffi.new("int[]", [_ROW["CELLS_RAW"], _ROW["RAW"], _ROW["ID"]])
        self._row_values = ffi.new("void*[]", [self._view, self._raw, self._id])
        self._style = _sized("GhosttyStyle")
        self._style_bytes = ffi.buffer(self._style)
        self._buffer, self._bytes = ffi.new("GhosttyBuffer*"), ffi.new("uint8_t[]", _GRAPHEME_BYTES)
        self._colors, self._cursor = _sized("GhosttyRenderStateColors"), _sized("GhosttyRenderStateCursor")
        self._color_bytes = ffi.buffer(self._colors)
        self._colors_told: tuple[bytes, tuple[Rgb, Rgb, bytes]] = (b"", ((0, 0, 0), (0, 0, 0), b""))
        self.rows: list[Row] = []
        self.styles = [Cell(" ")]
        self._indexes = {self.styles[0]: 0}
        self._told: dict[bytes, int] = {}
        """The indexes of styles, as the library writes them."""
        self._named: dict[bytes, dict[int, int]] = {}
        """The same by page and number: these hold until something is fed."""
        self._layouts: dict[bytes, _Layout] = {}
        self._entered = False

    def read(self, count: int) -> tuple[Row, ...]:
        """Returns the rows, of which there are `count`."""
        _check(_lib.ghostty_render_state_update(self._state, self._terminal), "render_state_update")
        self._get("DIRTY", self._dirty)
        if self._dirty[0] == _DIRTY["FALSE"] and len(self.rows) == count:
            return tuple(self.rows)
        self._named.clear()
        self._rows_out[0] = self._iterator
        self._get("ROW_ITERATOR", self._rows_out)
        if self._dirty[0] == _DIRTY["FULL"] or len(self.rows) != count:
            rows = []
            while _lib.ghostty_render_state_row_iterator_next(self._iterator):
                rows.append(self._row())
            self.rows = rows
        else:
            while _lib.ghostty_render_state_row_iterator_next_dirty(self._iterator, self._y):
                self.rows[self._y[0]] = self._row()
        _check(_lib.ghostty_render_state_clean(self._state), "render_state_clean")
        if len(self._layouts) > 2 * count + _LAYOUTS:
            self._layouts = {row.cells: self._layouts[row.cells] for row in self.rows if row.cells in self._layouts}
        return tuple(self.rows)

    def shape(self) -> tuple[int, bool]:
        """Returns the cursor's shape, and whether it blinks."""
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
        _check(_lib.ghostty_render_state_get(self._state, _STATE[what], out), what)

    def _row(self) -> Row:
        """Returns the row that the iterator stands at."""
        _check(_row_get_multi(self._iterator, 3, self._row_keys, self._row_values, _NULL), "row")
        cells = ffi.buffer(self._view.ptr, self._view.len * _CELL_BYTES)[:]
        wrapped = bool(self._raw[0] & _WRAPPED)
        layout = self._layouts.get(cells)
        if layout is None:
            layout = self._layouts[cells] = _Layout(cells)
        if layout.plain:
            return layout.plain[wrapped]
        self._entered = False
        page = self._page[:]
        named = self._named.get(page)
        if named is None:
            named = self._named[page] = {0: 0}
        try:
            styles = (*map(named.__getitem__, layout.named),)
        except KeyError:
            styles = (*(self._index_of(named, number, layout) for number in layout.named),)
        clusters = (*map(self._cluster, layout.joined),)
        key = (wrapped, styles, clusters)
        row = layout.known.get(key)
        if row is None:
            if len(layout.known) >= _VARIANTS:
                layout.known.clear()
            painted = [self._index(Cell(" ", bg=color)) for color in layout.painted.values()]
            row = layout.known[key] = layout.row(styles, painted, clusters, wrapped=wrapped)
        return row

    def _index_of(self, named: dict[int, int], number: int, layout: _Layout) -> int:
        """Returns the index of a style of this row."""
        index = named.get(number)
        if index is None:
            self._enter(layout.numbers().index(number))
            _check(_lib.ghostty_render_state_row_cells_get(self._cells, _CELLS["STYLE"], self._style), "style")
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
        """Returns what stands in a column of this row, of more than one code point."""
        self._enter(column)
        buffer = self._buffer
        buffer.ptr, buffer.cap, buffer.len = self._bytes, len(self._bytes), 0
        result = _lib.ghostty_render_state_row_cells_get(self._cells, _CELLS["GRAPHEMES_UTF8"], buffer)
        if result == _OUT_OF_SPACE:
            self._bytes = ffi.new("uint8_t[]", buffer.len)
            return self._cluster(column)
        _check(result, "graphemes")
        cluster: bytes = ffi.buffer(buffer.ptr, buffer.len)[:]
        return cluster.decode("utf-8", "replace")

    def _enter(self, column: int) -> None:
        if not self._entered:
            self._cells_out[0] = self._cells
            _check(_lib.ghostty_render_state_row_get(self._iterator, _ROW["CELLS"], self._cells_out), "cells")
            self._entered = True
        _check(_lib.ghostty_render_state_row_cells_select(self._cells, column), "select")


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
    if color.tag == _COLOR["PALETTE"]:
        return int(color.value.palette)
    return _rgb(color.value.rgb) if color.tag == _COLOR["RGB"] else None


def _rgb(color: Any) -> Rgb:
    return color.r, color.g, color.b


def _wrapped_bit() -> int:
    """Returns the bit of a row that says that it is wrapped."""
    out = ffi.new("bool*")
    for bit in range(64):
        _lib.ghostty_row_get(1 << bit, _values("GhosttyRowData")["WRAP"], out)
        if out[0]:
            return 1 << bit
    raise ImportError("no bit of a row of libghostty-vt says that it is wrapped")


def _check_cells() -> None:
    """The layout of a cell is not promised: it is held to what the library says of one."""
    keys = _values("GhosttyCellData")
    code, style, number = 0x1F600, 0x1234, ffi.new("int*")
    for tag, width in ((_CODE_POINT, _NARROW), (_JOINED, _WIDE), (_CODE_POINT, _TAIL), (_JOINED, _HEAD)):
        cell = tag | code << _CONTENT_AT | style << _STYLE_AT | width << _WIDTH_AT
        for key, expected in (("CODEPOINT", code), ("STYLE_ID", style), ("WIDE", width), ("CONTENT_TAG", tag)):
            number[0] = 0
            _lib.ghostty_cell_get(cell, keys[key], number)
            if number[0] != expected:
                raise ImportError("a cell of libghostty-vt is laid out otherwise")


_WRAPPED = _wrapped_bit()
_check_cells()
