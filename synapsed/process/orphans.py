"""Reaps what ends below the daemon and has lost its own parent.

The kernel gives a process whose parent has ended to the first one (pid 1), and once it ends too it stays as a zombie
until its parent asks for it. In a container that is often a program that asks for none: `sleep infinity`, a server. So
the daemon is the parent of what loses its own below it: of keepers, and of what a keeper that was killed leaves behind.
Once the daemon has ended all of that is the first process's.

On Linux only: elsewhere the first process is always an init.
"""

import asyncio
import contextlib
import os
from pathlib import Path

from synapsed.keeper.processes import become_subreaper

LOOK_EVERY_S = 10.0
"""asyncio asks for a child of its own in the turn of the loop in which that ends: always before the next look."""


class Strays:
    """Children that have ended and that nobody waits for."""

    def __init__(self) -> None:
        self._dead: set[int] = set()

    async def reap(self) -> None:
        """Takes orphans, and reaps now and then. Ends when it is cancelled."""
        become_subreaper()
        while True:
            self.reap_ended()
            await asyncio.sleep(LOOK_EVERY_S)

    def reap_ended(self) -> None:
        """Reaps those that had ended at the look before: whoever waits for one has asked for it since."""
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
