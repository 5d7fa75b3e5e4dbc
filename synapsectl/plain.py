"""A terminal program's raw output as plain text: for reading it, not for showing it as it looked."""

import codecs
import re

__all__ = ["PlainText"]

_SEQUENCE = re.compile(
    r"""
      \x1b\][^\x07\x1b]*(?:\x07|\x1b\\)          # OSC
    | \x1b[PX^_][^\x1b]*\x1b\\                   # DCS, SOS, PM, APC
    | \x1b\[(?P<params>[0-?]*)[ -/]*(?P<final>[@-~])
    | \x1b[ -/]*[0-~]                            # the other escape sequences
    | [\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]
    """,
    re.VERBOSE,
)
_PARTIAL = re.compile(
    r"(?:\r|\x1b(?:\][^\x07\x1b]*\x1b?|[PX^_][^\x1b]*\x1b?|\[[0-?]*[ -/]*|[ -/]*))\Z",
)
_MOVES = frozenset("ABEFHdf")
"""Finals of cursor movements to another line: what follows stands elsewhere."""
_MAX_GAP = 200
_PARTIAL_MAX = 8192
"""Characters of a sequence without an end that are waited for."""


class PlainText:
    """Feed it bytes in any chunking; it gives the lines that are whole."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._raw = ""
        self._line = ""
        self._last = ""

    def feed(self, data: bytes) -> list[str]:
        """The lines that `data` completes. Empty lines and repetitions of the line before are left out: a screen that
        is painted anew again and again says nothing by them."""
        text = self._raw + self._decoder.decode(data)
        text, self._raw = _split(text)
        text = self._line + _SEQUENCE.sub(_replacement, text).replace("\r\n", "\n").replace("\r", "\n")
        *lines, self._line = text.split("\n")
        return self._worth(lines)

    def flush(self) -> list[str]:
        """The line that has no end yet."""
        line, self._line = self._line, ""
        return self._worth([line])

    def _worth(self, lines: list[str]) -> list[str]:
        kept = []
        for line in lines:
            stripped = line.rstrip()
            if stripped and stripped != self._last:
                kept.append(stripped)
                self._last = stripped
        return kept


def _split(text: str) -> tuple[str, str]:
    """`text` up to a sequence, or CR, that may go on in the next chunk; and the rest."""
    partial = _PARTIAL.search(text, max(0, len(text) - _PARTIAL_MAX))
    at = partial.start() if partial else len(text)
    return text[:at], text[at:]


def _replacement(match: re.Match[str]) -> str:
    final = match["final"]
    if final == "C":
        steps = match["params"]
        return " " * min(int(steps) if steps.isdecimal() else 1, _MAX_GAP)
    return "\n" if final is not None and final in _MOVES else ""
