"""How many files the daemon may have open, and the log that it was started with.

Standard library only. A shell's soft limit, 1,024 as a rule, is there for programs that use `select`; what the daemon
holds (a connection for each client, two files for each agent) grows with its work.
"""

import contextlib
import os
import resource
from pathlib import Path

MANY = 65_536
"""As many as are asked for, where the hard limit allows more: what is above only makes closing them all slower."""

LOG_MAX = 4 * 1024 * 1024
"""Bytes of a log at which it is put aside; one is kept."""


def raise_limit() -> tuple[int, int]:
    """Raise this process's soft limit towards its hard one. Gives what it was, for agents, and what it is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY if hard == resource.RLIM_INFINITY else min(hard, MANY)
    if soft != resource.RLIM_INFINITY and soft >= wanted:
        return soft, soft
    for files in (wanted, 10_240):  # the second is macOS's own bound, whatever the hard limit says
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(files, soft), hard))
        except (ValueError, OSError):
            continue
        return soft, max(files, soft)
    return soft, soft


def keep_private(logs: Path, fd: int = 2) -> None:
    """Standard error is its owner's alone where it is a log in `logs`: launchd makes that as the umask says, which is
    the agents' business."""
    with contextlib.suppress(OSError):
        if any(os.path.samestat(os.fstat(fd), path.stat()) for path in logs.glob("*.log")):
            os.fchmod(fd, 0o600)


class OwnLog:
    """The log that whoever started the daemon put on its standard error: `path`, if it is that."""

    def __init__(self, path: Path, fd: int = 2) -> None:
        self._path = path
        self._fd = fd

    def rotate(self) -> bool:
        """Put the log aside where it has grown too large, and go on in a new one. Whether that was done. Meant to be
        called every second: without need it is one look at a file."""
        try:
            found = os.fstat(self._fd)
            if found.st_size <= LOG_MAX or not os.path.samestat(found, self._path.stat()):
                return False
            self._path.replace(self._path.with_suffix(".log.1"))
            new = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError:
            return False  # it is looked at again
        for fd in (1, 2):
            os.dup2(new, fd)
        os.close(new)
        return True
