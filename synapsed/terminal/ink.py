"""How a cell is drawn: its colours worked out, its text cleaned of what is drawn elsewhere or not at all. Pure."""

import unicodedata
from functools import lru_cache

from synapsed.model.picture import Ink, Rgb
from synapsed.terminal.snapshot import Cell, Color, ScreenSnapshot

_DIM = 0.6
"""How much of its colour a dim character keeps, the rest being its background's."""

_BRIGHT = 8
"""Bold text in one of the palette's first eight colours is drawn in its bright one, as most terminals do."""

_JOINING = "\u200d\ufe0e\ufe0f"
"""Format characters that say how an emoji is drawn."""

_MARKS_MAX = 8
"""Combining marks of one cell that are drawn."""


def ink_of(cell: Cell, now: ScreenSnapshot) -> Ink:
    """How the cell is drawn, whatever stands in it."""
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
    """A cell's text without what turns writing around, hides or is no character; U+FFFD where nothing is left."""
    return cleaned(text)[: 1 + _MARKS_MAX] or "\ufffd"


def cleaned(text: str) -> str:
    """Without what is no character to be drawn, or turns writing around."""
    return "".join(char for char in text if char in _JOINING or unicodedata.category(char) not in _UNDRAWN)


_UNDRAWN = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})
