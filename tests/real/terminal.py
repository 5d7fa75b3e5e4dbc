"""A plain terminal for driving a program in tests: PTY, emulator, answers to queries, waiting for what the screen says.

A thread reads; everything else is called from the test's. Times are monotonic seconds since the start.
"""

import contextlib
import os
import re
import signal
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from synapsed.terminal.emulated_screen import Screen
from tests.support.daemon import PATIENCE_S

__all__ = ["Mark", "Terminal", "render", "statuses_in", "titles_in"]

COLUMNS, ROWS = 120, 40
PASTE_SETTLED = 0.3  # seconds without output after a paste before Enter is pressed; gemini wants time on a busy machine
ECHO_CHARS = 12  # of a pasted text's end: enough to be told from what was there, short enough not to be wrapped often
READ_BYTES = 65536

# Queries that a terminal answers: pattern, and the answer to the match. No answer to the kitty keyboard query
# (``CSI ? u``): programs that hear one change the encoding of their keys.
_QUERIES: Sequence[tuple[re.Pattern[bytes], Callable[[re.Match[bytes], tuple[int, int]], bytes]]] = (
    (re.compile(rb"\x1b\[>0?q"), lambda _, __: b"\x1bP>|tests 1.0\x1b\\"),
    (re.compile(rb"\x1b\[0?c"), lambda _, __: b"\x1b[?62;22c"),
    (re.compile(rb"\x1b\[6n"), lambda _, at: b"\x1b[%d;%dR" % (at[1] + 1, at[0] + 1)),
    (re.compile(rb"\x1b\[5n"), lambda _, __: b"\x1b[0n"),
    (re.compile(rb"\x1b\]10;\?(\x07|\x1b\\)"), lambda m, _: b"\x1b]10;rgb:e0e0/e0e0/e0e0" + m[1]),
    (re.compile(rb"\x1b\]11;\?(\x07|\x1b\\)"), lambda m, _: b"\x1b]11;rgb:1010/1010/1010" + m[1]),
    (re.compile(rb"\x1b\[\?(\d+)\$p"), lambda m, _: b"\x1b[?%s;%d$y" % (m[1], 2 if m[1] == b"2026" else 0)),
    (re.compile(rb"\x1b\[16t"), lambda _, __: b"\x1b[6;18;9t"),
    (re.compile(rb"\x1b\[14t"), lambda _, __: b"\x1b[4;%d;%dt" % (ROWS * 18, COLUMNS * 9)),
    (re.compile(rb"\x1b\]7501;\?(\x07|\x1b\\)"), lambda m, _: b"\x1b]7501;?" + m[1]),
)
_LONGEST_QUERY = 64
_STATUS = re.compile(rb"\x1b\]7501;([^\x07\x1b?][^\x07\x1b]*)(?:\x07|\x1b\\)")
_TITLE = re.compile(rb"\x1b\][02];([^\x07\x1b]*)(?:\x07|\x1b\\)")


@dataclass(frozen=True)
class Mark:
    """A named moment: seconds since the start, and how many bytes the program had written."""

    label: str
    at: float
    offset: int


class Terminal:
    """A program in a PTY of 120 by 40. A context manager that kills it, and its process group, at the end."""

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, answer_7501: bool = True) -> None:
        self._master, self.pid = _spawn(argv, env, cwd)
        self._status: int | None = None
        self._start = time.monotonic()
        self.started_at = time.time()  # Unix seconds, for what has only those
        self._answered = _QUERIES if answer_7501 else _QUERIES[:-1]
        self._changed = threading.Condition()
        self._emulator = Screen(COLUMNS, ROWS)
        self._last_output = 0.0
        self._seen = 0  # bytes in which queries were looked for
        self.raw = bytearray()
        self.chunks: list[tuple[float, int]] = []  # when, and the offset after it
        self.marks: list[Mark] = []
        self.ended = False
        self._reader = threading.Thread(target=self._read, name=f"reader of {argv[0]}", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def now(self) -> float:
        return time.monotonic() - self._start

    def screen(self) -> str:
        """The visible screen as text, without trailing blanks."""
        with self._changed:
            return _lines(self._emulator)

    def title(self) -> str:
        return self.titles()[-1] if self.titles() else ""

    def titles(self) -> list[str]:
        """Every title set so far."""
        return titles_in(self._output())

    def statuses(self) -> list[str]:
        """Bodies of every OSC 7501 so far."""
        return statuses_in(self._output())

    def mode(self, number: int) -> bool:
        """Whether this DEC private mode is set."""
        with self._changed:
            return number in self._emulator.snapshot().modes.dec

    def mark(self, label: str) -> None:
        with self._changed:
            self.marks.append(Mark(label, self.now, len(self.raw)))

    def send(self, keys: str | bytes) -> None:
        data = keys.encode() if isinstance(keys, str) else keys
        while data:
            data = data[os.write(self._master, data) :]

    def submit(self, text: str) -> None:
        """Pastes the text, waits until its end is on the screen and all is quiet, and presses Enter."""
        end = text[-ECHO_CHARS:]
        self.send(b"\x1b[200~" + text.encode() + b"\x1b[201~")
        self.wait(lambda: end in re.sub(r"\s*\n\s*", " ", _lines(self._emulator)), "an echo of the paste")
        self.settle(PASTE_SETTLED)
        self.send("\r")

    def wait(self, found: Callable[[], bool], what: str, *, timeout: float = PATIENCE_S) -> None:
        """Waits until `found` is true; it is asked after every piece of output. TimeoutError shows the screen."""
        with self._changed:
            if self._changed.wait_for(lambda: found() or self.ended, timeout) and found():
                return
        state = "the program has ended" if self.ended else f"not within {timeout} s"
        raise TimeoutError(f"{what}: {state}; title {self.title()!r}, screen:\n{self.screen()}")

    def wait_screen(self, pattern: str, *, timeout: float = PATIENCE_S) -> None:
        """Waits until the screen has this regular expression."""
        self.wait(lambda: re.search(pattern, _lines(self._emulator)) is not None, pattern, timeout=timeout)

    def wait_gone(self, pattern: str, *, timeout: float = PATIENCE_S) -> None:
        self.wait(lambda: re.search(pattern, _lines(self._emulator)) is None, f"no more {pattern}", timeout=timeout)

    def settle(self, quiet: float = 0.4, *, at_most: float = 15.0) -> None:
        """Waits until nothing was written for `quiet` seconds from now on, or `at_most` seconds have passed."""
        called = time.monotonic()
        deadline = called + at_most
        with self._changed:
            while not self.ended and (now := time.monotonic()) < deadline:
                rest = max(self._last_output, called) + quiet - now
                if rest <= 0:
                    return
                self._changed.wait(min(rest, deadline - now))

    def wait_exit(self, *, timeout: float = PATIENCE_S) -> int:
        """The exit code, or minus the signal."""
        self.wait(lambda: self.ended, "its end", timeout=timeout)
        return self._reaped()

    def kill(self) -> None:
        """Kills the program's process group. May be called again."""
        if self._master < 0:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._reaped()
        self._reader.join(timeout=10)
        os.close(self._master)
        self._master = -1

    def _reaped(self) -> int:
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status

    def _output(self) -> bytes:
        with self._changed:
            return bytes(self.raw)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, READ_BYTES)
            except OSError:  # EIO: no one has the other side open any more
                data = b""
            with self._changed:
                if not data:
                    self.ended = True
                    self._changed.notify_all()
                    return
                self._take(data)
                self._changed.notify_all()

    def _take(self, data: bytes) -> None:
        self.raw += data
        self._last_output = time.monotonic()
        self.chunks.append((self.now, len(self.raw)))
        self._emulator.feed(data)
        tail = bytes(self.raw[max(0, self._seen - _LONGEST_QUERY) :])
        base = len(self.raw) - len(tail)
        found = [(m.end() + base, answer, m) for pattern, answer in self._answered for m in pattern.finditer(tail)]
        for end, answer, match in sorted(found, key=lambda item: item[0]):
            if end > self._seen:
                self.send(answer(match, self._cursor()))
        self._seen = len(self.raw)

    def _cursor(self) -> tuple[int, int]:
        """(column, row), from 0."""
        row, column = self._emulator.snapshot().cursor
        return column, row


def _spawn(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> tuple[int, int]:
    """The master's descriptor and the pid. No fork, since tests have threads; `env -C` changes the folder instead.

    The other side becomes the controlling terminal because it is the first that the new session's leader opens.
    """
    master, slave = os.openpty()
    termios.tcsetwinsize(master, (ROWS, COLUMNS))
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.ttyname(slave), os.O_RDWR, 0),
        (os.POSIX_SPAWN_DUP2, 0, 1),
        (os.POSIX_SPAWN_DUP2, 0, 2),
    ]
    argv = ["env", "-C", str(cwd), *argv]
    pid = os.posix_spawn("/usr/bin/env", argv, env, file_actions=actions, setsid=True)
    os.close(slave)
    return master, pid


def titles_in(raw: bytes) -> list[str]:
    """Every title that these bytes set."""
    return [found[1].decode(errors="replace") for found in _TITLE.finditer(raw)]


def statuses_in(raw: bytes) -> list[str]:
    """Bodies of every OSC 7501 record in these bytes."""
    return [found[1].decode(errors="replace") for found in _STATUS.finditer(raw)]


def render(raw: bytes) -> str:
    """The screen after these bytes, as text."""
    screen = Screen(COLUMNS, ROWS)
    screen.feed(raw)
    return _lines(screen)


def _lines(screen: Screen) -> str:
    return "\n".join(line.rstrip() for line in screen.snapshot().lines).rstrip("\n")
