"""Texts as the history keeps them: without secrets, without terminal sequences, and bounded."""

import re
import unicodedata
from collections.abc import Sequence

from synapsed.model.masking import MASK, mask_text, unfinished
from synapsed.shared.regex import regex

TEXT_MAX = 65_536
"""Characters that are kept of a text: its beginning."""

READ_MAX = TEXT_MAX + 32_768
"""Characters that are read: a secret across the end is seen whole, and marks of secrets are longer than their
replacement."""

SNIPPET_BEFORE = 60
SNIPPET_MAX = 200
"""Characters of a snippet."""

_PIECE = 4096
"""Characters that are composed in one call."""

_SEALED = regex("\u27e6sealed:[A-Za-z0-9_-]{38,}\u27e7")
"""Mark of a secret in the rows of tasks (`store.encoding`)."""
_CUT_SEALED = regex("\u27e6[a-z]{0,6}(?::[A-Za-z0-9_-]*)?\\Z")
_SEQUENCE = regex(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_CONTROL = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_WORD = regex(r'(?<!\S)"([^"]+)"(?!\S)|(\S+)')


class Collected:
    """A text that is put together from pieces, until there is enough of it."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._room = READ_MAX
        self.cut = False

    @property
    def full(self) -> bool:
        return self._room <= 0

    def add(self, piece: str, size: int | None = None) -> None:
        """Adds a piece; `size`: characters of the text that `piece` begins."""
        kept = piece[: max(self._room, 0)]
        self.cut = self.cut or len(kept) < (len(piece) if size is None else size)
        self._room -= len(kept) + 1
        if kept:
            self._pieces.append(kept)

    def text(self, joint: str = "\n") -> tuple[str, bool]:
        """Returns the kept text, and True if it is only the beginning."""
        text = _SEALED.sub(MASK, joint.join(self._pieces))
        if self.cut:
            text = _CUT_SEALED.sub("", text)
            text = text[: len(text) - unfinished(text)]
        # Terminal sequences are removed first: a secret may be cut in two by one.
        text = _CONTROL.sub(" ", _SEQUENCE.sub("", text).replace("\r\n", "\n"))
        text = mask_text(text)
        return _composed(text[:TEXT_MAX]), self.cut or len(text) > TEXT_MAX


def _composed(text: str) -> str:
    """Returns the text in the form of Unicode that words are typed in. It works by pieces: one call for all of it would
    hold the interpreter for 20 ms if there is much to compose."""
    pieces, begin = [], 0
    while begin < len(text):
        end = begin + _PIECE
        while end < len(text) and unicodedata.combining(text[end]):
            end += 1
        pieces.append(unicodedata.normalize("NFC", text[begin:end]))
        begin = end
    return "".join(pieces)


def terms_of(query: str) -> list[str]:
    """Returns the words of a query, and the texts in double quotes. Only these quotes have a meaning."""
    text = unicodedata.normalize("NFC", _CONTROL.sub(" ", query))
    return list(dict.fromkeys(quoted or bare for quoted, bare in _WORD.findall(text)))


class Pattern:
    """Finds the words in a text."""

    def __init__(self, terms: Sequence[str]) -> None:
        self._found = re.compile("|".join(map(re.escape, terms)), re.IGNORECASE) if terms else None

    def first_in(self, text: str) -> int:
        match = self._found.search(text) if self._found is not None else None
        return 0 if match is None else match.start()


def snippet(text: str, at: int) -> str:
    """Returns the text around position `at`, on one line."""
    begin = max(0, at - SNIPPET_BEFORE)
    piece = text[begin : begin + 2 * SNIPPET_MAX]
    words = " ".join(piece.split())
    shown = words if len(words) <= SNIPPET_MAX else words[:SNIPPET_MAX]
    more = len(words) > SNIPPET_MAX or begin + len(piece) < len(text)
    return f"{'…' if begin else ''}{shown}{'…' if more else ''}"
