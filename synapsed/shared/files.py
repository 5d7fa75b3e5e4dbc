"""Reads and writes files so that a file is whole or does not exist. The person's tool imports it too.

The keeper (the process that holds a program's terminal) and the hook client import no module of ours: they follow the
same rules in code of their own.
"""

import contextlib
import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import BinaryIO

from synapsed.errors import ConfigError, StoreError


def open_regular(path: Path | str) -> BinaryIO:
    """Opens a file that another program wrote, for reading. Raises OSError, also if it is not a regular file: opening a
    named pipe would block for ever, also when the daemon ends."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    return os.fdopen(handle, "rb")


def toml_files(directory: Path) -> list[Path]:
    """Returns the `*.toml` of a directory of the configuration, by name; none without the directory. A name that begins
    with a dot is an editor's or a file system's. Raises ConfigError if it cannot be read, or is a link to nothing."""
    try:
        files = sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        check_absent(directory)
        return []
    except OSError as error:
        raise ConfigError(f"{directory}: cannot be read: {error.strerror}", file=str(directory)) from None
    return [file for file in files if file.suffix == ".toml" and not file.name.startswith(".")]


def check_absent(path: Path) -> None:
    """Raises ConfigError if `path`, which does not exist, is a symbolic link to nothing, or in a folder that is: the
    person has put something there."""
    for place in (path, *path.parents):
        if place.is_symlink() and not place.exists():
            told = f"{place} is a symbolic link to {place.readlink()}, which does not exist"
            raise ConfigError(f"{told}: put that back, or remove the link", file=str(path))


def read_private(path: Path, *, limit: int, cure: str = "'chmod 600' it") -> bytes:
    """Returns at most `limit` bytes of a file that only the user can read. Raises FileNotFoundError, and ConfigError if
    it is a link or not a regular file, belongs to another user, or others can read it; then it names the `cure`."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", file=str(path)) from error
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            raise ConfigError(f"{path}: is not a regular file", file=str(path))
        if info.st_uid != os.getuid():
            raise ConfigError(f"{path}: belongs to uid {info.st_uid}, not to you", file=str(path))
        if stat.S_IMODE(info.st_mode) & 0o077:
            raise ConfigError(f"{path}: others can read it: {cure}", file=str(path))
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(limit)
    finally:
        os.close(handle)


def write_private(path: Path, content: bytes) -> None:
    """Writes a private file with `write_whole`, and makes a missing directory with 0700. Raises StoreError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}", file=str(path)) from error


def write_whole(path: Path, content: bytes, *, mode: int = 0o600, durable: bool = True) -> None:
    """Replaces the file `path` by `content`: a reader finds the old file or the new one, even if this process is killed
    meanwhile, and with `durable` after a loss of power too. The file gets `mode` whatever the umask is; before that
    only its owner can read it. A link at `path` is replaced, not followed. Raises OSError, which names `path`: then the
    old file is unchanged, and no other file is left beside it."""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # 0600, exclusively
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fchmod(handle, mode)
                if durable:
                    os.fsync(handle)
            Path(temporary).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):  # the first error is the one that counts
                Path(temporary).unlink()
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    if durable:
        _keep_names(path.parent)


def _keep_names(directory: Path) -> None:
    """Makes the names in the directory durable, if its file system can; the new file exists in any case."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
