"""Menus that no profile knows, read off the screen: rows of which one is marked, and what is asked above them. Pure.

A menu is a mark (``❯ Yes``, ``› 1. Yes``, ``● Yes``, or a row or button that is drawn otherwise than its siblings)
among rows that stand aligned with it, numbered or not, in a box or not. Much that programs print reads like that:
answers in prose, lists of what is to do, a message quoted with its sign. So a menu must show by more than its words
that it waits for keys (`_weigh`), and on a screen with a composer there is no menu.

One way to answer is taken by all: the mark is moved one step at a time, each seen before the next, then Enter by
itself. `route` has these steps. Digits are ignored by some programs and submit at once in others.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from synapsed.terminal.menu_page import FRAMES, Page
from synapsed.terminal.menu_rows import (
    ASKS,
    HINT,
    MARKS,
    SCROLLED,
    TOGGLE,
    MenuOption,
    Options,
    across_row,
    down,
    ticked_rows,
)
from synapsed.terminal.snapshot import Cell, ScreenSnapshot

_CANDIDATE = re.compile(rf"[{MARKS}◻◼☐☑◯○]|\[ ?\w|<")
_SIGNED = re.compile(r"\s*+[?◆✔]\s")
"""A question as the common libraries for such menus draw it."""
_QUOTED = re.compile(r"\s*+[❯›>]\s")
"""A message in the transcript."""
_PAUSE = re.compile(r"\W*+press (?:the )?<?\[?(?:enter|return|any key)\b[^\n?]{0,60}$", re.IGNORECASE)

ASKED_ROWS_MAX = 24
PAUSE_ROWS = 3
"""Where a program waits for Enter it says so in its last rows."""
ENOUGH = 4
"""What `_weigh` must come to."""
DONE = "done"
"""The key of the option that goes on with what is ticked."""
_LEFT, _RIGHT, _UP, _DOWN = "DCAB"


@dataclass(frozen=True, slots=True)
class Menu:
    """`asked` is what stands above the options; `marked` the option that Enter would take. `across`: they stand in one
    row. `ticks`: each is ticked or not, and Enter takes them all. `rows` are those of all of it."""

    asked: tuple[str, ...]
    options: tuple[MenuOption, ...]
    marked: int
    rows: range
    across: bool = False
    ticks: bool = False

    @property
    def mark(self) -> str:
        """The label of the option that is marked."""
        return self.options[self.marked].label


class Move(NamedTuple):
    """Keys to press, and what must be marked then; None where they end it."""

    keys: bytes
    mark: str | None


def find_menu(screen: ScreenSnapshot, cells: Callable[[int], Sequence[Cell]]) -> Menu | None:
    """The menu that waits on `screen`, None for none; `cells(row)` are a row's cells."""
    rows = [row for row, line in enumerate(screen.lines) if _CANDIDATE.search(line)]
    if not rows:
        return None
    page = Page(screen, cells)
    for read in (down, across_row, ticked_rows):
        for row in reversed(rows):
            found = read(page, row)
            if found is not None and (menu := _menu(page, found)) is not None:
                return menu
    return None


def _menu(page: Page, found: Options) -> Menu | None:
    top, asked = _asked(page, found)
    rows = range(top, found.options[-1].row + 1)
    if _weigh(page, found, top, asked) < ENOUGH or page.composes(rows):
        return None
    return Menu(tuple(asked), tuple(found.options), found.marked, rows, found.across, found.ticks)


def route(menu: Menu, key: str, *, application: bool) -> list[Move]:
    """What is pressed to answer `menu` with option `key`; `application` is the mode of the cursor keys (DECCKM)."""
    if key == DONE:
        return [Move(b"\r", None)]
    wanted = next(n for n, option in enumerate(menu.options) if option.key == key)
    forth = wanted > menu.marked
    arrow = (_RIGHT if forth else _LEFT) if menu.across else (_DOWN if forth else _UP)
    keys = f"\x1b{'O' if application else '['}{arrow}".encode()
    step = 1 if forth else -1
    passed = range(menu.marked + step, wanted + step, step) if wanted != menu.marked else range(0)
    return [*(Move(keys, menu.options[n].label) for n in passed), Move(b" " if menu.ticks else b"\r", None)]


def find_pause(screen: ScreenSnapshot, cells: Callable[[int], Sequence[Cell]]) -> str | None:
    """The words with which a program waits for Enter, in its last rows; None where it does not."""
    rows = [row for row in range(len(screen.lines) - 1, -1, -1) if screen.lines[row].strip()][:PAUSE_ROWS]
    page = Page(screen, cells)
    for row in rows:
        words = page.text(row)
        at_cursor = screen.cursor_visible and screen.cursor[0] == row
        if _PAUSE.match(words) and (at_cursor or not screen.cursor_visible) and not page.composes(range(row, row + 1)):
            return words
    return None


# --- how much speaks for it ------------------------------------------------------------------------------------------


def _weigh(page: Page, found: Options, top: int, asked: list[str]) -> int:
    """How much says that the program waits for keys there; 0 where anything says that it does not."""
    screen, first, last = page.screen, found.options[0].row, found.options[-1].row
    below = [row for row in range(last + 1, len(page.lines)) if page.text(row)]
    above = [row for row in range(top) if page.text(row)]
    mine = {option.row for option in found.options}
    hints = any(HINT.search(page.lines[row]) for row in [*range(top, last), *below] if row not in mine)
    alone = not above and all(HINT.search(page.lines[row]) for row in below)
    if not found.styled and not alone:
        return 0
    signed = any(_SIGNED.match(words) for words in asked)
    if found.filled and not (hints or signed):
        return 0
    return (
        found.styled
        + found.numbered
        + found.ticks
        + 2 * hints
        + (1 + screen.alternate if alone else 0)
        + (2 if signed else any(ASKS.search(words) for words in asked))
        + _boxed(page, found)
        + (not screen.cursor_visible or screen.alternate or top <= screen.cursor[0] <= last)
        + (found.across and first == last)
    )


def _boxed(page: Page, found: Options) -> bool:
    """Whether it stands in a box, or along a line, that ends below it."""
    last = found.options[-1]
    side = page.frame_left_of(last.row, found.column) if found.column else None
    if side is None:
        return False
    edges = (line[side] for line in page.lines[last.row + 1 :] if len(line) > side)
    return next((edge for edge in edges if edge not in FRAMES), "") in tuple("╰└┗├")


# --- what is asked ---------------------------------------------------------------------------------------------------


def _asked(page: Page, found: Options) -> tuple[int, list[str]]:
    """The first row of what is asked, and its lines: to the edge of the box, the rule, or the gap above them."""
    first = found.options[0].row
    if found.across and TOGGLE.match(page.inner[first]):
        return first, [page.inner[first][: page.inner[first].rindex(found.options[0].label)].strip(" ›‣»")]
    side = page.frame_left_of(first, found.column) if found.column else None
    rows: list[int] = []
    ruled = side is not None
    for row in range(first - 1, max(-1, first - 1 - ASKED_ROWS_MAX), -1):
        if _SIGNED.match(page.inner[row]):
            rows.append(row)
            break
        if side is not None and page.lines[row][side : side + 1] not in tuple(FRAMES):
            break
        if side is None and page.is_rule(row):
            ruled = True
            break
        if side is None and (_QUOTED.match(page.inner[row]) or (_gap(page, row) and rows)):
            break
        rows.append(row)
    if not ruled:
        rows = _paragraph(page, rows)
    told = [(row, page.text(row)) for row in reversed(rows) if _says(page, row)]
    return (told[0][0] if told else first), [words for _, words in told]


def _says(page: Page, row: int) -> bool:
    """Whether there are words in `row` that belong to the question."""
    return re.search(r"\w", page.text(row)) is not None and not SCROLLED.match(page.inner[row])


def _gap(page: Page, row: int) -> bool:
    """Two blank rows, or the screen's upper edge."""
    return (
        page.blank(row)
        and (row == 0 or page.blank(row - 1))
        and not (row + 1 < len(page.lines) and page.blank(row + 1))
    )


def _paragraph(page: Page, rows: list[int]) -> list[int]:
    """Of `rows`, from below, those of the last paragraph; and of the one above it where that is all that it says."""
    told = list(rows)
    while told and page.blank(told[0]):
        told.pop(0)
    end = next((n for n, row in enumerate(told) if page.blank(row)), len(told))
    return told[:end]
