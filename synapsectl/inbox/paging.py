"""Shows a question page by page where it is longer than its place, so that nothing of it is left out without a word.
Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from synapsed.shared.counts import counted

LEAST = 2
"""Rows of the smallest place: one of the question, and the one that tells of the others."""


class QuestionPage(NamedTuple):
    """Part of a question that has a place on the screen: of all its `rows` those from `first` until before `end`."""

    rows: tuple[str, ...]
    first: int
    end: int

    @property
    def is_whole(self) -> bool:
        return self.end - self.first == len(self.rows)

    def told(self) -> str:
        """Returns the line that tells of the rows without a place, and how to see them; empty if all have one."""
        if self.is_whole:
            return ""
        if self.end == 0:
            return f"… {counted(len(self.rows), 'row')}: make the window larger"
        below = len(self.rows) - self.end
        more = counted(below, "more row: Space shows it", "more rows: Space shows them")
        return f"… {more}" if below else f"… {counted(self.first, 'row')} above: PageUp"

    def shown(self) -> Sequence[str]:
        return self.rows[self.first : self.end]


def page_of(rows: Sequence[str], first: int, room: int) -> QuestionPage:
    """Returns the page that begins with the row `first`, in a place of `room` rows; where the question does not fit,
    the last row is for `told`."""
    whole, count = tuple(rows), len(rows)
    if count <= room:
        return QuestionPage(whole, 0, count)
    if room < LEAST:
        return QuestionPage(whole, 0, 0)
    first = max(0, min(first, count - room + 1))
    return QuestionPage(whole, first, first + room - 1)


def unshown(count: int) -> str:
    """Returns the reason why a question whose last `count` rows were not shown is not answered."""
    return f"see its end first: Space shows {counted(count, 'row')}, n says no at once"
