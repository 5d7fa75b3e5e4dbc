"""Reaps below the daemon where nobody else does: in a container whose first process (pid 1) is no init.

The kernel gives a process whose parent has ended to the first one, and once it ends too it stays as a zombie until its
parent asks for it. `sleep infinity`, or a server that is a container's first process, asks for none. There the daemon
is the parent of what loses its own below it: of keepers, and of what a keeper that was killed leaves behind. (With
`docker run --init` it need not be.) Once it has ended all of that is the first process's again.

On Linux only; nothing is done elsewhere.
"""

import asyncio
import contextlib
import os
import sys
import time
from pathlib import Path

from synapsed.keeper.processes import become_subreaper

REAPED_S = 0.05
"""An init takes a millisecond. Who needs longer is taken for none, which costs no more than the looks below."""

LOOK_EVERY_S = 1.0
"""asyncio asks for a child of its own in the turn of the loop in which that ends: always before the next look."""

_PAUSE_S = 0.001


def take_orphans() -> bool:
    """Become the parent of what loses its own below this process, if nobody reaps it else; whether that is so. To be
    called while there is one thread."""
    if not _stay():
        return False
    become_subreaper()
    return True


def _stay() -> bool:
    """Returns True where an orphan that has ended is still there after a while. One is made for that."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        orphan = _orphan()
        until = time.monotonic() + REAPED_S
        while time.monotonic() < until:
            os.kill(orphan, 0)
            time.sleep(_PAUSE_S)
    except OSError:  # it is gone, or there could be no more processes
        return False
    return True


def _orphan() -> int:
    """The pid of a process that ends at once, and whose parent has ended."""
    hear, tell = os.pipe()
    parent = os.fork()
    if parent == 0:
        try:
            if orphan := os.fork():
                os.write(tell, b"%d" % orphan)
        finally:
            os._exit(0)
    os.close(tell)
    with open(hear, "rb") as told:
        os.waitpid(parent, 0)
        return int(told.read() or b"0")


class Strays:
    """Children that have ended and that nobody waits for."""

    def __init__(self) -> None:
        self._dead: set[int] = set()

    async def reap(self) -> None:
        """Reap now and then. Ends when it is cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    def look(self) -> None:
        """Reap those that had ended at the look before: asyncio has asked for its own since."""
        dead = {pid for pid in _children() if _has_ended(pid)}
        for pid in dead & self._dead:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        self._dead = dead - self._dead


def _children() -> list[int]:
    """Of the main thread, which the kernel gives orphans to: what another thread has started is its own to wait for."""
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


def _has_ended(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False
