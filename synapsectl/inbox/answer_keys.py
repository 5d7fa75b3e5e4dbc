"""Parses a terminal's input into keys: names for those without a character, text for a paste. Pure."""

import codecs
import re
from typing import NamedTuple

_CSI = re.compile(r"\x1b(?:\[([0-?]*)[ -/]*([@-~])|O(.))")
_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")
_LETTERS = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end"}
_NUMBERS = {"1": "home", "4": "end", "5": "pageup", "6": "pagedown", "7": "home", "8": "end"}
_CONTROLS = {
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x0c": "redraw",
    "\x0e": "down",
    "\x10": "up",
    "\x15": "clear",
    "\x1b": "esc",
}
_PASTE_BEGIN, _PASTE_END = "\x1b[200~", "\x1b[201~"
PASTE_MAX = 64 * 1024
"""Characters of a paste that are kept; the rest of a longer one is dropped."""

HOLD = 0.05
"""Seconds that the beginning of an escape sequence is kept for the rest of it."""


class KeyPress(NamedTuple):
    """A key, or a paste."""

    name: str
    """Name of the key, or its character; `paste` for a paste."""
    text: str = ""
    """The pasted text."""


class KeyReader:
    """Parses the terminal's input, in any pieces. While `waits`, `flush` it when nothing came for `HOLD`."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._pasted: str | None = None

    @property
    def waits(self) -> bool:
        return bool(self._rest)

    @property
    def pasting(self) -> bool:
        """True if the end of a paste has not come yet."""
        return self._pasted is not None

    def feed(self, data: bytes) -> list[KeyPress]:
        text, self._rest = self._rest + self._decoder.decode(data), ""
        keys: list[KeyPress] = []
        while text:
            if self._pasted is not None:
                text = self._paste(text, keys)
                continue
            taken = _CSI.match(text)
            if taken is None and _BEGUN.fullmatch(text):
                self._rest = text
                break
            piece = taken[0] if taken else text[0]
            text = text[len(piece) :]
            if piece == _PASTE_BEGIN:
                self._pasted = ""
            elif taken is not None:
                keys.extend(_named(taken))
            elif piece in _CONTROLS:
                keys.append(KeyPress(_CONTROLS[piece]))
            elif piece.isprintable():
                keys.append(KeyPress(piece))
        return keys

    def flush(self) -> list[KeyPress]:
        """Returns the kept bytes as keys: Esc, and the keys after it."""
        text, self._rest = self._rest, ""
        return [KeyPress("esc"), *(KeyPress(one) for one in text[1:])] if text else []

    def _paste(self, text: str, keys: list[KeyPress]) -> str:
        """Takes the part of the paste; returns the rest after it."""
        assert self._pasted is not None
        self._pasted += text
        at = self._pasted.find(_PASTE_END)
        if at < 0:
            if len(self._pasted) > PASTE_MAX + len(_PASTE_END):
                # The end may come in pieces, so the last characters are kept; NUL: they are no end with those before.
                self._pasted = f"{self._pasted[:PASTE_MAX]}\0{self._pasted[1 - len(_PASTE_END) :]}"
            return ""
        pasted, rest = self._pasted[:at], self._pasted[at + len(_PASTE_END) :]
        self._pasted = None
        keys.append(KeyPress("paste", pasted[:PASTE_MAX]))
        return rest


def _named(match: re.Match[str]) -> list[KeyPress]:
    """Returns the key of an escape sequence; none for an unknown one."""
    parameters, final, letter = match.groups()
    name = _NUMBERS.get(parameters.partition(";")[0]) if final == "~" else _LETTERS.get(letter or final)
    return [KeyPress(name)] if name else []
