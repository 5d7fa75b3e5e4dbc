"""A receiver of notifications on loopback, in a thread: keeps what it is sent, and misbehaves as it is told."""

import json
import socket
import struct
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Webhook"]


class Webhook:
    """`answer` is asked for each request (its number from 0): a status; None drops the connection."""

    def __init__(self, *, port: int = 0) -> None:
        self.answer: Callable[[int], int | None] = lambda number: 200
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        """Path, headers, body of every request."""
        self.taken: list[dict[str, Any]] = []
        """Bodies of those that were answered with 200."""
        self.methods: list[str] = []
        """Of every request; a moment before it is one of `requests`."""
        self.location: str | None = None
        """Where its answers lead, if anywhere."""
        self.port = port
        self._server: ThreadingHTTPServer | None = None
        self._one_by_one = threading.Lock()

    def __enter__(self) -> "Webhook":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def start(self) -> None:
        """At the same port as before."""
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook._handle(self)

            def do_DELETE(self) -> None:
                hook._handle(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Connections are refused from now on."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def states(self, task_id: str) -> list[str]:
        """Of the task, as far as they were taken, without repetitions that follow each other."""
        found: list[str] = []
        for body in self.taken:
            update = body.get("statusUpdate")
            if update and update["taskId"] == task_id:
                state = update["status"]["state"].removeprefix("TASK_STATE_")
                if not found or found[-1] != state:
                    found.append(state)
        return found

    def _handle(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])) or b"{}")
        with self._one_by_one:
            number = len(self.requests)
            self.methods.append(request.command)
            self.requests.append((request.path, dict(request.headers), body))
        status = self.answer(number)
        if status is None:
            request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            request.connection.close()
            return
        if status == 200:
            self.taken.append(body)
        request.send_response(status)
        if self.location is not None:
            request.send_header("Location", self.location)
        request.send_header("Content-Length", "0")
        request.end_headers()
