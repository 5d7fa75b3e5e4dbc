"""A daemon's home: the directories that it keeps to itself, and the lock that makes it the only one there."""

import contextlib
import fcntl
import os
from collections.abc import Iterator

from synapsed.errors import AlreadyRunning
from synapsed.keepers.launchers import private_directory
from synapsed.paths import Paths


def prepare_directories(paths: Paths) -> None:
    """Make the directories of state and run time: this user's, 0700, no links. Raises LaunchError."""
    for directory in (
        paths.state,
        paths.state / "agents",
        paths.logs,
        paths.run,
        paths.sockets,
        paths.keeper_sockets,
    ):
        private_directory(directory)


def remove_stand_in(paths: Paths) -> None:
    """Where the sockets had to go elsewhere (see `Paths.sockets`) nothing of that stays, unless keepers live there."""
    if paths.sockets != paths.run:
        for directory in (paths.keeper_sockets, paths.sockets):
            with contextlib.suppress(OSError):
                directory.rmdir()


@contextlib.contextmanager
def lock_home(paths: Paths) -> Iterator[None]:
    """Hold the lock of this home; the kernel lets go of it with the process, however that ends. Raises AlreadyRunning
    with the pid of the daemon that has it."""
    fd = os.open(paths.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(fd, 20, 0).decode("ascii", "replace").strip() or "unknown"
            raise AlreadyRunning(
                f"a daemon runs already for {paths.run} (pid {pid}); 'synapsectl shutdown' ends it", pid=pid
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(fd)
