"""Locks on files, as the kernel knows them: who holds one, told without taking it for longer than a look."""

import fcntl
import os
import struct
import sys

WAL_OPEN_BYTE = 128
"""Byte of a database's `-shm`: each connection in WAL mode holds a shared lock on it (SQLite, `walformat.html`)."""

_LINUX = sys.platform.startswith("linux")
_FLOCK = "hhqqi4x"  # struct flock of 64-bit Linux: type, whence, start, length, pid


def is_locked(path: str) -> bool:
    """Returns True if somebody holds an exclusive flock on the file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks tells of none
        return False
    finally:
        os.close(fd)
    return False


def database_user(database: str) -> int | None:
    """The pid of a process that has the database open, 0 for one that cannot be seen from here; None for none. Not for
    a process that has it open itself: to look lets go of its own locks. On Linux only; elsewhere None."""
    if not _LINUX:
        return None
    try:
        fd = os.open(f"{database}-shm", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, WAL_OPEN_BYTE, 1, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    except OSError:
        return None
    finally:
        os.close(fd)
    return None if kind == fcntl.F_UNLCK else max(0, pid)
