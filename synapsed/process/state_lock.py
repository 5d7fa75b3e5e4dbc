"""A daemon's home: the directories that no other user may enter, and the locks that allow one daemon only."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from synapsed.config.paths import Paths
from synapsed.errors import AlreadyRunning, LaunchError, StateElsewhere
from synapsed.process.file_owners import private_directory
from synapsed.process.lock_record import LOCK_MAX, LockRecord, advice, database_user, here, is_over, read_record, whose


def prepare_directories(paths: Paths) -> None:
    """Makes the directories of state and run time, 0700. Raises LaunchError for links and directories of others."""
    for directory in (paths.state, paths.state / "agents", paths.logs, paths.run, paths.sockets, paths.keeper_sockets):
        private_directory(directory)


def remove_stand_in(paths: Paths) -> None:
    """Removes the stand-in for the sockets' directory (see `Paths.sockets`), unless keepers (the processes that hold
    agents' terminals) have sockets in it."""
    if paths.sockets != paths.run:
        for directory in (paths.keeper_sockets, paths.sockets):
            with contextlib.suppress(OSError):
                directory.rmdir()


class HomeLock:
    """The locks of this state and of the folder of its sockets; daemons before 0.2 had only the latter. The kernel
    releases both at the end of the process."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._place = here()
        self._state = _locked(paths.lock)
        try:
            self.before = read_record(str(paths.lock))
            """The record of the daemon that had the state last."""
            self._run = _locked(paths.run_lock)
        except BaseException:
            os.close(self._state)
            raise
        self._since = time.time()

    def write(self, socket: Path | None = None) -> None:
        """Writes this daemon's record; `socket` is its control socket, if that is not in the usual place."""
        record = LockRecord(os.getpid(), self._place, str(socket or self._paths.control_socket), self._since)
        _put(self._state, record.text())
        _put(self._run, f"{os.getpid()}\n")

    def make_again(self) -> None:
        """Makes removed lock files again. Raises AlreadyRunning if another daemon has made them meanwhile."""
        for name, path in (("_state", self._paths.lock), ("_run", self._paths.run_lock)):
            if not _is_at(getattr(self, name), path):
                lock = _locked(path)
                os.close(getattr(self, name))
                setattr(self, name, lock)
        self.write()

    def leave(self) -> None:
        """Marks the state as free: no agent lives, and the next daemon need not check where the state was used."""
        _put(self._state, "")

    def close(self) -> None:
        os.close(self._run)
        os.close(self._state)


@contextlib.contextmanager
def lock_home(paths: Paths) -> Iterator[HomeLock]:
    """Holds the locks of this home. Raises AlreadyRunning with the pid of the daemon that has them, StateElsewhere if
    programs of a daemon in another place may live."""
    lock = HomeLock(paths)
    try:
        user = database_user(str(paths.database))
        if user is not None and _is_daemon(user):
            who = f"pid {user}" if user else "a process that cannot be seen from here, in another PID namespace?"
            raise AlreadyRunning(
                f"a daemon that does not hold {paths.lock} has the database open ({who}); 'synapsectl shutdown' in a "
                "shell like the one that started it ends it",
                pid=str(user or "unknown"),
            )
        before, place, state = lock.before, here(), str(paths.state)
        if before is not None and not before.is_at(place) and not is_over(before, place, state):
            raise StateElsewhere(f"{whose(state, before)}; {advice(state)}")
        try:
            lock.write()
        except OSError as error:
            raise LaunchError(f"{paths.lock}: {error.strerror}") from error
        yield lock
    finally:
        lock.close()


def _locked(path: Path) -> int:
    """Returns a descriptor that locks the file that is at `path` now. Raises AlreadyRunning, LaunchError."""
    while True:
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise LaunchError(f"{path}: {error.strerror}") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            told = os.pread(fd, LOCK_MAX, 0).decode("utf-8", "replace")
            os.close(fd)
            raise _already(path, told) from None
        except BaseException:
            os.close(fd)
            raise
        if _is_at(fd, path):
            return fd
        os.close(fd)  # the last holder has removed the file meanwhile


def _already(path: Path, told: str) -> AlreadyRunning:
    record, place = LockRecord.parse(told), here()
    pid = told.partition("\n")[0].strip() or "unknown"
    if record is not None and not record.is_at(place):
        return AlreadyRunning(
            f"the state in {path.parent} is in use by {record.describe(place)}; {advice(str(path.parent))}", pid=pid
        )
    return AlreadyRunning(
        f"a daemon runs already for {path.parent} (pid {pid}); 'synapsectl shutdown' ends it", pid=pid
    )


def _is_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except OSError:
        return False


def _put(fd: int, text: str) -> None:
    data = text.encode()
    os.pwrite(fd, data, 0)
    os.ftruncate(fd, len(data))


def _is_daemon(pid: int) -> bool:
    """Returns True if the pid is a daemon's, since other programs may read the database too. A process that cannot be
    seen may well be a daemon."""
    if not pid:
        return True
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"run" in words and any(word.rpartition(b"/")[2] == b"synapsed" for word in words)
