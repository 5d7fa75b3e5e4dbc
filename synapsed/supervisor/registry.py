"""The registry of live agents: one small JSON file each under `~/.a2a/registry/`, for whoever looks for agents there.

It is told, never asked: the daemon's own truth is the store. A file is replaced atomically and only when its content
changes; writing happens in a thread, one write at a time, the latest state winning, so that a slow home directory
delays nothing and an agent that flips between busy and idle costs no queue.
"""

import asyncio
import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
import structlog

from synapsed.files import write_whole

__all__ = ["Entry", "Registry", "RegistryFiles"]

_ENTRY_MAX = 64 * 1024
"""Bytes of a file that are looked at; other programs write here too."""

log = structlog.stdlib.get_logger("synapsed.registry")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the seeds' registry says of an agent (S9); `status` is a seed's word, `pid` the program's."""

    agent_id: str
    agent_type: str
    name: str
    port: int | None
    status: str
    pid: int | None
    working_dir: str
    endpoint: str


class RegistryFiles:
    """The directory; every method blocks."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._written: dict[str, Entry] = {}

    def write(self, entry: Entry) -> None:
        path = self._path(entry.agent_id)
        if self._written.get(entry.agent_id) == entry and path.exists():
            return
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        content = json.dumps(asdict(entry), ensure_ascii=False, indent=2)
        write_whole(path, content.encode(), durable=False)
        self._written[entry.agent_id] = entry

    def remove(self, agent_id: str) -> None:
        self._written.pop(agent_id, None)
        self._path(agent_id).unlink(missing_ok=True)

    def sweep(self, live: frozenset[str], known: frozenset[str]) -> list[str]:
        """Remove the entries of dead programs: those of our agents (`known`) that do not live, and anyone's whose pid
        is gone. Returns their ids. What is not an entry is left alone."""
        removed = []
        for path in self._directory.glob("*.json") if self._directory.is_dir() else ():
            agent_id = path.stem
            if agent_id in live:
                continue
            if agent_id in known or _is_dead(path):
                with suppress(OSError):
                    path.unlink(missing_ok=True)
                    self._written.pop(agent_id, None)
                    removed.append(agent_id)
        return removed

    def _path(self, agent_id: str) -> Path:
        return self._directory / f"{agent_id}.json"


class Registry:
    """Keeps the files as told; `publish` and `withdraw` return at once."""

    def __init__(self, files: RegistryFiles) -> None:
        self._files = files
        self._pending: dict[str, Entry | None] = {}
        self._worker: asyncio.Task[None] | None = None

    def publish(self, entry: Entry) -> None:
        self._put(entry.agent_id, entry)

    def withdraw(self, agent_id: str) -> None:
        self._put(agent_id, None)

    async def sweep(self, live: frozenset[str], known: frozenset[str]) -> None:
        await self.flush()
        if removed := await asyncio.to_thread(self._files.sweep, live, known):
            log.info("stale registry entries removed", agents=removed)

    async def flush(self) -> None:
        """Returns when everything told so far is in the files."""
        while self._worker is not None:
            await asyncio.shield(self._worker)

    def _put(self, agent_id: str, entry: Entry | None) -> None:
        self._pending[agent_id] = entry
        if self._worker is None:
            self._worker = asyncio.get_running_loop().create_task(self._work(), name="registry")

    async def _work(self) -> None:
        try:
            while self._pending:
                pending, self._pending = self._pending, {}
                await asyncio.to_thread(self._apply, pending)
        finally:
            self._worker = None

    def _apply(self, pending: dict[str, Entry | None]) -> None:
        for agent_id, entry in pending.items():
            try:
                if entry is None:
                    self._files.remove(agent_id)
                else:
                    self._files.write(entry)
            except OSError as error:
                log.warning("the registry cannot be written", agent=agent_id, error=str(error))


def _is_dead(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(_ENTRY_MAX))
    except (OSError, ValueError):
        return False
    pid = data.get("pid") if isinstance(data, dict) else None
    return type(pid) is int and pid > 0 and not psutil.pid_exists(pid)
