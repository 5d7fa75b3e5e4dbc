"""Rows of cells and the state around them, as the bytes that draw them again; `Screen.redraw` joins them.

The emulator has a formatter for this, which is used where it is correct: for the scrollback, because it is fast, and
for state that has no other source (tab stops, margins, character sets, keyboard flags, the pen). It is not used for the
visible rows, because it leaves out rows that have colour and no text. Its own order is not used either: it places the
cursor before it sets the scrolling region, which moves the cursor home.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, groupby
from operator import itemgetter
from typing import Protocol

from synapsed.shared.regex import regex
from synapsed.terminal.snapshot import DEC, DEC_DEFAULT, Cell, Modes

RESET = b"\x1b[?69l\x1b[?6l\x1b[4l\x1b[20l\x1b[?7h\x1b[r\x1b(B\x0f\x1b[m"
"""Puts a terminal into the state in which `Grid.paint` is right: margins, modes, character set and pen as at first."""

_ATTRIBUTES = (
    ("bold", b"1"),
    ("dim", b"2"),
    ("italic", b"3"),
    ("blink", b"5"),
    ("inverse", b"7"),
    ("invisible", b"8"),
    ("strikethrough", b"9"),
    ("overline", b"53"),
)


def sgr(style: Cell) -> bytes:
    """Returns the sequence that sets the pen to ``style`` from any other; palette indexes stay indexes."""
    parts = [b"0"]
    parts += [code for name, code in _ATTRIBUTES if getattr(style, name)]
    if style.underline:
        parts.append(b"4" if style.underline == 1 else b"4:%d" % style.underline)
    parts += _color(style.fg, 30, b"38")
    parts += _color(style.bg, 40, b"48")
    # Only the colon form is safe here: terminals without underline colours would read 58;5;n as three attributes.
    match style.underline_color:
        case int(index):
            parts.append(b"58:5:%d" % index)
        case (red, green, blue):
            parts.append(b"58:2::%d:%d:%d" % (red, green, blue))
    return b"\x1b[" + b";".join(parts) + b"m" if len(parts) > 1 else b"\x1b[m"


def _color(color: int | tuple[int, int, int] | None, base: int, extended: bytes) -> list[bytes]:
    match color:
        case None:
            return []
        case int(index) if index < 8:
            return [b"%d" % (base + index)]
        case int(index) if index < 16:
            return [b"%d" % (base + 52 + index)]
        case int(index):
            return [extended + b";5;%d" % index]
        case (red, green, blue):
            return [extended + b";2;%d;%d;%d" % (red, green, blue)]


class Cells(Protocol):
    """A row of the emulator, or a part of one."""

    @property
    def graphemes(self) -> Sequence[str]: ...
    @property
    def widths(self) -> bytes: ...
    @property
    def styles(self) -> Sequence[int]: ...


_WHOLE = regex(rb"\x01*+(?:(?:\x02\x00)++\x01*+)*+")
"""The widths of a row in which every wide character has both of its columns."""
_WIDE = bytes(width == 2 for width in range(256))


def graphemes_of(row: Cells) -> Sequence[str]:
    """Returns the text of each column, an empty string in the second one of a wide character and only there. Narrowing
    and overwriting leave halves of wide characters behind, which would print as wide or as nothing."""
    graphemes, widths = row.graphemes, row.widths
    if _WHOLE.fullmatch(widths) and " " not in compress(graphemes, widths.translate(_WIDE)):
        return graphemes
    whole = list(graphemes)
    for index, width in enumerate(widths):
        if width == 2:
            broken = graphemes[index] == " " or widths[index + 1 : index + 2] != b"\0"
        else:
            broken = width == 0 and (index == 0 or widths[index - 1] != 2 or whole[index - 1] == " ")
        if broken:
            whole[index] = " "
    return whole


def render_row(row: Cells, pens: Sequence[bytes], *, full: bool, spacer: bool = False) -> bytes:
    """Returns one row's cells, printed from its first column with the default pen, which is set again at the end.
    ``pens[n]`` sets the pen to style n; ``b""`` is the default style. With ``full`` the row is printed to its last
    column, so that printing on wraps into the next, or to the last but one if that is a ``spacer`` before a wide
    character; without, blank cells at its end are erased."""
    graphemes, styles = graphemes_of(row), row.styles
    end = len(graphemes) - spacer
    if not full:
        while end and graphemes[end - 1] == " " and not pens[styles[end - 1]]:
            end -= 1
    out: list[bytes] = []
    for style, cells in groupby(zip(styles[:end], graphemes, strict=False), itemgetter(0)):
        text = "".join(map(itemgetter(1), cells)).encode("utf-8", "replace")
        pen = pens[style]
        out.append(pen + text + b"\x1b[m" if pen else text)
    if not full and end < len(graphemes):
        out.append(b"\x1b[K")
    return b"".join(out)


@dataclass(frozen=True, slots=True)
class Extras:
    """The state of a terminal that only its formatter reports, each part as the bytes that set it, or empty. ``region``
    is (top, bottom) and ``margins`` (left, right), from 0, both inclusive; None: the whole screen."""

    pen: bytes = b""
    protection: bytes = b""
    charsets: bytes = b""
    keyboard: bytes = b""
    tabs: bytes = b""
    region: tuple[int, int] | None = None
    margins: tuple[int, int] | None = None


_PEN = regex(rb"\x1b\[[\d;:]*m")
_BLANKS_BYTES = 16 * 1024
"""Bytes at the end of the content that are searched for rows of spaces."""


def blank_rows_below(content: bytes, cols: int, used: int) -> int:
    """Returns the number of rows without text at the end of ``content``: rows that were written, but with spaces only.
    ``used`` is the number of columns of the text in the row before them."""
    tail, blank = content[-_BLANKS_BYTES:], b""
    while tail:
        text = tail.rstrip(b" \r\n")
        blank = tail[len(text) :] + blank
        pen = text.rfind(b"\x1b")
        if pen < 0 or not _PEN.fullmatch(text, pen):
            break
        tail = text[:pen]
    # More spaces than fit are several rows, joined.
    lengths = [len(spaces) for spaces in blank.split(b"\r\n")]
    lengths[0] += used
    return len(lengths) - 1 + sum(max(length - 1, 0) // cols for length in lengths)


_DRAWN_FIRST = frozenset({6, 25, 69, 2027})
_NOT_RESTORED = frozenset({3, 40, 47, 1047, 1048, 1049})
"""132 columns, the alternate screen and the saved cursor: setting one of these modes is an action, not a state."""

_PLAIN_MODES = tuple(mode for mode in DEC if mode not in _DRAWN_FIRST | _NOT_RESTORED)


def settings(modes: Modes, extras: Extras) -> bytes:
    """Returns the bytes for modes, tab stops, margins and scrolling region, in an order in which none undoes another.
    The cursor is at home afterwards, and 4 (insert) and 25 (the visible cursor) are still to be set."""
    out = [
        b"\x1b[?%d%c" % (mode, ord("h" if mode in modes.dec else "l"))
        for mode in _PLAIN_MODES
        if (mode in modes.dec) != (mode in DEC_DEFAULT)
    ]
    out += [b"\x1b[%dh" % mode for mode in (2, 20) if mode in modes.ansi]
    if 12 not in modes.ansi:
        out.append(b"\x1b[12l")
    out.append(extras.tabs)
    if extras.region:
        out.append(b"\x1b[%d;%dr" % (extras.region[0] + 1, extras.region[1] + 1))
    if 69 in modes.dec:
        out.append(b"\x1b[?69h")
    if extras.margins:
        out.append(b"\x1b[%d;%ds" % (extras.margins[0] + 1, extras.margins[1] + 1))
    if 6 in modes.dec:
        out.append(b"\x1b[?6h")
    return b"".join(out)


def place(cursor: tuple[int, int], modes: Modes, extras: Extras) -> bytes:
    """Returns the sequence that moves the cursor to (row, column) of the screen; in mode 6 these count from the
    margins."""
    row, column = cursor
    if 6 in modes.dec:
        row -= extras.region[0] if extras.region else 0
        column -= extras.margins[0] if extras.margins else 0
    return b"\x1b[%d;%dH" % (row + 1, column + 1)


type _RGB = tuple[int, int, int]


def colors(now: tuple[_RGB, _RGB, bytes], default: tuple[_RGB, _RGB, bytes]) -> bytes:
    """Returns the sequences that set foreground, background and palette if they are no longer the default."""
    out = [
        b"\x1b]%d;rgb:%02x/%02x/%02x\x1b\\" % (number, *color)
        for number, color, usual in zip((10, 11), now, default, strict=False)
        if isinstance(color, tuple) and color != usual
    ]
    palette, usual_palette = now[2], default[2]
    if palette != usual_palette:
        for index in range(256):
            entry = palette[3 * index : 3 * index + 3]
            if entry != usual_palette[3 * index : 3 * index + 3]:
                out.append(b"\x1b]4;%d;rgb:%02x/%02x/%02x\x1b\\" % (index, *entry))
    return b"".join(out)
