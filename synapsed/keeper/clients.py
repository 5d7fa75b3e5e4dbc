"""The clients of a keeper: accepting them, reading their requests, sending them what is theirs."""

from __future__ import annotations

import os
import selectors
import socket

from .channel import OutputChannel
from .connection import Connection
from .frames import ProtocolError
from .processes import peer_uid
from .requests import Requests

MAX_CLIENTS = 16
"""Connections at once; the daemon needs one, its successor another. Further ones are closed without an answer."""


class Clients:
    """All connections, on the keeper's selector."""

    __slots__ = ("_connections", "_listener", "_requests", "_selector")

    def __init__(self, listener: socket.socket, selector: selectors.BaseSelector, requests: Requests) -> None:
        self._listener = listener
        self._selector = selector
        self._requests = requests
        self._connections: list[Connection] = []
        selector.register(listener, selectors.EVENT_READ, self._accept)

    def __bool__(self) -> bool:
        return bool(self._connections)

    def serve(self, channels: dict[str, OutputChannel], exit_record: dict[str, object] | None) -> bool:
        """Sends everybody what their sockets take. True when somebody would take more at once."""
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
        """Everybody gets what is theirs and is closed then; nothing more is read from them."""
        for client in self._connections:
            client.closing = True

    def close(self) -> None:
        for client in self._connections:
            client.sock.close()
        self._listener.close()

    def _accept(self, _mask: int) -> None:
        try:
            sock, _address = self._listener.accept()
        except OSError:
            return  # the client gave up
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
        """Serves what waits, as long as the answers do not pile up."""
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
        mask = selectors.EVENT_READ if client.wants_reading else 0
        if client.wants_writing:
            mask |= selectors.EVENT_WRITE
        if mask == client.registered:
            return
        if not client.registered:
            self._selector.register(client.sock, mask, lambda ready: self._ready(client, ready))
        elif mask:
            self._selector.modify(client.sock, mask, self._selector.get_key(client.sock).data)
        else:
            self._selector.unregister(client.sock)
        client.registered = mask
