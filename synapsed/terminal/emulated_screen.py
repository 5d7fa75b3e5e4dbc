"""The screen of one agent: the bytes its program wrote, as rows of text, a cursor and modes.

With `grid` and `redraw` the only modules that know the emulator (`evp`, libghostty's core), which was chosen by the
contract suite in ``tests/emulator`` (docs/adr/0001-terminal-emulator.md). What is wrapped here, and why:

- The emulator's answers to queries are discarded: the daemon answers them itself (`queries`). Of its callbacks only
  that for answers is set, and it does not raise: callbacks are all that can make feeding raise.
- An escape sequence or character cut by the end of a chunk is kept back (`Screen.pending`), so that the emulator's
  parser is at rest whenever the screen is read, and a checkpoint stands between two sequences.
- A hidden cursor has no position in the emulator's frames, and rows carry no mark of being wrapped: see `grid`.
- It corrupts its memory where some hundreds of characters come together in one cell: see `clusters`.
- It prints control characters that terminals pass over, and counts invalid UTF-8 differently from chunk to chunk: it
  gets neither, see `tokenizer.straightened`.
- A row that is erased as a whole (EL 2) goes on in the next one for it, as in no terminal that wraps rows again but
  Ghostty: see `sequences.ending_wraps`. Rows above the screen that were erased go on too, when they are used again:
  see `erased_history`.
- 132-column mode (DECCOLM) would resize the emulator behind its owner's back: it is never allowed (40 is not passed
  on), and where that was spelt in another way the size is what it was when the piece is over.
"""

import re
import sys
from collections.abc import Sequence

import evp

from synapsed.model.outer_terminal import Rgb
from synapsed.model.picture import Rows
from synapsed.terminal import redraw
from synapsed.terminal.clusters import ClusterBound
from synapsed.terminal.emulator_input import ending_wraps, fewer_repeats
from synapsed.terminal.erased_history import forget_marks
from synapsed.terminal.grid import Grid, Replies, format_screen
from synapsed.terminal.pane import draw, draw_notice, part_of
from synapsed.terminal.redraw import Extras
from synapsed.terminal.rows import rows
from synapsed.terminal.snapshot import ALTERNATE, ANSI, DEC, Cell, Modes, ScreenSnapshot
from synapsed.terminal.tokenizer import Tokenizer, straightened

DEFAULT_SCROLLBACK_LINES = 1000

DEFAULT_FOREGROUND = (255, 255, 255)
DEFAULT_BACKGROUND = (0, 0, 0)
"""What programs are told that they are drawn in; most agents take it for a dark theme, as most terminals have."""

MAX_COLUMNS = 1000
MAX_ROWS = 1000
"""Sizes beyond are cut: memory grows with the area, and a person's terminal is never that large."""

_SCROLLBACK_BYTES_PER_CELL = 12
"""The emulator bounds its scrollback in bytes; measured: 9 to 13 for a cell of ordinary output."""

_TAIL = 512
"""Bytes of output that are remembered, to tell whether the last of it was printed in the last column."""

# What is taken note of: private modes being set, the scrolling region, the cursor's shape, a full reset, the rows above
# the screen being erased. The lookahead passes over what fills real output before the alternatives are tried.
_STOPS = re.compile(
    rb"\x1b(?!\[\??[\d;:]*+[@-IK-Z`a-gi-qs-z])"
    rb"(?:\[\?(?P<set>[\d;]+)h|\[(?P<region>[\d;]*)r|\[(?P<shape>\d*) q|(?P<reset>c)|(?P<erased>\[\??0*+3;?J))"
)
# What may switch wrapping (7), margins (69) or grapheme clustering (2027): modes, and resets.
_RULES = re.compile(rb"\x1b(?:c|\[(?:\?[ -?]*[79][ -?]*[hlr]|[ -?]*!p))")
_TOP = frozenset({b"", b"0", b"1"})


class Screen:
    """The screen of one agent. Pure: bytes in, facts out; no I/O and no clock.

    ``scrollback_lines`` is how many rows above the screen are kept, about (the emulator rounds up, to some hundreds);
    0 keeps none.
    """

    def __init__(
        self,
        cols: int,
        rows: int,
        *,
        scrollback_lines: int = DEFAULT_SCROLLBACK_LINES,
    ) -> None:
        self._cols, self._rows = _clamp(cols, rows)
        self._replies = Replies()
        self._terminal = evp.Terminal(
            self._cols,
            self._rows,
            max_scrollback_bytes=scrollback_lines * self._cols * _SCROLLBACK_BYTES_PER_CELL,
            on_write_pty=self._replies,
        )
        # Set at all: the emulator tells the colours a program sets only where it knows both of these.
        self._terminal.set_default_colors(DEFAULT_FOREGROUND, DEFAULT_BACKGROUND)
        self._grid = Grid(self._terminal, self._replies)
        fresh = self._grid.refresh(movable=True)
        self._default_colors = (fresh.foreground, fresh.background, fresh.palette)
        self._bound = ClusterBound()
        self._tokenizer = Tokenizer()
        self._tail = b""
        self._shape = b""
        self._inner_region = False
        """Whether a scrolling region that begins below the first row may be in force."""
        self._main_cursor = (0, 0)
        self._above = 0
        """At most how many rows have gone above the screen since those there were erased: as many as it has for each
        byte. A sequence may scroll by a screen, and has more bytes than one."""
        self._snapshot: ScreenSnapshot | None = None

    @property
    def pending(self) -> bytes:
        """The end of the output so far, if it is an unfinished sequence or character: not on the screen yet.

        `redraw` does not have it: a checkpoint belongs to the offset before it, and a viewer gets it next.
        """
        return self._tokenizer.pending

    def feed(self, data: bytes) -> None:
        """Apply what the program wrote: any bytes, cut anywhere."""
        whole = self._tokenizer.take(data)
        if whole:
            self._admit(fewer_repeats(ending_wraps(straightened(whole)), self._cols, self._rows))

    def resize(self, cols: int, rows: int) -> None:
        """Change the size, in cells, as the program's window does: the main screen is wrapped again."""
        cols, rows = _clamp(cols, rows)
        if (cols, rows) == (self._cols, self._rows):
            return
        self._cols, self._rows = cols, rows
        self._terminal.resize(cols, rows)
        self._bound.moved()
        self._above = sys.maxsize
        self._main_cursor = (min(self._main_cursor[0], rows - 1), min(self._main_cursor[1], cols - 1))
        self._tail = b""
        self._snapshot = None

    def set_default_colors(self, foreground: Rgb | None, background: Rgb | None) -> None:
        """What programs are told that they are drawn in, where they have set nothing else; None for the usual."""
        foreground, background = foreground or DEFAULT_FOREGROUND, background or DEFAULT_BACKGROUND
        self._terminal.set_default_colors(foreground, background)
        self._default_colors = (foreground, background, self._default_colors[2])
        self._snapshot = None

    def keyboard_flags(self) -> int:
        """What the program has switched on of the kitty keyboard protocol, on the screen that is shown."""
        self._replies.clear()
        self._terminal.feed(b"\x1b[?u")
        return self._replies.keyboard_flags()

    def snapshot(self) -> ScreenSnapshot:
        """What the screen shows now; the same object until something is fed."""
        if self._snapshot is None:
            self._snapshot = self._read()
        return self._snapshot

    @property
    def synchronized(self) -> bool:
        """The program is drawing a frame (mode 2026): what the screen shows is half of it."""
        return self._terminal.mode(2026)

    def text(self, *, scrollback: bool) -> str:
        """The screen as text, wrapped rows joined, blank rows at the end left out; with the rows above if wanted."""
        if scrollback:
            return format_screen(self._terminal).rstrip("\n")
        return self.snapshot().text()

    def row_cells(self, row: int) -> list[Cell]:
        """The cells of a visible row (from 0), left to right, each character once. IndexError beyond the last."""
        self.snapshot()
        return self._grid.cells(row)

    def kinds(self) -> str:
        """How each character of `snapshot().text()` is drawn: see `grid.PLAIN`. A line break is itself."""
        snapshot = self.snapshot()
        rows = (self._grid.kinds(row)[: len(line)] for row, line in enumerate(snapshot.lines))
        ends = ("" if joined else "\n" for joined in snapshot.wrapped)
        return "".join(row + end for row, end in zip(rows, ends, strict=True)).rstrip("\n")

    def formatted(self) -> bytes:
        """The screen and the rows above it, wrapped rows joined, as text with the sequences that draw it."""
        return redraw.read_terminal(self._terminal, self._cols)[0]

    def redraw(self, *, scrollback: bool = False, notice: Sequence[str] = (), alone: bool = False) -> bytes:
        """The bytes that bring a terminal of this size to what this one shows.

        Cells with their attributes and palette indexes, wrapped rows, cursor, pen, modes, title, colours the program
        set, scrolling region, tab stops, character sets and keyboard flags; under an alternate screen the main one too.
        With ``scrollback`` the rows above as well, for a checkpoint; ``notice`` is drawn over the last rows. ``alone``:
        of an alternate screen what it shows, on whichever the other terminal is. Not kept:
        hyperlinks, images, protected cells and what DECSC saved.
        """
        snapshot = self.snapshot()
        parts = [redraw.RESET, b"\x1b[?2027%c" % ord("h" if 2027 in snapshot.modes.dec else "l")]
        if snapshot.alternate and not alone:
            parts.append(self._redraw_main(scrollback=scrollback))
            parts.append(b"\x1b[?%dh" % next(number for number in ALTERNATE if number in snapshot.modes.dec))
        content, extras = redraw.read_terminal(self._terminal, self._cols)
        if scrollback and not snapshot.alternate:
            parts.append(self._redraw_scrollback(content))
        parts += [self._grid.paint(), draw_notice(notice, self._rows, self._cols), self._redraw_state(snapshot, extras)]
        return b"".join(parts)

    def coloured(self) -> bytes:
        """What stands on it, a line for each row, with its colours and nothing else that a terminal obeys."""
        self.snapshot()
        return self._grid.coloured()

    def page_rows(self) -> Rows:
        """What it shows, as rows of a page."""
        now = self.snapshot()
        return rows(self._grid.rows(now), now)

    def pane(self, cols: int, rows: int, notice: Sequence[str] = ()) -> bytes:
        """The bytes that show this screen in a terminal of another size: see `pane`."""
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
            shape=self._shape or b"0",
            modes=snapshot.modes.dec,
            keyboard=self.keyboard_flags(),
            notice=draw_notice(notice, rows, cols),
        )

    def _redraw_main(self, *, scrollback: bool) -> bytes:
        """The main screen under the alternate one. Mode 47 changes between the two and touches nothing else."""
        was_set = self._terminal.mode(47)
        self._terminal.feed(b"\x1b[?47l")
        self._grid.refresh(movable=not self._inner_region)
        content, extras = redraw.read_terminal(self._terminal, self._cols)
        row, column = self._main_cursor
        drawn = (
            self._redraw_scrollback(content) if scrollback else b"",
            self._grid.paint(),
            extras.keyboard,
            b"\x1b[%d;%dH" % (row + 1, column + 1),
        )
        self._terminal.feed(b"\x1b[?47h")
        self._terminal.set_mode(47, was_set)
        self._grid.refresh(movable=not self._inner_region)
        return b"".join(drawn)

    def _redraw_scrollback(self, content: bytes) -> bytes:
        """The rows above the screen and on it, scrolled until the first row of the screen is at its top."""
        last, used = self._grid.last_text()
        below = self._rows - 1 - last - redraw.blank_rows_below(content, self._cols, used)
        return content + b"\x1b[m" + b"\r\n" * max(below, 0)

    def _redraw_state(self, snapshot: ScreenSnapshot, extras: Extras) -> bytes:
        modes = snapshot.modes
        colors = (snapshot.foreground, snapshot.background, snapshot.palette)
        parts = [
            redraw.colors(colors, self._default_colors),
            b"\x1b]2;%b\x1b\\" % snapshot.title.encode("utf-8", "replace") if snapshot.title else b"",
            redraw.settings(modes, extras),
        ]
        text, column, rendered = self._grid.last_cell(snapshot.cursor[0])
        printed = redraw.last_printed(self._tail)
        waits = snapshot.cursor[1] == self._cols - 1 and 7 in modes.dec and printed and text.endswith(printed)
        if waits:
            parts += [redraw.place((snapshot.cursor[0], column), modes, extras), rendered]
        else:
            parts.append(redraw.place(snapshot.cursor, modes, extras))
        parts += [extras.pen, extras.protection, extras.charsets, extras.keyboard]
        if 4 in modes.ansi:
            parts.append(b"\x1b[4h")
        if self._shape:
            parts.append(b"\x1b[%b q" % self._shape)
        parts.append(b"\x1b[?25%c" % ord("h" if snapshot.cursor_visible else "l"))
        return b"".join(parts)

    def _admit(self, data: bytes) -> None:
        """Apply `data`, bounded by the modes that are in force in each part of it."""
        mode, done = self._terminal.mode, 0
        for rule in [*_RULES.finditer(data), None]:
            end = len(data) if rule is None else rule.end()
            if mode(7) and not mode(69) and self._cols > 1:
                self._apply(self._bound.feed(data[done:end], clusters=mode(2027)))
            else:
                self._apply_at_edge(data[done:end])
            done = end

    def _apply_at_edge(self, data: bytes) -> None:
        """Apply `data` where the last column is filled again and again: what joins the character there is appended to
        the cell before, and a wide one is not printed at all. So nothing joins there."""
        for piece in self._bound.pieces(data, clusters=self._terminal.mode(2027)):
            self._apply(piece)
            if self._bound.inside:
                continue
            if self._terminal.mode(69) or self._position()[1] >= self._cols - 1:
                self._bound.moved()

    def _apply(self, data: bytes) -> None:
        done = counted = 0
        for stop in _STOPS.finditer(data):
            if stop["erased"]:
                self._terminal.feed(data[done : stop.end()])
                self._above += (stop.start() - counted) * self._rows
                done = counted = stop.end()
                self._erased_above()
            elif stop["set"] is None:
                self._note(stop)
            else:
                done = self._set(data, done, stop)
        self._terminal.feed(data[done:] if done else data)
        if self._terminal.size() != (self._cols, self._rows):
            self._terminal.set_mode(40, False)
            self._terminal.resize(self._cols, self._rows)
            self._above = sys.maxsize
        self._above += (len(data) - counted) * self._rows
        self._tail = (self._tail + data[-_TAIL:])[-_TAIL:]
        self._snapshot = None

    def _set(self, data: bytes, done: int, stop: re.Match[bytes]) -> int:
        """Private modes that are set: applies of `data` what has to come before. Returns up to where it is applied now,
        which is `done` or later."""
        modes = stop["set"].split(b";")
        if b"1049" in modes:
            # Fed up to here first: the screen may have been left in this very piece.
            self._terminal.feed(data[done : stop.start()])
            done = stop.start()
            if not self._alternate():
                self._main_cursor = self._position()
        if b"40" in modes:
            others = b";".join(mode for mode in modes if mode != b"40")
            self._terminal.feed(data[done : stop.start()] + (b"\x1b[?%bh" % others if others else b""))
            done = stop.end()
        return done

    def _erased_above(self) -> None:
        """The rows above the screen are erased; those of the main one, if the alternate one is shown, are not."""
        if self._above and not self._alternate():
            forget_marks(self._terminal, self._position(), self._above)
            self._above = 0

    def _note(self, stop: re.Match[bytes]) -> None:
        if stop["region"] is not None:
            self._inner_region = stop["region"].partition(b";")[0] not in _TOP
        elif stop["reset"]:
            self._inner_region, self._shape = False, b""
        else:
            self._shape = stop["shape"].lstrip(b"0")

    def _alternate(self) -> bool:
        return any(self._terminal.mode(number) for number in ALTERNATE)

    def _position(self) -> tuple[int, int]:
        """The cursor's (row, column), asked as a program would: quicker than reading a frame."""
        origin = self._terminal.mode(6)
        self._terminal.set_mode(6, False)
        self._replies.clear()
        self._terminal.feed(b"\x1b[6n")
        self._terminal.set_mode(6, origin)
        return next(iter(self._replies.positions()), (0, 0))

    def _read(self) -> ScreenSnapshot:
        terminal = self._terminal
        frame = self._grid.refresh(movable=not self._inner_region)
        lines, wrapped = self._grid.lines()
        return ScreenSnapshot(
            cols=self._cols,
            rows=self._rows,
            lines=lines,
            wrapped=wrapped,
            cursor=self._grid.cursor,
            cursor_visible=terminal.mode(25),
            alternate=self._alternate(),
            title=self._title(),
            modes=Modes(
                frozenset(number for number in DEC if terminal.mode(number)),
                frozenset(number for number in ANSI if terminal.mode(number, ansi=True)),
            ),
            foreground=frame.foreground,
            background=frame.background,
            palette=frame.palette,
        )

    def _title(self) -> str:
        try:
            return self._terminal.title()
        except (evp.GhosttyError, ValueError):
            return ""


def _clamp(cols: int, rows: int) -> tuple[int, int]:
    return max(1, min(cols, MAX_COLUMNS)), max(1, min(rows, MAX_ROWS))
