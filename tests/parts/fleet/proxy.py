"""A wire between members and their broker that a test cuts: whatever is under way on it is lost, acks too."""

import contextlib
import select
import socket
import threading
from types import TracebackType
from typing import Final, Self

CHUNK: Final = 65536


class Proxy:
    """TCP to `port` of this host, within `with`. `cut` ends all connections at once; while it is `held` nothing passes
    and new connections are taken and not answered, as where a host is out of reach."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket | None]] = []
        self._passes = threading.Event()
        self._passes.set()
        self._ended = threading.Event()
        self.cuts = 0

    @property
    def url(self) -> str:
        return f"tls://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._passes.set()
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        self.cuts += 1
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for one in pair:
                if one is not None:
                    with contextlib.suppress(OSError):
                        one.shutdown(socket.SHUT_RDWR)
                    one.close()

    def hold(self) -> None:
        self._passes.clear()

    def release(self) -> None:
        """Connections from before are ended: what was sent into them meanwhile is lost."""
        self.cut()
        self._passes.set()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with self._lock:
            self._pairs.append((client, None))
        self._passes.wait()
        try:
            server = socket.create_connection(("127.0.0.1", self._target), 5)
        except OSError:
            client.close()
            return
        with self._lock:
            self._pairs = [pair for pair in self._pairs if pair[0] is not client]
            self._pairs.append((client, server))
        with contextlib.suppress(OSError, ValueError), client, server:
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(CHUNK)
                    self._passes.wait()
                    if not data:
                        return
                    (server if ready is client else client).sendall(data)
