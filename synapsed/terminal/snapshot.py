"""A screen at one moment: values, without the emulator (`emulated_screen`)."""

from dataclasses import dataclass, field

ALTERNATE = (1049, 1047, 47)
"""The modes that show the alternate screen; the first is the usual one."""

DEC = (
    *(1, 3, 4, 5, 6, 7, 8, 9, 12, 25, 40, 45, 47, 66, 67, 69, 1000, 1002, 1003, 1004, 1005, 1006, 1007),
    *(1015, 1016, 1035, 1036, 1039, 1045, 1047, 1048, 1049, 2004, 2026, 2027, 2031, 2048),
)
"""The DEC private modes this terminal knows."""

DEC_DEFAULT = frozenset({7, 25, 1007, 1035, 1036})
"""Private modes that are set in a fresh terminal."""

ANSI = (2, 4, 12, 20)
"""The ANSI modes this terminal knows; 12 is set in a fresh one."""


@dataclass(frozen=True, slots=True)
class Modes:
    """The modes that are set."""

    dec: frozenset[int] = DEC_DEFAULT
    ansi: frozenset[int] = frozenset({12})

    @property
    def bracketed_paste(self) -> bool:
        """True if the program wants pastes marked (2004)."""
        return 2004 in self.dec

    @property
    def synchronized(self) -> bool:
        """True if the program is in the middle of a frame (2026)."""
        return 2026 in self.dec

    def state(self, number: int, *, ansi: bool = False) -> bool | None:
        """Returns True if a mode is set; None for one that this terminal does not know."""
        known, on = (ANSI, self.ansi) if ansi else (DEC, self.dec)
        return number in on if number in known else None


COLS_MAX = ROWS_MAX = 1000
ROWS_MIN = 3
CELLS_MAX = 30_000
"""The sizes in which the emulator is known to outlive its output (docs/adr/0062-the-emulator-again.md): 36,000 cells
are too many, and two rows too few."""


def bounded(cols: int, rows: int) -> tuple[int, int]:
    """Returns the allowed columns and rows for a screen of this size: one with too many cells has fewer rows."""
    cols = min(max(cols, 1), COLS_MAX)
    return cols, min(max(rows, ROWS_MIN), ROWS_MAX, CELLS_MAX // cols)


PLAIN, BOLD, OTHER = ".", "b", "x"
"""Style of a character: ordinary text (in the default colour, or one nearly white or black), bold, or another."""

type Color = int | tuple[int, int, int] | None
"""Default of the terminal (None); an index into the palette (0 to 255); or red, green, blue."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One character (or cluster) on the screen, ``width`` (1 or 2) columns wide. A blank cell holds a space.
    ``underline`` is 0 for none, 1 single, 2 double, 3 curly, 4 dotted, 5 dashed."""

    text: str
    width: int = 1
    fg: Color = None
    bg: Color = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: int = 0
    underline_color: Color = None
    blink: bool = False
    inverse: bool = False
    invisible: bool = False
    strikethrough: bool = False
    overline: bool = False


@dataclass(frozen=True, slots=True)
class ScreenSnapshot:
    """The screen at one moment.

    ``lines`` are the visible rows, wide characters as one character each (so a column is not an index: see
    `Screen.row_cells`). ``wrapped[i]`` says that row i goes on in row i + 1; such a row keeps the spaces at its end,
    all others are right-stripped, so joining is concatenation. ``cursor`` is (row, column), from 0; the column is the
    place of the next character, or the last one while the row is full. ``palette`` holds 256 colours of three bytes.
    """

    cols: int
    rows: int
    lines: tuple[str, ...]
    wrapped: tuple[bool, ...]
    cursor: tuple[int, int]
    cursor_visible: bool
    alternate: bool
    title: str
    modes: Modes
    foreground: tuple[int, int, int]
    background: tuple[int, int, int]
    palette: bytes = field(repr=False)

    def text(self) -> str:
        """Returns the visible rows as lines, wrapped ones joined, without the blank ones at the end."""
        ends = ("" if joined else "\n" for joined in self.wrapped)
        return "".join(line + end for line, end in zip(self.lines, ends, strict=True)).rstrip("\n")
