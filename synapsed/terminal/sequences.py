"""Sequences that the emulator is spared, or told of in other ways. Pure."""

import re

# REP, of so many that it may be more than a screen has cells.
_REPEAT = re.compile(rb"\x1b\[0*+(\d{3,}+)(?=[;:\d]*b)")
_REPEAT_MAX = 65535
"""What terminals take a larger parameter for."""

_ROW_ERASED, _TO_ITS_END = b"\x1b[2K", b"\x1b[K"


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
