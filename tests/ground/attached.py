"""`synapsectl attach` in a terminal whose other side a test holds: of any size, and of any name."""

import contextlib
import os
import select
import signal
import subprocess
import termios
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from tests.ground.person import Person
from tests.support.daemon import PATIENCE_S, eventually
from tests.support.seen import CONTROLLING

DETACH = b"\x1d\x1d"


class Attached:
    """A terminal of `size` (columns, rows) that a person has put on `agent`. A context manager; `around` becomes the
    tool, and `env` changes the login's environment: None removes a variable."""

    def __init__(
        self,
        person: Person,
        agent: str,
        *options: str,
        size: tuple[int, int] = (80, 24),
        env: Mapping[str, str | None] | None = None,
        around: Sequence[str] = (),
    ) -> None:
        self.shown = bytearray()
        self._over, self._end = os.pipe()
        self.master, self.slave = os.openpty()
        self.resize(*size)
        self.before = self.termios()
        merged = {**person.login, **(env or {})}
        python, tool = str(person.installed.python), str(person.installed.tool)
        self.process = subprocess.Popen(
            [python, "-c", CONTROLLING, *around, tool, "attach", agent, *options],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env={key: value for key, value in merged.items() if value is not None},
            cwd=person.home,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)
        self._close()
        os.close(self._over)

    def _read(self) -> None:
        """Ends before the terminal is closed: one that is being read stays open."""
        with contextlib.suppress(OSError):
            while self._over not in select.select([self.master, self._over], [], [])[0]:
                self.shown += os.read(self.master, 65536)

    def _close(self) -> None:
        if self.master >= 0:
            os.close(self._end)
            self._reader.join(PATIENCE_S)
            os.close(self.slave)
            os.close(self.master)
            self.master = -1

    def termios(self) -> list[Any]:
        return termios.tcgetattr(self.slave)

    def resize(self, cols: int, rows: int) -> None:
        termios.tcsetwinsize(self.master, (rows, cols))

    def type(self, data: bytes) -> None:
        os.write(self.master, data)

    def until(self, wanted: bytes) -> None:
        eventually(lambda: wanted in self.shown, f"{wanted!r} is shown: {bytes(self.shown[-2000:])!r}")

    def attached(self) -> Self:
        """Returns it once it shows the agent."""

        def has_drawn() -> bool:
            assert self.process.poll() is None, bytes(self.shown)
            return b"\x1b[?1049h" in self.shown and self.termios() != self.before

        eventually(has_drawn, "it is attached")
        return self

    # --- how it leaves ---

    def detach(self) -> None:
        self.type(DETACH)
        assert self.process.wait(PATIENCE_S) == 0, bytes(self.shown)
        assert self.termios() == self.before

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE_S)

    def hang_up(self) -> None:
        """The signal that a closed window sends."""
        os.kill(self.process.pid, signal.SIGHUP)
        assert self.process.wait(PATIENCE_S) == 128 + signal.SIGHUP
        assert self.termios() == self.before

    def close_window(self) -> None:
        """The terminal is gone: the kernel says so."""
        self._close()
        assert self.process.wait(PATIENCE_S) in (128 + signal.SIGHUP, -signal.SIGHUP)
