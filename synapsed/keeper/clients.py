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
from .terminals import MAX_TERMINALS, JoinedTerminal

MYPY = False
if MYPY:  # what type checkers know as true: the keeper imports no typing at run time
    from collections.abc import Callable

MAX_CLIENTS = 16
"""Connections at once; the daemon needs one, its successor another. Further ones are closed without an answer."""


class Clients:
    """All connections, on the keeper's selector."""

    __slots__ = ("_connections", "_listener", "_requests", "_selector", "_terminals")

    def __init__(self, selector: selectors.BaseSelector, requests: Requests) -> None:
        self._listener: socket.socket | None = None
        self._selector = selector
        self._requests = requests
        self._connections: list[Connection] = []
        self._terminals: dict[str, JoinedTerminal] = {}

    def listen(self, listener: socket.socket) -> None:
        """Clients come to `listener` from now on; the one before is closed."""
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()
        self._listener = listener
        self._selector.register(listener, selectors.EVENT_READ, lambda _mask: self._accept(listener))

    def __bool__(self) -> bool:
        return bool(self._connections)

    def serve(self, channels: dict[str, OutputChannel], exit_record: dict[str, object] | None) -> bool:
        """Sends everybody what their sockets take. True when somebody would take more at once."""
        over = exit_record is not None
        hungry = False
        for terminal in self._terminals.values():  # before all others: a person waits
            hungry = terminal.pump(channels["pty"].spool, over=over) or hungry
        for client in tuple(self._connections):
            self._answer(client)
            more = not client.broken and client.pump(channels, exit_record)
            more = more or (bool(client.backlog) and client.has_room and not client.closing)
            if client.joined and not client.wants_writing:
                self._let_go(client)
            elif client.broken or (client.closing and not more and not client.wants_writing):
                self._drop(client)
            else:
                self._watch(client, self._ready)
            hungry = hungry or more
        for terminal in tuple(self._terminals.values()):
            if terminal.gone:
                self._leave(terminal)
            else:
                self._watch(terminal, self._terminal_ready)
        return hungry

    @property
    def late_until(self) -> float | None:
        """When something is to be sent that may wait for something else."""
        times = [client.late_until for client in self._connections if client.late_until is not None]
        return min(times) if times else None

    def join(self, client: Connection, terminal: JoinedTerminal) -> bool:
        """From now on the connection of `client`, which is told so last, is that of `terminal`; False where there are
        too many."""
        if len(self._terminals) >= MAX_TERMINALS or terminal.name in self._terminals:
            return False
        self._terminals[terminal.name] = terminal
        client.joined = True
        return True

    def terminal(self, name: str) -> JoinedTerminal | None:
        return self._terminals.get(name)

    def _leave(self, terminal: JoinedTerminal) -> None:
        if terminal.registered:
            self._selector.unregister(terminal.sock)
        terminal.sock.close()
        del self._terminals[terminal.name]

    def _terminal_ready(self, terminal: JoinedTerminal, mask: int) -> None:
        if mask & selectors.EVENT_READ:
            terminal.receive()

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
        for sock in (*(each.sock for each in self._connections), *(each.sock for each in self._terminals.values())):
            sock.close()

    def _accept(self, listener: socket.socket) -> None:
        try:
            sock, _address = listener.accept()
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
            while client.backlog and client.has_room and not (client.closing or client.joined):
                self._requests.serve(client, client.backlog.popleft())
        except ProtocolError as error:
            client.dismiss(error.code, str(error))

    def _drop(self, client: Connection) -> None:
        self._let_go(client)
        client.sock.close()
        for terminal in tuple(self._terminals.values()):
            if terminal.owner is client:
                terminal.shut(end=True)  # text that was sent before that still counts
                self._leave(terminal)

    def _let_go(self, client: Connection) -> None:
        if client.registered:
            self._selector.unregister(client.sock)
        self._connections.remove(client)

    def _watch[C: (Connection, JoinedTerminal)](self, client: C, ready: Callable[[C, int], None]) -> None:
        mask = selectors.EVENT_READ if client.wants_reading else 0
        if client.wants_writing:
            mask |= selectors.EVENT_WRITE
        if mask == client.registered:
            return
        if not client.registered:
            self._selector.register(client.sock, mask, lambda found: ready(client, found))
        elif mask:
            self._selector.modify(client.sock, mask, self._selector.get_key(client.sock).data)
        else:
            self._selector.unregister(client.sock)
        client.registered = mask
