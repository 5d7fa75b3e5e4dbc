"""The last row of an attached terminal, kept from the program; and the title, which tells how many need a person.

The program's window is one row shorter than the terminal, and its output passes as it is, but for what would reach
beyond: scrolling regions end above the row, the cursor is not put on it, and where something erased it it is drawn
again. Pure: output in, output out. It comes from the daemon, which never cuts a sequence in two.
"""

import re

from synapsectl.output import clip, display_width

_SEQUENCE = re.compile(
    rb"\x1b(?:\[(?:(?P<region>[\d;]*)r|(?P<erase>[\d;]*)J|(?P<row>\d{1,9})(?P<column>;\d*)?(?P<to>[Hfd])"
    rb"|\?(?P<modes>[\d;]+)(?P<set>[hl])|(?P<soft>!p)|(?P<put>[su]))"
    rb"|\](?P<title>[02];[^\x07\x1b]*)(?:\x07|\x1b\\)"
    rb"|(?P<other>[c78]|\#8))"
)
_ALTERNATE = frozenset({b"47", b"1047", b"1049"})
_ORIGIN = b"6"
_MOUSE = frozenset({b"9", b"1000", b"1002", b"1003"})
_FORMS = frozenset({b"1005", b"1006", b"1015", b"1016"})
WHEEL_ON, WHEEL_OFF = b"\x1b[?1000;1006h", b"\x1b[?1000;1006l"
_CUT = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")
"""The beginning of a character."""


class StatusRow:
    """`size` is (columns, rows) of the terminal; `shown`: whether the last row is kept; `wheel`:
    the mouse reports here while the program does not take it."""

    def __init__(self, size: tuple[int, int], *, shown: bool, titled: bool, wheel: bool = False) -> None:
        self._titled = titled
        self._wheel = wheel
        self.mouse: set[bytes] = set()
        """The modes that report the mouse which the program has set, and their forms."""
        self.shown = shown
        self.size = size
        self.text = ""
        self._needs = 0
        self._title = b""
        """The program's own."""
        self._saved = False
        """The program has saved a cursor, which ours would replace."""
        self._origin = False
        self._stale = False
        """It is to be drawn when that can be done."""
        self._whole = True
        """No character is cut at the end of what was shown."""

    @property
    def kept(self) -> bool:
        """Whether there is a last row to keep: not in a terminal of hardly any."""
        return self.shown and self.size[1] >= 4

    def window(self) -> tuple[int, int]:
        """Columns and rows that the program gets."""
        return self.size[0], self.size[1] - self.kept

    def begin(self) -> bytes:
        """What is sent before a whole screen is drawn."""
        self._saved = self._origin = self._stale = False
        self._whole = True
        self.mouse.clear()
        kept = b"\x1b[?6l" + self._region() + self._draw() if self.kept else b""
        return kept + WHEEL_ON if self._wheel else kept

    def end(self) -> bytes:
        """What gives the row back."""
        return b"\x1b[r\x1b[%d;1H\x1b[m\x1b[K" % self.size[1]

    def refresh(self) -> bytes:
        """What draws the row again, if that can be done now; else it is done later."""
        self._stale = True
        return self._if_stale()

    def _if_stale(self) -> bytes:
        if not self._stale or not self.kept or self._saved or self._origin or not self._whole:
            return b""
        self._stale = False
        return b"\x1b7\x1b(B\x0f" + self._draw() + b"\x1b8"

    def _draw(self) -> bytes:
        columns, rows = self.size
        text = clip(self.text, columns)
        text += " " * (columns - display_width(text))
        return b"\x1b[%d;1H\x1b[?7l\x1b[0;7m%b\x1b[m\x1b[?7h" % (rows, text.encode("utf-8", "replace"))

    def _region(self) -> bytes:
        return b"\x1b[1;%dr" % (self.size[1] - 1)

    # --- output -----------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> bytes:
        """What is shown of the program's output."""
        if not (self.kept or self._titled or self._wheel):
            return data
        self._whole = True  # what a sequence stands behind is
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
        """Whether the program does."""
        return not self.mouse.isdisjoint(_MOUSE)

    def _moused(self, match: re.Match[bytes], passed: bytes) -> bytes:
        """Modes were set: the mouse is the program's, or ours."""
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
            top, _, bottom = match["region"].partition(b";")
            end = int(bottom or 0)
            return b"\x1b[%d;%dr" % (int(top or 1) or 1, end if 0 < end < last else last)
        if match["to"] is not None:
            if int(match["row"]) <= last:
                return whole
            return b"\x1b[%d%b%b" % (last, match["column"] or b"", match["to"])
        if match["modes"] is not None:
            return whole + self._switched(match["modes"].split(b";"), on=match["set"] == b"h")
        if match["erase"] is not None:
            if match["erase"] in (b"", b"0", b"2"):
                self._stale = True
            return whole + self._if_stale()
        if match["put"] is not None or match["other"] in (b"7", b"8"):
            self._saved = match["put"] == b"s" or match["other"] == b"7"
            return whole
        # A reset, of which the softer one leaves the cursor where it is; or a test pattern all over.
        self._saved = self._origin = False
        self._stale = True
        if match["other"] == b"c":
            return whole + self._region() + self._if_stale()
        return whole + (b"\x1b7" + self._region() + b"\x1b8" if match["soft"] else b"") + self._if_stale()

    def _switched(self, modes: list[bytes], *, on: bool) -> bytes:
        if _ORIGIN in modes:
            self._origin = on
        if _ALTERNATE.isdisjoint(modes):
            return b""
        # Each screen may have a region and a saved cursor of its own.
        self._saved = False
        self._stale = True
        region = self._region() if on else b"\x1b7" + self._region() + b"\x1b8"
        return region + self._if_stale()

    # --- the title --------------------------------------------------------------------------------------------------

    def needs(self, count: int) -> bytes:
        """So many need a person: what changes the title, if anything does."""
        before, self._needs = self._needs, count
        return self.title() if self._titled and count != before else b""

    def counted(self) -> bytes:
        """The title, where it tells how many need a person."""
        return self.title() if self._titled and self._needs else b""

    def title(self) -> bytes:
        own = self._title or b"synapsed"
        return b"\x1b]2;(%d) %b\x07" % (self._needs, own) if self._needs else b"\x1b]2;%b\x07" % own
