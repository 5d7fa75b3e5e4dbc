"""A picture of a screen as SVG: text that can be found and copied, figures for boxes. Pure.

The screen's text cannot be markup: it is escaped, and the document has neither scripts nor references. Every character
has its own place, and is written from left to right in any script.
"""

from collections.abc import Iterable, Iterator, Set
from html import escape
from itertools import groupby

from synapsed.interfaces import Glyph, Ink, Picture, Rgb
from synapsed.parts.pictures.boxes import Area, Stroke, figures

CELL_WIDTH, CELL_HEIGHT, FONT_SIZE, BASELINE = 8, 17, 13, 13
PADDING = 8

FONTS = (
    "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,'Noto Sans Mono CJK JP','Noto Sans CJK JP','Hiragino Sans',"
    "'Noto Color Emoji','Apple Color Emoji',monospace"
)

_DASHES = {4: ' stroke-dasharray="1 2"', 5: ' stroke-dasharray="4 2"'}


def svg(shown: Picture) -> str:
    """Returns the document; characters in it are UTF-8."""
    width, height = shown.cols * CELL_WIDTH + 2 * PADDING, shown.rows * CELL_HEIGHT + 2 * PADDING
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>{escape(shown.title)}</title>" if shown.title else "",
        f'<rect width="100%" height="100%" fill="{_color(shown.background)}"/>',
        f'<g transform="translate({PADDING} {PADDING})" font-family="{FONTS}" font-size="{FONT_SIZE}"',
        ' style="white-space:pre;direction:ltr;unicode-bidi:bidi-override">',
    ]
    for row, glyphs in enumerate(shown.lines):
        parts += _backgrounds(row, glyphs)
        parts += [_drawn(row, glyph) for glyph in glyphs]
        parts += _texts(row, glyphs)
        parts += [_rules(row, glyph) for glyph in glyphs]
    if shown.cursor is not None:
        row, col = shown.cursor
        parts.append(_rect(col * CELL_WIDTH, row * CELL_HEIGHT, CELL_WIDTH, CELL_HEIGHT, shown.foreground, 0.5))
    return "\n".join(part for part in [*parts, "</g>", "</svg>"] if part) + "\n"


def _backgrounds(row: int, glyphs: tuple[Glyph, ...]) -> Iterator[str]:
    for color, run in groupby(glyphs, key=lambda glyph: glyph.ink.background):
        if color is None:
            continue
        for first, end in _joined(list(run)):
            yield _rect(first * CELL_WIDTH, row * CELL_HEIGHT, (end - first) * CELL_WIDTH, CELL_HEIGHT, color)


def _joined(glyphs: list[Glyph]) -> Iterator[tuple[int, int]]:
    """Yields the ranges of columns that the glyphs fill without gaps."""
    begin = end = glyphs[0].col
    for glyph in glyphs:
        if glyph.col != end:
            yield begin, end
            begin = glyph.col
        end = glyph.col + glyph.width
    yield begin, end


def _drawn(row: int, glyph: Glyph) -> str:
    shapes, color = figures(glyph.text, CELL_WIDTH, CELL_HEIGHT), _color(glyph.ink.foreground)
    if shapes is None:
        return ""
    x, y = glyph.col * CELL_WIDTH, row * CELL_HEIGHT
    made = []
    for shape in shapes:
        if isinstance(shape, Area):
            width, height = shape.right - shape.left, shape.bottom - shape.top
            made.append(_rect(x + shape.left, y + shape.top, width, height, glyph.ink.foreground, shape.shade))
        else:
            made.append(f'<path d="{_path(shape, x, y)}" fill="none" stroke="{color}" stroke-width="{shape.width:g}"/>')
    return "".join(made)


def _path(stroke: Stroke, x: float, y: float) -> str:
    points = [f"{x + a:g} {y + b:g}" for a, b in stroke.points]
    return f"M{points[0]}L{points[1]}" if len(points) == 2 else f"M{points[0]}Q{points[1]} {points[2]}"


def _texts(row: int, glyphs: tuple[Glyph, ...]) -> Iterator[str]:
    """Yields characters of one style in one element, each with its place; a cluster has an element of its own. A viewer
    that uses only the first place still shows them."""
    y = row * CELL_HEIGHT + BASELINE
    filled = {glyph.col for glyph in glyphs if glyph.text != " "}
    for (ink, alone), run in groupby(_written(glyphs), key=lambda glyph: (glyph.ink, len(glyph.text) > 1)):
        for group in [[glyph] for glyph in run] if alone else _together(run, filled):
            places = " ".join(f"{glyph.col * CELL_WIDTH}" for glyph in group)
            text = escape("".join(glyph.text for glyph in group))
            yield f'<text x="{places}" y="{y}"{_style(ink)}>{text}</text>'


def _together(glyphs: Iterable[Glyph], filled: Set[int]) -> Iterator[list[Glyph]]:
    """Yields groups of glyphs, with the blanks between words, so that a sentence can be found and copied as one. A gap
    that is wider, or may not be empty (`filled`: columns with possible content), begins a new group."""
    group: list[Glyph] = []
    for glyph in glyphs:
        end = group[-1].col + group[-1].width if group else glyph.col
        if glyph.col == end + 1 and end not in filled:
            group.append(Glyph(" ", end, 1, glyph.ink))
        elif glyph.col != end:
            yield group
            group = []
        group.append(glyph)
    if group:
        yield group


def _written(glyphs: tuple[Glyph, ...]) -> list[Glyph]:
    return [glyph for glyph in glyphs if glyph.text != " " and figures(glyph.text, CELL_WIDTH, CELL_HEIGHT) is None]


def _style(ink: Ink) -> str:
    weight = ' font-weight="bold"' if ink.bold else ""
    slant = ' font-style="italic"' if ink.italic else ""
    return f' fill="{_color(ink.foreground)}"{weight}{slant}'


def _rules(row: int, glyph: Glyph) -> str:
    """Returns the lines along a character: the font's own lines would end at a blank character."""
    ink, top = glyph.ink, row * CELL_HEIGHT
    under = [top + BASELINE + 2, *([top + BASELINE + 4 - 0.5] if ink.underline == 2 else [])] if ink.underline else []
    lines = [(y, ink.underline_color or ink.foreground, _DASHES.get(ink.underline, "")) for y in under]
    lines += [(top + CELL_HEIGHT / 2 + 0.5, ink.foreground, "")] if ink.strikethrough else []
    lines += [(top + 0.5, ink.foreground, "")] if ink.overline else []
    left, right = glyph.col * CELL_WIDTH, (glyph.col + glyph.width) * CELL_WIDTH
    curl = ""
    if ink.underline == 3:
        y, color, _ = lines.pop(0)
        wave = f"q{CELL_WIDTH / 8:g} -2 {CELL_WIDTH / 4:g} 0" + f"t{CELL_WIDTH / 4:g} 0" * (4 * glyph.width - 1)
        curl = f'<path d="M{left} {y}{wave}" fill="none" stroke="{_color(color)}"/>'
    straight = (f'<path d="M{left} {y}H{right}" stroke="{_color(color)}"{dash}/>' for y, color, dash in lines)
    return curl + "".join(straight)


def _rect(x: float, y: float, width: float, height: float, color: Rgb, opacity: float = 1.0) -> str:
    faint = "" if opacity == 1.0 else f' fill-opacity="{opacity:g}"'
    crisp = ' shape-rendering="crispEdges"'
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{_color(color)}"{faint}{crisp}/>'


def _color(color: Rgb) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)
