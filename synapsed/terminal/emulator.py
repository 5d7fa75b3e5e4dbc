"""The emulator behind `Screen`: the only module, with `erased_history`, that knows which one it is (`evp`, libghostty's
core, chosen by the contract suite in ``tests/emulator``, docs/adr/0001-terminal-emulator.md). What is wrapped here, and
why:

- The emulator's answers to queries are discarded: the daemon answers them itself (`queries`). Of its callbacks only
  that for answers is set, and it does not raise: callbacks are all that can make feeding raise.
- It has no position of the cursor in the frames of a hidden one, and does not say whether the cursor waits to wrap, nor
  what shape it has: it is asked as a program would ask, and the output is watched.
- Rows carry no mark of being wrapped: see `Emulator.wraps`.
- A row that is erased as a whole (EL 2) goes on in the next one for it, as in no terminal that wraps rows again but
  Ghostty: see `ending_wraps`. Rows above the screen that were erased go on too, when they are used again: see
  `erased_history`.
- 132-column mode (DECCOLM) would resize the emulator behind its owner's back: it is never allowed (40 is not passed
  on), and where that was spelt in another way the size is what it was when the piece is over.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import evp

from synapsed.model.outer_terminal import Rgb
from synapsed.terminal.erased_history import forget_marks
from synapsed.terminal.redraw import Extras, graphemes_of
from synapsed.terminal.snapshot import ALTERNATE, ANSI, DEC, Cell, Modes

type Row = evp.Row

MAX_REPLIES = 1024
"""Answers kept: more than a screen has rows. The rest, which programs asked for, is dropped."""

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
_TOP = frozenset({b"", b"0", b"1"})

_PROBE_MODES = (6, 7, 45, 69, 1045)
_POSITION = re.compile(rb"\x1b\[(\d+);(\d+)R")
_REPORTED_FLAGS = re.compile(rb"\x1b\[\?(\d{1,3})u")

_ROW_ERASED, _TO_ITS_END = b"\x1b[2K", b"\x1b[K"


class Emulator:
    """One terminal: bytes in, whole sequences and valid UTF-8 only; its rows, cursor and modes out.

    `read` reads the rows; what is said of rows is of those that were read last.
    """

    def __init__(self, cols: int, rows: int, *, scrollback_lines: int) -> None:
        self._cols, self._rows = cols, rows
        self._replies = Replies()
        self._terminal = evp.Terminal(
            cols,
            rows,
            max_scrollback_bytes=scrollback_lines * cols * _SCROLLBACK_BYTES_PER_CELL,
            on_write_pty=self._replies,
        )
        self._tail = b""
        self._shape = b""
        self._inner_region = False
        """Whether a scrolling region that begins below the first row may be in force."""
        self._main_cursor = (0, 0)
        self._above = 0
        """At most how many rows have gone above the screen since those there were erased: as many as it has for each
        byte. A sequence may scroll by a screen, and has more bytes than one."""
        self._written: tuple[bytes, Extras] | None = None
        self._read: tuple[Row, ...] = ()
        self._state = evp.RenderState(self._terminal)
        self.styles: list[Cell] = []
        """The styles that rows name by their index, each as a blank cell."""
        self.colors: tuple[Rgb, Rgb, bytes] = ((0, 0, 0), (0, 0, 0), b"")
        """Foreground, background and palette, as of the last `read`."""

    def feed(self, data: bytes) -> None:
        data = ending_wraps(data)
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
        self._written = None

    def resize(self, cols: int, rows: int) -> None:
        self._cols, self._rows = cols, rows
        self._terminal.resize(cols, rows)
        self._above = sys.maxsize
        self._main_cursor = (min(self._main_cursor[0], rows - 1), min(self._main_cursor[1], cols - 1))
        self._tail = b""
        self._written = None

    def set_default_colors(self, foreground: Rgb, background: Rgb) -> None:
        self._terminal.set_default_colors(foreground, background)

    def mode(self, number: int) -> bool:
        return self._terminal.mode(number)

    def modes(self) -> Modes:
        return Modes(
            frozenset(number for number in DEC if self._terminal.mode(number)),
            frozenset(number for number in ANSI if self._terminal.mode(number, ansi=True)),
        )

    @property
    def alternate(self) -> bool:
        """The alternate screen is shown."""
        return any(self._terminal.mode(number) for number in ALTERNATE)

    def cursor(self) -> tuple[int, int]:
        """Returns (row, column), asked as a program would."""
        origin = self._terminal.mode(6)
        self._terminal.set_mode(6, False)
        self._replies.clear()
        self._terminal.feed(b"\x1b[6n")
        self._terminal.set_mode(6, origin)
        return next(iter(self._replies.positions()), (0, 0))

    def waits_to_wrap(self) -> bool:
        """Returns whether the next character wraps first."""
        row, column = self.cursor()
        printed = last_printed(self._tail)
        text = next(text for text in reversed(graphemes_of(self._read[row])) if text)
        return column == self._cols - 1 and self.mode(7) and bool(printed) and text.endswith(printed)

    def shape(self) -> bytes:
        """Returns the number that sets the cursor's shape (DECSCUSR); empty for the usual one."""
        return self._shape

    def keyboard_flags(self) -> int:
        self._replies.clear()
        self._terminal.feed(b"\x1b[?u")
        return self._replies.keyboard_flags()

    def title(self) -> str:
        try:
            return self._terminal.title()
        except (evp.GhosttyError, ValueError):
            return ""

    def read(self) -> tuple[Row, ...]:
        """Returns the visible rows. A row that shows what it showed is the same object, also after it moved."""
        frame = self._state.frame()
        self.styles += map(_blank, frame.new_styles)
        self.colors = (frame.foreground, frame.background, frame.palette)
        self._read = frame.rows
        return self._read

    def forget_styles(self) -> None:
        """Begins `styles` anew; the next rows are no longer those of before."""
        del self._state  # a terminal has one at a time
        self._state = evp.RenderState(self._terminal)
        self.styles = []

    def wraps(self, asked: Sequence[int]) -> set[int]:
        """Returns which of the rows are wrapped into the next.

        It is asked by moving the cursor or, where that would disturb, by formatting the screen and all its scrollback:
        it costs more than all the rest.
        """
        if not asked:
            return set()
        # A cursor in the last column may be waiting there to wrap, which a movement would end.
        cursor = self.cursor()
        if not self._inner_region and cursor[1] < self._cols - 1:
            return self._probe(asked, cursor)
        return self._compare().intersection(asked)

    def skips_last(self, index: int) -> bool:
        """Returns whether a wide character found one column left in this row, and went to the next one.

        It leaves that column blank, in its own pen: a blank of another pen is a space that was printed.
        """
        row, below = self._read[index], self._read[index + 1]
        text, first = graphemes_of(row)[-1], graphemes_of(below)[0]
        blank = text == " " and below.widths[0] == 2 and first != " "
        return blank and self.styles[row.styles[-1]] == self.styles[below.styles[0]]

    def text(self) -> str:
        """Returns the active screen and its scrollback as plain text, rows joined where they were wrapped."""
        return evp.Formatter(self._terminal, format=evp.FormatterFormat.PLAIN, unwrap=True, trim=True).format()

    def content(self) -> bytes:
        """Returns the same with the sequences that draw it."""
        return self._format()[0]

    def extras(self) -> Extras:
        return self._format()[1]

    @contextmanager
    def main_screen(self) -> Iterator[tuple[int, int]]:
        """Shows the main screen under the alternate one meanwhile; gives where its cursor stands. Mode 47 changes
        between the two and touches nothing else."""
        was_set = self._terminal.mode(47)
        self._terminal.feed(b"\x1b[?47l")
        self._written = None
        try:
            yield self._main_cursor
        finally:
            self._terminal.feed(b"\x1b[?47h")
            self._terminal.set_mode(47, was_set)
            self._written = None

    def _set(self, data: bytes, done: int, stop: re.Match[bytes]) -> int:
        """Private modes that are set: applies of `data` what has to come before. Returns up to where it is applied now,
        which is `done` or later."""
        modes = stop["set"].split(b";")
        if b"1049" in modes:
            # Fed up to here first: the screen may have been left in this very piece.
            self._terminal.feed(data[done : stop.start()])
            done = stop.start()
            if not self.alternate:
                self._main_cursor = self.cursor()
        if b"40" in modes:
            others = b";".join(mode for mode in modes if mode != b"40")
            self._terminal.feed(data[done : stop.start()] + (b"\x1b[?%bh" % others if others else b""))
            done = stop.end()
        return done

    def _erased_above(self) -> None:
        """The rows above the screen are erased; those of the main one, if the alternate one is shown, are not."""
        if self._above and not self.alternate:
            self._written = None
            forget_marks(self._terminal, self.cursor(), self._above, self.extras())
            self._above = 0

    def _note(self, stop: re.Match[bytes]) -> None:
        if stop["region"] is not None:
            self._inner_region = stop["region"].partition(b";")[0] not in _TOP
        elif stop["reset"]:
            self._inner_region, self._shape = False, b""
        else:
            self._shape = stop["shape"].lstrip(b"0")

    def _probe(self, asked: Sequence[int], cursor: tuple[int, int]) -> set[int]:
        """Ask the cursor: with reverse wrapping (45) it steps back from a row's start only over a wrapped end."""
        terminal = self._terminal
        before = [(mode, terminal.mode(mode)) for mode in _PROBE_MODES]
        for mode in _PROBE_MODES:
            terminal.set_mode(mode, mode in (7, 45))
        self._replies.clear()
        terminal.feed(
            b"".join(b"\x1b[%d;1H\b\x1b[6n" % (index + 2) for index in asked)
            + b"\x1b[%d;%dH" % (cursor[0] + 1, cursor[1] + 1)
        )
        for mode, value in before:
            terminal.set_mode(mode, value)
        places = zip(asked, self._replies.positions(), strict=False)
        return {index for index, (row, _) in places if row == index}

    def _compare(self) -> set[int]:
        """Ask the formatter, at the price of all the scrollback: join the rows, and read them from the end."""
        joined = self.text().rstrip("\n")
        texts = ["".join(graphemes_of(row)).rstrip(" ") for row in self._read]
        wrapped = set()
        place = len(joined)
        for index in range(max((index for index, text in enumerate(texts) if text), default=0), 0, -1):
            text = texts[index]
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

    def _format(self) -> tuple[bytes, Extras]:
        """Both in one: formatting all the scrollback is what it costs. The state comes last."""
        if self._written is None:
            formatter = evp.Formatter(
                self._terminal,
                format=evp.FormatterFormat.VT,
                unwrap=True,
                scrolling_region=True,
                tabstops=True,
                keyboard=True,
                cursor=True,
                style=True,
                protection=True,
                kitty_keyboard=True,
                charsets=True,
            )
            self._written = _read_state(formatter.format().encode("utf-8", "replace"), self._cols)
        return self._written


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
        found = _REPORTED_FLAGS.search(b"".join(self._last))
        return int(found[1]) if found else 0


def ending_wraps(data: bytes) -> bytes:
    """``data`` in which a row that is erased as a whole is erased to its end too: the same, but that the row does not
    go on in the next one any more. Else the emulator would join what is written in both, once the screen is wider."""
    return data.replace(_ROW_ERASED, _ROW_ERASED + _TO_ITS_END)


_STATE = re.compile(
    rb"(?P<before>(?:\x1b\[[\d;:=]*[mu]|\x1b\[\d\"q|\x1b[()*+].|[\x0e\x0f]|\x1b[no|}~])*+)"
    rb"\x1b\[\d+;\d+H"
    rb"(?P<after>(?:\x1b\[[\d;>]*[rsgGm]|\x1bH)*+)\Z"
)
_STATE_BYTES = 16 * 1024
"""More than the formatter writes behind the cells: tab stops take the most, 8 bytes for each."""
_PLACE = re.compile(rb"\x1b\[\d+;\d+H")
_BEFORE_PLACE = 512
"""More than it writes between the cells and the cursor's position. Looking through more for it is what takes time."""

_PEN = re.compile(rb"\x1b\[[\d;:]*m")
_PROTECTION = re.compile(rb'\x1b\[1"q')
_CHARSETS = re.compile(rb"\x1b[()*+].|[\x0e\x0f]|\x1b[no|}~]")
_DEFAULT_CHARSETS = frozenset({b"\x1b(B", b"\x1b)B", b"\x1b*B", b"\x1b+B", b"\x0f"})
_FLAGS = re.compile(rb"\x1b\[=\d+;\d+u")
_MODIFY_KEYS = re.compile(rb"\x1b\[>4;\d+m")
_TABS = re.compile(rb"\x1b\[3g(?P<stops>(?:\x1b\[\d+G\x1bH)*)")
_REGION = re.compile(rb"\x1b\[(\d+);(\d+)r")
_MARGINS = re.compile(rb"\x1b\[(\d+);(\d+)s")
_TAB_WIDTH = 8


def _read_state(written: bytes, cols: int) -> tuple[bytes, Extras]:
    """Takes apart what the emulator's formatter wrote: the rows, and the state, which comes last, around the cursor's
    position."""
    place = max(len(written) - _STATE_BYTES, 0)
    for found in _PLACE.finditer(written, place):
        place = found.start() - _BEFORE_PLACE
    state = _STATE.search(written, max(place, 0))
    if state is None:
        return written, Extras()
    before, after = state["before"], state["after"]
    pen = b"".join(_PEN.findall(before))
    tabs = _TABS.search(after)
    default_tabs = b"".join(b"\x1b[%dG\x1bH" % (column + 1) for column in range(_TAB_WIDTH, cols - 1, _TAB_WIDTH))
    return written[: state.start()], Extras(
        pen=pen[pen.rfind(b"\x1b[0m") :].removeprefix(b"\x1b[0m"),
        protection=b"".join(_PROTECTION.findall(before)),
        charsets=b"".join(part for part in _CHARSETS.findall(before) if part not in _DEFAULT_CHARSETS),
        keyboard=b"".join(_FLAGS.findall(before) + _MODIFY_KEYS.findall(after)),
        tabs=tabs[0] if tabs and tabs["stops"] != default_tabs else b"",
        region=_bounds(_REGION.search(after)),
        margins=_bounds(_MARGINS.search(after)),
    )


def _bounds(match: re.Match[bytes] | None) -> tuple[int, int] | None:
    return (int(match[1]) - 1, int(match[2]) - 1) if match else None


_TOKEN = re.compile(
    rb"(?P<keeps>\x1b\[[\d;:]*m|\x1b\[\?[\d;]*[hl]|\x1b\[[=>]?[\d;]*[uq]|\x1b\[\d* q"
    rb"|\x1b\][^\x07\x18\x1a\x1b]*(?:\x07|\x1b\\)|\x1b[()*+].|[\x00\x05\x07\x0e\x0f]+)"
    rb"|(?P<moves>\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]|[\x01-\x1f]+)"
    rb"|(?P<prints>[\x20-\x7e\x80-\xff]+)",
    re.DOTALL,
)


def last_printed(tail: bytes) -> str:
    """The last character that ``tail`` prints, if nothing after it moves the cursor; else an empty string.

    A terminal whose last column has just been printed in waits there and wraps at the next character.
    """
    last = b""
    for token in _TOKEN.finditer(tail):
        if token["prints"]:
            last = token["prints"]
        elif token["moves"]:
            last = b""
    return last[-16:].decode("utf-8", "replace")[-1:]


def _blank(style: evp.Style) -> Cell:
    return Cell(
        text=" ",
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
