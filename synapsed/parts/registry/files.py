"""The files of the registry: one JSON document for each live agent.

The daemon writes its own entries and never reads them back: its truth is the store. A file is replaced atomically and
only when its content changes. A thread writes, one file at a time and only the latest state, so that a slow home
directory delays no other work, and an agent that often changes between busy and idle causes no queue. A file that was
removed, replaced or changed from outside, or that could not be written, is written again at the next look.
"""

import asyncio
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import psutil
import structlog

from synapsed.interfaces import RegistryEntry
from synapsed.shared.files import open_regular, write_whole
from synapsed.shared.outside_json import NotJson, read_object

_ENTRY_MAX = 64 * 1024
"""Most bytes of a file that are read; other programs write here too."""
_PID_MAX = (1 << 31) - 1
"""Largest number that can be a process; the system is not asked for a larger one."""

log = structlog.stdlib.get_logger("synapsed.registry")


class _Mark(NamedTuple):
    """Identity of a file that was written."""

    inode: int
    size: int
    changed_ns: int


class _Wanted(NamedTuple):
    """Wanted content of a file; `mark` is None until it has been written."""

    path: str
    entry: RegistryEntry
    mark: _Mark | None


class RegistryFiles:
    """The files in the directory; every method blocks."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._wanted: dict[str, _Wanted] = {}

    def write(self, entry: RegistryEntry) -> None:
        """Writes the entry unless it was written already; `mend` checks that the file is still there."""
        known = self._wanted.get(entry.agent_id)
        if known is None or known.entry != entry or known.mark is None:
            self._write(entry)

    def mend(self) -> list[str]:
        """Writes files again that are missing or changed. Returns the ids. Raises OSError at the first failure."""
        mended = []
        for wanted in list(self._wanted.values()):
            if not self._is_there(wanted):
                self._write(wanted.entry)
                mended.append(wanted.entry.agent_id)
        return mended

    def remove(self, agent_id: str) -> None:
        self._wanted.pop(agent_id, None)
        self._path(agent_id).unlink(missing_ok=True)

    def sweep(self, live: frozenset[str], known: frozenset[str]) -> list[str]:
        """Removes the entries of dead programs: those that this process wrote for agents (`known`) that do not live,
        and any others whose pid is gone. Another daemon may have agents of the same ids. Returns their ids. Files that
        are no entries are left alone."""
        removed = []
        for path in self._directory.glob("*.json") if self._directory.is_dir() else ():
            agent_id = path.stem
            if agent_id in live:
                continue
            # An agent that this process has written and that is not `known` has come since the question.
            if agent_id in known if agent_id in self._wanted else _is_dead(path):
                with suppress(OSError):
                    path.unlink(missing_ok=True)
                    self._wanted.pop(agent_id, None)
                    removed.append(agent_id)
        return removed

    def _write(self, entry: RegistryEntry) -> None:
        path = self._path(entry.agent_id)
        self._wanted[entry.agent_id] = _Wanted(str(path), entry, None)
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        content = json.dumps(asdict(entry), ensure_ascii=False, indent=2)
        write_whole(path, content.encode(), durable=False)
        self._wanted[entry.agent_id] = _Wanted(str(path), entry, _mark(str(path)))

    def _is_there(self, wanted: "_Wanted") -> bool:
        """Returns True if the file is unchanged."""
        return wanted.mark is not None and _mark(wanted.path) == wanted.mark

    def _path(self, agent_id: str) -> Path:
        return self._directory / f"{agent_id}.json"


class Registry:
    """Keeps the files up to date; `publish`, `withdraw` and `look` return at once."""

    def __init__(self, files: RegistryFiles) -> None:
        self._files = files
        self._pending: dict[str, RegistryEntry | None] = {}
        self._look = False
        self._broken = False
        """True if the last look failed, which is logged once."""
        self._worker: asyncio.Task[None] | None = None

    def publish(self, entry: RegistryEntry) -> None:
        self._put(entry.agent_id, entry)

    def withdraw(self, agent_id: str) -> None:
        self._put(agent_id, None)

    def look(self) -> None:
        """Checks that the files are unchanged. Call it on a timer."""
        self._look = True
        self._work_soon()

    async def sweep(self, agents: Callable[[], tuple[frozenset[str], frozenset[str]]]) -> None:
        """Removes stale entries; `agents` returns the present ids of this daemon's live agents, and of all its
        agents."""
        await self.flush()
        if removed := await asyncio.to_thread(self._files.sweep, *agents()):
            log.info("stale registry entries removed", agents=removed)

    async def flush(self) -> None:
        """Returns when all changes so far are in the files."""
        while self._worker is not None:
            await asyncio.shield(self._worker)

    def _put(self, agent_id: str, entry: RegistryEntry | None) -> None:
        self._pending[agent_id] = entry
        self._work_soon()

    def _work_soon(self) -> None:
        if self._worker is None:
            self._worker = asyncio.get_running_loop().create_task(self._work(), name="registry")

    async def _work(self) -> None:
        try:
            while self._pending or self._look:
                pending, self._pending = self._pending, {}
                look, self._look = self._look, False
                try:
                    await asyncio.to_thread(self._apply, pending, look=look)
                except Exception:  # no thread could be begun, for example: the next look tries again
                    log.exception("the registry stays behind for now")
                    self._pending = {**pending, **self._pending}
                    return
        finally:
            self._worker = None

    def _apply(self, pending: dict[str, RegistryEntry | None], *, look: bool) -> None:
        for agent_id, entry in pending.items():
            try:
                if entry is None:
                    self._files.remove(agent_id)
                else:
                    self._files.write(entry)
            except OSError as error:
                log.warning("the registry cannot be written", agent=agent_id, error=str(error))
        if look:
            self._mend()

    def _mend(self) -> None:
        try:
            mended = self._files.mend()
        except OSError as error:
            if not self._broken:  # every second: logged once
                log.warning("the registry cannot be mended", error=str(error))
            self._broken = True
        else:
            self._broken = False
            if mended:
                log.info("registry entries written again", agents=mended)


def _mark(path: str) -> _Mark | None:
    """Returns the identity of a file, by `os.lstat` of a text: every file is checked each second, and a `Path` costs
    several times as much."""
    try:
        there = os.lstat(path)
    except OSError:
        return None
    return _Mark(there.st_ino, there.st_size, there.st_mtime_ns)


def _is_dead(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            pid = read_object(file.read(_ENTRY_MAX)).get("pid")
    except (OSError, NotJson):
        return False
    return type(pid) is int and 0 < pid <= _PID_MAX and not psutil.pid_exists(pid)
