"""tmux, beside which figures are taken, and terminals to attach it (and ours) in."""

import contextlib
import fcntl
import os
import pty
import select
import shlex
import shutil
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

COLS, ROWS = 120, 40
PATIENCE_S = 120.0


class Terminal:
    """A program in a terminal of its own, whose other side we hold."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], list(argv), dict(env))
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLS, 0, 0))
        os.set_blocking(self.fd, False)

    def type(self, data: bytes) -> None:
        os.write(self.fd, data)

    def until(self, wanted: bytes) -> None:
        """Read until `wanted` is shown. Raises TimeoutError, EOFError."""
        seen, deadline = b"", time.monotonic() + PATIENCE_S
        while wanted not in seen:
            ready, _, _ = select.select([self.fd], [], [], deadline - time.monotonic())
            if not ready:
                raise TimeoutError(f"{wanted!r} was not shown, but {seen[-500:]!r}")
            try:
                seen = seen[-len(wanted) :] + os.read(self.fd, 1 << 18)
            except OSError:
                raise EOFError(f"it ended after {seen[-500:]!r}") from None

    def drain(self, quiet_s: float) -> None:
        """Read until nothing came for so long."""
        while select.select([self.fd], [], [], quiet_s)[0]:
            os.read(self.fd, 1 << 18)

    def close(self) -> None:
        os.close(self.fd)  # hangs up
        os.waitpid(self.pid, 0)


def tmux_available() -> bool:
    return shutil.which("tmux") is not None


def attach_to_tmux(folder: Path, name: str = "0") -> Terminal:
    """One more client of a tmux that `tmux_terminals` runs."""
    env = {**os.environ, "TERM": "xterm-256color"}
    return Terminal(["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null", "attach", "-t", name], env)


@contextlib.contextmanager
def tmux_terminal(folder: Path, argv: Sequence[str]) -> Iterator[Terminal]:
    """`argv` in a tmux of its own, attached to."""
    with tmux_terminals(folder, argv, 1) as (terminal,):
        yield terminal


@contextlib.contextmanager
def tmux_terminals(folder: Path, argv: Sequence[str], count: int) -> Iterator[list[Terminal]]:
    """The same in so many sessions of one tmux."""
    tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
    env = {**os.environ, "TERM": "xterm-256color"}
    size = ["-x", str(COLS), "-y", str(ROWS)]
    terminals = []
    for name in map(str, range(count)):
        subprocess.run([*tmux, "new-session", "-d", "-s", name, *size, shlex.join(argv)], env=env, check=True)
        terminals.append(Terminal([*tmux, "attach", "-t", name], env))
    try:
        yield terminals
    finally:
        subprocess.run([*tmux, "kill-server"], env=env, check=True)
        for terminal in terminals:
            terminal.close()
