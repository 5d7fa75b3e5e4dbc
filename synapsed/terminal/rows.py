"""A screen's cells as they are drawn, with their final colours, and as rows of a page: runs of cells that look the
same. Pure.

Cells with anything but ASCII are listed one by one, so that a page can give each its columns with any font. As in a
picture, a row's text has no characters that reverse or hide text, or are invalid.
"""

import json
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

from synapsed.model.picture import Ink, Rgb, Rows
from synapsed.terminal.snapshot import Cell, Color, ScreenSnapshot

_DIM = 0.6
"""Share of its colour that a dim character keeps, the rest being its background's."""

_BRIGHT = 8
"""Bold text in one of the palette's first eight colours is drawn in its bright one, as most terminals do."""

_JOINING = "\u200d\ufe0e\ufe0f"
"""Format characters that select the form of an emoji."""

_MARKS_MAX = 8
"""Combining marks of one cell that are drawn."""


def ink_of(cell: Cell, now: ScreenSnapshot) -> Ink:
    """Returns the style of the cell, for any text in it."""
    bright = cell.bold and isinstance(cell.fg, int) and cell.fg < _BRIGHT
    foreground = _rgb(cell.fg + _BRIGHT if bright and isinstance(cell.fg, int) else cell.fg, now) or now.foreground
    background = _rgb(cell.bg, now)
    if cell.inverse:
        foreground, background = background or now.background, foreground
    if cell.dim:
        foreground = _mixed(foreground, background or now.background)
    return Ink(
        foreground=foreground,
        background=background,
        bold=cell.bold,
        italic=cell.italic,
        underline=cell.underline,
        underline_color=_rgb(cell.underline_color, now),
        strikethrough=cell.strikethrough,
        overline=cell.overline,
    )


def _rgb(color: Color, now: ScreenSnapshot) -> Rgb | None:
    if isinstance(color, int):
        red, green, blue = now.palette[3 * color : 3 * color + 3]
        return red, green, blue
    return color


def _mixed(color: Rgb, with_: Rgb) -> Rgb:
    red, green, blue = (round(_DIM * a + (1 - _DIM) * b) for a, b in zip(color, with_, strict=True))
    return red, green, blue


@lru_cache(maxsize=4096)
def drawable(text: str) -> str:
    """Returns a cell's text without characters that reverse or hide text, or are invalid; U+FFFD if nothing is left."""
    return cleaned(text)[: 1 + _MARKS_MAX] or "\ufffd"


def cleaned(text: str) -> str:
    """Returns the text without invalid characters and those that reverse text."""
    return "".join(char for char in text if char in _JOINING or unicodedata.category(char) not in _UNDRAWN)


_UNDRAWN = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})


BOLD, ITALIC, UNDERLINED, STRUCK, OVERLINED, BLINKING, DOUBLE, WAVY = (1 << bit for bit in range(8))

_UNDERLINES: Final = (0, UNDERLINED, UNDERLINED | DOUBLE, UNDERLINED | WAVY, UNDERLINED, UNDERLINED)

Run = tuple[int, str | list[str], str, str, int, str]


class CellRun(NamedTuple):
    """Cells of a row that have one style, with the text of each: an empty string in the second column of a wide one."""

    style: Cell
    """Style of the first of them; its text is ignored."""
    graphemes: tuple[str, ...]


def written(pieces: Iterable[CellRun], now: ScreenSnapshot) -> str:
    runs = [run for piece in pieces for run in _runs(piece, now)]
    while runs and _is_blank(runs[-1]):
        runs.pop()
    if runs and isinstance(text := runs[-1][1], str) and not (runs[-1][3] or runs[-1][4] & ~(BOLD | ITALIC)):
        runs[-1] = (len(text.rstrip(" ")), text.rstrip(" "), *runs[-1][2:])
    return json.dumps([_short(run) for run in runs], separators=(",", ":"), ensure_ascii=False)


def rows(lines: Iterable[str], now: ScreenSnapshot) -> Rows:
    return Rows(
        cols=now.cols,
        rows=now.rows,
        title=cleaned(now.title),
        foreground=color(now.foreground),
        background=color(now.background),
        cursor=now.cursor if now.cursor_visible else None,
        lines=tuple(lines),
    )


def color(rgb: Rgb) -> str:
    return "#{:02x}{:02x}{:02x}".format(*rgb)


def _runs(piece: CellRun, now: ScreenSnapshot) -> Iterator[Run]:
    style, looks = piece.style, _looks(piece.style, now)
    if style.invisible:
        yield (len(piece.graphemes), " " * len(piece.graphemes), *looks)
        return
    text = "".join(piece.graphemes)
    if text.isascii() and text.isprintable() and len(text) == len(piece.graphemes):
        yield (len(text), text, *looks)
        return
    graphemes = piece.graphemes
    wide = [following == "" for following in (*graphemes[1:], "x")]
    cells = [(drawable(one), two) for one, two in zip(graphemes, wide, strict=True) if one]
    for (two, plain), run in groupby(cells, key=lambda cell: (cell[1], not cell[1] and _is_plain(cell[0]))):
        drawn = [one for one, _ in run]
        yield (len(drawn) * (1 + two), "".join(drawn) if plain else drawn, *looks)


def _is_plain(cell: str) -> bool:
    return len(cell) == 1 and cell.isascii()


def _looks(style: Cell, now: ScreenSnapshot) -> tuple[str, str, int, str]:
    ink: Ink = ink_of(style, now)
    flags = (
        BOLD * ink.bold
        | ITALIC * ink.italic
        | _UNDERLINES[ink.underline]
        | STRUCK * ink.strikethrough
        | OVERLINED * ink.overline
        | BLINKING * style.blink
    )
    foreground = "" if ink.foreground == now.foreground else color(ink.foreground)
    background = "" if ink.background is None else color(ink.background)
    under = "" if ink.underline_color is None else color(ink.underline_color)
    return foreground, background, flags, under


def _is_blank(run: Run) -> bool:
    return isinstance(run[1], str) and not run[1].strip(" ") and not run[3] and not run[4] & ~(BOLD | ITALIC)


def _short(run: Run) -> tuple[int | str | list[str], ...]:
    end = len(run)
    while end > 2 and not run[end - 1]:
        end -= 1
    return run[:end]
