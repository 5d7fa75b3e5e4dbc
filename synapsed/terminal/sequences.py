"""Where an escape sequence begins and ends, for everything that reads a terminal's output in chunks.

In the state machine of the VT500 (the one terminals share) ESC starts a new sequence in every state, so a chunk is cut
safely at its last ESC: what stands before it is complete. Two things may be open at the end of a chunk: a sequence, or
a string (OSC, DCS, APC, PM, SOS) whose terminator ``ESC \\`` has been cut in two.
"""

import re

MAX_SEQUENCE = 64 * 1024
"""Bytes of an unfinished sequence that are kept back. A longer one is passed on as it comes: no sequence this daemon
reads is near that size (OSC 7501 ends at 4,096), while images and clipboards may be of any."""


# What has no place inside a sequence: control characters are executed at once, bytes beyond ASCII are passed over.
_STRAY = rb"\x00-\x17\x19\x1c-\x1f\x7f-\xff"
_BODY = _STRAY + rb"\x20-\x3f"
_BETWEEN = _STRAY + rb"\x20-\x2f"

# Matched at the last ESC of a chunk, to the chunk's end: the sequence has begun and is not over.
# CAN (0x18) and SUB (0x1a) abort any; BEL ends an OSC.
_UNFINISHED = re.compile(
    rb"\x1b[%b]*+(?:\[[%b]*|\][^\x07\x18\x1a\x1b]*|[PX^_][^\x18\x1a\x1b]*|[%b]*)\Z" % (_STRAY, _BODY, _BETWEEN)
)
# From the ESC before a final ESC, to that one: a string that the final ESC may be about to terminate.
_OPEN_STRING = re.compile(rb"\x1b[%b]*+(?:\][^\x07\x18\x1a\x1b]*|[PX^_][^\x18\x1a\x1b]*)\x1b\Z" % _STRAY)

# Sequences with strays in them, up to their last byte, and strings that are no OSC.
_SPOILT = re.compile(
    rb"\x1b(?:\[[ -?]*+[%b][%b]*+|[%b]*+(?P<string>[PX^_][^\x18\x1a\x1b]*+)|[%b]++(?:\[[%b]*+)?|[ -/]++[%b][%b]*+)"
    % (_STRAY, _BODY, _STRAY, _STRAY, _BODY, _STRAY, _BETWEEN)
)
_STRING = re.compile(rb"\x1b[%b]*+[PX^_]" % _STRAY)
_GOES_ON = re.compile(rb"[^\x18\x1a\x1b]*+")
_HIGH = bytes(range(0x80, 0x100))
_STRAYS = bytes([*range(0x18), 0x19, *range(0x1C, 0x20), 0x7F, *range(0x80, 0x100)])
_NO_CONTROL = bytes([0x18, 0x1A, 0x1B, *range(0x20, 0x100)])

# A sequence that CAN or SUB aborts, with that.
_ABORTED = re.compile(rb"(?:\x1b(?:\[[ -?]*+|\][^\x07\x18\x1a\x1b]*+|[PX^_][^\x18\x1a\x1b]*+|[ -/]*+))?[\x18\x1a]")
_NO_EFFECT = bytes([*range(7), *range(0x10, 0x18), 0x19, *range(0x1C, 0x20), 0x7F])
"""Control characters that terminals pass over. (ENQ asks for an answer, which is empty.)"""

# REP, of so many that it may be more than a screen has cells.
_REPEAT = re.compile(rb"\x1b\[0*+(\d{3,}+)(?=[;:\d]*b)")
_REPEAT_MAX = 65535
"""What terminals take a larger parameter for."""

_ROW_ERASED, _TO_ITS_END = b"\x1b[2K", b"\x1b[K"

C1_LEAD = b"\xc2"
"""The first byte of a C1 control (U+0080 to U+009F) in UTF-8."""

_C1 = re.compile(rb"\xc2[\x80-\x9f]")
_REPLACEMENT = "\ufffd".encode()

_CONTINUATION = range(0x80, 0xC0)
_LONGEST_CHARACTER = 4


def incomplete_sequence(data: bytes) -> int:
    """The offset of the escape sequence that ``data`` ends inside of; ``len(data)`` if it ends in none."""
    end = len(data)
    escape = data.rfind(b"\x1b")
    if escape < 0:
        return end
    if escape == end - 1:
        before = data.rfind(b"\x1b", 0, escape)
        return before if before >= 0 and _OPEN_STRING.match(data, before) else escape
    return escape if _UNFINISHED.match(data, escape) else end


def incomplete_character(data: bytes) -> int:
    """The offset of the UTF-8 character that ``data`` ends inside of; ``len(data)`` if it ends in none."""
    end = len(data)
    for length in range(1, min(_LONGEST_CHARACTER, end + 1)):
        byte = data[end - length]
        if byte in _CONTINUATION:
            continue
        return end - length if length < _character_length(byte) else end
    return end


def _character_length(lead: int) -> int:
    """Bytes of the UTF-8 character that begins with ``lead``; 1 where none does."""
    if 0xC2 <= lead <= 0xDF:
        return 2
    if 0xE0 <= lead <= 0xEF:
        return 3
    if 0xF0 <= lead <= 0xF4:
        return 4
    return 1


def _straight(found: re.Match[bytes]) -> bytes:
    """A sequence without its strays; the control characters among them come first, as they are executed."""
    string = found["string"] or b""
    head = found[0][1 : len(found[0]) - len(string)]
    return head.translate(None, _NO_CONTROL) + b"\x1b" + head.translate(None, _STRAYS) + string.translate(None, _HIGH)


def without_c1(data: bytes) -> bytes:
    """``data`` with each whole C1 control in UTF-8 as U+FFFD. Terminals differ in what they do with one: some begin a
    sequence or a string, most do nothing. What stands for it here has a width that all of them know."""
    return _C1.sub(_REPLACEMENT, data) if C1_LEAD in data else data


def cleaned(data: bytes, *, inside: bool = False) -> bytes:
    """``data``, which ends in no unfinished sequence, without what has no effect, as valid UTF-8.

    Each invalid part of a character becomes U+FFFD, and so does each C1 control. Control characters that do nothing are
    left out, so are sequences that were aborted, and bytes beyond ASCII in a sequence or in a string that is no OSC,
    which some of them would end; control characters in a sequence are put before it. ``inside``: it begins in such a
    string.
    """
    plain = data.isascii()
    if not plain:
        # First of all: a control character, whether it does anything or not, ends the character that it comes into.
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            data = data.decode("utf-8", "replace").encode("utf-8")
        data = without_c1(data)
    data = data.translate(None, _NO_EFFECT)
    if inside and not plain:
        data = _GOES_ON.sub(lambda head: head[0].translate(None, _HIGH), data, count=1)
    if b"\x1b" in data:
        data = _SPOILT.sub(_straight, data)
    if b"\x18" in data or b"\x1a" in data:
        data = _ABORTED.sub(b"", data)
    return data


def fewer_repeats(data: bytes, cols: int, rows: int) -> bytes:
    """``data`` with no character repeated (REP) more often than fills the screen: 65,535 times take milliseconds, for
    eight bytes. The cursor comes to stand where it would."""
    cells = cols * rows

    def bounded(found: re.Match[bytes]) -> bytes:
        count = min(int(found[1][:6]), _REPEAT_MAX)
        return found[0] if count <= cells else b"\x1b[%d" % (cells + (count - cells) % cols)

    return _REPEAT.sub(bounded, data)


def ending_wraps(data: bytes) -> bytes:
    """``data`` in which a row that is erased as a whole is erased to its end too: the same, but that the row does not
    go on in the next one any more. Else the emulator would join what is written in both, once the screen is wider."""
    return data.replace(_ROW_ERASED, _ROW_ERASED + _TO_ITS_END)


def begins_string(sequence: bytes) -> bool:
    """Whether an unfinished ``sequence`` is a string that is no OSC."""
    return _STRING.match(sequence) is not None
