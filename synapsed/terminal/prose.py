"""Reconstructs the text of a program from its drawing on the terminal, wrapped rows joined, as far as it is certain.

A program draws Markdown: marks vanish into bold and colour, a fence loses its language, a paragraph is wrapped to the
screen. Plain prose can be reconstructed, and so can words in bold, and lists of a program that draws their marks as
they are written; the text ends at the first element with more than one possible source (another list, a table, code, a
heading, a break that may be a wrap or a line's end). So the text during a turn is the beginning of the answer.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

from synapsed.shared.regex import regex
from synapsed.terminal.snapshot import OTHER, PLAIN

type Line = tuple[str, str]
"""A line's text, and the style of each of its characters: PLAIN, BOLD or OTHER."""


@dataclass(frozen=True, slots=True)
class Wrapping:
    """Wrapping of a program: at `width` columns, or up to `slack` fewer; `breaks`: a shorter row ends a line; `flat`:
    code that is only indented is drawn as prose is; `listed`: number of columns by which items of lists are drawn to
    the right of their written place (None: they are drawn in another way)."""

    width: int
    slack: int = 4
    breaks: bool = True
    flat: bool = False
    listed: int | None = None


_ITEM = regex(r"( *)(?:[-*+]|\d{1,9}\.) (?=\S)")
_STRUCTURE = regex(
    r"\s|[-*+•◦‣▪·–—●○■□]\s|\d{1,9}[.)](?:\s|\Z)|[#>|~`=]|[\u2500-\u259f]|\[[ xX]\]|(?:[-*_+]\s*){1,}\Z|!?\[|<"
)
"""Start of a line that may be more than prose: indented, an item, a heading, a quotation, a rule, a frame, a link."""

_DRAWN = regex(r"[\u2500-\u259f]")

_LONG_WORD = 30
"""Columns. A longer word may have been broken where a line ends."""


def certain(lines: Sequence[Line], wrapping: Wrapping, *, first: bool = True) -> str:
    """Returns the text of `lines`, up to the last whole word whose source is certain. The last line may be growing.
    `first`: they are the first ones of the text, which is no indented code."""
    text, before, hang = "", "", 0
    for number, (row, kinds) in enumerate(lines):
        last = number == len(lines) - 1
        if not row:
            if not before:
                break
            before = ""
            continue
        item = _item(row, wrapping)
        margin = wrapping.listed or 0 if item else hang if _is_at(row, hang) else 0
        if _DRAWN.search(row) or (not item and _STRUCTURE.match(row[margin:])):
            break
        if not before:
            join = None if margin and not item else "\n\n" if text else ""
        elif item or (hang and not margin):
            join = "\n" if hang or columns(before) <= wrapping.width - wrapping.slack else None
        else:
            join = _within(before, row, margin, wrapping, last=last)
        may_be_code = wrapping.flat and not before and (number > 0 or not first)
        if join is None or (may_be_code and not _goes_on(lines[number : number + 2], wrapping)):
            break
        shown, whole = _sourced((row[margin:], kinds[margin:]))
        if last or not whole:
            shown = _up_to_last_word(shown)
        text += join + shown if shown else ""
        hang = item or margin
        before = row[hang:]
        if not whole:
            break
    return text.rstrip()


def _item(row: str, wrapping: Wrapping) -> int:
    """Returns the column of the text of the item that begins in this row; 0 if none does, or not surely so: one column
    of indentation may be a tab."""
    margin = wrapping.listed
    if margin is None or row[:margin].strip():
        return 0
    found = _ITEM.match(row, margin)
    return found.end() if found is not None and found.end(1) - margin != 1 else 0


def _is_at(row: str, column: int) -> bool:
    return bool(column) and not row[:column].strip() and row[column : column + 1].strip() != ""


def _between(above: str, below: str, wrapping: Wrapping, *, last: bool) -> str | None:
    """Returns the source between two rows: a line break if the next word would have had room in the row above; a space
    (or an empty text, in a script without spaces) if it had no room; None if it is not certain."""
    word, more = _first_word(below)
    used = columns(above)
    if used + 1 + columns(word) <= wrapping.width - wrapping.slack:
        # A word that still grows may become too long.
        return "\n" if wrapping.breaks and (more or not last) else None
    dense = is_wide(above[-1]) or is_wide(below[0])
    if used + (0 if dense else 1) + columns(word) <= wrapping.width:
        return None
    if max(columns(above.rpartition(" ")[2]), columns(word)) > _LONG_WORD and not dense:
        return None
    return "" if dense else " "


def _within(above: str, row: str, margin: int, wrapping: Wrapping, *, last: bool) -> str | None:
    """Returns `_between` of two rows of a paragraph, or of an item of a list, whose text begins at the column `margin`;
    no line of an item but its first begins there."""
    join = _between(above, row[margin:], replace(wrapping, width=wrapping.width - margin), last=last)
    return None if margin and join == "\n" else join


def _goes_on(lines: Sequence[Line], wrapping: Wrapping) -> bool:
    """Returns True if the first line goes on in the second one."""
    (above, _), *rest = lines
    return bool(rest and rest[0][0]) and _between(above, rest[0][0], wrapping, last=True) in ("", " ")


def _first_word(line: str) -> tuple[str, bool]:
    """Returns the text that is not split at a row's end: a word, or one character of a script without spaces; and True
    if there is text after it."""
    if is_wide(line[0]):
        return line[0], True
    word = line.split(" ", 1)[0]
    for index, char in enumerate(word):
        if is_wide(char):
            return word[:index], True
    return word, len(word) < len(line)


def _sourced(line: Line) -> tuple[str, bool]:
    """Returns the line as it was written, and True if that is all: bold is `**`, if the line has other words too."""
    text, kinds = line
    runs = [
        (kind, "".join(char for char, _ in run)) for kind, run in groupby(zip(text, kinds, strict=True), itemgetter(1))
    ]
    shown = ""
    for index, (kind, run) in enumerate(runs):
        if kind == PLAIN:
            shown += run
            continue
        beside = runs[index + 1 : index + 2] or [(OTHER, "")]
        if kind == OTHER or beside[0][0] != PLAIN or run != run.strip():
            return shown, False
        shown += f"**{run}**"
    return shown, True


def _up_to_last_word(text: str) -> str:
    """Returns the text up to its last word, which may be half a word, or its mark."""
    if text and is_wide(text[-1]):
        return text[:-1]
    return text[: max(text.rfind(" "), 0)]


def columns(text: str) -> int:
    """Returns the number of columns that the text takes in a terminal."""
    return sum(2 if is_wide(char) else 0 if unicodedata.combining(char) else 1 for char in text)


def is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in ("W", "F")
