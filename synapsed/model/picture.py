"""A screen that others draw: the characters of each cell or run of cells, their colours, and the cursor; and the names
of the forms in which a screen is requested."""

from dataclasses import dataclass
from typing import Any, Literal

type ScreenForm = Literal["text", "coloured", "ansi", "json", "picture", "rows"]
"""Form in which a screen is requested."""

type KeptForm = ScreenForm | Literal["scrollback"]
"""Form of a kept screen: `scrollback` is text, with the rows above it."""

type Shown = "str | bytes | dict[str, Any] | Picture | Rows"
"""A screen in one of these forms: text or bytes, a dict for `json`, a class for `picture` and for `rows`."""

type Rgb = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Ink:
    """Style of characters. `background` is None for the screen's own. `underline` is 0 for none, 1 single, 2 double, 3
    curly, 4 dotted, 5 dashed."""

    foreground: Rgb
    background: Rgb | None = None
    bold: bool = False
    italic: bool = False
    underline: int = 0
    underline_color: Rgb | None = None
    strikethrough: bool = False
    overline: bool = False


@dataclass(frozen=True, slots=True)
class Glyph:
    """A character (or cluster) in the column `col`, `width` (1 or 2) columns wide. A blank one is a space."""

    text: str
    col: int
    width: int
    ink: Ink


@dataclass(frozen=True, slots=True)
class Picture:
    """A screen to be drawn. `lines` has for each row its glyphs from left to right; blank ones without a background of
    their own are left out. `cursor` is (row, column), None while it is hidden."""

    cols: int
    rows: int
    title: str
    foreground: Rgb
    background: Rgb
    cursor: tuple[int, int] | None
    lines: tuple[tuple[Glyph, ...], ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """A screen as rows of a page. Each of `lines` is JSON, an array of runs from left to right:

    `[columns, text, foreground, background, flags, underline]`, without empty elements at its end. `text` is a string,
    or an array of characters (or clusters) that take two columns each. Colours are `#rrggbb`, or `""` for the screen's;
    `flags` is the sum of 1 bold, 2 italic, 4 underlined, 8 struck through, 16 overlined, 32 blinking, 64 doubly, 128
    wavily underlined. Rows end with their last cell that is not blank.
    """

    cols: int
    rows: int
    title: str
    foreground: str
    background: str
    cursor: tuple[int, int] | None
    lines: tuple[str, ...]
