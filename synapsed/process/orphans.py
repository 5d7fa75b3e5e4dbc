"""Reaps ended processes below the daemon that have lost their own parent.

The kernel gives a process whose parent has ended to the first one (pid 1), and once it ends too it stays as a zombie
until its parent asks for it. In a container that is often a program that reaps no children: `sleep infinity`, a server.
So the daemon becomes the parent of orphans below it: of keepers, and of the processes of a killed keeper. Once the
daemon has ended, the first process gets them all.

On Linux only: elsewhere the first process is always an init.
"""

import asyncio
import contextlib
import os
from pathlib import Path

from synapsed.keeper.processes import become_subreaper

LOOK_EVERY_S = 10.0
"""Seconds between two looks. asyncio reaps its own children in the turn of the loop in which they end: always before
the next look."""


class Strays:
    """Ended children that no code waits for."""

    def __init__(self) -> None:
        self._dead: set[int] = set()

    async def reap(self) -> None:
        """Takes orphans, and reaps at intervals. Ends when it is cancelled."""
        become_subreaper()
        while True:
            self.reap_ended()
            await asyncio.sleep(LOOK_EVERY_S)

    def reap_ended(self) -> None:
        """Reaps those that had ended at the look before: their waiters have reaped theirs since."""
        dead = {pid for pid in _children() if _has_ended(pid)}
        for pid in dead & self._dead:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        self._dead = dead - self._dead


def _children() -> list[int]:
    """Returns the children of the main thread, which gets the orphans from the kernel: another thread waits for its
    own."""
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


def _has_ended(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False
