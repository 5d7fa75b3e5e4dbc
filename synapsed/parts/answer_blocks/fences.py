"""Finds fenced code in Markdown, by a library (markdown-it, CommonMark), while the text still grows.

A fence depends on all the text around it: lists and quotes hold fences of their own, HTML and indented code hide them.
So the library always decides. `FenceReader` only finds places where a text can be cut: where one block of the
document's top level ends and the next has begun, later text cannot change the earlier one, and the later text is a
document of its own. So the fences are those of the whole text, for every text and every cut.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from synapsed.shared.regex import regex

GROWTH = 1.5
"""Factor by which a text that could not be cut must grow before the next try: a list of a thousand fences is one block,
and must not be parsed a thousand times."""

NESTING_MAX = 100
"""Most levels of lists and quotes (a list is two). The library treats deeper text, and all that follows, as prose; its
default limit is a list in nine others."""

_OPENS = regex(r" {0,3}(?:`{3}|~{3})")
_BLANKS = " \t"


@dataclass(frozen=True, slots=True)
class Prose:
    """Lines outside of fences, without their line breaks."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """A fenced block. `info` is the text after the opening fence, `content` the code without the indentation of its
    container, `lines` all of it as it was written."""

    info: str
    content: str
    lines: tuple[str, ...]


type Piece = Prose | Code


class FenceReader:
    """Takes a text line by line and returns it as prose and fenced code, in order; one stretch of prose may come in
    several pieces. A fence that is not closed runs to the end of its container."""

    def __init__(self) -> None:
        self._markdown = _markdown()
        self._lines: list[str] = []
        """Lines since the beginning of a block of the top level."""
        self._size = 0
        self._try_at = 0.0
        self._after_blank = False
        self._closing: re.Pattern[str] | None = None
        """Pattern that closes the fence of the top level with which `_lines` begins."""

    @property
    def held(self) -> int:
        """Returns the number of characters in the lines that are not returned yet."""
        return self._size

    def feed(self, line: str) -> list[Piece]:
        """Takes the next line; returns the pieces that are certain now."""
        self._lines.append(line)
        self._size += len(line) + 1
        if self._closing is not None:
            return self.end() if self._closing.fullmatch(line) else []
        after_blank, self._after_blank = self._after_blank, not line.strip(_BLANKS)
        if self._size < self._try_at or self._after_blank or not (after_blank or _OPENS.match(line)):
            return []
        return self._cut()

    def end(self) -> list[Piece]:
        """Ends the text, or cuts it here."""
        pieces = _pieces(self._lines, _parse(self._markdown, self._lines))
        self._keep([])
        return pieces

    def _cut(self) -> list[Piece]:
        """Returns all text before the last block of the top level, which contains the last line."""
        tokens = _parse(self._markdown, self._lines)
        top = [token for token in tokens if token.level == 0 and token.map is not None]
        if not top:
            return []
        start = (top[-1].map or [0])[0]
        before, rest = self._lines[:start], self._lines[start:]
        pieces = _pieces(before, [token for token in tokens if token.map is not None and token.map[0] < start])
        self._keep(rest)
        if top[-1].type == "fence":
            mark = top[-1].markup
            self._closing = re.compile(rf" {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*")
            if len(rest) > 1 and self._closing.fullmatch(rest[-1]):
                pieces += self.end()
        elif start == 0:
            self._try_at = self._size * GROWTH
        return pieces

    def _keep(self, lines: list[str]) -> None:
        self._lines = lines
        self._size = sum(len(line) + 1 for line in lines)
        self._try_at = 0.0
        self._closing = None


@cache
def _markdown() -> MarkdownIt:
    """Returns one parser for all texts: it has no state, and takes longer to make than an answer takes to read. It
    compiles its rules at the first text, which is parsed here, before several threads use it."""
    markdown = MarkdownIt("commonmark", {"maxNesting": NESTING_MAX}).disable("inline")
    markdown.parse("> a\n")
    return markdown


def _parse(markdown: MarkdownIt, lines: Sequence[str]) -> list[Token]:
    return markdown.parse("\n".join(lines) + "\n") if lines else []


def _pieces(lines: Sequence[str], tokens: Iterable[Token]) -> list[Piece]:
    pieces: list[Piece] = []
    done = 0
    for token in tokens:
        if token.type != "fence" or token.map is None:
            continue
        start, end = token.map
        if start > done:
            pieces.append(Prose(tuple(lines[done:start])))
        pieces.append(Code(token.info.strip(), token.content, tuple(lines[start:end])))
        done = end
    if done < len(lines):
        pieces.append(Prose(tuple(lines[done:])))
    return pieces
