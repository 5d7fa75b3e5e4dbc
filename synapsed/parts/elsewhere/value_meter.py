"""Counts the values of JSON from elsewhere while it comes: one document, or a stream of them.

`synapsed.documents.reading` says why values are counted before anything is made of them.
"""

from typing import Final

from synapsed.documents.reading import Tally, ends_in_escape
from synapsed.shared.regex import regex

_NEWLINE: Final = regex(rb"\r\n?")
_STRING: Final = regex(rb'"[^"\n]*["\n]')
"""A string, which never goes over the end of a line: an unclosed quote elsewhere in a stream, in a comment say, hides
nothing after it."""
_ENDS: Final = len(b"\r\n\r")
_ITS_END: Final = regex(rb'["\n]')


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
