"""Draws the status line in the last row of an attached terminal, which the program does not get; and the title, with
the number of items that need a person.

The program's window is one row shorter than the terminal, and its output passes as it is, except sequences that would
reach beyond: scrolling regions end above the row, the cursor is not put on it, and after an erasure it is drawn again.
Drawing the row uses the terminal's one saved cursor: if a program then goes back to a cursor that it saved before, its
screen is wrong, and the daemon draws it again. Pure: output in, output out. The output comes from the daemon, which
never cuts a sequence in two.
"""

import re

from synapsectl.output import clip, display_width

_SEQUENCE = re.compile(
    rb"\x1b(?:\[(?:(?P<region>[\d;]*)r|(?P<erase>[\d;]*)J|(?P<row>\d+)(?P<column>;[\d;]*)?(?P<to>[Hfd])"
    rb"|\?(?P<modes>[\d;]+)(?P<set>[hl])|(?P<soft>!p)|(?P<put>[su]))"
    rb"|\](?P<title>[02];[^\x07\x1b]*)(?:\x07|\x1b\\)"
    rb"|(?P<other>[c78]|\#8))"
)
_ALTERNATE = frozenset({b"47", b"1047", b"1049"})
_ORIGIN, _WRAP, _MARGINS, _CURSOR = b"6", b"7", b"69", b"1048"
_CURSOR_TOO = b"1049"
"""The other screen, with the cursor saved before and put back after it."""
_MOUSE = frozenset({b"9", b"1000", b"1002", b"1003"})
_FORMS = frozenset({b"1005", b"1006", b"1015", b"1016"})
WHEEL_ON, WHEEL_OFF = b"\x1b[?1000;1006h", b"\x1b[?1000;1006l"
_CUT = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")
"""Beginning of a character in UTF-8 whose rest has not come."""
_DIGITS = 6
"""Digits of a number that count: more rows than they can tell no terminal has."""


def _numbers(parameters: bytes) -> list[int]:
    """Returns the numbers of a sequence, of which there may be any number, of any length; a missing one is 0."""
    return [int(one.lstrip(b"0")[:_DIGITS] or 0) for one in parameters.split(b";")]


class StatusRow:
    """Reserves the last row of the terminal for the status line. `size` is (columns, rows) of the terminal; `shown`:
    the last row is kept; `wheel`: the mouse reports here while the program does not take it."""

    def __init__(self, size: tuple[int, int], *, shown: bool, titled: bool, wheel: bool = False) -> None:
        self._titled = titled
        self._wheel = wheel
        self.mouse: set[bytes] = set()
        """Modes of mouse reports, and of their forms, that the program has set."""
        self.shown = shown
        self.size = size
        self.text = ""
        self._needs = 0
        self._title = b""
        """Title of the program."""
        self._saved = False
        """True if the program has saved a cursor, which ours would replace."""
        self._replaced = True
        """True if the saved cursor is ours, or no cursor is saved."""
        self._origin = False
        self._margins = False
        self._wraps = True
        self._alternate = False
        self._scrolls = (1, size[1] - 1)
        """The first and the last row of the scrolling region."""
        self._strayed = self._told = False
        self._stale = False
        """True if the row is to be drawn when possible."""
        self._whole = True
        """True if no character is cut at the end of the output."""

    @property
    def kept(self) -> bool:
        """True if there is a last row to keep: not in a terminal with very few rows."""
        return self.shown and self.size[1] >= 4

    def window(self) -> tuple[int, int]:
        """Returns the columns and rows that the program gets."""
        return self.size[0], self.size[1] - self.kept

    def begin(self) -> bytes:
        """Returns the bytes before a whole screen is drawn."""
        self._saved = self._origin = self._margins = self._alternate = self._stale = False
        self._replaced = self._wraps = self._whole = True
        self._strayed = self._told = False
        self._scrolls = (1, self.size[1] - 1)
        self.mouse.clear()
        kept = b"\x1b[?6;69l" + self._region() + self._draw() if self.kept else b""
        return kept + WHEEL_ON if self._wheel else kept

    def screen(self, data: bytes) -> bytes:
        """Returns the bytes that show a whole screen, drawn by `data`."""
        shown = self.begin() + self.feed(data)
        self._strayed = False
        return shown

    def strays(self) -> bool:
        """Returns True if the program has done something that cannot be followed here, so that its screen has to be
        drawn again. Returns it only once until that is done."""
        told, self._told = self._told, self._told or self._strayed
        return self._strayed and not told

    def end(self) -> bytes:
        """Returns the bytes that give the row back."""
        return b"\x1b[r\x1b[%d;1H\x1b[m\x1b[K" % self.size[1]

    def refresh(self) -> bytes:
        """Returns the bytes that draw the row again, if that is possible now; else it is done later."""
        self._stale = True
        return self._if_stale()

    def _if_stale(self) -> bytes:
        if not self._stale or not self.kept or self._saved or self._origin or self._margins or not self._whole:
            return b""
        self._stale, self._replaced = False, True
        return b"\x1b7\x1b(B\x0f" + self._draw() + b"\x1b8"

    def _draw(self) -> bytes:
        columns, rows = self.size
        text = clip(self.text, columns)
        text += " " * (columns - display_width(text))
        wraps = b"\x1b[?7h" if self._wraps else b""
        return b"\x1b[%d;1H\x1b[?7l\x1b[0;7m%b\x1b[m%b" % (rows, text.encode("utf-8", "replace"), wraps)

    def _region(self) -> bytes:
        return b"\x1b[%d;%dr" % self._scrolls

    # --- output -----------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> bytes:
        """Returns the bytes to show for the program's output."""
        if not (self.kept or self._titled or self._wheel):
            return data
        self._whole = True  # the text before a sequence is whole
        passed = _SEQUENCE.sub(self._pass, data) if b"\x1b" in data else data
        self._whole = _CUT.search(data, max(0, len(data) - 4)) is None
        return passed + self._if_stale() if self._stale else passed

    def _pass(self, match: re.Match[bytes]) -> bytes:
        whole = match[0]
        if match["title"] is not None:
            self._title = match["title"][2:]
            return self.counted() or whole
        if self._wheel and (match["modes"] is not None or match["other"] == b"c"):
            return self._moused(match, self._keep(match, whole) if self.kept else whole)
        return self._keep(match, whole) if self.kept else whole

    @property
    def takes_mouse(self) -> bool:
        """Returns True if the program takes the mouse."""
        return not self.mouse.isdisjoint(_MOUSE)

    def _moused(self, match: re.Match[bytes], passed: bytes) -> bytes:
        """Handles modes of the mouse: it is the program's, or ours."""
        before = self.takes_mouse
        if match["modes"] is None:
            self.mouse.clear()
            return passed + WHEEL_ON
        changed = (_MOUSE | _FORMS).intersection(match["modes"].split(b";"))
        self.mouse = self.mouse | changed if match["set"] == b"h" else self.mouse - changed
        if self.takes_mouse and not before:
            forms = b";".join(sorted(self.mouse & _FORMS))
            return WHEEL_OFF + (b"\x1b[?%bh" % forms if forms else b"") + passed
        return passed + WHEEL_ON if changed and not self.takes_mouse else passed

    def _keep(self, match: re.Match[bytes], whole: bytes) -> bytes:
        last = self.size[1] - 1
        if match["region"] is not None:
            return self._bounded(match["region"], last)
        if match["to"] is not None:
            if _numbers(match["row"])[0] <= last:
                return whole
            return b"\x1b[%d%b%b" % (last, match["column"] or b"", match["to"])
        if match["modes"] is not None:
            return whole + self._switched(match["modes"].split(b";"), on=match["set"] == b"h")
        if match["erase"] is not None:
            if _numbers(match["erase"])[0] in (0, 2):
                self._stale = True
            return whole + self._if_stale()
        if match["put"] is not None or match["other"] in (b"7", b"8"):
            self._put(saves=match["put"] == b"s" or match["other"] == b"7")
            return whole
        return whole + self._reset(match, last) + self._if_stale()

    def _bounded(self, region: bytes, last: int) -> bytes:
        top, end, *others = [*_numbers(region.removesuffix(b";")), 0]
        if len(others) > 1:
            return b""  # some terminals take the first two numbers: the daemon's screen takes none
        rows = top or 1, end if 0 < end < last else last
        if rows[0] < rows[1]:  # else the terminal ignores it
            self._scrolls = rows
        return b"\x1b[%d;%dr" % rows

    def _reset(self, match: re.Match[bytes], last: int) -> bytes:
        """Returns the bytes to send after a reset, or after the test pattern (ESC # 8)."""
        self._stale = True
        if match["soft"]:  # terminals differ in what it resets
            self._strayed = self._replaced = True
            return b"\x1b7" + self._region() + b"\x1b8"
        # The full reset and the test pattern both end the region, and leave the cursor at home.
        self._saved = self._origin = False
        self._scrolls = (1, last)
        if match["other"] == b"c":
            self._margins = self._alternate = False
            self._wraps = True
        return self._region()

    def _put(self, *, saves: bool) -> None:
        """Notes that the program saves a cursor, or goes back to it."""
        self._saved = saves
        if saves:
            self._replaced = False
        elif self._replaced:
            self._strayed = True

    def _switched(self, modes: list[bytes], *, on: bool) -> bytes:
        if _ORIGIN in modes:
            self._origin = on
        if _WRAP in modes:
            self._wraps = on
        if _MARGINS in modes:
            self._margins = on
        if _CURSOR in modes or (_CURSOR_TOO in modes and not on and not self._alternate):
            self._put(saves=on)
        if _ALTERNATE.isdisjoint(modes):
            return self._if_stale()
        # Each screen may have a region and a saved cursor of its own; the cursor stays where it is.
        self._saved, self._replaced, self._stale = False, True, True
        self._alternate = on
        return b"\x1b7" + self._region() + b"\x1b8" + self._if_stale()

    # --- the title --------------------------------------------------------------------------------------------------

    def needs(self, count: int) -> bytes:
        """Takes the number of items that need a person; returns the new title, if it changes."""
        before, self._needs = self._needs, count
        return self.title() if self._titled and count != before else b""

    def counted(self) -> bytes:
        """Returns the title, if it has the number of items that need a person."""
        return self.title() if self._titled and self._needs else b""

    def title(self) -> bytes:
        own = self._title or b"synapsed"
        return b"\x1b]2;(%d) %b\x07" % (self._needs, own) if self._needs else b"\x1b]2;%b\x07" % own
