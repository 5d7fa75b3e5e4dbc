"""The client's side of an attached terminal: frames over the daemon's Unix socket (`synapsed.shared.attach_frames`).

The connection never blocks: it keeps data that it cannot send at once, and reports their amount.
"""

import json
import select
import socket
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from synapsectl.ahead import BegunAttach
from synapsectl.client import Client, HttpReply, agent_path, document_of, read_body, read_head
from synapsectl.errors import BadAnswer, TimedOut
from synapsed.shared.attach_frames import (
    COMMAND,
    KEYS,
    LEASED,
    NEWS,
    SCREEN_MAX,
    UPGRADE,
    FrameError,
    FrameReader,
    frame,
)

SWITCHING_PROTOCOLS = 101

HANDSHAKE_TIMEOUT = 5.0
"""Seconds for the daemon to open a terminal."""

GREETING = 5.0
"""Seconds for the daemon's first message."""

CHUNK = 64 * 1024
"""Bytes read at a time: allocating more takes five times as long as reading a key's echo."""


class TerminalConnection:
    """An open terminal of an agent; made by `open`."""

    def __init__(self, connection: socket.socket, rest: bytes) -> None:
        connection.setblocking(False)
        self._connection = connection
        self.fd = connection.fileno()
        self._reader = FrameReader(SCREEN_MAX)
        self._rest = rest
        self._unsent = bytearray()
        self._sent = 0
        """Bytes that the socket has taken."""
        self._keys: deque[tuple[int, bytes]] = deque()
        """Keys in frames that the socket has not taken whole, with the positions at which the frames end."""

    @classmethod
    def open(
        cls, client: Client, path: str, query: Mapping[str, object], begun: BegunAttach | None = None
    ) -> "TerminalConnection":
        """Returns the terminal at `path`, which may have been requested already (`begun`). Raises ApiError, NoDaemon,
        TimedOut."""
        connection = client.connect() if begun is None else socket.socket(fileno=begun.connection.detach())
        try:
            connection.settimeout(HANDSHAKE_TIMEOUT)
            if begun is None:
                headers = {"Upgrade": UPGRADE, "Connection": "Upgrade"}
                connection.sendall(client.head("GET", path, query, version="1.1", headers=headers))
            status, told, rest = read_head(connection, b"" if begun is None else begun.received)
            if status == SWITCHING_PROTOCOLS and told.get("upgrade") == UPGRADE:
                return cls(connection, rest)
            document_of(HttpReply(status, told, read_body(connection, rest, told)))
        except TimeoutError:
            connection.close()
            raise TimedOut(f"the daemon did not open a terminal within {HANDSHAKE_TIMEOUT:g} s") from None
        except OSError as error:
            connection.close()
            raise BadAnswer(f"the daemon went away: {error.strerror or error}") from None
        except BaseException:
            connection.close()
            raise
        connection.close()
        raise BadAnswer("the daemon does not open a terminal: it may be of another version; restart it")

    def fileno(self) -> int:
        return self._connection.fileno()

    @property
    def unsent(self) -> int:
        """Bytes that the daemon has not taken yet; `flush` them when the socket is writable."""
        return len(self._unsent)

    @property
    def has_more(self) -> bool:
        """True when `receive` has frames without new bytes on the socket."""
        return bool(self._rest)

    def receive(self) -> list[tuple[int, bytes]]:
        """Returns the frames that came, without waiting. Raises BadAnswer when the connection is over."""
        data, self._rest = self._rest, b""
        if not data:
            try:
                data = self._connection.recv(CHUNK)
            except BlockingIOError:
                return []
            except OSError as error:
                raise BadAnswer(f"the daemon went away: {error.strerror or error}") from None
            if not data:
                raise BadAnswer("the daemon went away")
        try:
            return self._reader.feed(data)
        except FrameError as error:
            raise BadAnswer(f"the daemon breaks the protocol: {error}") from None

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """Yields every frame, waiting for each. Raises BadAnswer when the connection ends."""
        while True:
            if not self.has_more:
                select.select([self], [self] if self._unsent else [], [])
                self.flush()
            yield from self.receive()

    def keys(self, data: bytes) -> None:
        """Sends keys, or keeps those that the socket does not take now. `receive` reports a broken connection."""
        self._send(frame(KEYS, data))
        if self._unsent:
            self._keys.append((self._sent + len(self._unsent), data))

    def leased(self, piece: bytes) -> None:
        """Sends a piece of keys with its lease, or keeps it until the socket takes it."""
        self._send(frame(LEASED, piece))

    def command(self, document: Mapping[str, Any]) -> None:
        self._send(frame(COMMAND, json.dumps(document).encode()))

    def untyped(self) -> bytes:
        """Returns the keys of frames that the socket has not taken whole. The daemon types a whole frame or nothing, so
        it has none of these keys when the connection is over."""
        return b"".join(keys for end, keys in self._keys if end > self._sent)

    def _send(self, data: bytes) -> None:
        if not self._unsent:
            with suppress(OSError):
                sent = self._connection.send(data)
                self._sent += sent
                if sent == len(data):
                    return
                data = data[sent:]
        self._unsent += data

    def flush(self) -> None:
        with suppress(OSError):
            while self._unsent:
                sent = self._connection.send(self._unsent)
                self._sent += sent
                del self._unsent[:sent]
        while self._keys and self._keys[0][0] <= self._sent:
            self._keys.popleft()

    def close(self, timeout: float) -> None:
        """Sends the data that still waits, for at most `timeout` seconds, then closes the connection."""
        deadline = time.monotonic() + timeout
        while self._unsent and (left := deadline - time.monotonic()) > 0:
            _, writable, _ = select.select([], [self], [], left)
            before = len(self._unsent)
            self.flush()
            if writable and len(self._unsent) == before:
                break
        self._connection.close()


def open_terminal(
    client: Client, agent: str, *, cols: int, rows: int, read_only: bool, begun: BegunAttach | None
) -> TerminalConnection:
    """Returns the agent's terminal; its first output is the redraw. Raises ApiError, NoDaemon, TimedOut."""
    query = {"cols": cols, "rows": rows, "one_screen": 1} | ({"read_only": 1} if read_only else {})
    return TerminalConnection.open(client, agent_path(agent, "terminal"), query, begun)


def read_greeting(terminal: TerminalConnection) -> tuple[dict[str, Any], list[tuple[int, bytes]]]:
    """Returns the daemon's greeting (`attached`), and the frames that came with it. Raises BadAnswer, TimedOut."""
    deadline = time.monotonic() + GREETING
    frames: list[tuple[int, bytes]] = []
    while not frames:
        if not terminal.has_more and not select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimedOut(f"the daemon said nothing within {GREETING:g} s")
        frames = terminal.receive()
    greeting = parse_news(frames[0][1]) if frames[0][0] == NEWS else None
    if not isinstance(greeting, dict):
        raise BadAnswer("the daemon opened a terminal without a word")
    return greeting, frames[1:]


def parse_news(text: bytes) -> object:
    """Returns the value of a JSON frame; None if it is no JSON, so that unknown messages of a newer daemon are
    ignored."""
    try:
        return json.loads(text)
    except ValueError:
        return None
