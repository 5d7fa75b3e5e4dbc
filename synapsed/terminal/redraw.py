"""Rows of cells and the state around them, as the bytes that draw them again; `Screen.redraw` joins them.

The emulator has a formatter for this, which is used where it is right: for the scrollback, at its own speed, and for
the state that nothing else tells (tab stops, margins, character sets, keyboard flags, the pen). It is not used for the
visible rows, because it leaves out rows that hold colour and no text, and not in its own order, because it sets the
scrolling region, which homes the cursor, after placing the cursor.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, groupby
from operator import itemgetter
from typing import Protocol

import evp

from synapsed.terminal.snapshot import DEC, DEC_DEFAULT, Modes

RESET = b"\x1b[?69l\x1b[?6l\x1b[4l\x1b[20l\x1b[?7h\x1b[r\x1b(B\x0f\x1b[m"
"""Puts a terminal into the state in which `Grid.paint` is right: margins, modes, character set and pen as at first."""

_ATTRIBUTES = (
    ("bold", b"1"),
    ("faint", b"2"),
    ("italic", b"3"),
    ("blink", b"5"),
    ("inverse", b"7"),
    ("invisible", b"8"),
    ("strikethrough", b"9"),
    ("overline", b"53"),
)


def sgr(style: evp.Style) -> bytes:
    """The sequence that sets the pen to ``style`` from any other; palette indexes stay indexes."""
    parts = [b"0"]
    parts += [code for name, code in _ATTRIBUTES if getattr(style, name)]
    if style.underline:
        parts.append(b"4" if style.underline == 1 else b"4:%d" % style.underline)
    parts += _color(style.foreground, 30, b"38")
    parts += _color(style.background, 40, b"48")
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
    """A row of the emulator (`evp.Row`), or a part of one."""

    @property
    def graphemes(self) -> Sequence[str]: ...
    @property
    def widths(self) -> bytes: ...
    @property
    def styles(self) -> Sequence[int]: ...


_WHOLE = re.compile(rb"\x01*+(?:(?:\x02\x00)++\x01*+)*+")
"""The widths of a row in which every wide character has both of its columns."""
_WIDE = bytes(width == 2 for width in range(256))


def graphemes_of(row: Cells) -> Sequence[str]:
    """What stands in each column, an empty string in the second one of a wide character and only there.

    Narrowing and overwriting leave halves of wide characters behind, which would print as wide or as nothing.
    """
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
    """One row's cells, printed from its first column with the default pen, which they leave behind.

    ``pens[n]`` sets the pen to style n; ``b""`` is the default style. With ``full`` the row is printed to its last
    column, so that printing on wraps into the next, or to the last but one if that is a ``spacer`` before a wide
    character; without, blank cells at its end are erased.
    """
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
    """The state of a terminal that only its formatter tells, each part as the bytes that set it, or empty.

    ``region`` is (top, bottom) and ``margins`` (left, right), from 0, both inclusive; None: the whole screen.
    """

    pen: bytes = b""
    protection: bytes = b""
    charsets: bytes = b""
    keyboard: bytes = b""
    tabs: bytes = b""
    region: tuple[int, int] | None = None
    margins: tuple[int, int] | None = None


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


def read_terminal(terminal: evp.Terminal, cols: int) -> tuple[bytes, Extras]:
    """What the formatter writes: the active screen below its scrollback, wrapped rows joined, and the state around it.

    Both in one: formatting all the scrollback is what it costs. The state comes last, around the cursor's position.
    """
    formatter = evp.Formatter(
        terminal,
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
    written = formatter.format().encode("utf-8", "replace")
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


def blank_rows_below(content: bytes, cols: int, used: int) -> int:
    """How many rows without text ``content`` ends in: rows that were written, but with spaces only.

    ``used`` is how many columns the text of the row before them takes.
    """
    tail, blank = content[-_STATE_BYTES:], b""
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


def _bounds(match: re.Match[bytes] | None) -> tuple[int, int] | None:
    return (int(match[1]) - 1, int(match[2]) - 1) if match else None


_DRAWN_FIRST = frozenset({6, 25, 69, 2027})
_NOT_RESTORED = frozenset({3, 40, 47, 1047, 1048, 1049})
"""132 columns, the alternate screen and the saved cursor: acts more than states."""

_PLAIN_MODES = tuple(mode for mode in DEC if mode not in _DRAWN_FIRST | _NOT_RESTORED)


def settings(modes: Modes, extras: Extras) -> bytes:
    """Modes, tab stops, margins and scrolling region, in an order in which none undoes another.

    The cursor is at home afterwards, and 4 (insert) and 25 (the visible cursor) are still to be set.
    """
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
    """The sequence that moves the cursor to (row, column) of the screen, which counts from the margins in mode 6."""
    row, column = cursor
    if 6 in modes.dec:
        row -= extras.region[0] if extras.region else 0
        column -= extras.margins[0] if extras.margins else 0
    return b"\x1b[%d;%dH" % (row + 1, column + 1)


type _RGB = tuple[int, int, int]


def colors(
    now: tuple[_RGB, _RGB, bytes],
    default: tuple[_RGB, _RGB, bytes],
) -> bytes:
    """The sequences that set foreground, background and palette where they are no longer the default."""
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


_TOKEN = re.compile(
    rb"(?P<keeps>\x1b\[[\d;:]*m|\x1b\[\?[\d;]*[hl]|\x1b\[[=>]?[\d;]*[uq]|\x1b\[\d* q"
    rb"|\x1b\][^\x07\x18\x1a\x1b]*(?:\x07|\x1b\\)|\x1b[()*+].|[\x00\x05\x07\x0e\x0f]+)"
    rb"|(?P<moves>\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]|[\x01-\x1f]+)"
    rb"|(?P<prints>[\x20-\x7e\x80-\xff]+)",
    re.DOTALL,
)


def last_printed(tail: bytes) -> str:
    """The last character that ``tail`` prints, if nothing after it moves the cursor; else an empty string.

    A terminal whose last column has just been printed in waits there and wraps at the next character. The emulator
    does not say whether it waits.
    """
    last = b""
    for token in _TOKEN.finditer(tail):
        if token["prints"]:
            last = token["prints"]
        elif token["moves"]:
            last = b""
    return last[-16:].decode("utf-8", "replace")[-1:]
