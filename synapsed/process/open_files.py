"""The daemon's limit of open files, and the log that it was started with.

It uses the standard library only. A shell's soft limit, 1,024 as a rule, protects programs that use `select`; the
daemon's number of files (a connection for each client, two files for each agent) grows with its work.
"""

import contextlib
import os
import resource
from pathlib import Path

MANY = 65_536
"""Requested limit, if the hard limit allows it: a higher limit would only make closing all files slower."""

LOG_MAX = 4 * 1024 * 1024
"""Bytes at which a log is renamed and a new one begun; one older log is kept."""


def raise_limit() -> tuple[int, int]:
    """Raises this process's soft limit towards its hard one. Returns the former limit, for agents, and the new one.
    The former one is 0 if there was none: agents then have none either."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY if hard == resource.RLIM_INFINITY else min(hard, MANY)
    if soft == resource.RLIM_INFINITY:
        return 0, MANY
    if soft >= wanted:
        return soft, soft
    for files in (wanted, 10_240):  # the second is macOS's own bound, whatever the hard limit says
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(files, soft), hard))
        except (ValueError, OSError):
            continue
        return soft, max(files, soft)
    return soft, soft


def keep_private(logs: Path, fd: int = 2) -> None:
    """Makes standard error readable by its owner alone if it is a log in `logs`: launchd uses the agents' umask."""
    with contextlib.suppress(OSError):
        if any(os.path.samestat(os.fstat(fd), path.stat()) for path in logs.glob("*.log")):
            os.fchmod(fd, 0o600)


class OwnLog:
    """The log at `path`, if the daemon was started with it as its standard error."""

    def __init__(self, path: Path, fd: int = 2) -> None:
        self._path = path
        self._fd = fd

    def rotate(self) -> bool:
        """Renames the log if it has grown too large, and opens a new one. Returns True if it did. It is called every
        second, and usually looks at one file only."""
        try:
            found = os.fstat(self._fd)
            if found.st_size <= LOG_MAX or not os.path.samestat(found, self._path.stat()):
                return False
            begun = self._path.with_suffix(".log.new")  # first: without it, nothing would be found at the log's place
            with os.fdopen(os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab") as new:
                self._path.replace(self._path.with_suffix(".log.1"))
                begun.replace(self._path)
                for fd in (1, 2):
                    os.dup2(new.fileno(), fd)
        except OSError:
            return False  # the next call tries again
        return True
