"""The control token, in a file that only its owner can read: a client that knows the token counts as the person."""

import os
import secrets
import stat
from pathlib import Path

from synapsed.errors import ConfigError
from synapsed.shared.files import write_private

TOKEN_BYTES = 32
TOKEN_FILE_MAX = 4096
"""Bytes of the file that are read."""


def load_or_create(path: Path) -> str:
    """Returns the token in `path`; a new one is written (0600) if there is no such file.

    Raises ConfigError if the file belongs to another user, is readable by others, is a link, or holds no token, and
    StoreError if a new token cannot be written. The caller holds the daemon's lock, so that no second daemon writes the
    file meanwhile.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return _create(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the control token: {error.strerror}", file=str(path)) from error
    try:
        _check(path, os.fstat(fd))
        token = os.read(fd, TOKEN_FILE_MAX).decode("ascii", "replace").strip()
    finally:
        os.close(fd)
    if len(token) < TOKEN_BYTES or not token.isprintable() or " " in token:
        raise ConfigError(f"{path}: holds no token; remove the file and a new one is made", file=str(path))
    return token


def put_back(path: Path, token: str) -> None:
    """Writes the daemon's token into its file again after the file was removed. Raises StoreError."""
    write_private(path, f"{token}\n".encode())


def _check(path: Path, info: os.stat_result) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise ConfigError(f"{path}: is not a regular file", file=str(path))
    if info.st_uid != os.getuid():
        raise ConfigError(f"{path}: belongs to uid {info.st_uid}, not to you", file=str(path))
    if stat.S_IMODE(info.st_mode) & 0o077:
        raise ConfigError(
            f"{path}: others can read the control token; remove the file (a new one is made), or 'chmod 600' it",
            file=str(path),
        )


def _create(path: Path) -> str:
    token = secrets.token_urlsafe(TOKEN_BYTES)
    write_private(path, f"{token}\n".encode())
    return token
