"""Reaps ended processes below the daemon that have lost their own parent.

The kernel gives a process whose parent has ended to the first process (pid 1). When the process itself ends, it stays
as a zombie until its new parent asks for its status. In a container the first process is often a program that reaps no
children: `sleep infinity`, a server. So the daemon becomes the parent of orphans below it: of keepers (processes that
hold agents' terminals), and of the processes of a killed keeper. Once the daemon has ended, the first process gets
them all.

It works on Linux only: elsewhere the first process is always an init.
"""

import asyncio
import contextlib
import os
from pathlib import Path

from synapsed.keeper.processes import become_subreaper

LOOK_EVERY_S = 10.0
"""Seconds between two looks. asyncio reaps its own children in the turn in which they end: before the next look."""


class Strays:
    """Reaps ended children that no code waits for."""

    def __init__(self) -> None:
        self._dead: set[int] = set()

    async def reap(self) -> None:
        """Becomes the parent of orphans, and reaps at intervals, until it is cancelled."""
        become_subreaper()
        while True:
            self.reap_ended()
            await asyncio.sleep(LOOK_EVERY_S)

    def reap_ended(self) -> None:
        """Reaps children that had ended at the look before already: code that waits for a child has reaped it since."""
        dead = {pid for pid in _children() if _has_ended(pid)}
        for pid in dead & self._dead:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        self._dead = dead - self._dead


def _children() -> list[int]:
    """Returns the children of the main thread, which gets the orphans: other threads wait for their own."""
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


def _has_ended(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False
