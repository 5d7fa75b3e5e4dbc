"""The texts of a screen: its rows, and its panes, in which the program itself wraps long lines. Pure.

A pane is text that begins in the same column in consecutive rows, after frames, bullets and line numbers.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from synapsed.parts.profile_tools.reports.private_words import FRAMES
from synapsed.shared.regex import regex

EDGE: Final = 3
"""Columns that may be free at the end of a row that continues in the next one."""

_RUN = regex(rf"[^\s{FRAMES}]+(?: {{1,2}}[^\s{FRAMES}]+)*")
"""Text without wide gaps."""
_MARKS = regex(r"(?:(?:[>❯›⎿•●◦*+\-$#%]|\d{1,6})\s+)*")
"""Signs before the text of a row."""
_CUTS: Final = ("-", "_", "/", "+", "=")
"""Letters after which a long word may have been cut."""


class PaneRow(NamedTuple):
    """A row: a letter for each of its cells, the column of each, and True if the terminal wrapped it."""

    letters: str
    columns: Sequence[int]
    wrapped: bool

    @classmethod
    def of(cls, letters: str, widths: Sequence[int], *, wrapped: bool) -> "PaneRow":
        return cls(letters, tuple(accumulate(widths, initial=0)), wrapped)


class _Part(NamedTuple):
    row: int
    start: int
    text: str
    column: int
    end: int


class JoinedText(NamedTuple):
    """A text, and its parts, each with its place in the text."""

    text: str
    begins: Sequence[int]
    parts: Sequence[_Part]

    def cells(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yields the rows of a place in the text, each with its first cell and the end of its cells."""
        at = max(0, bisect_right(self.begins, start) - 1)
        while at < len(self.parts) and self.begins[at] < end:
            part, begin = self.parts[at], self.begins[at]
            first, last = max(start - begin, 0), min(end - begin, len(part.text))
            if first < last:
                yield part.row, part.start + first, part.start + last
            at += 1


def readings(rows: Sequence[PaneRow], cols: int) -> Iterator[JoinedText]:
    """Yields the texts that are searched: the rows joined as the terminal wrapped them, the same as if every full row
    were wrapped, and the panes joined as the program wrapped them."""
    whole = [
        _Part(at, 0, row.letters if row.wrapped else row.letters.rstrip(), 0, row.columns[-1])
        for at, row in enumerate(rows)
    ]
    wrapped = [row.wrapped for row in rows]
    full = [row.wrapped or row.columns[len(part.text)] >= cols for part, row in zip(whole, rows, strict=True)]
    panes = list(_panes(rows))
    yield _joined(zip(whole, wrapped, strict=True))
    if full != wrapped:
        yield _joined(zip(whole, full, strict=True))
    if any(len(pane) > 1 for pane in panes):
        yield _joined(piece for pane in panes for piece in _wrapped(pane))


def _panes(rows: Sequence[PaneRow]) -> Iterator[list[_Part]]:
    open_: dict[int, list[_Part]] = {}
    for number, row in enumerate(rows):
        now: dict[int, list[_Part]] = {}
        for match in _RUN.finditer(row.letters):
            marks = _MARKS.match(match[0])
            start = match.start() + (marks.end() if marks is not None and marks.end() < len(match[0]) else 0)
            column = row.columns[start]
            pane = open_.pop(column, [])
            pane.append(_Part(number, start, row.letters[start : match.end()], column, row.columns[match.end()]))
            now[column] = pane
        yield from open_.values()
        open_ = now
    yield from open_.values()


def _wrapped(pane: Sequence[_Part]) -> Iterator[tuple[_Part, bool]]:
    """Yields the parts of a pane, each with True if it continues in the next one."""
    edge = max(part.end for part in pane)
    for part, following in zip(pane, [*pane[1:], None], strict=True):
        yield (
            part,
            following is not None
            and (part.end >= edge - EDGE or part.text.endswith(_CUTS) or _odd(part.text, following.text)),
        )


def _odd(before: str, behind: str) -> bool:
    """Returns True if the last word of one text and the first word of the next look like pieces of a secret, not like
    words."""
    last, first = before.rsplit(maxsplit=1)[-1], behind.split(maxsplit=1)[0]
    return len(last) >= EDGE and _mixed(last) and (_mixed(first) or not first.isalpha())


def _mixed(word: str) -> bool:
    return not word.isalpha() or not (word.islower() or word.isupper() or word.istitle())


def _joined(pieces: Iterable[tuple[_Part, bool]]) -> JoinedText:
    parts, begins, texts, at = list[_Part](), list[int](), list[str](), 0
    for part, goes_on in pieces:
        parts.append(part)
        begins.append(at)
        texts.append(part.text if goes_on else f"{part.text}\n")
        at += len(texts[-1])
    return JoinedText("".join(texts), begins, parts)
