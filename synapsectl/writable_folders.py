"""Tests the folders that a daemon writes to by writing: there is no other test for a mount, a quota or a full disk."""

import errno
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from synapsed.process.file_owners import mend, user_name

TRIAL_BYTES = 256 * 1024
"""Bytes of a trial; a new database and a log take about as much."""


class Hindrance(NamedTuple):
    """The reason why a folder cannot be written to, in a sentence, and the fix."""

    cause: str
    mend: str


def unwritable(places: Iterable[Path]) -> list[Hindrance]:
    """Tries to write to each place, or to the folder in which it would be made, and removes the trial. Returns what
    hinders it."""
    folders = dict.fromkeys(existing(place) for place in places)
    return [found for folder in folders if (found := _tried(folder)) is not None]


def existing(place: Path) -> Path:
    """Returns the place, or the nearest folder above it that exists, and is visible."""
    return next(path for path in (place, *place.parents) if os.path.lexists(path))


def _tried(folder: Path) -> Hindrance | None:
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            left = TRIAL_BYTES
            while left > 0:
                left -= file.write(bytes(left))
            os.fsync(file.fileno())
    except FileNotFoundError as error:
        # A daemon that ends removes its own folders: the next one makes them again, in the folder above.
        return _cause(folder, error) if (above := existing(folder)) == folder else _tried(above)
    except OSError as error:
        return _cause(folder, error)
    return None


def _cause(folder: Path, error: OSError) -> Hindrance:
    if error.errno == errno.ENOSPC:
        disk = os.statvfs(folder)
        if disk.f_files and not disk.f_favail:
            cause = f"the disk of {folder} takes no more files: none of its {disk.f_files} inodes is free"
            return Hindrance(cause, "remove files that nobody needs (df -i)")
        free = f"{disk.f_bavail * disk.f_frsize:,} bytes free"
        return Hindrance(f"the disk of {folder} is full ({free})", "make room on it (df -h)")
    if error.errno == errno.EDQUOT:
        return Hindrance(f"your quota on the disk of {folder} is used up", "make room there (quota -s)")
    if error.errno == errno.EROFS:
        return Hindrance(
            f"{folder} is on a file system that is mounted read-only",
            "mount it for writing; or name a folder that can be written to (SYNAPSED_HOME)",
        )
    if error.errno == errno.ENOTDIR:
        return Hindrance(f"{folder} is no folder", "move it away, or name another place (SYNAPSED_HOME)")
    if error.errno in (errno.EACCES, errno.EPERM):
        status = folder.stat()
        if status.st_uid not in (0, os.geteuid()):
            return Hindrance(f"{folder} belongs to {user_name(status.st_uid)}: you may not write there", mend([folder]))
        return Hindrance(f"you may not write to {folder} (mode {status.st_mode & 0o7777:04o})", f"chmod u+rwx {folder}")
    return Hindrance(f"nothing can be written to {folder}: {error.strerror}", "see 'dmesg', and 'mount'")
