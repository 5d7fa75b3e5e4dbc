"""Restores the daemon's own files if they are removed: its state folder, its database, its locks and its sockets; also
watches its event loop.

`Upkeep` checks every second if some of these files were removed, reports that, and makes again those that it can.

Keepers (the processes that hold the programs' terminals) whose sockets were removed are asked to bind them again. Files
in the folders of the sockets look old to programs that remove old files: a shared lock keeps systemd-tmpfiles from
removing them, and new time stamps keep others from it.

A file that is removed while it is open stays usable for its process, but no other process finds it: without these
checks all later writes would be lost at the end of the daemon, without an error.
"""

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import structlog

from synapsed.clock import Clock
from synapsed.config.paths import Paths
from synapsed.errors import SynapsedError
from synapsed.model.figures import Histogram
from synapsed.model.records import LaunchRecord
from synapsed.process.control_token import put_back
from synapsed.process.file_owners import private_directory
from synapsed.process.installed import InstalledFiles
from synapsed.process.state_lock import HomeLock, prepare_directories
from synapsed.store.store import SqliteStore
from synapsed.supervisor.hook_socket import HookSocket

STATE, DATABASE, LOCK, RUN_LOCK = "state", "database", "lock", "lock of the sockets"
CONTROL_SOCKET, HOOKS_SOCKET, DECIDE_SOCKET = "control socket", "hooks socket", "questions socket"
SOCKETS = (CONTROL_SOCKET, HOOKS_SOCKET, DECIDE_SOCKET)
"""Names of the sockets, which a service manager may replace with its own."""


class Premises:
    """Finds out if files of the daemon were removed."""

    def __init__(self, paths: Paths) -> None:
        """Expects that all files are there now."""
        self._places: Mapping[str, Path] = {
            STATE: paths.state,
            DATABASE: paths.database,
            LOCK: paths.lock,
            RUN_LOCK: paths.run_lock,
            CONTROL_SOCKET: paths.control_socket,
            HOOKS_SOCKET: paths.hooks_socket,
            DECIDE_SOCKET: paths.decide_socket,
        }
        self._known = {name: _identity(place) for name, place in self._places.items()}

    def find_deleted(self) -> dict[str, Path]:
        """Returns the files that were removed or replaced since the last call, by name. Blocks for a moment."""
        lost = {}
        for name, place in self._places.items():
            now = _identity(place)
            if now != self._known[name]:
                self._known[name] = now
                if now is None or name not in SOCKETS:
                    lost[name] = place
        return lost

    def made_again(self, names: Collection[str]) -> dict[str, Path]:
        """Notes that the present files of these names are the daemon's own. Returns those that are missing."""
        self._known |= {name: _identity(self._places[name]) for name in names}
        return {name: self._places[name] for name in names if self._known[name] is None}


def _identity(place: Path) -> tuple[int, int] | None:
    try:
        found = os.lstat(place)
    except OSError:
        return None
    return found.st_dev, found.st_ino


LOOK_EVERY_S = 1.0
"""Seconds between two checks."""
TOUCH_EVERY_S = 6 * 3600.0
"""Longest time in seconds that the XDG base directory specification lets a file in a runtime directory rest."""

CHECK_S = 1.0
TOLD_S = 0.25
"""Seconds by which a timer of one second must be late to be reported: then a call has blocked the event loop."""

log = structlog.stdlib.get_logger("synapsed.daemon")


async def watch_loop(clock: Clock, lag: Histogram, look: Callable[[], object]) -> None:
    """Notes in `lag`, and logs, how long the event loop was blocked; calls `look` each time. Runs until cancelled."""
    while True:
        look()
        due = clock.monotonic() + CHECK_S
        await asyncio.sleep(CHECK_S)
        late = clock.monotonic() - due
        lag.observe(late)
        if late > TOLD_S:
            log.warning("the event loop was blocked", seconds=round(late, 3))


class ControlServer(Protocol):
    """Server of the control socket, which also shows alerts to people."""

    async def start_unix(self, path: Path) -> None:
        """Listens at `path` in place of the former address. Raises SynapsedError, OSError."""

    def alert(self, message: str) -> None: ...

    def settle(self, message: str) -> None: ...


class Upkeep:
    """Watches the files of one daemon. `launches` returns the launches of the programs that run; `hooks` has the
    sockets of hooks, by their names in `Premises`."""

    def __init__(
        self,
        paths: Paths,
        *,
        lock: HomeLock,
        store: SqliteStore,
        servers: ControlServer,
        hooks: Mapping[str, HookSocket],
        token: str,
        launches: Callable[[], Sequence[LaunchRecord]],
    ) -> None:
        self._paths = paths
        self._lock = lock
        self._store = store
        self._servers = servers
        self._hooks = hooks
        self._token = token
        self._launches = launches
        self._folders = KeptFolders(paths.sockets, paths.keeper_sockets)
        self._installed = InstalledFiles()
        self._stands_in = False
        """True while the control socket is at another path than its own."""
        self._standing: dict[str, str] = {}
        """Present alerts, by subject."""

    async def run(self) -> None:
        """Runs until it is cancelled. All files must be there at the call."""
        premises = Premises(self._paths)
        lost: dict[str, Path] = {}
        try:
            while True:
                try:
                    await self._check(premises, lost)
                except Exception:  # too many open files, or no thread for it: no reason to end the daemon
                    log.exception("the daemon's files could not be looked at")
                await asyncio.sleep(LOOK_EVERY_S)
        finally:
            self._folders.close()

    async def _check(self, premises: Premises, lost: dict[str, Path]) -> None:
        """Adds what is missing to `lost`, and makes again what can be made."""
        found, files = await asyncio.to_thread(self._look, premises, self._launches())
        lost |= found
        self._tell(found)
        self._settle("files", files)
        if lost:
            made = await self._make_again(lost)
            lost |= await asyncio.to_thread(premises.made_again, made)

    def _look(self, premises: Premises, launches: Sequence[LaunchRecord]) -> tuple[dict[str, Path], str]:
        """Returns the missing files, and the warning about the installed files. Blocks: runs in a thread."""
        self._folders.keep(time.monotonic())
        _call_unfound(launches)
        files = self._installed.problem()
        return premises.find_deleted(), files  # last: it returns each change once

    def _tell(self, lost: Mapping[str, Path]) -> None:
        for name, place in lost.items():
            log.error("somebody has removed what the daemon stands on", what=name, path=str(place))
            if name in (STATE, DATABASE):
                self._servers.alert(
                    f"{place} ({name}) was removed while the daemon ran; what could be was made again, output and "
                    "files of agents were not: end it with 'synapsectl shutdown' and start it again"
                )
            else:
                self._servers.alert(f"{place} ({name}) was removed while the daemon ran, and is made again")

    async def _make_again(self, lost: dict[str, Path]) -> set[str]:
        """Makes the files of `lost` again, and takes the restored ones out of it. One that cannot be made yet (a
        runtime directory that comes with the next login) is tried at every check. Returns the names of those that may
        be other files now."""
        makers: list[tuple[set[str], Callable[[], Awaitable[object]]]] = [
            (set(), partial(asyncio.to_thread, prepare_directories, self._paths)),
            ({STATE, DATABASE}, self._store_again),
            ({LOCK, RUN_LOCK}, partial(asyncio.to_thread, self._lock.make_again)),
            ({CONTROL_SOCKET}, self._control_again),
            *(({name}, hook.make) for name, hook in self._hooks.items()),
        ]
        trouble = ""
        made: set[str] = set()
        for names, make in makers:
            if names and not names & lost.keys():
                continue
            made |= names
            try:
                await make()
            except (SynapsedError, OSError) as error:
                trouble = trouble or f"it cannot be made again: {error}"
            else:
                for name in names:
                    lost.pop(name, None)
        self._settle("premises", trouble)
        return made

    async def _store_again(self) -> None:
        await asyncio.to_thread(put_back, self._paths.token, self._token)
        await self._store.rescue()

    async def _control_again(self) -> None:
        """Makes the control socket again. If its folder cannot be made, because a logout has removed the runtime
        directory, the socket is meanwhile below the state directory, which the lock file says. In this case raises the
        error of its own place."""
        try:
            await self._servers.start_unix(self._paths.control_socket)
        except (SynapsedError, OSError):
            meanwhile = self._paths._replace(run=self._paths.state / "run")
            if not self._stands_in and meanwhile.run != self._paths.run:
                await asyncio.to_thread(private_directory, meanwhile.sockets)
                await self._servers.start_unix(meanwhile.control_socket)
                self._lock.write(meanwhile.control_socket)
                self._stands_in = True
            raise
        if self._stands_in:
            self._lock.write()
            self._stands_in = False

    def _settle(self, about: str, trouble: str) -> None:
        """Alerts people to `trouble`, in place of the former alert about the same subject; empty: it is over."""
        before = self._standing.get(about, "")
        if trouble == before:
            return
        self._standing[about] = trouble
        if before:
            self._servers.settle(before)
        if trouble:
            log.error("the daemon does not stand as it did", about=about, why=trouble)
            self._servers.alert(trouble)


class KeptFolders:
    """Folders that are protected from programs that remove old files."""

    def __init__(self, *folders: Path) -> None:
        self._held: dict[Path, int] = dict.fromkeys(folders, -1)
        self._touched: float | None = None

    def keep(self, now: float) -> None:
        """Protects the folders; blocks for a moment."""
        for folder, fd in self._held.items():
            if not _is_open_at(fd, folder):
                self._release(folder)
                self._held[folder] = _share(folder)
                self._touched = None
        if self._touched is None or now >= self._touched + TOUCH_EVERY_S:
            self._touched = now
            for folder in self._held:
                with contextlib.suppress(OSError):
                    for path in (folder, *folder.iterdir()):
                        os.utime(path, follow_symlinks=False)

    def close(self) -> None:
        for folder in self._held:
            self._release(folder)

    def _release(self, folder: Path) -> None:
        if self._held[folder] >= 0:
            os.close(self._held[folder])
        self._held[folder] = -1


def _is_open_at(fd: int, folder: Path) -> bool:
    try:
        return fd >= 0 and os.path.samestat(os.fstat(fd), folder.lstat())
    except OSError:
        return False


def _share(folder: Path) -> int:
    """Returns a descriptor with a shared lock on it; -1 if there is no such folder."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return -1
    with contextlib.suppress(OSError):  # a cleaner works in it, or the file system has no locks
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return fd


def _call_unfound(launches: Sequence[LaunchRecord]) -> None:
    unfound = [launch for launch in launches if not os.path.lexists(launch.socket)]
    if not unfound:
        return
    from synapsed.keepers.heartbeat import lives
    from synapsed.keepers.launchers import call_keeper

    for launch in unfound:
        if lives(launch):
            call_keeper(launch.keeper_pid)
