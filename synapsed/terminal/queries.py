"""Answers to a program's queries of its terminal.

The daemon itself gives every answer: about colours, the size of a cell and the keyboard with the values of the viewer's
terminal (`OuterTerminal`), about all else in the same way with or without a viewer. Some questions stay unanswered on
purpose:

- the kitty keyboard protocol, unless the viewer's terminal speaks it: programs that get an answer change the encoding
  of keys;
- the clipboard, the window's title and graphics: by a query, hostile output could have their content typed. For the
  same reason an answer repeats only numbers of the query.
"""

import re
from collections.abc import Callable

from synapsed import __version__
from synapsed.model.outer_terminal import OuterTerminal, Rgb, is_light
from synapsed.shared.regex import regex
from synapsed.terminal.scanner import QueryKind, QueryReceived
from synapsed.terminal.snapshot import ScreenSnapshot

CELL_PIXELS = (8, 16)
"""Width and height of a cell if no terminal has reported its own: that of a common font."""

VERSION = f"synapsed {__version__}"
"""The answer to XTVERSION. Programs look for names they know, and do not know this one."""

_FIXED = {
    QueryKind.DEVICE_ATTRIBUTES: b"\x1b[?62;22c",  # a VT220 with colours
    QueryKind.SECONDARY_ATTRIBUTES: b"\x1b[>1;10;0c",
    QueryKind.VERSION: b"\x1bP>|%b\x1b\\" % VERSION.encode("ascii"),
    QueryKind.SETTING: b"\x1bP0$r\x1b\\",  # "no such setting"
}
_OF_SCREEN = frozenset({QueryKind.DEVICE_STATUS, QueryKind.MODE, QueryKind.WINDOW, QueryKind.COLOR})
_READY = b"\x1b[0n"
_HEXADECIMAL = regex(r"[0-9A-Fa-f;]{1,256}")
_DARK, _LIGHT = 1, 2

NOBODY = OuterTerminal()
"""No viewer's terminal has reported anything."""

_FOREGROUND, _BACKGROUND, _CURSOR_COLOR = "10", "11", "12"

_ANSWERS = regex(
    rb"(?:\x1b\[[?>]?[\d;]{0,64}\$?[cnRyt]"
    rb"|\x1b\[\?\d{1,3}u"
    rb"|\x1bP(?:>\|%b|0\$r|0\+r[0-9A-Fa-f;]{1,256})\x1b\\"
    rb"|\x1b\](?:7501;\?|(?:4;\d{1,3}|1[012]);rgb:[0-9a-f]{4}/[0-9a-f]{4}/[0-9a-f]{4})(?:\x07|\x1b\\))+"
    % re.escape(VERSION.encode("ascii"))
)


_UNLIKE_WORDS = (
    r"(?>[?>]?\d*(?:;\d+)+\$?[cnRyt]"
    r"|>?\|synapsed \d++(?:\.\w++)*+"
    r"|(?:(?:4;\d{1,3}|1[012]);)?rgb:[0-9a-f]{4}/[0-9a-f]{4}/[0-9a-f]{4})"
)
_LEFT = regex(rf"(?:{_UNLIKE_WORDS}|(?>[?>]?\d{{0,4}}[nR]|[01]\$r|7501;\?|\^\[P?|\^G|[\[\]\\])|\s)++")
"""Answers as they are shown, or as a line editor has left them, which removes sequences that begin or end like a key. A
program may show any text, so the expression never tries anything in two ways."""
_SURE = regex(_UNLIKE_WORDS)


def are_answers(text: str) -> bool:
    """Returns True if `text`, which stands in the place of typed text, has only results of `answer`: the program that
    asked was gone when they came. A single letter that a key may have typed proves nothing."""
    return _LEFT.fullmatch(text) is not None and _SURE.search(text) is not None


def is_answer(data: bytes) -> bool:
    """Returns True if `data` may be a result of `answer`; no other output of an emulator is typed for a program."""
    return _ANSWERS.fullmatch(data) is not None


def answer(
    query: QueryReceived,
    look: Callable[[], ScreenSnapshot],
    outer: OuterTerminal = NOBODY,
    keyboard: Callable[[], int] = int,
) -> bytes | None:
    """Returns the bytes to write to the program, or None. ``look`` gives the screen as it was when the query came: feed
    it up to ``query.end`` first. It is called only if the answer depends on it; so is ``keyboard``, for the flags of
    the kitty keyboard protocol that are set."""
    fixed = _FIXED.get(query.kind)
    if fixed is not None:
        return fixed
    if query.kind in _OF_SCREEN:
        return _answer_of(query, look(), outer.cell or CELL_PIXELS)
    if query.kind is QueryKind.KEYBOARD and outer.keyboard:
        return b"\x1b[?%du" % keyboard()
    if query.kind is QueryKind.STATUS_SUPPORT:
        return b"\x1b]7501;?" + _terminator(query)
    if query.kind is QueryKind.TERMCAP and _HEXADECIMAL.fullmatch(query.body):
        return b"\x1bP0+r%b\x1b\\" % query.body.encode("ascii")
    return None


def _answer_of(query: QueryReceived, screen: ScreenSnapshot, cell: tuple[int, int]) -> bytes | None:
    match query.kind:
        case QueryKind.DEVICE_STATUS:
            return _device_status(query.body, screen)
        case QueryKind.MODE:
            return _mode(query.body, screen)
        case QueryKind.WINDOW:
            return _window(query.body, screen, cell)
        case _:
            return _color(query, screen)


def scheme(background: Rgb) -> bytes:
    """Returns the report of a dark or light terminal for a program."""
    return b"\x1b[?997;%dn" % (_LIGHT if is_light(background) else _DARK)


def _terminator(query: QueryReceived) -> bytes:
    return b"\x07" if query.bel else b"\x1b\\"


def _device_status(body: str, screen: ScreenSnapshot) -> bytes | None:
    row, column = screen.cursor
    match body:
        case "5":
            return _READY
        case "6":
            return b"\x1b[%d;%dR" % (row + 1, column + 1)
        case "?6":
            return b"\x1b[?%d;%d;1R" % (row + 1, column + 1)
        case "?996":
            return scheme(screen.background)
        case _:
            return None


def _mode(body: str, screen: ScreenSnapshot) -> bytes | None:
    """Returns DECRPM: 1 set, 2 reset, 0 not known."""
    private = body.startswith("?")
    number = body.removeprefix("?")
    if not number.isdecimal():  # none, or several
        return None
    # A number with more digits than any mode has is echoed without being read.
    state = screen.modes.state(int(number), ansi=not private) if len(number) <= 5 else None
    value = 0 if state is None else 1 if state else 2
    return b"\x1b[%b;%d$y" % (body.encode("ascii"), value)


def _window(body: str, screen: ScreenSnapshot, cell: tuple[int, int]) -> bytes | None:
    width, height = cell
    match body.partition(";")[0]:
        case "14":
            return b"\x1b[4;%d;%dt" % (screen.rows * height, screen.cols * width)
        case "16":
            return b"\x1b[6;%d;%dt" % (height, width)
        case "18":
            return b"\x1b[8;%d;%dt" % (screen.rows, screen.cols)
        case _:
            return None


def _color(query: QueryReceived, screen: ScreenSnapshot) -> bytes | None:
    """Returns the colours. OSC 10, 11 and 12 answer for themselves; OSC 4 for each palette entry in the query."""
    number, *values = query.body.split(";")
    if number == "4":
        pairs = zip(values[::2], values[1::2], strict=False)
        indexes = [int(index) for index, value in pairs if value == "?" and index.isdecimal() and len(index) <= 3]
        answers = (
            b"\x1b]4;%d;%b%b" % (index, _rgb(screen.palette[3 * index : 3 * index + 3]), _terminator(query))
            for index in indexes
            if index < len(screen.palette) // 3
        )
        return b"".join(answers) or None
    color = {
        _FOREGROUND: screen.foreground,
        _BACKGROUND: screen.background,
        _CURSOR_COLOR: screen.foreground,
    }.get(number)
    if color is None or values != ["?"]:
        return None
    return b"\x1b]%b;%b%b" % (number.encode("ascii"), _rgb(bytes(color)), _terminator(query))


def _rgb(color: bytes) -> bytes:
    """Returns the colour in X11's form, with 16 bits a channel."""
    return b"rgb:" + b"/".join(b"%02x%02x" % (channel, channel) for channel in color)
