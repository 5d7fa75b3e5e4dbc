"""A picture of a screen as PNG. Needs Pillow, which the extra `pictures` installs. It blocks: call it in a thread.

It uses this machine's fonts: a monospaced one, and others for characters that this one does not have. Fontconfig
chooses them, so that a person's own settings count; without fontconfig macOS's fonts are tried, and at last Pillow's
own.
"""

import shutil
import subprocess
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from synapsed.interfaces import Glyph, Picture, Rgb
from synapsed.parts.pictures.boxes import Area, figures

LOOKUPS_MAX = 32
"""Most characters for which fontconfig is asked in one picture: 20 ms each. Further ones are drawn as boxes."""

MATCH_SECONDS = 5.0

_KNOWN = (
    "/System/Library/Fonts/Menlo.ttc",
    "/System/Library/Fonts/Hiragino Sans GB.ttc",
    "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf",
)
_NO_CHARACTER = "\uffff"


class Fonts:
    """Fonts of one picture: its characters are `size` pixels high."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lookups = 0
        self._others: list[Any] = []
        self._chosen: dict[tuple[str, bool, bool], Any] = {}
        self.base: Any = self._load(_match("monospace")) or ImageFont.load_default(size)
        """The monospaced font."""

    def font(self, text: str, *, bold: bool = False, italic: bool = False) -> Any | None:
        """Returns a font that has the first character of `text`; None if no font has it."""
        key = (text[0], bold, italic)
        if key not in self._chosen:
            self._chosen[key] = self._find(*key)
        return self._chosen[key]

    def _find(self, char: str, bold: bool, italic: bool) -> Any | None:
        style = (":weight=bold" if bold else "") + (":slant=italic" if italic else "")
        first = self._load(_match(f"monospace{style}")) if style else None
        for font in [*([first] if first is not None else []), self.base, *self._others]:
            if _has(font, char):
                return font
        if self._lookups >= LOOKUPS_MAX:
            return None
        self._lookups += 1
        font = self._load(_match(f"monospace:charset={ord(char):x}"))
        if font is None or not _has(font, char):
            return None
        self._others.append(font)
        return font

    def _load(self, place: tuple[str, int] | None) -> Any | None:
        if place is None:
            return None
        try:
            return ImageFont.truetype(place[0], self._size, index=place[1])
        except OSError:  # a bitmap font of other sizes (colour emoji), or no font after all
            return None


def _has(font: Any, char: str) -> bool:
    """Returns True if the font draws `char` in another way than a missing character."""
    return bytes(font.getmask(char)) != bytes(font.getmask(_NO_CHARACTER))


@lru_cache(maxsize=256)
def _match(pattern: str) -> tuple[str, int] | None:
    """Returns the file of the font that fits best, and the font's number in that file."""
    tool = shutil.which("fc-match")
    if tool is None:
        return next(((path, 0) for path in _KNOWN if Path(path).exists()), None) if pattern == "monospace" else None
    command = [tool, "--format", "%{file}\n%{index}", pattern]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=MATCH_SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    file, _, index = found.partition("\n")
    return (file, int(index) if index.isdecimal() else 0) if file else None


SIZE, SMALL_SIZE = 20, 12
"""Heights of a character in pixels; the small one for screens of more than LARGE_CELLS."""
LARGE_CELLS = 16_000
PADDING = 10
CURVE_STEPS = 8
ROUNDED = 0.5
"""Pixels by which a character of the monospaced font can be wider than a column, whose width is rounded."""


def png(shown: Picture) -> bytes:
    """Returns the file. The largest screen (`terminal.snapshot.CELLS_MAX`) takes some 20 MB while it is drawn."""
    fonts = Fonts(SIZE if shown.cols * shown.rows <= LARGE_CELLS else SMALL_SIZE)
    return _Painter(shown, fonts).file()


class _Painter:
    def __init__(self, shown: Picture, fonts: Fonts) -> None:
        self._shown = shown
        self._fonts = fonts
        self._ascent, descent = fonts.base.getmetrics()
        self._width = max(1, round(fonts.base.getlength("M")))
        self._height = self._ascent + descent
        size = (shown.cols * self._width + 2 * PADDING, shown.rows * self._height + 2 * PADDING)
        self._image = Image.new("RGB", size, shown.background)
        self._draw = ImageDraw.Draw(self._image)
        self._line = max(1, self._height // 14)
        """Width of lines below and through a character."""

    def file(self) -> bytes:
        for row, glyphs in enumerate(self._shown.lines):
            for glyph in glyphs:
                if glyph.ink.background is not None:
                    self._rectangle(*self._cell(row, glyph), glyph.ink.background)
            for glyph in glyphs:
                self._glyph(row, glyph, glyph.ink.foreground)
        self._cursor()
        out = BytesIO()
        self._image.save(out, "PNG")
        return out.getvalue()

    def _cursor(self) -> None:
        if self._shown.cursor is None:
            return
        row, col = self._shown.cursor
        under = next((glyph for glyph in self._shown.lines[row] if glyph.col <= col < glyph.col + glyph.width), None)
        x, y = self._place(row, under.col if under is not None else col)
        width = self._width * (under.width if under is not None else 1)
        self._rectangle(x, y, x + width, y + self._height, self._shown.foreground)
        if under is not None:
            self._glyph(row, under, under.ink.background or self._shown.background)

    def _place(self, row: int, col: int) -> tuple[int, int]:
        return PADDING + col * self._width, PADDING + row * self._height

    def _cell(self, row: int, glyph: Glyph) -> tuple[float, float, float, float]:
        x, y = self._place(row, glyph.col)
        return x, y, x + glyph.width * self._width, y + self._height

    def _rectangle(self, left: float, top: float, right: float, bottom: float, color: Rgb) -> None:
        x, y = round(left), round(top)
        self._draw.rectangle((x, y, max(x, round(right) - 1), max(y, round(bottom) - 1)), fill=color)

    def _glyph(self, row: int, glyph: Glyph, color: Rgb) -> None:
        x, y, right, bottom = self._cell(row, glyph)
        if glyph.text != " " and not self._figures(x, y, glyph, color):
            font = self._fonts.font(glyph.text, bold=glyph.ink.bold, italic=glyph.ink.italic)
            if font is None:
                self._missing(x, y, right, bottom, color)
            else:
                self._text(glyph, font, (x, right), y, color)
        self._rules(x, y, right, glyph, color)

    def _figures(self, x: float, y: float, glyph: Glyph, color: Rgb) -> bool:
        shapes = figures(glyph.text, self._width, self._height)
        for shape in shapes or ():
            if isinstance(shape, Area):
                ground = glyph.ink.background or self._shown.background
                shaded = _mixed(color, ground, shape.shade)
                self._rectangle(x + shape.left, y + shape.top, x + shape.right, y + shape.bottom, shaded)
            else:
                points = [(x + a, y + b) for a, b in _curve(shape.points)]
                self._draw.line(points, fill=color, width=round(shape.width), joint="curve")
        return shapes is not None

    def _text(self, glyph: Glyph, font: Any, span: tuple[float, float], y: float, color: Rgb) -> None:
        """Draws text in the middle of its columns, since characters of another font have other widths; one that is too
        wide is cut at the end of its columns."""
        room, length = span[1] - span[0], font.getlength(glyph.text)
        if length <= room + ROUNDED:
            start = span[0] + max(0.0, (room - length) / 2)
            self._draw.text((start, y + self._ascent), glyph.text, font=font, fill=color, anchor="ls")
            return
        cell = Image.new("L", (round(room), self._height))
        ImageDraw.Draw(cell).text((0, self._ascent), glyph.text, font=font, fill=255, anchor="ls")
        self._image.paste(color, (round(span[0]), round(y)), cell)

    def _missing(self, left: float, top: float, right: float, bottom: float, color: Rgb) -> None:
        """Draws a box, for a character that no font has."""
        edge = self._width // 6 + 1
        self._draw.rectangle((left + edge, top + 2 * edge, right - edge, bottom - 2 * edge), outline=color)

    def _rules(self, left: float, top: float, right: float, glyph: Glyph, color: Rgb) -> None:
        ink, line = glyph.ink, self._line
        below = top + self._ascent + line + 1
        under = ink.underline_color or color
        if ink.underline == 3:
            step = self._width / 4
            wave = [(left + step * n, below + (n % 2) * 2 * line) for n in range(4 * glyph.width + 1)]
            self._draw.line(wave, fill=under, width=line)
        elif ink.underline in (4, 5):
            step = self._width / (4 if ink.underline == 4 else 2)
            for n in range(round((right - left) / step)):
                self._rectangle(left + n * step, below, left + n * step + step / 2, below + line, under)
        elif ink.underline:
            for offset in (0, 2 * line)[: ink.underline]:
                self._rectangle(left, below + offset, right, below + offset + line, under)
        if ink.strikethrough:
            middle = top + self._height / 2
            self._rectangle(left, middle, right, middle + line, color)
        if ink.overline:
            self._rectangle(left, top, right, top + line, color)


def _curve(points: tuple[tuple[float, float], ...]) -> list[tuple[float, float]]:
    if len(points) == 2:
        return list(points)
    (ax, ay), (bx, by), (cx, cy) = points
    steps = [n / CURVE_STEPS for n in range(CURVE_STEPS + 1)]
    return [
        ((1 - t) ** 2 * ax + 2 * (1 - t) * t * bx + t * t * cx, (1 - t) ** 2 * ay + 2 * (1 - t) * t * by + t * t * cy)
        for t in steps
    ]


def _mixed(color: Rgb, ground: Rgb, share: float) -> Rgb:
    red, green, blue = (round(share * a + (1 - share) * b) for a, b in zip(color, ground, strict=True))
    return red, green, blue
