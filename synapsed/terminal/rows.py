"""A screen's cells as rows of a page: runs of cells that look the same, with their colours worked out. Pure.

Cells with anything but ASCII are told one by one, so that a page can give each its columns whatever its font does. Like
a picture's, a row's text is cleaned of what turns writing around, hides or is no character.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, NamedTuple

from synapsed.model.picture import Ink, Rgb, Rows
from synapsed.terminal.ink import cleaned, drawable, ink_of
from synapsed.terminal.snapshot import Cell, ScreenSnapshot

BOLD, ITALIC, UNDERLINED, STRUCK, OVERLINED, BLINKING, DOUBLE, WAVY = (1 << bit for bit in range(8))

_UNDERLINES: Final = (0, UNDERLINED, UNDERLINED | DOUBLE, UNDERLINED | WAVY, UNDERLINED, UNDERLINED)

Run = tuple[int, str | list[str], str, str, int, str]


class CellRun(NamedTuple):
    """Cells of a row that have one style: what each holds, an empty string in the second column of a wide one."""

    style: Cell
    """Of the first of them; its text says nothing."""
    graphemes: tuple[str, ...]


def written(pieces: Iterable[CellRun], now: ScreenSnapshot) -> str:
    """The JSON of one row."""
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
