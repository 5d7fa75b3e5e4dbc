"""Paths as people type them behind options."""

import os
import stat

__all__ = ["create_private", "from_home"]


def from_home(path: str) -> str:
    """Returns `path`, below the home directory if it begins with `~` and there is no such path as it stands: shells
    leave the `~` of `--cwd=~/work` to the program."""
    if path.startswith("~") and not os.path.lexists(path):
        return os.path.expanduser(path)  # noqa: PTH111 - pathlib takes 4 ms to import
    return path


def create_private(path: str | os.PathLike[str]) -> int:
    """Opens a file for writing that only its owner can read, also if it was there before; returns its descriptor. A
    device stays as it is. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            os.fchmod(fd, 0o600)
            os.ftruncate(fd, 0)
    except OSError:
        os.close(fd)
        raise
    return fd
