"""The visible screen as a reader of menus sees it: rows without their frames, their styles, the place of a composer,
and the rows of a wrapped label. Pure."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from synapsed.shared.regex import regex
from synapsed.terminal.prose import columns, is_wide
from synapsed.terminal.snapshot import Cell, Color, ScreenSnapshot

FRAMES = "│┃║▌▐▏▎▕┆┊╎"
"""Sides of boxes, and the lines that programs draw along their text."""
_FRAME = regex(f"[{FRAMES}\u00a0\u200b]")
_RULE = regex(r"(?=.*?[─━═▔▁▀▄_]{8})[\s╭╮╰╯┌┐└┘├┤┏┓┗┛╻╹╷╵─━═▔▁▀▄_|]*+$")
_TITLED = regex(r"\s*+[╭┌┏├╔][─━═].*[─━═][╮┐┓┤╗]\s*+$")
"""The upper edge of a box, with words in it or not."""
_OPENS, _CLOSES = regex(r"\s*+[╭┌┏╔]"), regex(r"\s*+[╰└┗╚]")
"""The upper edge of a box, and its lower one: rows between two boxes are in neither."""
_SIGN = regex(r"\s*+(?:[❯›>»$%]|[/!@#](?=\w|\s*+$))")
"""Beginning of the text in a composer: its sign, or a command that is being typed."""
COMPOSER_ROWS = 4
"""Largest height of a composer between two rules."""
BLANK = regex(r"\s*+$")


class Style(NamedTuple):
    """Style of a character."""

    fg: Color
    bg: Color
    bold: bool
    dim: bool
    inverse: bool
    underline: bool

    @property
    def prominence(self) -> tuple[bool, ...]:
        """A measure of how much it stands out: of two buttons, the one with the larger value is the chosen one."""
        return (self.inverse, self.underline, self.bg is not None, self.bold, not self.dim, self.fg is not None)

    @property
    def filled(self) -> bool:
        """True if its background is not the screen's."""
        return self.inverse or self.bg is not None


PLAIN = Style(None, None, bold=False, dim=False, inverse=False, underline=False)


def _style(cell: Cell) -> Style:
    return Style(cell.fg, cell.bg, cell.bold, cell.dim, cell.inverse, cell.underline > 0)


class Page:
    """A screen for readers of menus. `lines` are the rows as they are, `inner` the same rows with frames blanked,
    character for character."""

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
        """Returns the text of `row`, without its frame; empty if it is a rule."""
        return "" if self.is_rule(row) else self.inner[row].strip()

    def is_rule(self, row: int) -> bool:
        """Returns True if `row` is a horizontal rule or a box's edge; it may stand within another box."""
        return bool(_RULE.match(self.inner[row]) or _TITLED.match(self.lines[row]) or _TITLED.match(self.inner[row]))

    def words_below(self, row: int) -> int:
        """Returns the number of rows with words below `row`."""
        if self._words is None:
            self._words = [n for n in range(len(self.lines)) if self.text(n)]
        return sum(n > row for n in self._words)

    def style(self, row: int, at: int) -> Style:
        cells = self._cells_of(row)
        return _style(cells[at]) if at < len(cells) else PLAIN

    def faint_from(self, row: int, at: int) -> int:
        """Returns the place, from `at` on, where `row` goes on in faint characters; its length if it does not."""
        cells = self._cells_of(row)
        length = len(self.lines[row])
        if at < len(cells) and cells[at].dim:
            return length
        return next((n for n in range(at, min(length, len(cells))) if cells[n].dim and cells[n].text != " "), length)

    def _cells_of(self, row: int) -> list[Cell]:
        if row not in self._cells:
            self._cells[row] = [cell for cell in self._read(row) for _ in cell.text]
        return self._cells[row]

    def frame_left_of(self, row: int, at: int) -> int | None:
        """Returns the place of the side of the innermost box around `at`."""
        return next((n for n in range(at - 1, -1, -1) if self.lines[row][n] in FRAMES), None)

    def composes(self, rows: range) -> bool:
        """Returns True if there is a composer on the screen, outside of `rows`: then the composer gets the keys. One
        farther above is a sent message, drawn as it was typed; of one directly above, `rows` may be completions."""
        if self._composers is None:
            self._composers = self._find_composers()
        at, _ = self.screen.cursor
        typed = self.screen.cursor_visible and at not in rows and _SIGN.match(self.inner[at]) is not None
        return typed or any(spot.start not in rows and spot.stop >= rows.start for spot in self._composers)

    def _find_composers(self) -> list[range]:
        """Returns the rows of each composer, with the edge below it."""
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
    """Returns the index of the style that is unlike the others, which are alike; of two, the one that stands out."""
    if len(styles) == 2:
        first, second = (style.prominence for style in styles)
        return None if first == second else int(second > first)
    odd = [n for n, style in enumerate(styles) if styles.count(style) == 1]
    return odd[0] if len(odd) == 1 and len(set(styles)) == 2 else None


SIDE = regex(rf"\s+[{FRAMES}╭╮╰╯┌┐└┘├┤].*$")
"""The right side of a box, and the text beyond it."""
MARGIN = 1
"""Columns before a row's end, or before a box's side, in which programs write nothing."""
SLACK = 9
"""Further columns that may be free if the row's look counts, too: opencode does not fill its rows to the end."""

type Look = Literal["ignored", "needed", "enough"]
"""Weight that an equal style has as a sign that a row continues the label above it: descriptions below a label seldom
have its style, and some programs wrap before a row is full."""


def continued(page: Page, row: int, at: int, look: Look = "ignored") -> list[int]:
    """Returns the rows below `row` in which the label that begins at `at` goes on: each begins there, with a word that
    had no room in the row above, and fits `look`. Gemini begins one column before, where the look has to decide."""
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
    """Returns the joined text of a label's rows, if each has `width` columns for it: a row that is full is cut within a
    word if that is longer than a row."""
    label = rows[0]
    for above, row in pairwise(rows):
        word = f"{above.rpartition(' ')[2]}{row.partition(' ')[0]}"
        cut = columns(above) >= width - MARGIN and columns(word) > width
        dense = any(map(is_wide, above[-1:] + row[:1]))  # a script without spaces
        label += row if cut or dense else f" {row}"
    return label


def room(page: Page, row: int, at: int) -> int:
    """Returns the columns from `at` to the end of `row`, or to the side of its box."""
    side = SIDE.search(page.lines[row], at)
    end = columns(page.lines[row][: side.end() - len(side[0].lstrip())]) if side else page.screen.cols
    return end - MARGIN - columns(page.lines[row][:at])


def _left(page: Page, row: int, at: int) -> int:
    """Returns the columns that are free at the end of `row`."""
    return room(page, row, at) - columns(SIDE.sub("", page.lines[row][at:]).rstrip())
