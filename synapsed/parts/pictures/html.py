"""A picture of a screen as a page of HTML: text in its colours, without scripts and references. Pure."""

from html import escape
from itertools import groupby

from synapsed.interfaces import Glyph, Ink, Picture, Rgb

FONTS = "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace"

_LINES = {1: "solid", 2: "double", 3: "wavy", 4: "dotted", 5: "dashed"}


def html(shown: Picture) -> str:
    """Returns the document. The width of columns depends on the reader's font: for exact columns, use SVG."""
    rows = "\n".join(_row(row, glyphs, shown) for row, glyphs in enumerate(shown.lines))
    page = f"background:{_color(shown.background)};color:{_color(shown.foreground)}"
    return (
        f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{escape(shown.title) or "screen"}</title></head>\n'
        f'<body style="margin:0;{page}"><pre dir="ltr" style="margin:8px;font:13px/17px {FONTS};'
        f'unicode-bidi:bidi-override">{rows}\n</pre></body></html>\n'
    )


def _row(row: int, glyphs: tuple[Glyph, ...], shown: Picture) -> str:
    cursor = shown.cursor[1] if shown.cursor is not None and shown.cursor[0] == row else None
    out = []
    for (ink, marked), run in groupby(
        _filled(glyphs, shown, cursor), key=lambda glyph: (glyph.ink, glyph.col == cursor)
    ):
        text, style = escape("".join(glyph.text for glyph in run)), _style(ink, shown, marked=marked)
        out.append(f'<span style="{style}">{text}</span>' if style else text)
    return "".join(out)


def _filled(glyphs: tuple[Glyph, ...], shown: Picture, cursor: int | None) -> list[Glyph]:
    """Returns the glyphs with the blanks between them, and a blank for a cursor on an empty cell."""
    plain, row, col = Ink(shown.foreground), list[Glyph](), 0
    there = {glyph.col: glyph for glyph in glyphs}
    end = max([*(glyph.col + glyph.width for glyph in glyphs), 0 if cursor is None else cursor + 1], default=0)
    while col < end:
        row.append(there.get(col) or Glyph(" ", col, 1, plain))
        col += row[-1].width
    return row


def _style(ink: Ink, shown: Picture, *, marked: bool) -> str:
    foreground, background = ink.foreground, ink.background
    if marked:
        foreground, background = background or shown.background, foreground
    words = (ink.underline, "underline"), (ink.strikethrough, "line-through"), (ink.overline, "overline")
    lines = [word for on, word in words if on]
    if ink.underline:
        lines.append(_LINES[ink.underline])
    rules = {
        "color": _color(foreground) if foreground != shown.foreground else "",
        "background": _color(background) if background is not None else "",
        "font-weight": "bold" if ink.bold else "",
        "font-style": "italic" if ink.italic else "",
        "text-decoration": " ".join(lines),
    }
    return ";".join(f"{name}:{value}" for name, value in rules.items() if value)


def _color(color: Rgb) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)
