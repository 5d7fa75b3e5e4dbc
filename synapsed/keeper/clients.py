"""The clients of a keeper: the socket they connect to (bound again if its file was removed), their connections, their
requests, and the answers and output sent to them."""

from __future__ import annotations

import fcntl
import os
import selectors
import socket

from .frames import ProtocolError
from .processes import peer_uid
from .requests import Connection, Requests
from .spec import LaunchRefused
from .spool import OutputChannel

BACKLOG = 16


class Listener:
    """The keeper's listening socket `sock`, bound to `path`. Raises LaunchRefused if it cannot be bound."""

    __slots__ = ("_bound", "_folder", "_path", "sock")

    def __init__(self, path: str) -> None:
        self._path = path
        self._folder = -1
        self.sock = self._bind()

    def renew(self) -> bool:
        """Binds another `sock` if the path does not lead to the present one any more, and returns True if so; the old
        socket then belongs to the caller. Raises LaunchRefused; then nothing has changed."""
        if self._is_there():
            return False
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        except OSError as error:
            raise LaunchRefused("socket_failed", f"{error.filename}: {error.strerror}") from None
        self.sock = self._bind()
        return True

    def close(self) -> None:
        """Stops listening, and removes the socket's file if it is still the one that this object has bound."""
        self.sock.close()
        if self._is_there():
            try:  # noqa: SIM105 - contextlib stays unimported
                os.unlink(self._path)
            except OSError:
                pass  # it was removed already: nothing is left to clean up
        self._hold(-1)

    def _bind(self) -> socket.socket:
        try:
            return self._listen()
        except OSError as error:
            # The error for a path that is too long has no errno, hence no strerror.
            raise LaunchRefused(
                "socket_failed", f"the socket {self._path} cannot be made: {error.strerror or error}"
            ) from None

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        umask = os.umask(0o177)
        try:
            _unlink_stale(self._path)
            self._keep_folder()
            listener.bind(self._path)
            listener.listen(BACKLOG)
            self._bound = _identity(self._path)  # last: `renew` leaves a noted one alone
        except (OSError, LaunchRefused):
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
        """Holds a shared lock on a folder below /tmp, which keeps systemd-tmpfiles from removing the files in it."""
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
    """Removes the socket that a killed keeper left behind, never one that a process listens on."""
    if not os.path.lexists(path):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            os.unlink(path)
            return
    raise LaunchRefused("socket_in_use", f"another process already listens on {path}")


MAX_CLIENTS = 16
"""Connections at once; the daemon needs one, its successor another. Further ones are closed without an answer."""


class Clients:
    """All connections of clients, registered with the keeper's selector."""

    __slots__ = ("_connections", "_listener", "_requests", "_selector", "full")

    def __init__(self, selector: selectors.BaseSelector, requests: Requests) -> None:
        self._listener: socket.socket | None = None
        self._selector = selector
        self._requests = requests
        self._connections: list[Connection] = []
        self.full = False
        """True after the system had no room for one more client: none is accepted until `listen` is called again."""

    def listen(self, listener: socket.socket) -> None:
        """Accepts clients on `listener` from now on, and closes the listener before it."""
        if self._listener is not None and not self.full:
            self._selector.unregister(self._listener)
        if self._listener is not None and self._listener is not listener:
            self._listener.close()
        self._listener, self.full = listener, False
        self._selector.register(listener, selectors.EVENT_READ, self._accept)

    def __bool__(self) -> bool:
        return bool(self._connections)

    def serve(self, channels: dict[str, OutputChannel], exit_record: dict[str, object] | None) -> bool:
        """Sends to all clients as much as their sockets accept. Returns True if a socket would accept more at once."""
        hungry = False
        for client in tuple(self._connections):
            self._answer(client)
            more = not client.broken and client.pump(channels, exit_record)
            more = more or (bool(client.backlog) and client.has_room and not client.closing)
            if client.broken or (client.closing and not more and not client.wants_writing):
                self._drop(client)
            else:
                self._watch(client)
            hungry = hungry or more
        return hungry

    def tell(self, kind: int, header: dict[str, object]) -> None:
        """Sends a frame to every client that shook hands."""
        for client in self._connections:
            if client.version:
                client.send(kind, header)

    def dismiss(self) -> None:
        """Reads no more from the clients, sends each its remaining data, and then closes its connection."""
        for client in self._connections:
            client.closing = True

    def close(self) -> None:
        for client in self._connections:
            client.sock.close()

    def _accept(self, _mask: int) -> None:
        assert self._listener is not None
        try:
            sock, _address = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # the client gave up
        except OSError:  # no descriptors, no memory: it waits, and the socket would be ready at once again
            self._selector.unregister(self._listener)
            self.full = True
            return
        if len(self._connections) >= MAX_CLIENTS or peer_uid(sock) not in (os.getuid(), None):
            sock.close()
            return
        sock.setblocking(False)
        self._connections.append(Connection(sock))

    def _ready(self, client: Connection, mask: int) -> None:
        if not mask & selectors.EVENT_READ or client.closing:
            return
        try:
            client.receive()
        except ProtocolError as error:
            client.dismiss(error.code, str(error))
        self._answer(client)

    def _answer(self, client: Connection) -> None:
        """Serves the waiting requests, as long as the answers do not pile up."""
        try:
            while client.backlog and client.has_room and not client.closing:
                self._requests.serve(client, client.backlog.popleft())
        except ProtocolError as error:
            client.dismiss(error.code, str(error))

    def _drop(self, client: Connection) -> None:
        if client.registered:
            self._selector.unregister(client.sock)
        client.sock.close()
        self._connections.remove(client)

    def _watch(self, client: Connection) -> None:
        mask = selectors.EVENT_READ if client.has_room and not (client.closing or client.backlog) else 0
        if client.wants_writing:
            mask |= selectors.EVENT_WRITE
        if mask == client.registered:
            return
        if not client.registered:
            self._selector.register(client.sock, mask, lambda found: self._ready(client, found))
        elif mask:
            self._selector.modify(client.sock, mask, self._selector.get_key(client.sock).data)
        else:
            self._selector.unregister(client.sock)
        client.registered = mask
