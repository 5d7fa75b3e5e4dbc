"""Reads dialog boxes that ask: buttons at the lower edge, and above them words, a list, or a text field. Pure.

The libraries that draw such windows (dialog, newt, prompt_toolkit) take other keys than menus do: a list has its mark
and the buttons have the focus, both may be visible at once, and Enter in a list or in a field chooses, goes on to the
buttons, or ends the window. All of them are answered in one way: the mark is moved, Space ticks, Tab goes on to the
button, and Enter is pressed on a button that is seen to have the focus, and nowhere else.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from synapsed.shared.regex import regex
from synapsed.terminal.menu_keys import Menu, MenuWindow
from synapsed.terminal.menu_page import FRAMES, Page, odd_one
from synapsed.terminal.menu_rows import MenuOption

_ANGLE = regex(r"<\s*(?P<label>[^<>\s](?:[^<>]{0,28}[^<>\s])?)\s*>")
_BOXED = regex(r"[│┃║]\s*(?P<label>[^│┃║\s](?:[^│┃║]{0,28}[^│┃║\s])?)\s*[│┃║]")
_INNER = regex(r"[┌╭┏╔][^┌╭┏╔┐╮┓╗│┃║]{2,}[┐╮┓╗]")
_TOP, _BOTTOM = "┌╭┏╔", "└╰┗╚"
_TICK = regex(r"\s*(?P<open>[\[(])(?P<state>[ xX*])[\])]\s+(?:[│├└─]+\s*)*(?P<label>\S.*)$")
_BLANKS = regex(r"_{3,}\s*$")
"""Drawing of newt for a field."""
FIELD_MIN = 8
"""Columns of a field that is only underlined."""
_HIDES = regex(r"\bpass(?:word|phrase|code)\b|\bPIN\b|\bsecret\b", re.IGNORECASE)


class _Field(NamedTuple):
    """Place of a text field."""

    row: int
    at: int


class _Box(NamedTuple):
    """Rows and columns within a box, its edges left out."""

    rows: range
    left: int
    right: int


def find_window(page: Page) -> Menu | None:
    """Returns the window that waits for keys, or None."""
    for row in range(len(page.lines) - 1, 0, -1):
        if (buttons := _buttons(page, row)) and (found := _window(page, row, buttons)) is not None:
            return found
    return None


# --- its parts -------------------------------------------------------------------------------------------------------


def _buttons(page: Page, row: int) -> list[tuple[MenuOption, range]]:
    """Returns the buttons in `row`, if it has nothing else, each with its columns."""
    for pattern, text in ((_ANGLE, page.inner[row]), (_BOXED, page.lines[row])):
        found = list(pattern.finditer(text))
        left = pattern.sub("", text)
        if not found or re.search(r"[^\s│┃║]", left):
            continue
        if pattern is _BOXED:
            found = [each for each in found if _char(page, row - 1, each.start()) in tuple(_TOP)]
            if not found:
                continue
        labels = [" ".join(each["label"].split()) for each in found]
        return [
            (MenuOption(label.casefold(), label, row, each.start("label")), range(each.start(), each.end()))
            for label, each in zip(labels, found, strict=True)
        ]
    return []


def _char(page: Page, row: int, at: int) -> str:
    return page.lines[row][at : at + 1] if 0 <= row < len(page.lines) else ""


def _around(page: Page, row: int, at: int) -> _Box | None:
    side = page.frame_left_of(row, at)
    if side is None:
        return None
    top = next((n for n in range(row - 1, -1, -1) if _char(page, n, side) not in (*FRAMES, "├", "╠", "┠")), -1)
    end = next((n for n in range(row + 1, len(page.lines)) if _char(page, n, side) not in tuple(FRAMES)), -1)
    if top < 0 or end < 0 or _char(page, top, side) not in tuple(_TOP) or _char(page, end, side) not in tuple(_BOTTOM):
        return None
    sides = [n for n, sign in enumerate(page.lines[row]) if sign in FRAMES]
    return _Box(range(top + 1, end), side + 1, sides[-1])


def _window(page: Page, row: int, buttons: list[tuple[MenuOption, range]]) -> Menu | None:
    box = _around(page, row, buttons[0][1].start)
    if box is None or (page.words_below(box.rows.stop) > 1):
        return None
    at_row, at = page.screen.cursor
    focus = next((n for n, (_, columns) in enumerate(buttons) if at_row == row and at in columns), None)
    above = row - (_char(page, row - 1, buttons[0][1].start) in tuple(_TOP))
    inner = _inner_boxes(page, box, above)
    listed: list[MenuOption] = []
    marked: int | None = None
    field: _Field | None = None
    ticks = radio = False
    within = inner[0] if len(inner) == 1 else box
    if within is not box and len(within.rows) == 1:
        text = _cut(page, within.rows.start, within)
        if not text.strip() or not text[:2].isspace():  # else it is the percentage in the middle of a progress bar
            field = _Field(within.rows.start, within.left)
    elif len(inner) <= 1:
        field = None if inner else _field(page, box, range(box.rows.start, above))
        if field is None:
            listed, marked, ticks, radio = _listed(page, within, above, row, box)
    if field is None and not listed:
        return _only_buttons(page, box, row, buttons, focus)
    if focus is None and field is None and marked is None:
        return None
    first = within.rows.start - 1 if inner else field.row if field is not None else listed[0].row
    asked = _words(page, box, range(box.rows.start, first))
    if field is not None and (name := page.lines[field.row][box.left : field.at].strip(f" {FRAMES}")):
        asked.append(name)
    hides = any(_HIDES.search(line) for line in asked)
    return Menu(
        asked=tuple(asked),
        options=tuple(listed),
        marked=-1 if marked is None else marked,
        rows=range(box.rows.start - 1, box.rows.stop + 1),
        ticks=ticks,
        framed=True,
        window=MenuWindow(
            buttons=tuple(option for option, _ in buttons),
            focus=focus,
            radio=radio,
            field=field is not None,
            typed="" if field is None else page.lines[field.row][field.at : within.right].strip(" _"),
            hides=hides,
        ),
    )


def _only_buttons(
    page: Page, box: _Box, row: int, buttons: list[tuple[MenuOption, range]], focus: int | None
) -> Menu | None:
    """Returns a window whose only choices are the buttons."""
    options = tuple(MenuOption(str(n), option.label, row, option.at) for n, (option, _) in enumerate(buttons, 1))
    marked = focus if focus is not None else odd_one([page.style(row, option.at) for option in options])
    if marked is None:
        return None
    above = row - (_char(page, row - 1, buttons[0][1].start) in tuple(_TOP))
    asked = tuple(_words(page, box, range(box.rows.start, above)))
    return Menu(asked, options, marked, range(box.rows.start - 1, box.rows.stop + 1), across=True, framed=True)


def _cut(page: Page, row: int, box: _Box) -> str:
    return page.lines[row][box.left : box.right]


def _words(page: Page, box: _Box, rows: Sequence[int]) -> list[str]:
    """Returns the text in `rows` of a box, without frames."""
    told = (" ".join(page.inner[row][box.left : box.right].split()) for row in rows if not page.is_rule(row))
    return [line for line in told if re.search(r"\w", line)]


def _inner_boxes(page: Page, box: _Box, below: int) -> list[_Box]:
    found = []
    for row in range(box.rows.start, below):
        for edge in _INNER.finditer(page.lines[row], box.left, box.right):
            end = next((n for n in range(row + 1, below) if _char(page, n, edge.start()) not in tuple(FRAMES)), None)
            if end is not None and _char(page, end, edge.start()) in tuple(_BOTTOM) and end > row + 1:
                found.append(_Box(range(row + 1, end), edge.start() + 1, edge.end() - 1))
    return found


def _field(page: Page, box: _Box, rows: range) -> _Field | None:
    """Returns the one row of a text field, by its drawing."""
    fields = [field for row in rows if (field := _field_in(page, box, row)) is not None]
    return fields[0] if len(fields) == 1 else None


def _field_in(page: Page, box: _Box, row: int) -> _Field | None:
    ground = page.style(row, box.left).bg
    blanks = _BLANKS.search(_cut(page, row, box))
    drawn = [at for at in range(box.left, box.right) if page.style(row, at).underline]
    if blanks is not None:
        other = [at for at in range(box.left, box.right) if page.style(row, at).bg != ground]
        return _Field(row, other[0] if other else box.left + blanks.start())
    return _Field(row, drawn[0]) if len(drawn) >= max(FIELD_MIN, (box.right - box.left) // 2) else None


def _listed(
    page: Page, within: _Box, below: int, buttons: int, box: _Box
) -> tuple[list[MenuOption], int | None, bool, bool]:
    """Returns the list's options, the index of the marked one, True if each has a tick box (`[ ]`), and True if each
    has a radio button (`( )`)."""
    rows = _last_paragraph(page, within, min(within.rows.stop, below))
    found = [(row, _TICK.match(_cut(page, row, within))) for row in rows]
    ticked = [(row, match) for row, match in found if match is not None]
    at_row, _ = page.screen.cursor
    if ticked and len(ticked) == len(rows):
        signs = {match["open"] for _, match in ticked}
        options = [
            MenuOption(str(n), f"{_state(match)} {_label(match['label'])}", row, within.left + match.start("open"))
            for n, (row, match) in enumerate(ticked, 1)
        ]
        marked = _lit(page, options, buttons, box)
        under = next((n for n, option in enumerate(options) if option.row == at_row), None)
        return options, under if under is not None else marked, signs == {"["}, signs == {"("}
    options = []
    for n, row in enumerate(rows, 1):
        text = _cut(page, row, within)
        options.append(MenuOption(str(n), _label(text.strip()), row, within.left + len(text) - len(text.lstrip())))
    marked = _lit(page, options, buttons, box)
    return (options, marked, False, False) if marked is not None else ([], None, False, False)


def _state(match: re.Match[str]) -> str:
    on = match["state"] != " "
    return ("[x]" if on else "[ ]") if match["open"] == "[" else ("(*)" if on else "( )")


def _label(text: str) -> str:
    """Returns the name of an option, without a scroll bar after it."""
    return re.sub(r"\s{2,}", "  ", re.sub(r"\s+[\^v↑↓▲▼█▒░]$", "", text.rstrip())).strip()


def _last_paragraph(page: Page, box: _Box, below: int) -> list[int]:
    rows = list(range(box.rows.start, below))
    while rows and (not page.inner[rows[-1]][box.left : box.right].strip() or page.is_rule(rows[-1])):
        rows.pop()
    begin = next((n for n in range(len(rows) - 1, -1, -1) if not page.inner[rows[n]][box.left : box.right].strip()), -1)
    return rows[begin + 1 :]


def _lit(page: Page, options: Sequence[MenuOption], buttons: int, box: _Box) -> int | None:
    """Returns the one option with another background than its window's, and than its siblings'."""
    ground = page.style(buttons, box.left)
    lit = [
        n
        for n, option in enumerate(options)
        if (style := page.style(option.row, option.at)).bg != ground.bg or style.inverse != ground.inverse
    ]
    return lit[0] if len(lit) == 1 else None
