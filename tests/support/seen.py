"""A program on a terminal of its own whose screen a test sees, such as `synapsectl attach` or `tmux attach`."""

import contextlib
import fcntl
import os
import shlex
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Sequence

from synapsed.terminal.emulated_screen import Screen

__all__ = ["PATIENCE_S", "Seen", "after", "same", "shows"]

PATIENCE_S = 90.0

CONTROLLING = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
)
"""What makes the terminal that of the program behind it: else no signal tells of another size."""

QUESTIONS = b"\x1b]10;?\x1b\\\x1b]11;?\x1b\\\x1b[16t\x1b[?u\x1b[c"


class Seen:
    """A program on a terminal of its own, whose screen the test sees."""

    def __init__(
        self, argv: list[str], env: dict[str, str], cols: int, rows: int, answers: bytes | None = None
    ) -> None:
        self.screen = Screen(cols, rows)
        self.raw = b""
        self.answers = answers
        """What is answered where it is asked what it is like."""
        self._lock = threading.Lock()
        self.master, slave = os.openpty()
        self.resize(cols, rows)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen(
            [sys.executable, "-c", CONTROLLING, *argv],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            start_new_session=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self.master, 65536):
                with self._lock:
                    self.screen.feed(data)
                    asked, self.raw = self.raw.count(QUESTIONS), self.raw + data
                    if self.answers is not None and self.raw.count(QUESTIONS) > asked:
                        os.write(self.master, self.answers)

    def resize(self, cols: int, rows: int) -> None:
        with self._lock:
            self.screen.resize(cols, rows)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, data: bytes) -> None:
        os.write(self.master, data)

    @property
    def lines(self) -> tuple[str, ...]:
        with self._lock:
            return self.screen.snapshot().lines

    @property
    def everything(self) -> list[str]:
        """With the rows above."""
        with self._lock:
            return self.screen.text(scrollback=True).splitlines()

    @property
    def keyboard(self) -> int:
        """The flags of the kitty keyboard protocol that are set."""
        with self._lock:
            return self.screen.keyboard_flags()

    def cells(self, row: int) -> list[tuple[str, object, bool]]:
        with self._lock:
            self.screen.snapshot()
            return [(cell.text, cell.fg, cell.inverse) for cell in self.screen.row_cells(row)]

    def until(self, wanted: Callable[[tuple[str, ...]], object], what: str) -> tuple[str, ...]:
        deadline = time.monotonic() + PATIENCE_S
        while not wanted(lines := self.lines):
            assert time.monotonic() < deadline, f"{what}: " + "\n".join(lines)
            time.sleep(0.02)
        return lines

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)
        os.close(self.slave)


def after(lines: Sequence[str]) -> list[str]:
    """What prints them, and then becomes the command behind it."""
    return ["sh", "-c", f"printf '%s\\n' {shlex.join(lines)}; exec \"$@\"", "sh"] if lines else []


def shows(text: str) -> Callable[[tuple[str, ...]], object]:
    return lambda lines: any(text in line for line in lines)


def same(ours: Seen, theirs: Seen, rows: int) -> None:
    """All rows but the last, which is each one's own."""
    deadline = time.monotonic() + PATIENCE_S
    while [ours.cells(row) for row in range(rows)] != [theirs.cells(row) for row in range(rows)]:
        assert time.monotonic() < deadline, "\n".join((*ours.lines, "--- tmux", *theirs.lines))
        time.sleep(0.05)
