"""The table of sequences that a program may send to a viewer's terminal. Others do not pass. Pure.

Left out are all questions (only the daemon answers them), definitions of keys and answerbacks (of which an answer could
be made), window operations, and modes in which a terminal reads in another way than `tokenizer`: VT52 (`?2`), Tektronix
(`?38`), national character sets (`?42`) and other encodings (``ESC %``). Nor does a program need a printer, a log file
or a sound.

Numbers are written again without zeros before them, and only the listed modes are kept.
"""

import re
from collections.abc import Mapping
from typing import Final

from synapsed.shared.regex import regex
from synapsed.terminal.tokenizer import (
    PLAIN_CONTROLS,
    PLAIN_ESCAPES,
    ControlSequence,
    ControlString,
    EscapeSequence,
    SystemCommand,
    Token,
)

_ANY: Final = None
_MODES: Final = frozenset(
    {
        *(1, 4, 5, 6, 7, 8, 12, 25, 45, 66, 67, 69, 80, 1034, 1035, 1036, 1045, 1070, 8452),  # keys, cursor, wrapping
        *(47, 1047, 1048, 1049),  # screens
        *(9, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016),  # the mouse, and the focus
        *(2004, 2026, 2027, 2031, 2048),  # pastes, frames, clusters, colours, sizes
    }
)
"""DEC private modes."""

CONTROLS: Final[Mapping[bytes, frozenset[int] | None]] = {
    **{bytes([final]): _ANY for final in PLAIN_CONTROLS},
    **dict.fromkeys((b"J", b"?J", b"?K", b"?W"), _ANY),  # erasing, default tabs
    **dict.fromkeys((b"h", b"l"), frozenset({4, 12, 20})),
    **dict.fromkeys((b"?h", b"?l", b"?r", b"?s"), _MODES),
    **dict.fromkeys((b">m", b">n", b">u", b"<u", b"=u"), _ANY),  # reports of keys
    **dict.fromkeys((b"!p", b" q", b" @", b" A", b'"q', b"'}", b"'~"), _ANY),  # soft reset, cursor's shape, columns
    **dict.fromkeys((b"#p", b"#q", b"#{", b"#}", b"#P", b"#Q"), _ANY),  # colours, put aside and back
    **dict.fromkeys((b"$r", b"$t", b"$v", b"$x", b"$z", b"${", b"*x"), _ANY),  # rectangles
}
"""Control sequences, by their parts that are not numbers: the values that pass, or `_ANY`."""

_ESCAPES = regex(rb"c|%b" % PLAIN_ESCAPES)

_WORDS = rb".*+"
_SET = rb"[^?]*+"
"""Sets colours, or a form. A ``?`` asks for one."""
_NOTE = rb"(?:[defginostuw]=[^:;=]*+=*+|p=(?:title|body|close|icon|buttons))"
_INLINE = rb"(?:(?!inline=)[^:;]*+;)*+inline=1(?:;(?!inline=)[^:;]*+)*+"
"""A picture to be shown; else it is a file to be saved."""

COMMANDS: Final[Mapping[int, re.Pattern[bytes]]] = {
    number: regex(rest, re.DOTALL | re.IGNORECASE)
    for number, rest in {
        **dict.fromkeys((0, 1, 2), _WORDS),  # titles
        **dict.fromkeys((4, 5, *range(10, 20), 21, 104, 105, *range(110, 120)), _SET),
        22: _SET,  # the pointer's shape
        7: _WORDS,  # the current directory
        8: _WORDS,  # links
        9: rb"4(?:;\d*+)*+|(?!\d++(?:;|\Z)).*+",  # progress, or a notification: other numbers run macros and programs
        99: rb"(?:%b(?::%b)*+)?+(?:;.*+)?+" % (_NOTE, _NOTE),  # notifications that report nothing
        133: _WORDS,  # prompts
        777: rb"notify;.*+",
        1337: rb"SetMark|(?:File=%b:|MultipartFile=%b\Z|FilePart=|FileEnd).*+" % (_INLINE, _INLINE),
        7501: rb"(?!\s*+\?\s*+\Z).*+",  # status
    }.items()
}
"""Operating system commands, by number: the allowed text after its semicolon."""

CLIPBOARD: Final[Mapping[int, re.Pattern[bytes]]] = {
    number: regex(rest, re.DOTALL | re.IGNORECASE)
    for number, rest in {
        52: rb"[^;?]*+;[^?]*+",
        5522: rb"type=(?:write|wdata|walias)(?:[:;].*+)?+",
        1337: rb"(?:end)?copy.*+",
    }.items()
}
"""Commands that set the clipboard: a program's words would be pasted later, into a shell perhaps."""

DEVICE_STRINGS: Final = regex(rb"[\d;]*+q.*+|=[12]s", re.DOTALL)
"""Sixel pictures; and frames, in the form before there was a mode for them."""

_GRAPHICS = regex(rb"G((?:[A-Za-z]=[^,;=]*+(?:,|(?=;|\Z)))*+)(;.*+)?+", re.DOTALL)
"""Kitty's pictures: keys, and the content."""

_COMMAND = regex(rb"(?=\d)0*+(\d{0,5}+)(?:;(.*+))?+", re.DOTALL)


def passes(token: Token, *, clipboard: bool) -> Token | None:
    """Returns `token` as a terminal may get it, or None; `clipboard`: the program may set the clipboard."""
    match token:
        case ControlSequence():
            return _control(token)
        case EscapeSequence(rest):
            return token if _ESCAPES.fullmatch(rest) else None
        case SystemCommand():
            return _listed(token, COMMANDS) or (_listed(token, CLIPBOARD) if clipboard else None)
        case ControlString(b"P", body):
            return token if DEVICE_STRINGS.fullmatch(body) else None
        case ControlString(b"_", body):
            return _picture(body)
    return None


def sets_clipboard(token: Token) -> bool:
    return isinstance(token, SystemCommand) and _listed(token, CLIPBOARD) is not None


def _control(token: ControlSequence) -> ControlSequence | None:
    key = token.prefix + token.between + token.final
    if key not in CONTROLS:
        return None
    listed = CONTROLS[key]
    if listed is _ANY:
        return token
    values = [value for value in token.values if value in listed]
    return token._replace(numbers=b";".join(b"%d" % value for value in values)) if values else None


def _listed(command: SystemCommand, table: Mapping[int, re.Pattern[bytes]]) -> SystemCommand | None:
    """Returns `command` with its number as the table has it, or None if it is not there."""
    parts = _COMMAND.fullmatch(command.body)
    if parts is None or (number := int(parts[1] or b"0")) not in table or not table[number].fullmatch(parts[2] or b""):
        return None
    return command._replace(body=b"%d%b" % (number, command.body[parts.end(1) :]))


def _picture(body: bytes) -> ControlString | None:
    """Returns a picture that is in `body` itself, not in a file of the person's; the terminal does not answer."""
    parts = _GRAPHICS.fullmatch(body)
    if parts is None:
        return None
    keys = [key for key in parts[1].split(b",") if key and not key.startswith(b"q=")]
    if any(key == b"a=q" or (key.startswith(b"t=") and key != b"t=d") for key in keys):
        return None
    return ControlString(b"_", b"G%b%b" % (b",".join([*keys, b"q=2"]), parts[2] or b""))
