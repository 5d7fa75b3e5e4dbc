"""The options of a menu on a page: rows aligned with a marked one, buttons in a row, rows with ticks. Pure. The results
only look like a menu; `menus` decides if they are one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from synapsed.shared.regex import regex
from synapsed.terminal.menu_page import SIDE, Page, Style, continued, joined, odd_one, room

MARKS = "❯›»▶▸‣→➜➤●◉>*"
_UNMARKED = {"●": "○◯", "◉": "○◯"}
"""Sign of the siblings of a row with this mark."""
_MARKED = regex(rf"(?P<lead>\s*+)(?P<mark>[=-]>|[{MARKS}])(?:\s++|(?=[◯◉◻◼☐☑○●]))(?P<rest>\S.*)$")
_TICK = regex(r"(?:\[(?P<box>[ xX✓✔*])\]|\((?P<round>[ xX*])\)|(?P<off>[◯○◻☐□⬡])|(?P<on>[◉●◼☑■✔⬢]))\s++(?=\S)")
_NUMBER = regex(r"(?P<number>\d{1,2})[.):]\s++(?=\S)")
_CROSS = regex(r"\s*+(?P<open>[\[(])(?P<state>[ xX*])[\])]\s++(?=\S)")
_TOGGLES = regex(r"\bspace\b|\btoggle\b", re.IGNORECASE)
"""Words that say that rows are ticked with another key than Enter: then a filled sign is a tick, not the mark."""
_BUTTON = regex(r"\[\s*+(?P<square>[^\[\]<>]{1,30}?)\s*\]|<\s*+(?P<angle>[^\[\]<>]{1,30}?)\s*>")
_RADIO = regex(r"(?P<mark>[●◉○◯])\s++(?P<label>[^●◉○◯/\s]++(?: [^●◉○◯/\s]++)*+)\s*+/?\s*+")
ROWS_MAX = 40
"""Rows that a menu may have, up and down from its mark."""
CHOICES = 2
OPTIONS_MAX = 30
BELOW_MAX = 8
"""Rows with words that may stand below a menu: hints, a description of the marked option, a status line."""
HINT = regex(
    r"\b(?:enter|return)\b[^\n]{0,24}?\b(?:select|confirm|choose|submit|continue|accept|apply|toggle|change|complete)"
    r"|\b(?:select|confirm|choose|submit|continue)\b[^\n]{0,12}?\b(?:enter|return)\b|↑ ?/? ?↓|arrow[- ]keys|[⏎↵]",
    re.IGNORECASE,
)
SIGNED = regex(r"\s*+(?:[?◆✔]|\[\?\])\s")
"""A question as the common libraries for such menus draw it."""
SCROLLED = regex(r"\s*+(?:[▲▼▴▾↑↓…](?:\s|$)|\(\d+/\d+\)\s*+$)")
_QUESTION = regex(r"[?？:：]\s*+$")
ASKS = regex(
    r"[?？:：]\s*+$|^\W*(?:select|choose|pick|which|what|confirm|allow|do you|would you|are you)\b", re.IGNORECASE
)
TOGGLE = regex(r"\s*+\?\s.*[›‣»]\s(?P<first>[^\s/]{1,20}) / (?P<second>[^\s/]{1,20})\s*$")


@dataclass(frozen=True, slots=True)
class MenuOption:
    """An option of a menu; `at` is the place in `row` where its label begins."""

    key: str
    label: str
    row: int
    at: int


class Options(NamedTuple):
    """Options, before they are known to be a menu. `styled`: how much the marked one's look stands out. `filled`: its
    mark is a sign that lists of tasks have as well."""

    options: list[MenuOption]
    marked: int
    column: int
    across: bool = False
    ticks: bool = False
    numbered: bool = False
    filled: bool = False
    styled: int = 0
    lit: bool = False
    """True if it is marked by its background only."""


# --- options, one below the other ------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    number: int | None
    tick: str | None
    at: int
    """Place where its label begins."""


def _entry(text: str, at: int) -> _Entry:
    """Returns the entry at `at` of `text`: a number and a tick, if there are any, before the label."""
    number = tick = None
    for _ in range(2):
        if number is None and (match := _NUMBER.match(text, at)):
            number, at = int(match["number"]), match.end()
        elif tick is None and (match := _TICK.match(text, at)):
            ticked = match["on"] or (match["box"] or match["round"] or " ").strip()
            tick, at = ("x" if ticked else " "), match.end()
    return _Entry(number, tick, at)


def down(page: Page, row: int) -> Options | None:
    match = _MARKED.match(page.inner[row])
    if match is None:
        return None
    column, marked = match.start("mark"), _entry(page.inner[row], match.start("rest"))
    siblings = _Siblings(page, column, match["mark"], marked, match.start("rest"))
    rows = siblings.around(row)
    if rows is None or not _may_be(page, len(rows), rows[-1][0]):
        return None
    if match["mark"] in _UNMARKED and any(_TOGGLES.search(page.lines[n]) for n in _near(page, rows[0][0], rows[-1][0])):
        return None
    options = [_option(page, n, at, entry) for n, (at, entry) in enumerate(rows, 1)]
    chosen = next(n for n, (at, _) in enumerate(rows) if at == row)
    styles = [page.style(option.row, option.at) for option in options]
    mark = page.style(row, column)
    return Options(
        options,
        chosen,
        column,
        numbered=marked.number is not None,
        ticks=marked.tick is not None,
        filled=match["mark"] in _UNMARKED,
        styled=_stands_out(styles, chosen, mark),
    )


def _may_be(page: Page, options: int, last: int) -> bool:
    """Returns True if the options may be a menu, so that reading their styles, which takes time, is worth it."""
    return CHOICES <= options <= OPTIONS_MAX and page.words_below(last) <= BELOW_MAX


def _near(page: Page, first: int, last: int) -> list[int]:
    """Returns the rows around a menu in which its hints stand."""
    around = [*range(max(0, first - BELOW_MAX), first), *range(last + 1, min(len(page.lines), last + 1 + BELOW_MAX))]
    return [row for row in around if page.text(row)]


def _stands_out(styles: list[Style], chosen: int, mark: Style) -> int:
    others = [style for n, style in enumerate(styles) if n != chosen]
    if styles[chosen] in others:
        return int(mark.fg != styles[chosen].fg or mark.bold != styles[chosen].bold)
    return 1 + (styles[chosen].filled and not any(style.filled for style in others))


class _Siblings:
    """Reads the rows around a marked one."""

    def __init__(self, page: Page, column: int, mark: str, marked: _Entry, rest: int) -> None:
        self._page = page
        self._column = column
        self._unmarked = _UNMARKED.get(mark, "")
        self._marked = marked
        self._rest = rest

    def around(self, row: int) -> list[tuple[int, _Entry]] | None:
        """Returns the options, with their rows, in order; None if they are not clear."""
        above, below = self._walk(row, -1), self._walk(row, 1)
        rows: list[tuple[int, _Entry | None]] = [*reversed(above), (row, self._marked), *below]
        if self._marked.number is not None:
            return self._numbered(rows, row)
        return self._blocks(rows, row)

    def _walk(self, row: int, step: int) -> list[tuple[int, _Entry | None]]:
        """Returns the rows in one direction: options, and None for a continued or a blank one."""
        found: list[tuple[int, _Entry | None]] = []
        for at in range(row + step, row + step * ROWS_MAX, step):
            if not 0 <= at < len(self._page.lines) or self._page.is_rule(at) or self._ends(at, step):
                break
            blank = self._page.blank(at)
            if blank and found and self._page.blank(found[-1][0]):
                break
            entry = None if blank else self._sibling(at)
            if entry is None and not blank and not self._goes_on(at):
                break
            found.append((at, entry))
        while found and found[-1][1] is None and (step < 0 or self._page.blank(found[-1][0])):
            found.pop()
        return found

    def _ends(self, at: int, step: int) -> bool:
        """Returns True for hints and questions, which are not options."""
        text = self._page.inner[at]
        asks = step < 0 and self._marked.number is None and _QUESTION.search(text) is not None
        return (
            asks
            or SCROLLED.match(text) is not None
            or (HINT.search(text) is not None and _NUMBER.match(text.lstrip()) is None)
        )

    def _sibling(self, at: int) -> _Entry | None:
        text = self._page.inner[at]
        sign = text[self._column : self._column + 1]
        if (
            text[: self._column].strip()
            or (sign.strip() and sign not in self._unmarked)
            or (self._unmarked and not sign.strip())
        ):
            return None
        start = self._column + 1
        while start < len(text) and text[start] == " ":
            start += 1
        entry = _entry(text, start)
        same = (entry.number is None) == (self._marked.number is None) and (entry.tick is None) == (
            self._marked.tick is None
        )
        return entry if same and entry.at == self._marked.at else None

    def _goes_on(self, at: int) -> bool:
        text = self._page.inner[at]
        return not text[: self._rest].strip()

    def _numbered(self, rows: list[tuple[int, _Entry | None]], row: int) -> list[tuple[int, _Entry]] | None:
        """Returns the options whose numbers follow each other, from 1 or from where the list is scrolled to."""
        options = [(at, entry) for at, entry in rows if entry is not None]
        mine = next(n for n, (at, _) in enumerate(options) if at == row)
        begin = end = mine
        while begin and options[begin - 1][1].number == (options[begin][1].number or 0) - 1:
            begin -= 1
        while end + 1 < len(options) and options[end + 1][1].number == (options[end][1].number or 0) + 1:
            end += 1
        first = options[begin]
        scrolled = first[0] > 0 and SCROLLED.match(self._page.inner[first[0] - 1]) is not None
        return options[begin : end + 1] if first[1].number == 1 or scrolled else None

    def _blocks(self, rows: list[tuple[int, _Entry | None]], row: int) -> list[tuple[int, _Entry]] | None:
        """Returns each row; or the first of each block, if its other rows describe it."""
        blocks: list[list[tuple[int, _Entry]]] = [[]]
        for at, entry in rows:
            if entry is not None:
                if not blocks[-1] or not self._wrapped(at):
                    blocks[-1].append((at, entry))
            elif self._page.blank(at):
                blocks.append([])
        blocks = [block for block in blocks if block]
        sizes = {len(block) for block in blocks}
        if len(blocks) > 1 and 1 not in sizes:
            return [block[0] for block in blocks] if any(block[0][0] == row for block in blocks) else None
        if sizes == {1}:
            return [option for block in blocks for option in block]
        return next((block for block in blocks if any(at == row for at, _ in block)), None)

    def _wrapped(self, at: int) -> bool:
        """Returns True if `at` continues the row above it, where its first word had no room."""
        above, text = self._page.lines[at - 1], self._page.inner[at].strip()
        inner = SIDE.sub("", above).rstrip()
        side = SIDE.search(above)
        width = side.end() - len(side[0].lstrip()) if side else self._page.screen.cols
        return len(inner) + 1 + len(text.partition(" ")[0]) >= width - 1


def _option(page: Page, number: int, row: int, entry: _Entry) -> MenuOption:
    rows = [row, *(continued(page, row, entry.at) if entry.number is not None else ())]
    label = joined([_label(page, each, entry.at) for each in rows], room(page, row, entry.at))
    drawn = page.inner[row].rfind("✔", 0, entry.at)
    tick = " " if drawn >= 0 and page.style(row, drawn).dim else entry.tick  # one that is off is drawn faint
    ticked = "" if tick is None else f"[{tick}] "
    return MenuOption(str(entry.number or number), f"{ticked}{label}", row, entry.at)


def _label(page: Page, row: int, at: int) -> str:
    """Returns the label that begins at `at`, without the faint text after it, which only the marked option has."""
    text = SIDE.sub("", page.lines[row][at : page.faint_from(row, at)]).rstrip()
    return re.sub(r"\s{2,}", "  ", text)


# --- options in one row, and those that differ only in their style ---------------------------------------------------


def across_row(page: Page, row: int) -> Options | None:
    text = page.inner[row]
    if page.words_below(row) > BELOW_MAX:
        return None
    if (match := TOGGLE.match(text)) is not None:
        spans = [match.span("first"), match.span("second")]
        return _in_row(page, row, spans, odd_one([page.style(row, at) for at, _ in spans]))
    radios = list(_RADIO.finditer(text))
    if len(radios) >= CHOICES and not _RADIO.sub("", text).strip():
        marked = [n for n, radio in enumerate(radios) if radio["mark"] in "●◉"]
        return _in_row(page, row, [radio.span("label") for radio in radios], marked[0] if len(marked) == 1 else None)
    buttons = list(_BUTTON.finditer(text))
    if len(buttons) >= CHOICES and not _BUTTON.sub("", text).strip():
        at_row, at = page.screen.cursor
        under = [n for n, button in enumerate(buttons) if button.start() <= at < button.end()]
        shown = page.screen.cursor_visible and at_row == row and under
        spans = [button.span(button.lastgroup or 0) for button in buttons]
        return _in_row(page, row, spans, under[0] if shown else odd_one([page.style(row, a) for a, _ in spans]))
    return None


def _in_row(page: Page, row: int, spans: Sequence[tuple[int, int]], marked: int | None) -> Options | None:
    if marked is None:
        return None
    text = page.inner[row]
    options = [MenuOption(str(n), text[begin:end].strip(), row, begin) for n, (begin, end) in enumerate(spans, 1)]
    styles = [page.style(row, option.at) for option in options]
    return Options(
        options,
        marked,
        spans[0][0],
        across=True,
        styled=1 + (styles[marked] not in styles[:marked] + styles[marked + 1 :]),
    )


def ticked_rows(page: Page, row: int) -> Options | None:
    """Returns rows with ticks, of which the one that has the keys has another style."""
    text = page.inner[row]
    start = len(text) - len(text.lstrip())
    if (entry := _entry(text, start)).tick is None or entry.number is not None:
        return None
    if row + 1 < len(page.lines) and _tick_at(page, row + 1, start) is not None:
        return None  # the rows are read from the last one
    first = row
    while first and (above := _tick_at(page, first - 1, start)) is not None and above.at == entry.at:
        first -= 1
    if not _may_be(page, row + 1 - first, row):
        return None
    rows = [(at, _tick_at(page, at, start)) for at in range(first, row + 1)]
    options = [_option(page, n, at, found) for n, (at, found) in enumerate(rows, 1) if found is not None]
    chosen = odd_one([page.style(option.row, option.at) for option in options])
    return None if chosen is None else Options(options, chosen, start, ticks=True, filled=True, styled=1)


def _tick_at(page: Page, row: int, start: int) -> _Entry | None:
    text = page.inner[row]
    if text[:start].strip():
        return None
    entry = _entry(text, start)
    return entry if entry.tick is not None and entry.number is None else None


def one_of_rows(page: Page, row: int) -> Options | None:
    """Returns rows of which only the marked one has a cross between its brackets, and which have no other mark."""
    rows = [row]
    if (first := _cross(page, row)) is None:
        return None
    while rows[0] and (above := _cross(page, rows[0] - 1)) is not None and above[1:] == first[1:]:
        rows.insert(0, rows[0] - 1)
    while (
        rows[-1] + 1 < len(page.lines) and (below := _cross(page, rows[-1] + 1)) is not None and below[1:] == first[1:]
    ):
        rows.append(rows[-1] + 1)
    found = [_cross(page, each) for each in rows]
    on = [n for n, each in enumerate(found) if each is not None and each[0]]
    if len(on) != 1 or not _may_be(page, len(rows), rows[-1]):
        return None
    at = first[1]
    options = [MenuOption(str(n), _label(page, each, at), each, at) for n, each in enumerate(rows, 1)]
    if len({page.style(option.row, option.at) for option in options}) > 1:
        return None
    return Options(options, on[0], 0, styled=1, lit=True)


def _cross(page: Page, row: int) -> tuple[bool, int, str] | None:
    """Returns True if the option in `row` has a cross, the place where its label begins, and its bracket."""
    match = _CROSS.match(page.inner[row])
    return None if match is None else (match["state"] != " ", match.end(), match["open"])
