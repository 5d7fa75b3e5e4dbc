"""Asks the person's terminal for its properties: its colours, the size of a cell, support of the kitty keyboard
protocol.

The queries are sent while the agent's screen is drawn already, and answers are separated from keys whenever they come,
so that nothing waits for them and no typed key is lost. Every terminal answers the last query, and all answer in order:
after that answer no other one will come. Pure.
"""

import re
from collections.abc import Callable
from typing import Any

QUESTIONS = b"\x1b]10;?\x1b\\\x1b]11;?\x1b\\\x1b[16t\x1b[?u\x1b[c"

ANSWERED_S = 1.0
"""Seconds to wait for answers before the terminal is given back, since its next reader would take them for keys."""

NOT_ASKED = frozenset({"linux"})
"""Values of TERM whose terminals print queries that they do not know."""

CELL_MAX = 512

_COLOR = re.compile(rb"\x1b\](1[01]);(?:rgba?:([0-9A-Fa-f/]{5,19})|#([0-9A-Fa-f]{6}))(?:\x07|\x1b\\)")
_CELL = re.compile(rb"\x1b\[6;(\d{1,4});(\d{1,4})t")
_KEYBOARD = re.compile(rb"\x1b\[\?\d{1,3}u")
_LAST = re.compile(rb"\x1b\[\?[\d;]*c")
_CHANNEL = re.compile(rb"[0-9A-Fa-f]{1,4}")
_NAMES = {b"10": "foreground", b"11": "background"}

SCHEME = re.compile(rb"\x1b\[\?997;\d+n")
"""Report of the terminal that its colours turned dark or light."""


class TerminalAnswers:
    """Collects answers. `pixels` returns the size of a cell from the kernel, for terminals that do not answer that
    query."""

    def __init__(self, pixels: Callable[[], tuple[int, int] | None]) -> None:
        self._pixels = pixels
        self._said: dict[str, Any] = {}
        self._until = 0.0
        self._waits = False
        self.told: dict[str, Any] | None = None
        """Properties of the terminal, once it has answered."""

    def ask(self, now: float) -> bytes:
        """Returns the queries; nothing while answers are awaited."""
        if self.wait(now):
            return b""
        self._said = {}
        self._waits, self._until = True, now + ANSWERED_S
        return QUESTIONS

    def wait(self, now: float) -> float:
        """Returns the seconds for which answers may be on their way."""
        return max(0.0, self._until - now) if self._waits else 0.0

    def hear(self, answer: bytes) -> None:
        """Takes an answer of the terminal, to any query."""
        if not self._waits:
            return
        if found := _COLOR.fullmatch(answer):
            self._said[_NAMES[found[1]]] = _rgb(found[2]) if found[2] else list(bytes.fromhex(found[3].decode()))
        elif found := _CELL.fullmatch(answer):
            self._said["cell"] = _cell(int(found[2]), int(found[1]))
        elif _KEYBOARD.fullmatch(answer):
            self._said["keyboard"] = True
        elif _LAST.fullmatch(answer):
            self._waits = False
            pixels = self._said.get("cell") or _cell(*(self._pixels() or (0, 0)))
            self.told = {"foreground": None, "background": None, "keyboard": False, **self._said, "cell": pixels}

    @property
    def tells_colors(self) -> bool:
        return self.told is not None and self.told["background"] is not None


def _rgb(text: bytes) -> list[int] | None:
    """Returns the channels in X11's form, each of one to four digits; an opacity after them is left out."""
    channels = text.split(b"/")[:3]
    if len(channels) < 3 or not all(_CHANNEL.fullmatch(channel) for channel in channels):
        return None
    return [round(int(channel, 16) * 255 / (16 ** len(channel) - 1)) for channel in channels]


def _cell(width: int, height: int) -> list[int] | None:
    return [width, height] if 1 <= width <= CELL_MAX and 1 <= height <= CELL_MAX else None
