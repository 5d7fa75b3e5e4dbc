"""Launches of many agents at once: a few at a time, the others in turn.

The keepers' interpreters compete for the same processors until the first launches are late. What waits here is not
late: its time has not begun.
"""

import asyncio
import os
from typing import Final

from synapsed.keepers.launchers import LaunchedKeeper, Launcher, LaunchSpec

AT_ONCE: Final = min(8, max(2, os.process_cpu_count() or 2))
"""One for each processor: more start no sooner, and keep the daemon from being heard. One that hangs is given up after
`LAUNCH_TIMEOUT_S`."""


class LaunchQueue:
    """A launcher: `launcher`, `AT_ONCE` at a time."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._room = asyncio.Semaphore(AT_ONCE)

    async def launch(self, spec: LaunchSpec) -> LaunchedKeeper:
        async with self._room:
            return await self._launcher.launch(spec)
