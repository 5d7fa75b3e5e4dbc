"""Shows an agent on a person's terminal: the program's output, the status line, and hints of our own for some
seconds."""

import time
from typing import Any

from synapsectl.output import clip
from synapsectl.statusline import WHEEL_OFF, StatusRow
from synapsectl.tty import Terminal

HINT = 4.0
"""Seconds for which a hint is shown."""

SHOWN_MAX = 1024 * 1024
"""Bytes that wait for the terminal; while there are more, nothing is read from the daemon, which sends a redraw instead
of what it could not send."""


def over_last_row(words: str) -> bytes:
    return b"\x1b7\x1b[999;1H\x1b[0;7m %b \x1b[0m\x1b[K\x1b8" % words.encode("utf-8", "replace")


class Display:
    """Writes to the terminal without blocking: output that the terminal does not take at once waits. `gone` is True if
    the terminal has hung up."""

    def __init__(self, terminal: Terminal, *, read_only: bool) -> None:
        self.terminal = terminal
        self.status = StatusRow(terminal.size(), shown=False, titled=False)
        self.name = ""
        """The agent's name."""
        self.told: dict[str, Any] = {}
        """Data from the daemon for the status line."""
        self.covered = False
        """True if something else is shown instead of the program's output and the status line."""
        self.gone = False
        self.waiting = bytearray()
        """Output that the terminal has not taken yet."""
        self._read_only = read_only
        self._hint, self.hint_over = "", 0.0

    def configure(self, settings: dict[str, Any]) -> None:
        """Applies the settings of `[attach]`."""
        self.status = StatusRow(
            self.status.size,
            shown=bool(settings.get("status", False)),
            titled=bool(settings.get("title", False)),
            wheel=bool(settings.get("wheel", False)),
        )

    @property
    def has_room(self) -> bool:
        return len(self.waiting) < SHOWN_MAX

    def show(self, data: bytes) -> None:
        if not (data or self.waiting):
            return
        try:
            if not self.waiting:
                taken = self.terminal.write(data)
                if taken < len(data):
                    self.waiting += data[taken:]
                return
            self.waiting += data
            del self.waiting[: self.terminal.write(self.waiting)]
        except OSError:
            self.gone = True

    def output(self, data: bytes) -> None:
        """Shows output of the program, which has only whole escape sequences."""
        if not self.covered:
            self.show(self.status.feed(data))

    def screen(self, data: bytes, *, drawn: bool) -> None:
        """Shows the program's whole screen; `drawn`: the terminal shows it already."""
        self.refresh()
        screen = self.status.screen(data)
        self.show(self.status.counted() if drawn else screen)

    def begin(self) -> None:
        """Begins a screen, in a terminal that may show anything."""
        self.waiting.clear()
        self.show(self.terminal.reset)

    def uncover(self) -> None:
        """Ends a display that covered the program's screen; a redraw follows."""
        self.covered = False
        self.show(WHEEL_OFF)

    def say(self, hint: str) -> None:
        """Shows a hint for a moment: in the status line, or over the last row of the screen."""
        self._hint, self.hint_over = hint, time.monotonic() + HINT
        if not self.status.kept:
            self.show(over_last_row(clip(hint, self.terminal.size()[0] - 2)))
        self.refresh()

    def expire(self, now: float) -> bool:
        """Removes the hint; returns True if the screen has to be drawn again for that."""
        if not self.hint_over or now < self.hint_over:
            return False
        self._hint, self.hint_over = "", 0.0
        self.refresh()
        return not self.status.kept

    def attention(self, needs: int, *, here: Any, doing: Any, bell: bool) -> None:
        """Shows the number of items that need a person; rings if there are more than before, and `bell` is set."""
        more = needs > self.told.get("needs", needs)
        self.told = {"needs": needs, "here": here, "doing": doing}
        self.show(self.status.needs(needs) + (b"\a" if more and bell else b""))
        self.refresh()

    def refresh(self) -> None:
        """Draws the status line in its present form."""
        needs, here = self.told.get("needs", 0), self.told.get("here", False)
        doing = self.told.get("doing", "")
        others = f"   {needs} need{'s' if needs == 1 else ''} you" if needs else ""
        asks = " (this one)" if here and needs else ""
        looks = " (read-only)" if self._read_only else ""
        self.status.text = self._hint or f" {self.name}{looks}  {doing}{others}{asks}"
        if not self.covered:
            self.show(self.status.refresh())

    def toggle_status(self) -> None:
        """Shows the status line, or gives its row back to the program."""
        if self.status.kept:
            self.show(self.status.end())
        self.status.shown = not self.status.shown
