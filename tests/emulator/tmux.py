"""A real tmux as the reference for wrapping, reflow and the cursor: a server of its own, ended by its own socket."""

import itertools
import os
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

DEADLINE_POLLS = 20_000
"""Questions put to tmux before giving up on it; each takes some milliseconds."""

_FENCE, _READY = b"\x1b[5n", b"\x1b[0n"
"""Is answered behind everything before it."""


class TmuxScreen:
    """What tmux shows of the bytes it is fed. Use it as a context manager; `folder` is for its socket and its input."""

    def __init__(self, folder: Path, cols: int, rows: int) -> None:
        self._folder = folder
        self._socket = folder / "tmux"
        self._input = folder / "input"
        self._replies = folder / "replies"
        self._size = (cols, rows)
        self._marks = itertools.count(1)
        self._fences = 0

    @staticmethod
    def available() -> bool:
        return shutil.which("tmux") is not None

    def __enter__(self) -> Self:
        os.mkfifo(self._input)
        cols, rows = self._size
        self._replies.touch()
        command = f"stty raw -echo; exec 3<&0; cat <&3 >{self._replies} & while :; do cat {self._input}; done"
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(cols), "-y", str(rows), command)
        self._tmux("set-option", "-g", "status", "off")
        self._tmux("set-option", "-g", "automatic-rename", "off")
        self._tmux("rename-window", "tmux")
        self._tmux("set-option", "-g", "window-size", "manual")
        self.resize(cols, rows)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tmux("kill-server")

    def feed(self, data: bytes) -> None:
        """Have the program in the pane write `data`; returns when tmux has read it all: it then knows the title."""
        mark = f"mark-{next(self._marks)}"
        with self._input.open("wb") as pipe:
            pipe.write(data + b"\x1b]2;" + mark.encode() + b"\x07")
        for _ in range(DEADLINE_POLLS):
            if self._ask("#{pane_title}") == mark:
                return
        raise TimeoutError(f"tmux did not get to {mark}")

    def obey(self) -> None:
        """From now on do all that a program may be allowed to: set the clipboard, name windows, reach the terminal."""
        for option, value in (("set-clipboard", "on"), ("allow-rename", "on"), ("allow-passthrough", "on")):
            self._tmux("set-option", "-g", option, value)

    def replies(self) -> bytes:
        """All that tmux has answered the program until now."""
        self.feed(_FENCE)
        for _ in range(DEADLINE_POLLS):
            told = self._replies.read_bytes()
            if told.count(_READY) > self._fences:
                self._fences = told.count(_READY)
                return told.replace(_READY, b"")
            time.sleep(0.001)
        raise TimeoutError("tmux does not answer")

    def buffers(self) -> str:
        """What it has for pasting."""
        return self._tmux("list-buffers")

    def state(self) -> str:
        """How many columns and rows the window has, and what it is called."""
        return self._ask("#{window_width} #{window_height} #{window_name}")

    def resize(self, cols: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(cols), "-y", str(rows))

    def lines(self) -> tuple[str, ...]:
        """The visible rows, right-stripped."""
        rows = int(self._ask("#{pane_height}"))
        lines = [line.rstrip(" ") for line in self._tmux("capture-pane", "-p").split("\n")]
        return tuple((lines + [""] * rows)[:rows])

    def all_rows(self) -> list[str]:
        """The rows of the scrollback and of the screen, right-stripped, without the blank ones at the end."""
        rows = self._tmux("capture-pane", "-p", "-S", "-").rstrip("\n ").split("\n")
        return [row.rstrip(" ") for row in rows]

    def history(self) -> int:
        """Rows above the screen."""
        return int(self._ask("#{history_size}"))

    def cursor(self) -> tuple[int, int]:
        """(row, column); a cursor that waits to wrap is in the last column here, behind it in tmux."""
        row, column, width = map(int, self._ask("#{cursor_y} #{cursor_x} #{pane_width}").split())
        return row, min(column, width - 1)

    def _ask(self, form: str) -> str:
        return self._tmux("display-message", "-p", form).rstrip("\n")

    def _tmux(self, *args: str) -> str:
        environment = {
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "HOME": str(self._folder),
        }
        done = subprocess.run(
            ["tmux", "-u", "-S", str(self._socket), *args], capture_output=True, check=True, env=environment, timeout=60
        )
        return done.stdout.decode("utf-8", "replace")
