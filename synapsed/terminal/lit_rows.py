"""Lists that no sign marks: one row stands on another ground than its siblings, or below a row that filters them. Pure.

A row that stands out may as well be a status line or a heading, so `menus` takes it for a choice only where something
is asked above it. A list that is filtered shows how many of its rows are left (``2/14``), which no other does.
"""

import re

from synapsed.terminal.menu_keys import Menu
from synapsed.terminal.menu_page import Page, Style, odd_one
from synapsed.terminal.menu_rows import CHOICES, MARKS, OPTIONS_MAX, SIGNED, MenuOption, Options

_LEAD = re.compile(rf"[\s{MARKS}<]*")
"""What may stand before a label: marks, a button's side, a radio button's sign."""
_UNREADABLE = re.compile(r"▐X▌")
"""Ticks that only their colour tells apart."""
COUNT = re.compile(r"(?P<left>\d{1,6})/(?P<all>\d{1,6})(?: \(\d+\))?(?=\s*[─\s]*$)")
"""Beside the row that filters a list: how many of its rows are left."""
_FILTER = re.compile(r"\s*+(?P<asked>[^\n]{0,80}?)\s?[>❯›:?]\s")
_POINTER = re.compile(r"\s*+[>❯›▌•]?")


def _ground(style: Style) -> tuple[object, ...]:
    return style.bg, style.inverse, style.underline


def _label_at(page: Page, row: int) -> int | None:
    """Where the label in `row` begins."""
    text = page.inner[row].replace("▊", " ")
    asks = SIGNED.match(text) is not None or text.rstrip().endswith(("?", ":"))
    if not text.strip() or asks or page.is_rule(row) or _UNREADABLE.search(page.lines[row]):
        return None
    at = _LEAD.match(text)
    return at.end() if at is not None and at.end() < len(text.rstrip()) else None


def lit_rows(page: Page, row: int) -> Options | None:
    """The rows around `row`, where it is the one that stands on another ground."""
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
    """The list that what is typed at the cursor filters."""
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
    if not marked:  # a newer one has a line along all its rows
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
