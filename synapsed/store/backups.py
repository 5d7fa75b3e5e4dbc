"""Makes a copy of the database each day, beside it, from which a damaged one can be repaired (`store.salvage`).

Old copies are removed by their number, not by their age, as restic and borg do it: after a change of the clock, a copy
is removed only if another one replaces it. A copy with a date in the future was made under a wrong clock, or the clock
is wrong now: it is kept in addition, and not counted until its time has come.
"""

import asyncio
import math
import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import structlog

from synapsed.clock import Clock

EVERY_S = 600.0
"""Seconds of pause before each check, the first one too: at its start the daemon has more urgent work."""

DAY_S = 86_400.0
NAME = "synapsed-%Y%m%dT%H%M%SZ.db"
PATTERN = "synapsed-*.db"
ROOM = 2
"""A copy is made only if this many times the size of the database is free: agents block when the disk is full."""

log = structlog.stdlib.get_logger("synapsed.backups")


def newest_first(folder: Path) -> list[Path]:
    """Returns the copies in `folder`, newest data first: clocks may have been set when they were named. Blocks."""
    return sorted(folder.glob(PATTERN), key=lambda path: (_last_event(path), path.name), reverse=True)


def _last_event(path: Path) -> int:
    """Returns the number of the newest event in a copy; 0 if it has none, or cannot be read."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as copy:
            return int(copy.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()[0])
    except sqlite3.Error:
        return 0


class Backups:
    """Copies of the database at `path`, in `folder`, of the last `days` days; 0 makes none, and removes none."""

    def __init__(self, path: Path, folder: Path, *, days: float, clock: Clock) -> None:
        self._path = path
        self._folder = folder
        self._days = days
        self._clock = clock

    async def run(self) -> None:
        """Checks again and again, until it is cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            await self.look()

    async def look(self) -> Path | None:
        """Makes a copy unless there is one of the last day, and removes the oldest copies if there are too many.
        Returns the new copy, or None. Errors are logged: the daemon goes on without the copy."""
        if not self._days:
            return None
        try:
            return await asyncio.to_thread(self._look, self._clock.wall())
        except (OSError, sqlite3.Error, RuntimeError) as error:  # RuntimeError: no thread could be begun
            log.warning("the database could not be copied", folder=str(self._folder), error=str(error))
            return None

    def _look(self, now: float) -> Path | None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        named, due = _name(now), _name(now - DAY_S)
        copies = sorted(self._folder.glob(PATTERN), reverse=True)
        if any(due < copy.name <= named for copy in copies):
            return None
        for left in self._folder.glob(f".{PATTERN}.part"):
            left.unlink(missing_ok=True)  # of a daemon that was killed while it copied
        size = self._path.stat().st_size
        if shutil.disk_usage(self._folder).free < ROOM * size:
            log.warning("no room for a copy of the database", folder=str(self._folder), bytes=size)
            return None
        made = self._folder / named
        _copy(self._path, made)
        kept = math.ceil(self._days)
        ahead, past = ([one for one in copies if (one.name > named) is late] for late in (True, False))
        for copy in (*ahead[kept + 1 :], *past[kept:]):
            copy.unlink(missing_ok=True)
        log.info("the database was copied", file=str(made), bytes=made.stat().st_size)
        return made


def _name(at: float) -> str:
    return time.strftime(NAME, time.gmtime(at))


def _copy(path: Path, target: Path) -> None:
    """Writes a copy so that `target` is whole. Only its owner can read it, because environments of agents are in it."""
    part = target.with_name(f".{target.name}.part")
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
