"""The emulator behind `Screen`: a terminal of libghostty-vt (`ghostty`), chosen by the contract suite in
``tests/emulator`` and an hour of fuzz (docs/adr/0062-the-emulator-again.md).

- The history has a limit in bytes: with a limit in lines the library corrupts its memory.
- Its answers to queries are dropped: the daemon answers them itself (`queries`).
- 132-column mode (DECCOLM) would resize the emulator without its owner: it is never allowed (40 is not passed on), and
  if it was set in another way the size is restored after the piece.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from synapsed.model.outer_terminal import Rgb
from synapsed.shared.regex import regex
from synapsed.terminal.emulator_rows import RowReader
from synapsed.terminal.ghostty import CURSOR, DATA, FORMAT, OPTION, check, ffi, lib, sized
from synapsed.terminal.redraw import Extras
from synapsed.terminal.snapshot import ANSI, DEC, Modes

_SCROLLBACK_BYTES_PER_CELL = 12
"""The library keeps fewer bytes than requested, by as much as its pages are not full."""

_CELL_PIXELS = (8, 16)

_SHAPES = {"BLOCK": (1, 2), "UNDERLINE": (3, 4), "BAR": (5, 6)}
_SHAPE_NUMBERS = {CURSOR[name]: numbers for name, numbers in _SHAPES.items()}
"""DECSCUSR's numbers of each shape that a program can set, blinking and not."""

_SETS = regex(rb"\x1b\[\?(?=[\d;]*?(?:1049|40))(?P<modes>[\d;]+)h")
_CHARSET = regex(rb"\x1b[(-+][0A]")
"""Selection of a character set other than ASCII, in which a wide character is a blank."""
_BEGINS = regex(rb"(?:\x1b\[[\d;:]*m)*+(?P<first>.)", re.DOTALL)
_JOINS_FROM = 0xC0
"""Any character beyond ASCII may join another, in clusters."""
_ANSI = 1 << 15
_MODES = [*DEC, *(number + _ANSI for number in ANSI)]


class Emulator:
    """One terminal: bytes in, whole sequences and valid UTF-8 only; its rows, cursor and modes out. `read` reads the
    rows; `rows` has those that were read last."""

    def __init__(self, cols: int, rows: int, *, scrollback_lines: int) -> None:
        self._cols, self._rows = cols, rows
        made = ffi.new("GhosttyTerminal*")
        check(lib.ghostty_terminal_new(ffi.NULL, made, cols, rows), "terminal_new")
        self._terminal = ffi.gc(made[0], lib.ghostty_terminal_free)
        self._number, self._flag = ffi.new("uint16_t*"), ffi.new("bool*")
        self._mode = ffi.new("GhosttyTerminalModeConfig*")
        self._modes = ffi.new("GhosttyTerminalModeConfig[]", [{"mode": number} for number in _MODES])
        self._mode_flags, self._modes_told = ffi.buffer(self._modes), (b"", Modes())
        self._mode_keys = ffi.new("int[]", [DATA["MODE"]] * len(_MODES))
        self._mode_values = ffi.new("void*[]", [ffi.addressof(self._modes, index) for index in range(len(_MODES))])
        self._set("SCROLLBACK_MAX_BYTES", ffi.new("size_t*", scrollback_lines * cols * _SCROLLBACK_BYTES_PER_CELL))
        self._set("KITTY_IMAGE_STORAGE_LIMIT", ffi.new("uint64_t*", 0))
        # No program can set this style: so any other style shows that the program has set one.
        self._set("DEFAULT_CURSOR_STYLE", ffi.new("int*", CURSOR["BLOCK_HOLLOW"]))
        self._main_cursor = (0, 0)
        self._just_read, self._joined = True, False
        """The first is True if only pens were fed since the rows were read; the second if a later character may have
        joined an earlier one."""
        self._halves: set[bool] = set()
        """The screens, by `alternate`, on which there may be halves of wide characters, or wide blanks."""
        self.rows = RowReader(self._terminal)
        self.colors: tuple[Rgb, Rgb, bytes] = ((0, 0, 0), (0, 0, 0), b"")
        """Foreground, background and palette, as of the last `read`."""

    def feed(self, data: bytes) -> None:
        if self._just_read and (begins := _BEGINS.match(data)):
            self._just_read, self._joined = False, begins["first"][0] >= _JOINS_FROM
        if _CHARSET.search(data):
            self._halves = {False, True}
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
        if cols < self._cols:
            self._halves.add(True)
            if not self.mode(7):
                self._halves.add(False)
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
        check(lib.ghostty_terminal_get_multi(self._terminal, len(_MODES), keys, values, ffi.NULL), "modes")
        flags = self._mode_flags[:]
        if flags != self._modes_told[0]:
            on = [number for number, mode in zip(_MODES, self._modes, strict=True) if mode.value]
            dec = frozenset(number for number in on if number < _ANSI)
            self._modes_told = flags, Modes(dec, frozenset(number - _ANSI for number in on if number >= _ANSI))
        return self._modes_told[1]

    @property
    def alternate(self) -> bool:
        """True if the alternate screen is shown."""
        out = ffi.new("int*")
        self._get_into("ACTIVE_SCREEN", out)
        return bool(out[0])

    def cursor(self) -> tuple[int, int]:
        """Returns (row, column)."""
        return self._get("CURSOR_Y"), self._get("CURSOR_X")

    def waits_to_wrap(self) -> bool:
        """Returns True if the next character wraps first."""
        self._get_into("CURSOR_PENDING_WRAP", self._flag)
        return bool(self._flag[0])

    def shape(self) -> bytes:
        """Returns the number of the cursor's shape (DECSCUSR), as of the last `read`; empty for the usual one."""
        shape, blinks = self.rows.shape()
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

    def read(self) -> list[str]:
        """Reads the screen. Returns each visible row's text, without the blank cells at its end, or with some."""
        if self._joined:
            self.rows.begin()  # a joining character does not mark its row as changed
        self._just_read, self._joined = True, False
        texts = self.rows.read(self._cols, self._rows, by_cells=self.alternate in self._halves)
        self.colors = self.rows.colors()
        return texts

    def forget_styles(self) -> None:
        self.rows = RowReader(self._terminal)

    def text(self) -> str:
        """Returns the active screen and its scrollback as plain text, rows joined where they were wrapped."""
        return self._format("PLAIN", trim=True).decode("utf-8", "replace")

    def content(self) -> bytes:
        """Returns the text of `text` with the sequences that draw it."""
        return self._format("VT", trim=False)

    def extras(self) -> Extras:
        """Returns the state that is not in the rows. The library writes it around a single cell, which costs little."""
        selection = sized("GhosttySelection")
        point = ffi.new("Point*")
        check(lib.ghostty_terminal_grid_ref(self._terminal, point[0], ffi.addressof(selection[0], "start")), "ref")
        check(lib.ghostty_terminal_grid_ref(self._terminal, point[0], ffi.addressof(selection[0], "end")), "ref")
        return _read_state(self._format("VT", trim=False, only=selection), self._cols)

    @contextmanager
    def main_screen(self) -> Iterator[tuple[int, int]]:
        """Shows the main screen under the alternate one while the context lasts; yields the place of its cursor. Mode
        47 changes between the two screens, and nothing else."""
        was_set = self.mode(47)
        self._write(b"\x1b[?47l")
        try:
            yield self._main_cursor
        finally:
            self._write(b"\x1b[?47h")
            self._set_mode(47, value=was_set)

    def _write(self, data: bytes) -> None:
        lib.ghostty_terminal_vt_write(self._terminal, data, len(data))

    def _resize(self) -> None:
        check(lib.ghostty_terminal_resize(self._terminal, self._cols, self._rows, *_CELL_PIXELS), "resize")

    def _set(self, option: str, value: Any) -> None:
        check(lib.ghostty_terminal_set(self._terminal, OPTION[option], value), option)

    def _set_mode(self, number: int, *, value: bool) -> None:
        self._mode.mode, self._mode.value = number, value
        self._set("MODE", self._mode)

    def _get_into(self, what: str, out: Any) -> None:
        check(lib.ghostty_terminal_get(self._terminal, DATA[what], out), what)

    def _get(self, what: str) -> int:
        self._get_into(what, self._number)
        return int(self._number[0])

    def _format(self, form: str, *, trim: bool, unwrap: bool = True, only: Any = None) -> bytes:
        options = sized("GhosttyFormatterTerminalOptions")
        options.emit, options.unwrap, options.trim = FORMAT[form], unwrap, trim
        if only is not None:
            options.selection = only
            extra, screen = options.extra, options.extra.screen
            extra.scrolling_region = extra.tabstops = extra.keyboard = True
            screen.cursor = screen.style = screen.protection = screen.kitty_keyboard = screen.charsets = True
        formatter = ffi.new("GhosttyFormatter*")
        check(lib.ghostty_formatter_terminal_new(ffi.NULL, formatter, self._terminal, options[0]), "formatter")
        try:
            out, length = ffi.new("uint8_t**"), ffi.new("size_t*")
            check(lib.ghostty_formatter_format_alloc(formatter[0], ffi.NULL, out, length), "format")
            written = ffi.buffer(out[0], length[0])[:] if length[0] else b""
            lib.ghostty_free(ffi.NULL, out[0], length[0])
            return written
        finally:
            lib.ghostty_formatter_free(formatter[0])


_WRITTEN = regex(
    rb"(?P<tabs>\x1b\[3g(?P<stops>(?:\x1b\[\d+G\x1bH)*))\x1b\[H"
    rb".*?(?P<region>\x1b\[\d+;\d+r)?(?P<margins>\x1b\[\d+;\d+s)?(?P<modify>\x1b\[>4;\d+m)?\x1b\[\d+;\d+H"
    rb"(?:(?:\x1b\[[\d;:]*m)*[^\x1b\x0e\x0f]+)?(?P<pen>(?:\x1b\[[\d;:]*m)*)(?P<protection>\x1b\[1\"q)?(?P<flags>\x1b\[=\d+;\d+u)?"
    rb"(?P<charsets>(?:\x1b[()*+].|[\x0e\x0f]|\x1b[no|}~])*)",
    re.DOTALL,
)
_CHARSETS = regex(rb"\x1b[()*+].|[\x0e\x0f]|\x1b[no|}~]")
_DEFAULT_CHARSETS = frozenset({b"\x1b(B", b"\x1b)B", b"\x1b*B", b"\x1b+B", b"\x0f"})
_PLAIN = b"\x1b[0m"
_TAB_WIDTH = 8


def _read_state(written: bytes, cols: int) -> Extras:
    """Parses the text that the formatter wrote around a cell. If the cursor waits to wrap, the character before it
    follows its position."""
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
