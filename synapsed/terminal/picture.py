"""A screen's cells as a picture: colours worked out, text cleaned of what is drawn elsewhere or not at all."""

import unicodedata
from functools import lru_cache

from synapsed.model.picture import Glyph, Ink, Picture, Rgb
from synapsed.terminal.screen import Screen
from synapsed.terminal.snapshot import Cell, Color, ScreenSnapshot

_DIM = 0.6
"""How much of its colour a dim character keeps, the rest being its background's."""

_BRIGHT = 8
"""Bold text in one of the palette's first eight colours is drawn in its bright one, as most terminals do."""

_JOINING = "\u200d\ufe0e\ufe0f"
"""Format characters that say how an emoji is drawn."""

_MARKS_MAX = 8
"""Combining marks of one cell that are drawn."""


def picture(screen: Screen) -> Picture:
    """What `screen` shows now."""
    now = screen.snapshot()
    lines = tuple(_line(screen.row_cells(row), now) for row in range(now.rows))
    return Picture(
        cols=now.cols,
        rows=now.rows,
        title=_cleaned(now.title),
        foreground=now.foreground,
        background=now.background,
        cursor=now.cursor if now.cursor_visible else None,
        lines=lines,
    )


def _line(cells: list[Cell], now: ScreenSnapshot) -> tuple[Glyph, ...]:
    glyphs, col = [], 0
    inks: dict[Cell, Ink] = {}
    for cell in cells:
        bare = cell.text == " "
        if not bare or cell.bg is not None or cell.inverse or cell.underline or cell.strikethrough or cell.overline:
            ink = inks.get(cell) or inks.setdefault(cell, _ink(cell, now))
            text = " " if cell.invisible else _drawable(cell.text)
            if text != " " or ink.background is not None or ink.underline or ink.strikethrough or ink.overline:
                glyphs.append(Glyph(text, col, cell.width, ink))
        col += cell.width
    return tuple(glyphs)


def _ink(cell: Cell, now: ScreenSnapshot) -> Ink:
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
def _drawable(text: str) -> str:
    """A cell's text without what turns writing around, hides or is no character; U+FFFD where nothing is left."""
    return _cleaned(text)[: 1 + _MARKS_MAX] or "\ufffd"


def _cleaned(text: str) -> str:
    return "".join(char for char in text if char in _JOINING or unicodedata.category(char) not in _UNDRAWN)


_UNDRAWN = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})
