"""The screen of one agent: the bytes its program wrote, as rows of text, a cursor and modes.

The following is kept away from the emulator, whichever one `emulator` uses:

- An escape sequence or character cut by the end of a chunk is kept back (`Screen.pending`), so that the emulator's
  parser is at rest whenever the screen is read, and a checkpoint stands between two sequences.
- Some hundreds of characters in one cell, which corrupt its memory: see `clusters`.
- Control characters that terminals ignore, and invalid UTF-8: see `tokenizer.straightened`.
- Repeating a character more often than the screen has cells: see `emulator_input.fewer_repeats`.
"""

from collections.abc import Sequence

from synapsed.model.outer_terminal import Rgb
from synapsed.model.picture import Rows
from synapsed.shared.regex import regex
from synapsed.terminal import redraw
from synapsed.terminal.clusters import ClusterBound
from synapsed.terminal.emulator import Emulator
from synapsed.terminal.emulator_input import fewer_repeats
from synapsed.terminal.grid import Grid
from synapsed.terminal.pane import draw, draw_notice, part_of
from synapsed.terminal.rows import rows
from synapsed.terminal.snapshot import ALTERNATE, Cell, ScreenSnapshot, bounded
from synapsed.terminal.tokenizer import Tokenizer, straightened

DEFAULT_SCROLLBACK_LINES = 1000

DEFAULT_FOREGROUND = (255, 255, 255)
DEFAULT_BACKGROUND = (0, 0, 0)
"""Background that programs get as an answer; most agents take it for a dark theme, as most terminals have."""

# Sequences that may switch wrapping (7), margins (69) or grapheme clustering (2027): modes, and resets.
_RULES = regex(rb"\x1b(?:c|\[(?:\?[ -?]*[79][ -?]*[hlr]|[ -?]*!p))")


class Screen:
    """The screen of one agent. Pure: bytes in, facts out; no I/O and no clock. Its size is `snapshot.bounded`. About
    ``scrollback_lines`` rows above the screen are kept (the emulator rounds up, to some hundreds); 0 keeps none."""

    def __init__(self, cols: int, rows: int, *, scrollback_lines: int = DEFAULT_SCROLLBACK_LINES) -> None:
        self._cols, self._rows = bounded(cols, rows)
        self._emulator = Emulator(self._cols, self._rows, scrollback_lines=scrollback_lines)
        # Both are always set, because only then the emulator reports the colours that a program sets.
        self._emulator.set_default_colors(DEFAULT_FOREGROUND, DEFAULT_BACKGROUND)
        self._grid = Grid(self._emulator)
        self._grid.refresh()
        self._default_colors = self._emulator.colors
        self._bound = ClusterBound()
        self._tokenizer = Tokenizer()
        self._snapshot: ScreenSnapshot | None = None

    @property
    def pending(self) -> bytes:
        """The end of the output so far, if it is an unfinished sequence or character: not on the screen yet. `redraw`
        does not have it: a checkpoint belongs to the offset before it, and a viewer gets it next."""
        return self._tokenizer.pending

    def feed(self, data: bytes) -> None:
        """Applies output of the program: any bytes, cut anywhere."""
        whole = self._tokenizer.take(data)
        if whole:
            self._admit(fewer_repeats(straightened(whole), self._cols, self._rows))
            self._snapshot = None

    def resize(self, cols: int, rows: int) -> None:
        """Changes the size, in cells, as the program's window does: the main screen is wrapped again."""
        cols, rows = bounded(cols, rows)
        if (cols, rows) == (self._cols, self._rows):
            return
        self._cols, self._rows = cols, rows
        self._emulator.resize(cols, rows)
        self._bound.moved()
        self._snapshot = None

    def set_default_colors(self, foreground: Rgb | None, background: Rgb | None) -> None:
        """Sets the colours that programs get as an answer, if they have set no others; None for the usual ones."""
        foreground, background = foreground or DEFAULT_FOREGROUND, background or DEFAULT_BACKGROUND
        self._emulator.set_default_colors(foreground, background)
        self._default_colors = (foreground, background, self._default_colors[2])
        self._snapshot = None

    def keyboard_flags(self) -> int:
        """Returns the flags of the kitty keyboard protocol that the program has set, on the screen that is shown."""
        return self._emulator.keyboard_flags()

    def snapshot(self) -> ScreenSnapshot:
        """Returns the present screen; the same object until something is fed."""
        if self._snapshot is None:
            self._snapshot = self._read()
        return self._snapshot

    @property
    def synchronized(self) -> bool:
        """True while the program is drawing a frame (mode 2026): the screen shows only a part of it."""
        return self._emulator.mode(2026)

    def text(self, *, scrollback: bool) -> str:
        """Returns the screen as text, wrapped rows joined, no blank rows at the end; with the rows above if wanted."""
        if scrollback:
            return self._emulator.text().rstrip("\n")
        return self.snapshot().text()

    def row_cells(self, row: int) -> Sequence[Cell]:
        """Returns the cells of a visible row (from 0), left to right, each character once. Raises IndexError."""
        self.snapshot()
        return self._grid.cells(row)

    def kinds(self) -> str:
        """Returns the style of each character of `snapshot().text()`: see `grid.PLAIN`. A line break is itself."""
        snapshot = self.snapshot()
        rows = (self._grid.kinds(row, len(line)) for row, line in enumerate(snapshot.lines))
        ends = ("" if joined else "\n" for joined in snapshot.wrapped)
        return "".join(row + end for row, end in zip(rows, ends, strict=True)).rstrip("\n")

    def formatted(self) -> bytes:
        """Returns the screen and the rows above it, wrapped rows joined, as text with the sequences that draw it."""
        return self._emulator.content()

    def redraw(self, *, scrollback: bool = False, notice: Sequence[str] = (), alone: bool = False) -> bytes:
        """Returns the bytes that make a terminal of this size show the same.

        They restore cells with their attributes and palette indexes, wrapped rows, cursor, pen, modes, title, colours
        the program set, scrolling region, tab stops, character sets and keyboard flags; under an alternate screen the
        main one too; with ``scrollback``, for a checkpoint, also the rows above. ``notice`` is drawn over the last
        rows. ``alone``: only the content of an alternate screen, on the other terminal's present screen. They do not
        restore hyperlinks, images, protected cells and the state that DECSC saved.
        """
        snapshot = self.snapshot()
        parts = [redraw.RESET, b"\x1b[?2027%c" % ord("h" if 2027 in snapshot.modes.dec else "l")]
        if snapshot.alternate and not alone:
            parts.append(self._redraw_main(scrollback=scrollback))
            parts.append(b"\x1b[?%dh" % next(number for number in ALTERNATE if number in snapshot.modes.dec))
        if scrollback and not snapshot.alternate:
            parts.append(self._redraw_scrollback())
        parts += [self._grid.paint(), draw_notice(notice, self._rows, self._cols), self._redraw_state(snapshot)]
        return b"".join(parts)

    def coloured(self) -> bytes:
        """Returns the text, a line for each row, with its colours and no other sequences."""
        self.snapshot()
        return self._grid.coloured()

    def page_rows(self) -> Rows:
        now = self.snapshot()
        return rows(self._grid.rows(now), now)

    def pane(self, cols: int, rows: int, notice: Sequence[str] = ()) -> bytes:
        """Returns the bytes that show this screen in a terminal of another size: see `pane`."""
        snapshot = self.snapshot()
        part = part_of(
            (self._cols, self._rows),
            (cols, rows),
            snapshot.cursor,
            self._grid.last_text()[0],
            follows=snapshot.cursor_visible,
        )
        shown = [self._grid.crop(row, part.left, cols) for row in range(part.top, min(self._rows, part.top + rows))]
        row, column = snapshot.cursor[0] - part.top, snapshot.cursor[1] - part.left
        visible = snapshot.cursor_visible and 0 <= row < rows and 0 <= column < cols
        return draw(
            shown,
            size=(cols, rows),
            cursor=(row, column) if visible else None,
            shape=self._emulator.shape() or b"0",
            modes=snapshot.modes.dec,
            keyboard=self.keyboard_flags(),
            notice=draw_notice(notice, rows, cols),
        )

    def _redraw_main(self, *, scrollback: bool) -> bytes:
        """Returns the bytes for the main screen under the alternate one."""
        with self._emulator.main_screen() as (row, column):
            self._grid.refresh()
            drawn = (
                self._redraw_scrollback() if scrollback else b"",
                self._grid.paint(),
                self._emulator.extras().keyboard,
                b"\x1b[%d;%dH" % (row + 1, column + 1),
            )
        self._grid.refresh()
        return b"".join(drawn)

    def _redraw_scrollback(self) -> bytes:
        """Returns the bytes for the rows above the screen and on it, scrolled until its first row is at the top."""
        content = self._emulator.content()
        last, used = self._grid.last_text()
        below = self._rows - 1 - last - redraw.blank_rows_below(content, self._cols, used)
        return content + b"\x1b[m" + b"\r\n" * max(below, 0)

    def _redraw_state(self, snapshot: ScreenSnapshot) -> bytes:
        modes, extras = snapshot.modes, self._emulator.extras()
        colors = (snapshot.foreground, snapshot.background, snapshot.palette)
        parts = [
            redraw.colors(colors, self._default_colors),
            b"\x1b]2;%b\x1b\\" % snapshot.title.encode("utf-8", "replace") if snapshot.title else b"",
            redraw.settings(modes, extras),
        ]
        row, column = snapshot.cursor
        if self._emulator.waits_to_wrap():
            column, rendered = self._grid.last_cell(row, column)
            parts += [redraw.place((row, column), modes, extras), rendered]
        else:
            parts.append(redraw.place(snapshot.cursor, modes, extras))
        parts += [extras.pen, extras.protection, extras.charsets, extras.keyboard]
        if 4 in modes.ansi:
            parts.append(b"\x1b[4h")
        if shape := self._emulator.shape():
            parts.append(b"\x1b[%b q" % shape)
        parts.append(b"\x1b[?25%c" % ord("h" if snapshot.cursor_visible else "l"))
        return b"".join(parts)

    def _admit(self, data: bytes) -> None:
        """Applies `data`, bounded by the modes that are in force in each part of it."""
        mode, done = self._emulator.mode, 0
        for rule in [*_RULES.finditer(data), None]:
            end = len(data) if rule is None else rule.end()
            if mode(7) and not mode(69) and self._cols > 1:
                self._emulator.feed(self._bound.feed(data[done:end], clusters=mode(2027)))
            else:
                self._apply_at_edge(data[done:end])
            done = end

    def _apply_at_edge(self, data: bytes) -> None:
        """Applies `data` in a state in which the last column is filled again and again: a joining character there is
        appended to the cell before, and a wide one is not printed at all. So nothing joins there."""
        for piece in self._bound.pieces(data, clusters=self._emulator.mode(2027)):
            self._emulator.feed(piece)
            if self._bound.inside:
                continue
            if self._emulator.mode(69) or self._emulator.cursor()[1] >= self._cols - 1:
                self._bound.moved()

    def _read(self) -> ScreenSnapshot:
        self._grid.refresh()
        lines, wrapped = self._grid.lines(self._cols)
        modes = self._emulator.modes()
        foreground, background, palette = self._emulator.colors
        return ScreenSnapshot(
            cols=self._cols,
            rows=self._rows,
            lines=lines,
            wrapped=wrapped,
            cursor=self._grid.cursor,
            cursor_visible=25 in modes.dec,
            alternate=self._emulator.alternate,
            title=self._emulator.title(),
            modes=modes,
            foreground=foreground,
            background=background,
            palette=palette,
        )
