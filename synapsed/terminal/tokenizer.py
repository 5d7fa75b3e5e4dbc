"""Takes a terminal's output apart as the state machine of the VT500 does, which terminals share. Pure.

`Tokenizer.take` cuts a stream, fed in any chunks, after its last whole character and sequence; `tokens` reads the
sequences of such a piece. The text between them is not examined: ESC begins a new sequence in every state, so the
expression engine jumps from one to the next. It also jumps over the sequences of `PLAIN_CONTROLS` and `PLAIN_ESCAPES`,
which fill most output and only change its look.

Control characters inside a sequence are executed where it stands, before it, or passed over inside a string; CAN and
SUB abort it, and so does an ESC that does not end a string; DEL and bytes beyond ASCII are passed over. The C1 controls
have no form of their own here: their bytes are not valid UTF-8, and their characters are U+FFFD (`cleaned`).
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from synapsed.shared.regex import regex

MAX_SEQUENCE: Final = 64 * 1024
"""Default limit of bytes of a string; a longer one is dropped up to its end, as is a longer sequence than
`MAX_CONTROL`."""

MAX_CONTROL: Final = 8 * 1024

PLAIN_CONTROLS: Final = rb"@ABCDEFGHIKLMPSTXZ`abdefgmrsu"
"""Final characters of control sequences with numbers alone: colours, the cursor, inserting and deleting, regions."""

PLAIN_ESCAPES: Final = rb"[78=>DEHMNOno|}~]|[()*+][0-~]|[-./][0-~]|\#[34568]"
"""The same for plain ESC sequences: the saved cursor, keypads, tabs, character sets, sizes of lines."""

_STRAY = rb"\x00-\x17\x19\x1c-\x1f\x7f-\xff"
"""Characters that have no place in a sequence."""
_OSC = rb"\][^\x07\x18\x1a\x1b]*+"
_STRING = rb"[PX^_][^\x18\x1a\x1b]*+"
_GRAMMAR = (
    rb"\x1b%%b(?:\[(?P<prefix>[<-?]?+)(?P<numbers>[\d:;]*+)(?P<between>[ -/]*+)(?P<final>[@-~])"
    rb"|\](?P<command>[^\x07\x18\x1a\x1b]*+)(?:(?P<bel>\x07)|\x1b\\)"
    rb"|(?P<kind>[PX^_])(?P<string>[^\x18\x1a\x1b]*+)\x1b\\"
    rb"|(?P<escape>[ -/]++[0-~]|[0-OQ-WYZ\\`-~])"
    rb"|(?P<lead>[%b]*+)(?P<tail>%b(?:\x07|\x1b\\)?+|%b(?:\x1b\\)?+)"
    rb"|(?P<spoilt>[%b]*+(?:\[[%b -?]*+[@-~]?+|[%b -/]*+[0-~]?+)))" % (_STRAY, _OSC, _STRING, _STRAY, _STRAY, _STRAY)
)
"""The last two alternatives are strings and other sequences that have strays in them, or were aborted."""

_STRING_GROUPS: Final = frozenset({"command", "bel", "string", "tail"})
"""Groups of a match that can be the last one of a string."""
_SEQUENCE = regex(_GRAMMAR % (rb"(?!\[[\d;:]*+[%b]|%b)" % (PLAIN_CONTROLS, PLAIN_ESCAPES)))
_STRAIGHT = regex(_GRAMMAR % b"")
_CROOKED = regex(
    _GRAMMAR % rb"(?!\[[<-?]?+[\d:;]{0,256}+[ -/]{0,8}+[@-~]|[ -/]{0,8}+[0-OQ-WYZ\\`-~]"
    rb"|\][^\x00-\x1f\x7f]{0,512}+(?:\x07|\x1b\\))"
)
"""Skips all sequences in their proper form."""

# Matched at the last ESC of a piece, to its end: the sequence has begun and is not over.
_UNFINISHED = regex(
    rb"\x1b[%b]*+(?:(?P<control>\[[%b -?]*+)|(?P<command>%b)|(?P<string>%b)|[%b -/]*+)\Z"
    % (_STRAY, _STRAY, _OSC, _STRING, _STRAY)
)
# From the ESC before a last ESC, to that one, which may be about to end a string.
_OPEN_STRING = regex(rb"\x1b[%b]*+(?:%b|%b)\x1b\Z" % (_STRAY, _OSC, _STRING))
_ENDS: Final = {
    "control": regex(rb"[\x18\x1a\x1b@-~]"),
    "command": regex(rb"[\x07\x18\x1a\x1b]"),
    "string": regex(rb"[\x18\x1a\x1b]"),
    "escape": regex(rb"[\x18\x1a\x1b0-~]"),
}
"""The end of each kind of sequence."""
_STRINGS: Final = ("command", "string")

_HIGH = bytes(range(0x80, 0x100))
_CONTROLS = bytes([*range(0x20), 0x7F])
_NOT_EXECUTED = bytes([*range(7), *range(0x10, 0x100)])
_STRAYS = bytes([*range(0x18), 0x19, *range(0x1C, 0x20), 0x7F, *range(0x80, 0x100)])

_NO_EFFECT = bytes([*range(7), *range(0x10, 0x1B), *range(0x1C, 0x20), 0x7F])
"""Control characters that terminals pass over, outside of sequences. (ENQ asks for an answer.)"""
NOTHING: Final = b"\x00"
"""Stands for removed bytes, until the text is `cleaned`: the bytes around them must not become one character."""

_C1_LEAD = b"\xc2"
_C1 = regex(rb"\xc2[\x80-\x9f]")
_REPLACEMENT = "\ufffd".encode()
_INCOMPLETE = regex(rb"(?:[\xc2-\xf4]|[\xe0-\xf4][\x80-\xbf]|[\xf0-\xf4][\x80-\xbf]{2})\Z")
"""The beginning of a character whose end is missing."""


class ControlSequence(NamedTuple):
    """A control sequence, ``CSI``: `prefix` is one of ``<=>?`` or empty, `numbers` are digits, ``;`` and ``:``."""

    prefix: bytes
    numbers: bytes
    between: bytes
    final: bytes

    def __bytes__(self) -> bytes:
        return b"\x1b[%b%b%b%b" % self

    @property
    def values(self) -> list[int]:
        """Returns the numbers, without those that have parts; of a number with too many digits, the first few."""
        return [int(number.lstrip(b"0")[:9] or b"0") for number in self.numbers.split(b";") if b":" not in number]


class EscapeSequence(NamedTuple):
    """``ESC``, and all the rest of the sequence."""

    rest: bytes

    def __bytes__(self) -> bytes:
        return b"\x1b" + self.rest


class SystemCommand(NamedTuple):
    """An operating system command, ``OSC``; `bel`: it was ended by BEL."""

    body: bytes
    bel: bool

    def __bytes__(self) -> bytes:
        return b"\x1b]%b%b" % (self.body, b"\x07" if self.bel else b"\x1b\\")


class ControlString(NamedTuple):
    """``DCS``, ``SOS``, ``PM`` or ``APC``: `kind` is the letter after ESC."""

    kind: bytes
    body: bytes

    def __bytes__(self) -> bytes:
        return b"\x1b%b%b\x1b\\" % self


type Token = ControlSequence | EscapeSequence | SystemCommand | ControlString

type Found = tuple[int, int, bytes, Token | None]
"""A sequence: its beginning and end, the control characters in it that are executed, and its token, or None if it was
aborted, is too long, or has an invalid form."""

SHORT: Final = 48
"""Most bytes of a sequence whose token is remembered: programs write the same sequences over and over."""
REMEMBERED: Final = 2048


def tokens(whole: bytes, limit: int = MAX_SEQUENCE, *, without: re.Pattern[bytes] = _SEQUENCE) -> Iterator[Found]:
    """Yields the sequences of `whole`, which `Tokenizer.take` gave, as the expression `without` finds them: by default
    without the plain ones."""
    for match in without.finditer(whole):
        start, end = match.span()
        if end - start <= SHORT:
            yield start, end, *_remembered(match[0])
        elif end - start <= (limit if match.lastgroup in _STRING_GROUPS else MAX_CONTROL):
            yield start, end, *_parsed(match)
        else:
            yield start, end, b"", None


@lru_cache(REMEMBERED)
def _remembered(sequence: bytes) -> tuple[bytes, Token | None]:
    match = _STRAIGHT.fullmatch(sequence)
    return _parsed(match) if match is not None else (b"", None)


def _parsed(match: re.Match[bytes]) -> tuple[bytes, Token | None]:
    """Returns the executed control characters of a sequence, and its token."""
    straight: re.Match[bytes] | None = match
    executed = b""
    if (tail := match["tail"]) is not None:
        executed, straight = match["lead"], _STRAIGHT.fullmatch(b"\x1b" + tail)
    elif (spoilt := match["spoilt"]) is not None:
        executed, straight = spoilt, _STRAIGHT.fullmatch(b"\x1b" + spoilt.translate(None, _STRAYS))
    return executed.translate(None, _NOT_EXECUTED), _token(straight) if straight is not None else None


def _token(match: re.Match[bytes]) -> Token | None:
    if (final := match["final"]) is not None:
        return ControlSequence(match["prefix"], match["numbers"], match["between"], final)
    if (command := match["command"]) is not None:
        return SystemCommand(command.translate(None, _CONTROLS), match["bel"] is not None)
    if (string := match["string"]) is not None:
        return ControlString(match["kind"], string.translate(None, _CONTROLS + _HIGH))
    escape = match["escape"]
    return EscapeSequence(escape) if escape is not None else None


def straightened(whole: bytes) -> bytes:
    """Returns `whole`, which `Tokenizer.take` gave, with each sequence in its proper form, and `cleaned`."""
    parts, at = [], 0
    for start, end, executed, token in tokens(whole, without=_CROOKED):
        parts += [whole[at:start], executed, bytes(token) if token is not None else NOTHING]
        at = end
    return cleaned(b"".join([*parts, whole[at:]]) if parts else whole)


def cleaned(data: bytes) -> bytes:
    """Returns `data`, whole sequences and text, as valid UTF-8, without control characters that do nothing. Each
    invalid part of a character becomes U+FFFD, and so does each C1 control: terminals treat these differently (some
    begin a sequence, most do nothing), and the replacement has the same width in all of them."""
    if not data.isascii():
        # This comes first, because a control character without effect, too, ends an unfinished character.
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            data = data.decode("utf-8", "replace").encode("utf-8")
        if _C1_LEAD in data:
            data = _C1.sub(_REPLACEMENT, data)
    return data.translate(None, _NO_EFFECT)


class Tokenizer:
    """Cuts a stream at allowed places; one for each stream. Any chunking gives the same sequences and the same text. An
    unfinished sequence waits for its end, a string of at most `limit` bytes. A longer one is dropped as a whole."""

    def __init__(self, limit: int = MAX_SEQUENCE) -> None:
        self._limit = limit
        self._held = bytearray()
        self._inside: re.Pattern[bytes] | None = None
        """Pattern for the end of the string that is held, or that is being dropped."""
        self._drops = False
        """True while a sequence goes on that is too long."""
        self.begin = 0
        """Offset in the chunk of the data that was taken last, below 0 if it began earlier."""

    @property
    def pending(self) -> bytes:
        """The end of the stream so far, if it is an unfinished sequence or character."""
        return bytes(self._held)

    def take(self, data: bytes) -> bytes:
        """Returns the data that is whole now, unchanged, and follows the data returned before."""
        dropped = 0
        if self._inside is not None:
            found = self._inside.search(data)
            if found is None:
                if not self._drops:
                    self._held += data
                    self._bound(self._inside, len(self._held), self._limit)
                return b""
            if self._drops:
                dropped = found.start() if found[0] == b"\x1b" else found.end()
                data = data[dropped:]
            self._inside, self._drops = None, False
        self.begin = dropped - len(self._held)
        if self._held:
            data = bytes(self._held) + data
        cut = self._cut(data)
        return data[:cut]

    def _cut(self, data: bytes) -> int:
        """Returns the offset of the unfinished sequence or character at the end of `data`, which is held; without one,
        the length of `data`."""
        end = len(data)
        cut = escape = data.rfind(b"\x1b")
        unfinished = _UNFINISHED.match(data, escape) if escape >= 0 else None
        if escape == end - 1 and (before := data.rfind(b"\x1b", 0, end - 1)) >= 0 and _OPEN_STRING.match(data, before):
            cut = before
        elif unfinished is None:
            cut = _incomplete_character(data)
        self._held[:] = data[cut:]
        if cut < escape:
            if escape - cut > self._limit:
                self._held[:] = b"\x1b"
        elif unfinished is not None:
            kind = unfinished.lastgroup or "escape"
            if kind in _STRINGS:
                self._inside = _ENDS[kind]
            self._bound(_ENDS[kind], end - cut, self._limit if kind in _STRINGS else MAX_CONTROL)
        return cut

    def _bound(self, ending: re.Pattern[bytes], size: int, most: int) -> None:
        """Drops the held sequence if it is too long, and its rest up to the end that `ending` finds."""
        if size > most:
            self._held.clear()
            self._inside, self._drops = ending, True


def _incomplete_character(data: bytes) -> int:
    """Returns the offset of an unfinished UTF-8 character at the end of `data`; without one, the length of `data`."""
    found = _INCOMPLETE.search(data, max(0, len(data) - 3))
    return found.start() if found is not None else len(data)
