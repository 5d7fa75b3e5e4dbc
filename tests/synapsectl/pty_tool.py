"""The tool as a process in a real terminal, whose other side the test holds."""

import fcntl
import os
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.patience import PATIENCE_S

DEADLINE = PATIENCE_S
LAST = b"\x00\x00"
"""Written by the test, behind all that the tool wrote."""

_START = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
{before}
from synapsectl.__main__ import main
raise SystemExit(main(sys.argv[1:]))
"""


class PtyTool:
    """`synapsectl ARGUMENTS` on a terminal of its own. `before` is run in it first."""

    def __init__(
        self,
        *arguments: str,
        before: str = "",
        rows: int = 24,
        cols: int = 80,
        read: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.master, self.slave = os.openpty()
        self.resize(rows, cols)
        self.before = self.termios()
        self._data = bytearray()
        self._changed = threading.Condition()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START.format(before=before), *arguments],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env=env,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        if read:
            self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                data = b""
            with self._changed:
                self._data += data
                self._changed.notify_all()
            if not data:
                return

    def termios(self) -> list[Any]:
        return termios.tcgetattr(self.slave)

    def resize(self, rows: int, cols: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, data: bytes) -> None:
        os.write(self.master, data)

    @property
    def shown(self) -> bytes:
        with self._changed:
            return bytes(self._data)

    def until(self, wanted: bytes) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: wanted in self._data, DEADLINE), bytes(self._data)

    def when(self, is_so: Callable[[bytes], bool]) -> None:
        """Wait until `is_so` of all that was shown."""
        with self._changed:
            assert self._changed.wait_for(lambda: is_so(bytes(self._data)), DEADLINE), bytes(self._data)

    def end(self) -> int:
        """The exit code, when it came to its end by itself; the terminal must be as it was."""
        code = self.process.wait(DEADLINE)
        assert self.termios() == self.before, "the terminal was not restored"
        if self._reader.ident is not None:
            # What it wrote last may still be on its way: whatever is written behind it comes after it.
            os.write(self.slave, LAST)
            self.until(LAST)
            with self._changed:
                self._data = self._data.replace(LAST, b"")
        return code

    def hang_up(self) -> None:
        """The terminal goes away, as a window that is closed does."""
        os.close(self.master)
        self.master = os.open(os.devnull, os.O_RDONLY)

    def close(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.slave)
        if self._reader.ident is not None:
            self._reader.join(DEADLINE)
        os.close(self.master)
