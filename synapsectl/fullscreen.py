"""A full screen of our own, for `inbox` and `list --watch`: draws lines in place, reads keys one by one, and leaves the
terminal as it was on every way out.

The alternate screen is used, so that the former screen is back afterwards. Only lines that changed are written,
in one synchronized piece: nothing flickers, and little goes over a slow line. Ctrl-C ends it, Ctrl-Z suspends it and
`fg` draws it again; a terminal that takes nothing any more (a frozen window) does not prevent the end.
"""

import os
import select
import signal
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, Self

from synapsectl.tty import TerminalGone

KEYS_MAX = 4096
"""Keys that are taken between two pictures, and bytes of a paste that are read at once."""

TAKE_DEADLINE = 1.0
"""Seconds for the terminal to take the drawing; the rest is drawn again later."""

HELD_UP = 0.3
"""Seconds by which a wait ends late if the process was stopped or starved: then the time of a key is unknown."""

ENTER = b"\x1b[22;0t\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h\x1b[H\x1b[2J"
LEAVE = b"\x1b[?2026l\x1b[?2004l\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l\x1b[23;0t"
"""Sequences at the beginning and the end. In between, the title is pushed, the cursor hidden, long lines do not wrap,
and a paste is marked as one."""

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

_LOCAL = 3
_INPUT = 0
_CHARACTERS = 6
_OWN_KEYS = termios.ICANON | termios.ECHO | termios.IEXTEN


class FullScreen:
    """The terminal on `fd`. A context manager; `ended` is the signal that ends it, None until then. `encoding`: that of
    the terminal; `?` replaces characters that it lacks."""

    def __init__(self, fd: int, *, encoding: str | None = None) -> None:
        self._given = fd
        self._encoding = encoding or "utf-8"
        self._fd = fd
        self._saved: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._woken, self._wake = -1, -1
        self._drawn: list[str] | None = None
        self._drawn_size = (0, 0)
        self._title = ""
        self.ended: int | None = None
        self.pressed_at = float("-inf")
        """The earliest time at which the keys of `pressed` can have been pressed."""
        self._empty_at = float("-inf")
        """The last time at which no key waited."""

    def __enter__(self) -> Self:
        """Takes the terminal. Raises TerminalGone."""
        with suppress(OSError):
            # A file description of our own: the one that the shell shares must not become non-blocking.
            self._fd = os.open(os.ttyname(self._given), os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._woken, self._wake = os.pipe()  # not `pipe2`, which macOS lacks
        for fd in (self._woken, self._wake):
            os.set_blocking(fd, False)
        try:
            self._take()
        except termios.error:
            self._close()
            raise TerminalGone from None
        for signum in ENDING_SIGNALS:
            self._handlers[signum] = signal.signal(signum, self._on_end)
        self._handlers[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, self._on_resize)
        self._handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._on_suspend)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._give_back()
        for signum, handler in self._handlers.items():
            signal.signal(signum, handler)
        self._close()

    def wake(self) -> None:
        """Makes `wait` return; from any thread."""
        with suppress(OSError):
            os.write(self._wake, b"\0")

    def size(self) -> tuple[int, int]:
        """Returns columns and rows."""
        try:
            size = os.get_terminal_size(self._fd)
        except OSError:
            return 80, 24
        return size.columns or 80, size.lines or 24

    def pressed(self, seconds: float | None, pasting: Callable[[], bool] = bool) -> Iterator[bytes]:
        """Yields pressed keys byte by byte, or in larger pieces while `pasting`; yields none after another event, or
        after so many `seconds`. Keys that are not read stay for the next reader of the terminal."""
        begun = time.monotonic()
        waited = self._key_waits(begun)
        readable, _, _ = select.select([self._fd, self._woken], [], [], seconds)
        woken_at = time.monotonic()
        held_up = seconds is not None and woken_at - begun > seconds + HELD_UP
        self.pressed_at = self._empty_at if waited or held_up else woken_at
        if self._woken in readable:
            with suppress(BlockingIOError):
                os.read(self._woken, 4096)
        for _ in range(KEYS_MAX if self._fd in readable else 0):
            try:
                keys = os.read(self._fd, KEYS_MAX if pasting() else 1)
            except BlockingIOError:
                return
            except OSError:
                keys = b""
            if not keys:
                self.ended = self.ended or signal.SIGHUP
                return
            yield keys
            if not select.select([self._fd], [], [], 0)[0]:
                return

    def _key_waits(self, now: float) -> bool:
        """Returns True if a key waits, and notes the time if no key does."""
        if waits := bool(select.select([self._fd], [], [], 0)[0]):
            return waits
        self._empty_at = now
        return False

    def draw(self, lines: Sequence[str]) -> bool:
        """Shows `lines`, each at most as wide as the screen, from the top; as many as there is room for. Returns False
        if the terminal did not take them. Keys from now on were pressed for this screen, or a later one."""
        self._key_waits(time.monotonic())
        size = self.size()
        before = self._drawn if size == self._drawn_size else None
        shown = list(lines[: size[1]])
        piece = changed_lines(before, shown)
        if piece and self._write(f"\x1b[?2026h{piece}\x1b[?2026l".encode(self._encoding, "replace")):
            self._drawn, self._drawn_size = shown, size
        elif piece:
            self._drawn = None
        return self._drawn is not None

    def forget(self) -> None:
        """Makes the next drawing complete."""
        self._drawn = None

    def title(self, text: str) -> None:
        """Sets the title of the window; the former one comes back with the terminal."""
        if text != self._title and self._write(b"\x1b]2;" + text.encode(self._encoding, "replace") + b"\x1b\\"):
            self._title = text

    def bell(self) -> None:
        self._write(b"\x07")

    def apart(self, what: Callable[[], None]) -> None:
        """Does `what` with the terminal as it was, then takes it again."""
        self._give_back()
        handlers = {signum: signal.signal(signum, before) for signum, before in self._handlers.items()}
        try:
            what()
        finally:
            for signum, handler in handlers.items():
                signal.signal(signum, handler)
            with suppress(termios.error):
                self._take()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _take(self) -> None:
        self._saved = termios.tcgetattr(self._fd)
        mode = [*self._saved[:_CHARACTERS], list(self._saved[_CHARACTERS])]
        mode[_LOCAL] &= ~_OWN_KEYS
        mode[_INPUT] &= ~(termios.IXON | termios.ICRNL)
        mode[_CHARACTERS][termios.VMIN], mode[_CHARACTERS][termios.VTIME] = 1, 0
        termios.tcsetattr(self._fd, termios.TCSADRAIN, mode)
        self._drawn, self._title = None, ""
        self._write(ENTER)

    def _give_back(self) -> None:
        saved, self._saved = self._saved, None
        if saved is None:
            return
        # Without this, the kernel would stop a process in the background here, and the terminal would stay as it is.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            if not self._write(LEAVE):
                with suppress(termios.error):
                    termios.tcflush(self._fd, termios.TCOFLUSH)
                self._write(LEAVE)
            with suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSADRAIN, saved)
        finally:
            signal.signal(signal.SIGTTOU, before)

    def _close(self) -> None:
        for fd in (self._woken, self._wake, *([self._fd] if self._fd != self._given else [])):
            os.close(fd)
        self._woken = self._wake = -1
        self._fd = self._given

    def _write(self, data: bytes) -> bool:
        """Returns True if the terminal took all of it in time."""
        deadline = time.monotonic() + TAKE_DEADLINE
        view = memoryview(data)
        try:
            while view and (left := deadline - time.monotonic()) > 0:
                _, writable, _ = select.select([], [self._fd], [], left)
                if writable:
                    with suppress(BlockingIOError):
                        view = view[os.write(self._fd, view) :]
        except OSError:
            self.ended = self.ended or signal.SIGHUP
            return False
        return not view

    def _on_end(self, signum: int, frame: FrameType | None) -> None:
        self.ended = self.ended or signum
        self.wake()

    def _on_resize(self, signum: int, frame: FrameType | None) -> None:
        self._drawn = None
        self.wake()

    def _on_suspend(self, signum: int, frame: FrameType | None) -> None:
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        with suppress(termios.error):
            self._take()
        self.wake()


def changed_lines(before: Sequence[str] | None, lines: Sequence[str]) -> str:
    """Returns the sequences that change a screen from `before` to `lines`; a whole drawing if the former screen is
    unknown."""
    pieces = [] if before is not None else ["\x1b[0m\x1b[H\x1b[2J"]
    for number, line in enumerate(lines):
        if before is None or number >= len(before) or before[number] != line:
            # A line is erased before it is drawn: after a line as wide as the screen, the cursor stands on its last
            # character.
            pieces.append(f"\x1b[{number + 1};1H\x1b[0m\x1b[2K{line}")
    if before is not None and len(before) > len(lines):
        pieces.append(f"\x1b[{len(lines) + 1};1H\x1b[0m\x1b[J")
    return "".join(pieces)
