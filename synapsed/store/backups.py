"""Copies of the database, one a day, beside it: what a damaged one is mended with (`store.salvage`)."""

import asyncio
import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import structlog

from synapsed.clock import Clock

EVERY_S = 600.0
"""Pause before each look, the first one too: who starts a daemon has other things to wait for."""

DAY_S = 86_400.0
NAME = "synapsed-%Y%m%dT%H%M%SZ.db"
PATTERN = "synapsed-*.db"
ROOM = 2
"""A copy is made where so many times its size is free: agents block when the disk is full."""

log = structlog.stdlib.get_logger("synapsed.backups")


def newest_first(folder: Path) -> list[Path]:
    """The copies in `folder`, by the times in their names."""
    return sorted(folder.glob(PATTERN), reverse=True)


class Backups:
    """Of the database at `path`, in `folder`, for `days`; 0 makes none and leaves those that there are."""

    def __init__(self, path: Path, folder: Path, *, days: float, clock: Clock) -> None:
        self._path = path
        self._folder = folder
        self._days = days
        self._clock = clock

    async def run(self) -> None:
        """Look again and again, until it is cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            await self.look()

    async def look(self) -> Path | None:
        """Make a copy if the newest is a day old, and remove those that are too old; the new one, None for none.

        What goes wrong is logged: the daemon goes on without.
        """
        if not self._days:
            return None
        try:
            return await asyncio.to_thread(self._look, self._clock.wall())
        except (OSError, sqlite3.Error) as error:
            log.warning("the database could not be copied", folder=str(self._folder), error=str(error))
            return None

    def _look(self, now: float) -> Path | None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        due = time.strftime(NAME, time.gmtime(now - DAY_S))
        copies = newest_first(self._folder)
        if copies and due < copies[0].name <= time.strftime(NAME, time.gmtime(now)):
            return None
        size = self._path.stat().st_size
        if shutil.disk_usage(self._folder).free < ROOM * size:
            log.warning("no room for a copy of the database", folder=str(self._folder), bytes=size)
            return None
        made = self._folder / time.strftime(NAME, time.gmtime(now))
        _copy(self._path, made)
        oldest = time.strftime(NAME, time.gmtime(now - self._days * DAY_S))
        for copy in copies:
            if copy.name < oldest:
                copy.unlink(missing_ok=True)
        log.info("the database was copied", file=str(made), bytes=made.stat().st_size)
        return made


def _copy(path: Path, target: Path) -> None:
    """Nothing but a whole copy ever stands at `target`. It is its owner's alone: environments of agents are in it."""
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("VACUUM INTO ?", (str(part),))
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
