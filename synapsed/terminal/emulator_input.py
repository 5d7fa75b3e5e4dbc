"""Prepares output for the emulator: cuts it into portions that a screen takes in about a millisecond each, and limits
the repetitions of a character. Pure.

The cost of output depends on its content, not on its length: 64 KiB of text take a millisecond; 64 KiB of resets, of
marks without wrapping, or of queries take a hundred and more. So a portion ends after a number of cheap elements, and
after each expensive one; the caller may let other threads run between two portions.
"""

import re
from collections.abc import Iterator

from synapsed.shared.regex import regex

LONGEST = 8 * 1024
"""Most bytes of a portion that is only text."""

_THINGS = 128
"""Stretches of text, characters beyond the alphabets, and sequences in a portion."""

# Sequences that fill, empty or scroll the screen, repeat, or ask something: the answer may need a look at the screen.
_DEAR = (
    rb"\x1b(?:\#8"
    rb"|\[(?:[\d;]{0,64}+[JSTt]|[>=?]?[\d;]{0,64}+(?:[bcnx]|\$[pw]|\*y)|\?[\d;]{0,64}+[mSu])"
    rb"|\][^\x07\x1b]{0,256}\?(?:\x07|\x1b\\)?)"
)
_LETTERS = rb"[\x00-\x1a\x1c-\xcb\xe4-\xe9\xeb-\xed]{1,%d}+" % (LONGEST // _THINGS)
# A few pens with the text that they draw cost no more than such a stretch of text.
_PENS = rb"(?:\x1b\[[\d;:]{0,32}+m[\x20-\x7e\r\n]{0,32}+){1,4}+"
_LINES = rb"(?:\xe2[\x94-\x97][\x80-\xbf]){1,16}+"
# Marks, and all other characters that may join, begin with these bytes.
_OTHERS = rb"(?:[\xcc-\xe3\xea\xee-\xff][\x80-\xbf]*+){1,2}+"

_THING = rb"%b|%b|%b|%b|(?!%b)\x1b" % (_LETTERS, _PENS, _LINES, _OTHERS, _DEAR)
_PORTION = regex(rb"(?s:(?:%b){1,%d}+(?:%b)?|%b)" % (_THING, _THINGS, _DEAR, _DEAR))


def portions(data: bytes) -> Iterator[bytes]:
    """Yields `data` in order, cut anywhere: the result of feeding it must not depend on the cuts."""
    for portion in _PORTION.finditer(data):
        yield portion[0]


# REP with a number of at least three digits: it may be larger than the number of a screen's cells.
_REPEAT = regex(rb"\x1b\[0*+(\d{3,}+)(?=[;:\d]*b)")
_REPEAT_MAX = 65535
"""Value that terminals use for a larger parameter."""


def fewer_repeats(data: bytes, cols: int, rows: int) -> bytes:
    """Returns ``data`` with no character repeated (REP) more often than fills the screen: 65,535 times take
    milliseconds, for eight bytes. The cursor ends in the same place."""
    cells = cols * rows

    def bounded(found: re.Match[bytes]) -> bytes:
        count = min(int(found[1][:6]), _REPEAT_MAX)
        return found[0] if count <= cells else b"\x1b[%d" % (cells + (count - cells) % cols)

    return _REPEAT.sub(bounded, data)
