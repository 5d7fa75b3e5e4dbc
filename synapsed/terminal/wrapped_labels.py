"""Labels that a program has wrapped: the rows in which one goes on. Pure."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from synapsed.terminal.menu_page import FRAMES, Page
from synapsed.terminal.prose import columns, is_wide

__all__ = ["SIDE", "continued", "joined", "room"]

SIDE = re.compile(rf"\s+[{FRAMES}╭╮╰╯┌┐└┘├┤].*$")
"""The right side of a box, and what stands beyond it."""
MARGIN = 1
"""Columns before a row's end, or before a box's side, in which programs write nothing."""
SLACK = 9
"""So many more may be left free where the look tells, too: opencode does not go to the end of its rows."""

type Look = Literal["ignored", "needed", "enough"]
"""What it counts for that a row is drawn as the label is: descriptions below a label are seldom drawn so, and some
programs wrap before a row is full."""


def continued(page: Page, row: int, at: int, look: Look = "ignored") -> list[int]:
    """The rows below `row` in which the label goes on that begins at `at`: each begins there, with a word that had no
    place in the row above, and as `look` says. Gemini begins one column before, where the look has to tell."""
    rows: list[int] = []
    first = at - (look == "needed")
    for below in range(row + 1, len(page.lines)):
        text = page.inner[below]
        if page.is_rule(below) or text[:first].strip() or not text[first : at + 1].strip():
            break
        alike = look != "ignored" and page.style(below, at) == page.style(row, at)
        left = _left(page, below - 1, at) - 1 - columns(text.split()[0])
        goes_on = {"ignored": left <= 0, "needed": alike and left <= SLACK, "enough": alike or left <= 0}
        if not goes_on[look]:
            break
        rows.append(below)
    return rows


def joined(rows: Sequence[str], width: int) -> str:
    """What the rows of a label say together, where each has `width` columns for it: a row that is full is cut within a
    word if that is longer than a row."""
    label = rows[0]
    for above, row in pairwise(rows):
        word = f"{above.rpartition(' ')[2]}{row.partition(' ')[0]}"
        cut = columns(above) >= width - MARGIN and columns(word) > width
        dense = any(map(is_wide, above[-1:] + row[:1]))  # a script without spaces
        label += row if cut or dense else f" {row}"
    return label


def room(page: Page, row: int, at: int) -> int:
    """The columns from `at` to the end of `row`, or to the side of its box."""
    side = SIDE.search(page.lines[row], at)
    end = columns(page.lines[row][: side.end() - len(side[0].lstrip())]) if side else page.screen.cols
    return end - MARGIN - columns(page.lines[row][:at])


def _left(page: Page, row: int, at: int) -> int:
    """The columns that are free at the end of `row`."""
    return room(page, row, at) - columns(SIDE.sub("", page.lines[row][at:]).rstrip())
