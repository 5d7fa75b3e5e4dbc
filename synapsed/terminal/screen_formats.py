"""A screen as a document, and as a picture. Pure."""

from collections.abc import Sequence
from typing import Any

from synapsed.model.picture import Glyph, Ink, Picture
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.rows import cleaned, drawable, ink_of
from synapsed.terminal.snapshot import Cell, ScreenSnapshot


def document(screen: Screen) -> dict[str, Any]:
    """Returns the size, lines, cursor and title, and if the alternate screen is shown, as JSON values."""
    now = screen.snapshot()
    return {
        "cols": now.cols,
        "rows": now.rows,
        "lines": list(now.lines),
        "cursor": {"row": now.cursor[0], "col": now.cursor[1], "visible": now.cursor_visible},
        "title": now.title,
        "alternate": now.alternate,
    }


def picture(screen: Screen) -> Picture:
    now = screen.snapshot()
    lines = tuple(_line(screen.row_cells(row), now) for row in range(now.rows))
    return Picture(
        cols=now.cols,
        rows=now.rows,
        title=cleaned(now.title),
        foreground=now.foreground,
        background=now.background,
        cursor=now.cursor if now.cursor_visible else None,
        lines=lines,
    )


def _line(cells: Sequence[Cell], now: ScreenSnapshot) -> tuple[Glyph, ...]:
    glyphs, col = [], 0
    inks: dict[Cell, Ink] = {}
    for cell in cells:
        bare = cell.text == " "
        if not bare or cell.bg is not None or cell.inverse or cell.underline or cell.strikethrough or cell.overline:
            ink = inks.get(cell) or inks.setdefault(cell, ink_of(cell, now))
            text = " " if cell.invisible else drawable(cell.text)
            if text != " " or ink.background is not None or ink.underline or ink.strikethrough or ink.overline:
                glyphs.append(Glyph(text, col, cell.width, ink))
        col += cell.width
    return tuple(glyphs)
