"""Turns a terminal program's raw output into plain text, for reading, not for its look."""

import re

from synapsed.terminal.tokenizer import Tokenizer, straightened

_SEQUENCE = re.compile(
    r"""
      \x1b\][^\x07\x1b]*(?:\x07|\x1b\\)          # OSC
    | \x1b[PX^_][^\x1b]*\x1b\\                   # DCS, SOS, PM, APC
    | \x1b\[(?P<params>[0-?]*)[ -/]*(?P<final>[@-~])
    | \x1b[ -/]*[0-~]                            # the other escape sequences
    | [\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f] | \n
    """,
    re.VERBOSE,
)
_MOVES = frozenset("ABEFd")
"""Finals of cursor movements to another line: the next text is elsewhere."""
_TO_COLUMN = "G"
_TO_PLACE = frozenset("Hf")
_GAP = "\x0e"
"""Stands for skipped blank cells, until the text before them is known."""
_GAPS = re.compile(rf"(?<=[^\s{_GAP}]){_GAP}")
_MAX_GAP = 200
_DIGITS = 6
"""Digits of a number that count: terminals have fewer columns than that."""


class PlainText:
    """Takes bytes in any chunking; returns the lines that are whole."""

    def __init__(self) -> None:
        self._tokenizer = Tokenizer()
        self._cr = ""
        """A CR at the end of the last data, which LF may follow; else empty."""
        self._line = ""
        self._last = ""
        self._row = ""
        """Row of the cursor, as far as it is known; `_column` is its column."""
        self._column = 0

    def feed(self, data: bytes) -> list[str]:
        """Returns the lines that `data` completes. Empty lines and repetitions of the line before are left out: a
        screen that is painted again and again has nothing new in them."""
        text = self._cr + straightened(self._tokenizer.take(data)).decode()
        self._cr = "\r" if text.endswith("\r") else ""
        text = text.removesuffix("\r")
        text = self._line + _SEQUENCE.sub(self._replacement, text).replace("\r\n", "\n").replace("\r", "\n")
        *lines, self._line = _taken_back(_GAPS.sub(" ", text).replace(_GAP, "")).split("\n")
        return self._worth(lines)

    def flush(self) -> list[str]:
        """Returns the line that has no end yet."""
        line, self._line = self._line, ""
        return self._worth([line])

    def _replacement(self, match: re.Match[str]) -> str:
        params, final = match["params"], match["final"]
        if match[0] == "\n" or final in _MOVES:
            self._row, self._column = "", 0
            return "\n"
        if final == "C":
            return " " * min(_number(params), _MAX_GAP)
        if final == _TO_COLUMN:
            return self._moved(self._row, params)
        if final in _TO_PLACE:
            row, _, column = params.partition(";")
            return self._moved(row or "1", column)
        return ""

    def _moved(self, row: str, column: str) -> str:
        """Returns a gap for a movement to the right in the same row; else a line break, since the next text is
        elsewhere."""
        before, self._column = self._column, _number(column)
        same, self._row = row == self._row, row
        return _GAP if same and self._column > max(before, 1) else "\n"

    def _worth(self, lines: list[str]) -> list[str]:
        kept = []
        for line in lines:
            stripped = line.rstrip()
            if stripped and stripped != self._last:
                kept.append(stripped)
                self._last = stripped
        return kept


def _number(params: str) -> int:
    """Returns the number of a sequence, of which a program may have written any number of digits; 1 without one."""
    return int(params.lstrip("0")[:_DIGITS] or 0) if params.isdecimal() else 1


def _taken_back(text: str) -> str:
    """Returns `text` with each backspace applied to the character before it: another one stands there in the end."""
    if "\b" not in text:
        return text
    kept: list[str] = []
    for character in text:
        if character != "\b":
            kept.append(character)
        elif kept and kept[-1] != "\n":
            kept.pop()
    return "".join(kept)
