"""Counts the values of a JSON text without reading it. `reading` gives the reason."""

import re
from typing import Final

KEYS_MAX: Final = 10_000
"""Keys of all objects of a document together."""
VALUES_MAX: Final = 50_000
"""Values of all objects and arrays of a document together."""
_NEWLINE: Final = re.compile(rb"\r\n?")
_STRING: Final = re.compile(rb'"[^"\n]*["\n]')
"""A string, which never goes over the end of a line: an unclosed quote elsewhere in a stream, in a comment say, hides
nothing after it."""
_ENDS: Final = len(b"\r\n\r")
_ITS_END: Final = re.compile(rb'["\n]')


class TooMuch(ValueError):
    """The text is JSON, but larger than the limits."""


class Tally:
    """Counts of one document so far."""

    def __init__(self) -> None:
        self._keys = 0
        self._values = 0

    def add(self, outside: bytes) -> None:
        """Adds `outside`, a piece of the text outside of its strings. Raises TooMuch."""
        self._keys += outside.count(b":")
        self._values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        if self._keys > KEYS_MAX:
            raise TooMuch(f"its objects have more than {KEYS_MAX} keys together")
        if self._values > VALUES_MAX:
            raise TooMuch(f"its objects and arrays have more than {VALUES_MAX} values together")


def segments(text: bytes) -> list[bytes]:
    """Returns the pieces between the quotes of `text`, which does not begin within an escape: each second one is a
    string's inside."""
    return text.replace(b"\\\\", b"__").replace(b'\\"', b"__").split(b'"')


def ends_in_escape(text: bytes) -> bool:
    """Returns True if its last byte begins an escape."""
    return bool((len(text) - len(text.rstrip(b"\\"))) % 2)


class Meter:
    """Counts the values of a document while it comes, or those of each event of a stream of documents."""

    def __init__(self, *, stream: bool = False) -> None:
        self._stream = stream
        self._tally = Tally()
        self._inside = False
        self._held = b""

    def feed(self, piece: bytes) -> None:
        """Counts a piece. Raises TooMuch."""
        text = self._held + piece
        # A part of an escape, of a line's end or of an empty line waits for the rest of it.
        end = len(text) - int(ends_in_escape(text))
        if self._stream:
            end -= min(end - len(text.rstrip(b"\r\n")), _ENDS) if end == len(text) else 0
        text, self._held = text[:end], text[end:]
        if not self._stream:
            self._add(text)
            return
        first, ends, rest = _NEWLINE.sub(b"\n", text).partition(b"\n\n")
        self._add(first)
        if ends:  # a document within one piece is no larger than that
            self._tally, self._inside = Tally(), False
            self._add(rest.rpartition(b"\n\n")[2])

    def _add(self, text: bytes) -> None:
        text = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        if self._inside:
            end = _ITS_END.search(text)
            if end is None:
                return
            text = text[end.end() :]
        outside, opened, _ = _STRING.sub(b"", text).partition(b'"')
        self._inside = bool(opened)
        self._tally.add(outside)
