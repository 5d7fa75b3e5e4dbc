"""An HTTP proxy of a test's own on loopback, in a thread: takes whole URLs and CONNECT, and keeps what it is asked for.
It knows every name, as one of this machine."""

import base64
import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import urlsplit

__all__ = ["Proxy"]

NAME, PASSWORD = "ann", "proxy-Geheimnis"


class Proxy:
    """Use it as a context manager. With `locked` it wants NAME and PASSWORD; `refuses` is what it answers, else."""

    def __init__(self, *, locked: bool = False, refuses: int | None = None) -> None:
        self.asked: list[str] = []
        """First lines of requests, without `HTTP/1.1`."""
        self._locked = locked
        self._refuses = refuses

    def __enter__(self) -> Self:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(65537)
                if not self.raw_requestline or not self.parse_request():
                    return
                self.close_connection = True
                proxy.asked.append(f"{self.command} {self.path}")
                if (status := proxy.refusal(self.headers.get("Proxy-Authorization"))) is not None:
                    self.send_error(status)
                    return
                try:
                    (self._tunnel if self.command == "CONNECT" else self._pass_on)()
                except ConnectionRefusedError:
                    self.send_error(502)

            def _tunnel(self) -> None:
                with socket.create_connection(("127.0.0.1", int(self.path.rpartition(":")[2]))) as there:
                    self.send_response(200)
                    self.end_headers()
                    back = threading.Thread(target=copy, args=(there, self.connection), daemon=True)
                    back.start()
                    copy(self.connection, there)
                    back.join()

            def _pass_on(self) -> None:
                url = urlsplit(self.path)
                with socket.create_connection(("127.0.0.1", url.port or 80)) as there:
                    kept = [f"{k}: {v}" for k, v in self.headers.items() if not k.lower().startswith("proxy-")]
                    head = [f"{self.command} {url.path or '/'} HTTP/1.1", *kept, "Connection: close", "", ""]
                    there.sendall("\r\n".join(head).encode())
                    there.sendall(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                    copy(there, self.connection)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def refusal(self, authorization: str | None) -> int | None:
        wanted = "Basic " + base64.b64encode(f"{NAME}:{PASSWORD}".encode()).decode()
        return 407 if self._locked and authorization != wanted else self._refuses

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url_with_password(self) -> str:
        return f"http://{NAME}:{PASSWORD}@127.0.0.1:{self.port}"


def copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
