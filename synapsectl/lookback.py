"""Looks back at an agent's output: a pager over its lines, with search, until `q` leads back to live. Pure.

Lines come as text with the sequences that colour them (`synapsed.terminal.scrollback_lines`). They are cut into rows of
the terminal's width as they are needed; the model has the position, the drawing is a function of it.
"""

import re
from collections.abc import Sequence

from synapsectl.output import clip, display_width

_TOKEN = re.compile(r"\x1b\[[\d;:]*m|[^\x1b]")
_SGR = re.compile(r"\x1b\[[\d;:]*m")
_PIECE = re.compile(r"\x1b\[[\d;:]*m|[^\x1b]+")
_KEY = re.compile(
    rb"\x1b\[<(?P<button>\d{1,9});\d+;\d+[Mm]|\x1b\[(?P<csi>[\d;]*[A-Z~])|\x1bO(?P<ss3>[A-Z])"
    rb"|\x1b\[[\d;:?<=>]*[ -/]*[@-~]|(?P<plain>[\x00-\x1a\x1c-\x7f]|[\xc2-\xf4][\x80-\xbf]*|\x1b)"
)
_NAMED = {
    b"A": "up",
    b"B": "down",
    b"H": "top",
    b"F": "end",
    b"5~": "page-up",
    b"6~": "page-down",
    b"1~": "top",
    b"4~": "end",
}
_PLAIN = {
    b"k": "up",
    b"j": "down",
    b"\r": "down",
    b"\x19": "up",
    b"\x05": "down",
    b"b": "page-up",
    b"\x02": "page-up",
    b"f": "page-down",
    b"\x06": "page-down",
    b" ": "page-down",
    b"u": "half-up",
    b"\x15": "half-up",
    b"d": "half-down",
    b"\x04": "half-down",
    b"g": "top",
    b"<": "top",
    b"G": "end",
    b">": "end",
    b"n": "again",
    b"N": "back",
    b"/": "search",
    b"?": "search-back",
    b"q": "leave",
    b"\x1b": "leave",
    b"\x03": "leave",
}
WHEEL_UP, WHEEL_DOWN = 64, 65
WHEEL_ROWS = 3
HELP = "q live  / ? search  n N  g G  PgUp PgDn"


def rows_of(line: str, width: int) -> list[str]:
    """Returns `line` in rows of at most `width` columns, each with the colours that are in force where it begins."""
    if "\x1b" not in line and line.isascii() and len(line) <= width:
        return [line]
    rows, row, pen, used = [], [], "", 0
    for token in _TOKEN.findall(line):
        if token[0] == "\x1b":
            pen = "" if token in ("\x1b[m", "\x1b[0m") else pen + token
            row.append(token)
            continue
        columns = 1 if token.isascii() else display_width(token)
        if used + columns > width and used:
            rows.append("".join(row))
            row, used = [pen], 0
        row.append(token)
        used += columns
    return [*rows, "".join(row)]


class Lookback:
    """A position in `lines`; `size` is (columns, rows) of the terminal, whose last row describes the position."""

    def __init__(self, lines: Sequence[str], size: tuple[int, int]) -> None:
        self._lines = list(lines)
        self.over = False
        self._pattern = ""
        self._backwards = False
        self._typing: str | None = None
        """Pattern that is being typed after `/` or `?`."""
        self._said = ""
        self._found = -1
        """The line that was found last."""
        self._partial = b""
        self._rows: list[tuple[int, str]] = []
        """Each row, with the number of its line."""
        self.resize(size)
        self._top = self._last_top()

    def resize(self, size: tuple[int, int]) -> None:
        line = self._rows[self._top][0] if self._rows else 0
        self._width, self._height = max(1, size[0]), max(1, size[1] - 1)
        self._rows = [(number, row) for number, line in enumerate(self._lines) for row in rows_of(line, self._width)]
        self._top = min(self._last_top(), next((at for at, (number, _) in enumerate(self._rows) if number >= line), 0))

    def _last_top(self) -> int:
        return max(0, len(self._rows) - self._height)

    # --- keys -------------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> bytes:
        """Takes keys; returns those after the one that ends the pager (`over`)."""
        whole, self._partial = self._partial + data, b""
        at = 0
        while at < len(whole) and not self.over:
            match = _KEY.match(whole, at)
            if match is None:
                self._partial = whole[at:] if len(whole) - at < 64 else b""
                return b""
            at = match.end()
            if self._typing is not None:
                self._write(match["plain"])
            else:
                self._press(match)
        return whole[at:]

    def _press(self, match: re.Match[bytes]) -> None:
        self._said = ""
        if match["button"] is not None:
            move = {WHEEL_UP: -WHEEL_ROWS, WHEEL_DOWN: WHEEL_ROWS}.get(int(match["button"]), 0)
            if move > 0 and self._top == self._last_top():
                self.over = True  # the wheel has led here, and leads back
            self._move(move)
            return
        named = match["csi"] or match["ss3"] or b""
        # Shift and other modifiers put their number in between.
        named = named.partition(b";")[0].rstrip(b"~") + b"~" if named.endswith(b"~") else named[-1:]
        self._do(_NAMED.get(named, "") or _PLAIN.get(match["plain"] or b"", ""))

    def _do(self, what: str) -> None:
        match what:
            case "leave":
                self.over = True
            case "search" | "search-back":
                self._typing, self._backwards = "", what == "search-back"
            case "again" | "back":
                self._find(backwards=self._backwards != (what == "back"))
            case "top":
                self._top = 0
            case "end":
                self._top = self._last_top()
            case _:
                page = self._height - 1 or 1
                self._move(
                    {
                        "up": -1,
                        "down": 1,
                        "page-up": -page,
                        "page-down": page,
                        "half-up": -(page // 2 or 1),
                        "half-down": page // 2 or 1,
                    }.get(what, 0)
                )

    def _move(self, rows: int) -> None:
        self._top = max(0, min(self._top + rows, self._last_top()))

    def _write(self, key: bytes | None) -> None:
        """Takes a key of the pattern."""
        if self._typing is None or key is None:
            return
        if key in (b"\r", b"\n"):
            self._pattern, self._typing = self._typing or self._pattern, None
            self._find(backwards=self._backwards)
        elif key in (b"\x1b", b"\x03"):
            self._typing = None
        elif key in (b"\x7f", b"\b"):
            self._typing = self._typing[:-1] if self._typing else None
        elif key >= b" ":
            self._typing += key.decode("utf-8", "replace")

    def _find(self, *, backwards: bool) -> None:
        """Goes to the next line with the pattern, and from the last line to the first. Case counts only if the pattern
        has capitals."""
        if not self._pattern:
            return
        fold = str if self._pattern != self._pattern.lower() else str.lower
        shown = [number for number, _ in self._rows[self._top : self._top + self._height]]
        here = self._found if self._found in shown else next(iter(shown), 0)
        count = len(self._lines)
        step = -1 if backwards else 1
        for distance in range(1, count + 1):
            number = (here + step * distance) % count
            if self._pattern in fold(_SGR.sub("", self._lines[number])):
                self._top = min(self._last_top(), next(at for at, row in enumerate(self._rows) if row[0] == number))
                self._found = number
                self._said = "around the end" if (number - here) * step <= 0 else ""
                return
        self._said = f"not found: {self._pattern}"

    # --- drawing ----------------------------------------------------------------------------------------------------

    def draw(self) -> bytes:
        """Returns the bytes that draw all rows, and the last one with the position."""
        out = ["\x1b[?2026h\x1b[r\x1b[?7l\x1b[?25l\x1b[m"]
        for number in range(self._height):
            at = self._top + number
            row = self._mark(self._rows[at][1]) if at < len(self._rows) else ""
            out.append(f"\x1b[{number + 1};1H{row}\x1b[m\x1b[K")
        out.append(f"\x1b[{self._height + 1};1H\x1b[7m{self._status()}\x1b[m\x1b[?2026l")
        return "".join(out).encode("utf-8", "replace")

    def _mark(self, row: str) -> str:
        """Returns `row` with the pattern in reverse where it stands in the same case and without colours in between."""
        if self._pattern not in row or not self._pattern:
            return row
        marked = f"\x1b[7m{self._pattern}\x1b[27m"
        pieces = _PIECE.findall(row)
        return "".join(piece if piece[0] == "\x1b" else piece.replace(self._pattern, marked) for piece in pieces)

    def _status(self) -> str:
        if self._typing is not None:
            text = ("?" if self._backwards else "/") + self._typing
        else:
            last = min(self._top + self._height, len(self._rows))
            text = f" {last}/{len(self._rows)}  {self._said or HELP} "
        text = clip(text, self._width)
        return text + " " * (self._width - display_width(text))
