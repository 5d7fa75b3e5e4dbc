"""The visible screen as a reader of menus sees it: rows without the frames around them, how they are drawn, where a
composer stands, and in which rows a label goes on that the program has wrapped. Pure.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from synapsed.terminal.prose import columns, is_wide
from synapsed.terminal.snapshot import Cell, Color, ScreenSnapshot

FRAMES = "│┃║▌▐▏▎▕┆┊╎"
"""Sides of boxes, and the lines that programs draw along what they say."""
_FRAME = re.compile(f"[{FRAMES}\u00a0\u200b]")
_RULE = re.compile(r"(?=.*?[─━═▔▁▀▄_]{8})[\s╭╮╰╯┌┐└┘├┤┏┓┗┛╻╹╷╵─━═▔▁▀▄_|]*+$")
_TITLED = re.compile(r"\s*+[╭┌┏├╔][─━═].*[─━═][╮┐┓┤╗]\s*+$")
"""The upper edge of a box, with words in it or not."""
_OPENS, _CLOSES = re.compile(r"\s*+[╭┌┏╔]"), re.compile(r"\s*+[╰└┗╚]")
"""A box's upper edge, and its lower one: what stands from one box to the next is in neither."""
_SIGN = re.compile(r"\s*+(?:[❯›>»$%]|[/!@#](?=\w|\s*+$))")
"""How what stands in a composer begins: its sign, or a command that is being typed."""
COMPOSER_ROWS = 4
"""How high a composer between two rules may be."""
BLANK = re.compile(r"\s*+$")


class Style(NamedTuple):
    """How a character is drawn."""

    fg: Color
    bg: Color
    bold: bool
    dim: bool
    inverse: bool
    underline: bool

    @property
    def prominence(self) -> tuple[bool, ...]:
        """Of two buttons, the one with more of it is the one that is chosen."""
        return (self.inverse, self.underline, self.bg is not None, self.bold, not self.dim, self.fg is not None)

    @property
    def filled(self) -> bool:
        """Whether its background is not the screen's."""
        return self.inverse or self.bg is not None


PLAIN = Style(None, None, bold=False, dim=False, inverse=False, underline=False)


def _style(cell: Cell) -> Style:
    return Style(cell.fg, cell.bg, cell.bold, cell.dim, cell.inverse, cell.underline > 0)


class Page:
    """`lines` are the rows as they are, `inner` the same with frames blanked, character for character."""

    def __init__(self, screen: ScreenSnapshot, cells: Callable[[int], Sequence[Cell]]) -> None:
        self.screen = screen
        self.lines = screen.lines
        self.inner = tuple(_FRAME.sub(" ", line) for line in screen.lines)
        self._read = cells
        self._cells: dict[int, list[Cell]] = {}
        self._composers: list[range] | None = None
        self._words: list[int] | None = None

    def blank(self, row: int) -> bool:
        return BLANK.match(self.inner[row]) is not None

    def text(self, row: int) -> str:
        """What `row` says, without its frame; nothing where it is a rule."""
        return "" if self.is_rule(row) else self.inner[row].strip()

    def is_rule(self, row: int) -> bool:
        """Whether `row` is a horizontal rule or a box's edge; it may stand within another box."""
        return bool(_RULE.match(self.inner[row]) or _TITLED.match(self.lines[row]) or _TITLED.match(self.inner[row]))

    def words_below(self, row: int) -> int:
        """How many rows below `row` have words."""
        if self._words is None:
            self._words = [n for n in range(len(self.lines)) if self.text(n)]
        return sum(n > row for n in self._words)

    def style(self, row: int, at: int) -> Style:
        """How the character at `at` of `row` is drawn."""
        cells = self._cells_of(row)
        return _style(cells[at]) if at < len(cells) else PLAIN

    def faint_from(self, row: int, at: int) -> int:
        """Where, from `at` on, `row` goes on in faint characters; its length where it does not."""
        cells = self._cells_of(row)
        length = len(self.lines[row])
        if at < len(cells) and cells[at].dim:
            return length
        return next((n for n in range(at, min(length, len(cells))) if cells[n].dim and cells[n].text != " "), length)

    def _cells_of(self, row: int) -> list[Cell]:
        """The cells of `row`, character for character."""
        if row not in self._cells:
            self._cells[row] = [cell for cell in self._read(row) for _ in cell.text]
        return self._cells[row]

    def frame_left_of(self, row: int, at: int) -> int | None:
        """Where the side of the innermost box around `at` stands."""
        return next((n for n in range(at - 1, -1, -1) if self.lines[row][n] in FRAMES), None)

    def composes(self, rows: range) -> bool:
        """Whether a composer stands on the screen, outside of `rows`: what is being typed goes there. One that is
        farther above is a message, drawn as it was typed; right above, `rows` may be what completes its text."""
        if self._composers is None:
            self._composers = self._find_composers()
        at, _ = self.screen.cursor
        typed = self.screen.cursor_visible and at not in rows and _SIGN.match(self.inner[at]) is not None
        return typed or any(spot.start not in rows and spot.stop >= rows.start for spot in self._composers)

    def _find_composers(self) -> list[range]:
        """Their rows, with the edges below them."""
        ruled = [row for row in range(len(self.lines)) if self.is_rule(row)]
        between = [
            (top, end)
            for top, end in pairwise(ruled)
            if 1 < end - top <= COMPOSER_ROWS + 1
            and not (_CLOSES.match(self.lines[top]) or _OPENS.match(self.lines[end]))
        ]
        return [range(top + 1, end + 1) for top, end in between if self._holds_composer(top, end)]

    def _holds_composer(self, top: int, end: int) -> bool:
        rows = range(top + 1, end)
        same = len(self.lines[top].strip()) == len(self.lines[end].strip())
        empty = all(self.blank(row) for row in rows)
        return same and (empty or _SIGN.match(self.inner[top + 1]) is not None)


def odd_one(styles: Sequence[Style]) -> int | None:
    """Which of `styles` is unlike the others, which are alike; of two, the one that stands out."""
    if len(styles) == 2:
        first, second = (style.prominence for style in styles)
        return None if first == second else int(second > first)
    odd = [n for n, style in enumerate(styles) if styles.count(style) == 1]
    return odd[0] if len(odd) == 1 and len(set(styles)) == 2 else None


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
