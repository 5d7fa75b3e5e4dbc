"""Makes the person's terminal raw while an agent has it, and restores it on every way out."""

import fcntl
import os
import select
import signal
import struct
import termios
import time
from contextlib import suppress
from typing import Self

from synapsectl.ahead import ALTERNATE_OFF, ALTERNATE_ON, BegunAttach, clear, scroll_away, take

READ_MAX = 64 * 1024
LEAVE_DEADLINE = 1.0
"""Seconds for a terminal to take its reset; one that takes nothing (Ctrl-S, a frozen window) is left as it is."""

KEYBOARD = b"\x1b[<99u\x1b[>4m"
"""Resets every pushed flag of the kitty keyboard protocol, and xterm's modifyOtherKeys. Each screen has flags of its
own."""

_STOP = b"".join(
    (
        b"\x1b\\",  # ends whatever sequence the stream was cut in
        b"\x1b[?2026l",  # synchronized output: shows what was held back
        b"\x1b[?9;1000;1002;1003;1004;1005;1006;1015;1016l",  # mouse, focus
        b"\x1b[?2004;2031;2048l",  # bracketed paste, reports of colours and of size
        KEYBOARD,
    )
)
_USUAL = b"".join(
    (
        b"\x1b[?1;5;6;69l\x1b[?7;25h",  # cursor keys, reverse, origin, margins; wrap and a visible cursor
        b"\x1b[4;20l\x1b>",  # insert, newline mode, keypad
        b"\x1b[r\x0f\x1b(B\x1b[0m\x1b[0 q",  # scroll region, character sets, attributes, cursor's shape
        b"\x1b]8;;\x1b\\\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\",  # hyperlink, colours
    )
)
RESET = _STOP + ALTERNATE_OFF + KEYBOARD + _USUAL
RESET_ALTERNATE = _STOP + _USUAL
"""Takes back all settings of a program in a terminal that showed its output; `RESET_ALTERNATE` stays on the present
screen."""
_TITLE = b"\x1b[23;0t"
_BELOW = b"\x1b[999;1H\r\n"
LEAVE = RESET + _TITLE + _BELOW
LEAVE_ALTERNATE = RESET_ALTERNATE + _BELOW + ALTERNATE_OFF + b"\x1b[m\x1b[?25h" + _TITLE
"""Resets the title as well, which was pushed at the beginning. If there is an alternate screen, leaving it brings the
former screen and cursor back; a terminal without an alternate screen goes on in a free line."""
END_PROGRESS = b"\x1b]9;4;0\x1b\\"
END_STATUS = b"\x1b]7501;state=clear\x1b\\"


class TerminalGone(Exception):
    """The terminal hung up before it could be taken."""


class Terminal:
    """The terminal on `fd`. A context manager: raw inside. Entering raises TerminalGone.

    It is opened again if that is possible, because a file description that we make non-blocking must not be the one
    that the shell shares.
    """

    def __init__(self, fd: int) -> None:
        self._given = fd
        self._fd = fd
        self._saved: list[object] | None = None
        self.alternate = False
        """True if the alternate screen is used."""
        self._progress = False
        self._status = False

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.give_back()

    def go_on(self, begun: BegunAttach) -> bool:
        """Takes over the state in which `begun` left the terminal; returns True if it was made raw there."""
        if begun.terminal is None:
            return False
        self._fd, self._saved = begun.terminal
        self.alternate = begun.alternate
        self._note(begun.shown)
        return True

    def take(self) -> None:
        """Makes the terminal raw, if it is not raw yet. Raises TerminalGone."""
        if self._saved is not None:
            return
        try:
            self._fd, self._saved = take(self._given)
        except termios.error:
            raise TerminalGone from None
        _, rows = self.size()
        with suppress(OSError):
            self.write_out(clear(rows, alternate=self.alternate))

    def show_on(self, *, alternate: bool) -> bytes:
        """Switches to the alternate screen, or from it; returns the bytes that change a terminal that is taken."""
        before, self.alternate = self.alternate, alternate
        if self._saved is None or alternate == before:
            return b""
        return RESET + (ALTERNATE_ON if alternate else scroll_away(self.size()[1]))

    def give_back(self) -> None:
        """Restores the terminal, if it was taken."""
        saved, self._saved = self._saved, None
        if saved is None:
            return
        extra = (END_PROGRESS if self._progress else b"") + (END_STATUS if self._status else b"")
        # Without this, the kernel would stop a process in the background here, and the terminal would stay as it is.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            with suppress(OSError, termios.error):
                leave = (LEAVE_ALTERNATE if self.alternate else LEAVE) + extra
                if not self.write_out(leave):
                    # Output that the terminal has not taken by now is dropped: the person must not wait for it, and our
                    # reset needs room.
                    termios.tcflush(self._fd, termios.TCOFLUSH)
                    self.write_out(leave)
            with suppress(OSError, termios.error):
                # Input is flushed: mouse reports and answers on their way would be typed into the shell.
                termios.tcsetattr(self._fd, termios.TCSAFLUSH, saved)  # type: ignore[arg-type]  # as it was got
        finally:
            signal.signal(signal.SIGTTOU, before)
            if self._fd != self._given:
                os.close(self._fd)
                self._fd = self._given

    @property
    def reset(self) -> bytes:
        """Returns the bytes that take back all settings of a program, before something else is drawn."""
        return RESET_ALTERNATE if self.alternate else RESET

    def fileno(self) -> int:
        return self._fd

    def size(self) -> tuple[int, int]:
        """Returns columns and rows."""
        try:
            size = os.get_terminal_size(self._fd)
        except OSError:
            return 80, 24
        return size.columns or 80, size.lines or 24

    def cell(self) -> tuple[int, int] | None:
        """Returns width and height of a cell in pixels, if the kernel knows them."""
        try:
            rows, cols, width, height = struct.unpack("HHHH", fcntl.ioctl(self._fd, termios.TIOCGWINSZ, bytes(8)))
        except OSError:
            return None
        return (width // cols, height // rows) if cols and rows and width and height else None

    def read(self) -> bytes | None:
        """Returns the typed bytes, None if no byte waits, b"" when the terminal is gone."""
        try:
            return os.read(self._fd, READ_MAX)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def write(self, data: bytes | bytearray) -> int:
        """Shows as much of `data` as the terminal takes now; returns the number of bytes. Raises OSError when the
        terminal is gone."""
        self._note(data)
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return 0

    def _note(self, data: bytes | bytearray) -> None:
        """Notes settings in `data` that have to be taken back besides `LEAVE`."""
        self._progress = self._progress or b"\x1b]9;4;" in data
        self._status = self._status or b"\x1b]7501;" in data

    def write_out(self, data: bytes | bytearray) -> bool:
        """Shows all of `data`, waiting for the terminal up to a deadline; returns False when it passed. Raises
        OSError."""
        deadline = time.monotonic() + LEAVE_DEADLINE
        view = memoryview(data)
        while view and (left := deadline - time.monotonic()) > 0:
            _, writable, _ = select.select([], [self._fd], [], left)
            if writable:
                with suppress(BlockingIOError):
                    view = view[os.write(self._fd, view) :]
        return not view
