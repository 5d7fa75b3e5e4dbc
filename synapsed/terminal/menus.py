"""Finds on the screen a menu that no profile describes: its question, its options and the marked one. Pure.

The options are rows, one of which is marked or has another background than its siblings, or rows below a row that
filters them. The question stands above them.

A menu is a mark (``❯ Yes``, ``› 1. Yes``, ``● Yes``, or a row or button with another style than its siblings) among
rows that stand aligned with it, numbered or not, in a box or not. Much output looks like that: answers in prose, lists
of tasks, a message quoted with its sign. So a menu must show by more than its words that it waits for keys (`_weigh`),
and on a screen with a composer there is no menu.

All menus are answered in one way: the mark is moved one step at a time, and each step must be seen before the next;
then Enter is pressed by itself. `menu_keys` has these steps. Digits are ignored by some programs, and submit at once in
others.

A row that stands out may as well be a status line or a heading, so `menus` takes it for a choice only below a question.
A list that is filtered shows how many of its rows are left (``2/14``), which no other does.
"""

import re
from collections.abc import Callable, Sequence
from typing import Literal

from synapsed.shared.regex import regex
from synapsed.terminal.menu_keys import Menu
from synapsed.terminal.menu_page import FRAMES, Page, Style, odd_one
from synapsed.terminal.menu_rows import (
    ASKS,
    CHOICES,
    HINT,
    MARKS,
    OPTIONS_MAX,
    SCROLLED,
    SIGNED,
    TOGGLE,
    MenuOption,
    Options,
    across_row,
    down,
    one_of_rows,
    ticked_rows,
)
from synapsed.terminal.snapshot import Cell, ScreenSnapshot
from synapsed.terminal.windows import find_window

_LEAD = regex(rf"[\s{MARKS}<]*")
"""Signs before a label: marks, a button's side, a radio button's sign."""
_UNREADABLE = regex(r"▐X▌")
"""Ticks that differ only in colour."""
COUNT = regex(r"(?P<left>\d{1,6})/(?P<all>\d{1,6})(?: \(\d+\))?(?=\s*[─\s]*$)")
"""Count beside the row that filters a list: how many of its rows are left."""
_FILTER = regex(r"\s*+(?P<asked>[^\n]{0,80}?)\s?[>❯›:?]\s")
_POINTER = regex(r"\s*+[>❯›▌•]?")


def _ground(style: Style) -> tuple[object, ...]:
    return style.bg, style.inverse, style.underline


def _label_at(page: Page, row: int) -> int | None:
    """Returns the place where the label in `row` begins."""
    text = page.inner[row].replace("▊", " ")
    asks = SIGNED.match(text) is not None or text.rstrip().endswith(("?", ":"))
    if not text.strip() or asks or page.is_rule(row) or _UNREADABLE.search(page.lines[row]):
        return None
    at = _LEAD.match(text)
    return at.end() if at is not None and at.end() < len(text.rstrip()) else None


def lit_rows(page: Page, row: int) -> Options | None:
    """Returns the rows around `row`, if it is the one with another background."""
    at = _label_at(page, row)
    if at is None:
        return None
    lit = _ground(page.style(row, at))
    if not any(lit):
        return None
    rows = [row]
    grounds: set[tuple[object, ...]] = set()
    for step in (-1, 1):
        below = row + step
        while 0 <= below < len(page.lines) and len(rows) <= OPTIONS_MAX and _label_at(page, below) == at:
            ground = _ground(page.style(below, at))
            if ground == lit or (grounds and ground not in grounds):
                return None
            grounds.add(ground)
            rows.append(below)
            below += step
    if not CHOICES <= len(rows) <= OPTIONS_MAX:
        return None
    rows.sort()
    options = [MenuOption(str(n), _label(page.inner[each][at:]), each, at) for n, each in enumerate(rows, 1)]
    return Options(options, rows.index(row), at, styled=2, lit=True)


def _label(text: str) -> str:
    return re.sub(r"\s{2,}", "  ", re.sub(r"\s*>?\s*$", "", text)).strip()


def filtered_rows(page: Page) -> Menu | None:
    """Returns the list that the text at the cursor filters."""
    row, at = page.screen.cursor
    query = _FILTER.match(page.inner[row][:at].ljust(at) + " ")
    if query is None or not page.screen.cursor_visible:
        return None
    count = next((n for n in (row, row - 1, row + 1) if _counts(page, n)), None)
    if count is None:
        return None
    step = -1 if count < row else 1
    first = (row if count == row else count) + step
    rows: list[int] = []
    while 0 <= first < len(page.lines) and page.inner[first].strip() and len(rows) < OPTIONS_MAX:
        if page.is_rule(first):
            break
        rows.append(first)
        first += step
    rows.sort()
    starts = [_POINTER.match(page.inner[each]) for each in rows]
    marked = [n for n, start in enumerate(starts) if start is not None and start[0].strip()]
    if not marked:  # a newer program has no pointer, and a line along all its rows
        lit = odd_one([page.style(each, start.end()) for each, start in zip(rows, starts, strict=True) if start])
        marked = [] if lit is None else [lit]
    if len(marked) != 1:
        return None
    options = tuple(
        MenuOption(str(n), page.inner[each][start.end() :].strip(), each, start.end())
        for n, (each, start) in enumerate(zip(rows, starts, strict=True), 1)
        if start is not None
    )
    above = page.text(row - 1) if row and row - 1 not in rows and step > 0 and not page.is_rule(row - 1) else ""
    asked = tuple(words for words in (above, query["asked"].strip()) if re.search(r"\w", words)) or ("Choose one",)
    return Menu(asked, options, marked[0], range(min(rows[0], row) - bool(above), max(rows[-1], row) + 1), framed=True)


def _counts(page: Page, row: int) -> bool:
    return 0 <= row < len(page.lines) and COUNT.search(page.inner[row]) is not None


_CANDIDATE = regex(rf"[{MARKS}◻◼☐☑◯○✔]|\[ ?\w|<|\[[ xX✓✔*]\]|\([ xX*]\)")
_EDGES = " ─━═│┃║┌┐╭╮┏┓╔╗├┤"
_CHOSEN = regex(r"(?<=[)\]?:])\s+(?P<chosen>[^\s()\[\]][^()\[\]]*)$")
"""The marked option, which some programs show after the question, too."""
_RIGHT_TICKS = regex(r"\bRight\b[^\n]{0,3}> to toggle|\bpick: →")
"""Key that ticks a row if Space does not."""
_QUOTED = regex(r"\s*+[❯›>]\s")
"""A message in the transcript."""
_PAUSE = regex(r"\W*+press (?:the )?<?\[?(?:enter|return|any key)\b[^\n?]{0,60}$", re.IGNORECASE)

ASKED_ROWS_MAX = 24
PAUSE_ROWS = 3
"""Number of last rows in which a program says that it waits for Enter."""
ENOUGH = 4
"""Least result of `_weigh` for a menu."""


def find_menu(screen: ScreenSnapshot, cells: Callable[[int], Sequence[Cell]]) -> Menu | None:
    """Returns the menu that waits on `screen`, or None; `cells(row)` are a row's cells."""
    page = Page(screen, cells)
    if (found := find_window(page) or filtered_rows(page)) is not None:
        return found
    rows = [row for row, line in enumerate(screen.lines) if _CANDIDATE.search(line)]
    for read in (down, across_row, ticked_rows, one_of_rows):
        for row in reversed(rows):
            options = read(page, row)
            if options is not None and (menu := _menu(page, options)) is not None:
                return menu
    for row, line in enumerate(screen.lines):
        if line.strip() and (options := lit_rows(page, row)) is not None and (menu := _menu(page, options)) is not None:
            return menu
    return None


def _menu(page: Page, found: Options) -> Menu | None:
    top, asked = _asked(page, found)
    rows = range(top, found.options[-1].row + 1)
    if _weigh(page, found, top, asked) < ENOUGH or page.composes(rows):
        return None
    if not asked and _titled(page, found):
        asked = [page.lines[found.options[0].row - 1].strip(_EDGES)]
    if asked:
        asked[-1] = _CHOSEN.sub(
            lambda told: told[0] if told["chosen"] != found.options[found.marked].label else "", asked[-1]
        )
    tick: Literal["space", "right"] = "right" if found.ticks and _hints(page, found, top, _RIGHT_TICKS) else "space"
    return Menu(tuple(asked), tuple(found.options), found.marked, rows, found.across, found.ticks, tick)


def find_pause(screen: ScreenSnapshot, cells: Callable[[int], Sequence[Cell]]) -> str | None:
    """Returns the words with which a program waits for Enter, in its last rows; None if it does not."""
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
    """Returns the weight of the evidence that the program waits for keys there; 0 if anything contradicts it."""
    screen, first, last = page.screen, found.options[0].row, found.options[-1].row
    below = [row for row in range(last + 1, len(page.lines)) if page.text(row)]
    above = [row for row in range(top) if page.text(row)]
    hints = _hints(page, found, top, HINT)
    alone = not above and all(HINT.search(page.lines[row]) for row in below)
    signed = any(SIGNED.match(words) for words in asked)
    edited = signed and top <= screen.cursor[0] <= last and all(HINT.search(page.lines[row]) for row in below)
    if not (found.styled or alone or edited):
        return 0
    if found.lit and not (signed or any(ASKS.search(words) for words in asked) or _titled(page, found)):
        return 0
    if found.filled and not (hints or signed):
        return 0
    if screen.cursor_visible and not screen.alternate and screen.cursor[0] > last and not alone:
        return 0  # it was answered: the output after the answer stands below it
    return (
        found.styled
        + found.numbered
        + found.ticks
        + 2 * hints
        + (1 + screen.alternate if alone else 0)
        + (3 if signed else any(ASKS.search(words) for words in asked))
        + _boxed(page, found)
        + (not screen.cursor_visible or screen.alternate or top <= screen.cursor[0] <= last)
        + (found.across and first == last)
    )


def _hints(page: Page, found: Options, top: int, pattern: re.Pattern[str]) -> bool:
    """Returns True if `pattern` is found between the options, whose question begins in row `top`, or below them."""
    last = found.options[-1].row
    mine = {option.row for option in found.options}
    below = [row for row in range(last + 1, len(page.lines)) if page.text(row)]
    return any(pattern.search(page.lines[row]) for row in [*range(top, last), *below] if row not in mine)


def _titled(page: Page, found: Options) -> bool:
    """Returns True if the options are the first rows in a box that has a title."""
    above = found.options[0].row - 1
    return above >= 0 and page.is_rule(above) and re.search(r"\w", page.lines[above]) is not None


def _boxed(page: Page, found: Options) -> bool:
    """Returns True if the options stand in a box, or along a line, that ends below them."""
    last = found.options[-1]
    side = page.frame_left_of(last.row, found.column) if found.column else None
    if side is None:
        return False
    edges = (line[side] for line in page.lines[last.row + 1 :] if len(line) > side)
    return next((edge for edge in edges if edge not in FRAMES), "") in tuple("╰└┗├")


# --- the question ----------------------------------------------------------------------------------------------------


def _asked(page: Page, found: Options) -> tuple[int, list[str]]:
    """Returns the first row of the question, and its lines: up to the edge of the box, the rule, or the gap above."""
    first = found.options[0].row
    if found.across and TOGGLE.match(page.inner[first]):
        return first, [page.inner[first][: page.inner[first].rindex(found.options[0].label)].strip(" ›‣»")]
    side = page.frame_left_of(first, found.column) if found.column else None
    rows: list[int] = []
    ruled = side is not None
    for row in range(first - 1, max(-1, first - 1 - ASKED_ROWS_MAX), -1):
        if SIGNED.match(page.inner[row]):
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
    """Returns True if there are words in `row` that belong to the question."""
    return re.search(r"\w", page.text(row)) is not None and not SCROLLED.match(page.inner[row])


def _gap(page: Page, row: int) -> bool:
    """Returns True for two blank rows, or the screen's upper edge."""
    return (
        page.blank(row)
        and (row == 0 or page.blank(row - 1))
        and not (row + 1 < len(page.lines) and page.blank(row + 1))
    )


def _paragraph(page: Page, rows: list[int]) -> list[int]:
    """Returns those of `rows`, from below, that form the last paragraph."""
    told = list(rows)
    while told and page.blank(told[0]):
        told.pop(0)
    end = next((n for n, row in enumerate(told) if page.blank(row)), len(told))
    return told[:end]
