"""The keeper's socket: bound where the launch wants it, and bound again where somebody has removed it."""

import fcntl
import os
import socket

from .spec import LaunchRefused

BACKLOG = 16


class Listener:
    """`sock` listens at `path`. Raises LaunchRefused where it cannot."""

    __slots__ = ("_bound", "_folder", "_path", "sock")

    def __init__(self, path: str) -> None:
        self._path = path
        self._folder = -1
        self.sock = self._bind()

    def renew(self) -> bool:
        """Bind another `sock` where the last one, which is the caller's then, is not there any more; whether that was
        so. Raises LaunchRefused; it stays as it was then."""
        if self._is_there():
            return False
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        except OSError as error:
            raise LaunchRefused("socket_failed", f"{error.filename}: {error.strerror}") from None
        self.sock = self._bind()
        return True

    def close(self) -> None:
        """Stop listening, and remove what is ours."""
        self.sock.close()
        if self._is_there():
            try:  # noqa: SIM105 - contextlib stays unimported
                os.unlink(self._path)
            except OSError:
                pass  # somebody removed it: nothing is left to clean up
        self._hold(-1)

    def _bind(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        umask = os.umask(0o177)
        try:
            _unlink_stale(self._path)
            listener.bind(self._path)
            listener.listen(BACKLOG)
            self._bound = _identity(self._path)
            self._keep_folder()
        except OSError as error:
            listener.close()
            # A path that is too long has no errno.
            raise LaunchRefused(
                "socket_failed", f"the socket {self._path} cannot be made: {error.strerror or error}"
            ) from None
        except LaunchRefused:
            listener.close()
            raise
        finally:
            os.umask(umask)
        listener.setblocking(False)
        return listener

    def _is_there(self) -> bool:
        try:
            return _identity(self._path) == self._bound
        except OSError:
            return False

    def _keep_folder(self) -> None:
        """A shared lock on a folder below /tmp keeps systemd-tmpfiles from what is in it, however old that is."""
        fd = os.open(os.path.dirname(self._path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:  # a cleaner is at work, or the file system has no locks
            os.close(fd)
            fd = -1
        self._hold(fd)

    def _hold(self, fd: int) -> None:
        if self._folder >= 0:
            os.close(self._folder)
        self._folder = fd


def _identity(path: str) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def _unlink_stale(path: str) -> None:
    """Removes what a killed keeper left behind, never a socket that somebody listens on."""
    if not os.path.lexists(path):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            os.unlink(path)
            return
    raise LaunchRefused("socket_in_use", f"somebody listens on {path} already")
