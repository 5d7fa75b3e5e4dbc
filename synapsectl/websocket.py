"""The client's side of a WebSocket (RFC 6455) over the daemon's Unix socket, as far as a terminal needs it.

The parser is pure. The connection never blocks: what it cannot send at once it keeps, and says how much that is. By
hand for two reasons: importing a library for it costs a third of a second before the first redraw, and each keystroke
two more turns of an event loop.
"""

import base64
import hashlib
import json
import os
import select
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from synapsectl.client import ANSWER_MAX, Client, HttpReply, document_of, read_body, read_head
from synapsectl.errors import BadAnswer, TimedOut

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_FIN, _MASK, _RESERVED = 0x80, 0x80, 0x70
_LENGTH_16, _LENGTH_64 = 126, 127
_KEY_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
SWITCHING_PROTOCOLS = 101
NORMAL = (1000).to_bytes(2)

HANDSHAKE_TIMEOUT = 5.0
"""Seconds for the daemon to open a terminal."""

CHUNK = 256 * 1024


class FrameError(Exception):
    """The other side breaks the protocol."""


class WebSocketMessage(NamedTuple):
    """A whole message: its opcode and its payload."""

    opcode: int
    data: bytes


def encode(opcode: int, payload: bytes, mask: bytes) -> bytes:
    """One unfragmented frame; a client's are masked with four random bytes."""
    size = len(payload)
    if size < _LENGTH_16:
        head = bytes((_FIN | opcode, _MASK | size))
    elif size < 1 << 16:
        head = bytes((_FIN | opcode, _MASK | _LENGTH_16)) + size.to_bytes(2)
    else:
        head = bytes((_FIN | opcode, _MASK | _LENGTH_64)) + size.to_bytes(8)
    key = (mask * (size // 4 + 1))[:size]
    return head + mask + (int.from_bytes(payload) ^ int.from_bytes(key)).to_bytes(size)


class FrameParser:
    """Feed it what the server sends, in any chunking."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._opcode = CONTINUATION
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> list[WebSocketMessage]:
        """The messages that `data` completes. Raises FrameError."""
        self._buffer += data
        messages: list[WebSocketMessage] = []
        at = 0
        while (frame := self._frame(at)) is not None:
            first, begin, at = frame
            message = self._message(first, bytes(self._buffer[begin:at]))
            if message is not None:
                messages.append(message)
        del self._buffer[:at]
        return messages

    def _frame(self, at: int) -> tuple[int, int, int] | None:
        """First byte, begin and end of the payload of the frame at `at`; None while it is not whole."""
        buffer = self._buffer
        if len(buffer) - at < 2:
            return None
        first, size = buffer[at], buffer[at + 1]
        if first & _RESERVED or size & _MASK:
            raise FrameError("reserved bits or a mask from the server")
        begin = at + 2
        if size >= _LENGTH_16:
            width = 2 if size == _LENGTH_16 else 8
            if len(buffer) < begin + width:
                return None
            size = int.from_bytes(buffer[begin : begin + width])
            begin += width
        if size > ANSWER_MAX:
            raise FrameError(f"a frame of {size} bytes")
        return (first, begin, begin + size) if len(buffer) >= begin + size else None

    def _message(self, first: int, payload: bytes) -> WebSocketMessage | None:
        opcode = first & 0x0F
        if opcode >= CLOSE:
            return WebSocketMessage(opcode, payload)
        if (opcode == CONTINUATION) != bool(self._pieces):
            raise FrameError("a message within a message, or the rest of none")
        if opcode != CONTINUATION:
            self._opcode = opcode
        self._pieces.append(payload)
        if not first & _FIN:
            return None
        whole, self._pieces = b"".join(self._pieces), []
        return WebSocketMessage(self._opcode, whole)


class WebSocket:
    """An open WebSocket; made by `connect`."""

    def __init__(self, connection: socket.socket, rest: bytes) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._parser = FrameParser()
        self._rest = rest
        self._unsent = bytearray()
        self._open = True

    @classmethod
    def connect(cls, client: Client, path: str, query: Mapping[str, object] | None = None) -> "WebSocket":
        """Open the WebSocket at `path`. Raises ApiError, NoDaemon, TimedOut."""
        connection = client.connect()
        try:
            connection.settimeout(HANDSHAKE_TIMEOUT)
            return cls(connection, _shake_hands(client, connection, path, query))
        except TimeoutError:
            connection.close()
            raise TimedOut(f"the daemon did not open a terminal within {HANDSHAKE_TIMEOUT:g} s") from None
        except OSError as error:
            connection.close()
            raise BadAnswer(f"the daemon went away: {error.strerror or error}") from None
        except BaseException:
            connection.close()
            raise

    def fileno(self) -> int:
        return self._connection.fileno()

    @property
    def unsent(self) -> int:
        """Bytes that the daemon has not taken yet; `flush` them when the socket is writable."""
        return len(self._unsent)

    def receive(self) -> list[WebSocketMessage]:
        """What came, without waiting: text and binary messages; pings are answered. BadAnswer when it is over."""
        data, self._rest = self._rest, b""
        if not data:
            if not self._open:
                raise BadAnswer("the daemon ended the session")
            try:
                data = self._connection.recv(CHUNK)
            except BlockingIOError:
                return []
            except OSError as error:
                raise BadAnswer(f"the daemon went away: {error.strerror or error}") from None
            if not data:
                raise BadAnswer("the daemon went away")
        try:
            messages = self._parser.feed(data)
        except FrameError as error:
            raise BadAnswer(f"the daemon does not speak WebSocket: {error}") from None
        return [message for message in messages if self._is_ours(message)]

    def _is_ours(self, message: WebSocketMessage) -> bool:
        if message.opcode == PING:
            self.send(PONG, message.data)
        elif message.opcode == CLOSE:
            # Told at the next call: what came before it counts.
            self._open = False
            self.send(CLOSE, message.data[:2])
        return message.opcode in (TEXT, BINARY)

    @property
    def has_more(self) -> bool:
        """True when `receive` has something to say without new bytes on the socket."""
        return bool(self._rest) or not self._open

    def send(self, opcode: int, payload: bytes) -> None:
        """Send, or keep what the socket does not take now. A broken connection is told by `receive`."""
        self._unsent += encode(opcode, payload, os.urandom(4))
        self.flush()

    def send_json(self, document: Mapping[str, Any]) -> None:
        self.send(TEXT, json.dumps(document).encode())

    def flush(self) -> None:
        with suppress(OSError):
            while self._unsent:
                del self._unsent[: self._connection.send(self._unsent)]

    def messages(self) -> Iterator[WebSocketMessage]:
        """Every message, waiting for each. Raises BadAnswer when the connection ends."""
        while True:
            if not self.has_more:
                select.select([self], [self] if self._unsent else [], [])
                self.flush()
            yield from self.receive()

    def close(self, timeout: float) -> None:
        """Take our leave as far as `timeout` seconds allow."""
        if self._open:
            self.send(CLOSE, NORMAL)
        deadline = time.monotonic() + timeout
        while self._unsent and (left := deadline - time.monotonic()) > 0:
            _, writable, _ = select.select([], [self], [], left)
            before = len(self._unsent)
            self.flush()
            if writable and len(self._unsent) == before:
                break
        self._connection.close()


def _shake_hands(client: Client, connection: socket.socket, path: str, query: Mapping[str, object] | None) -> bytes:
    """Turn the connection into a WebSocket; returns what came after the daemon's answer."""
    key = base64.b64encode(os.urandom(16))
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key.decode(),
    }
    connection.sendall(client.head("GET", path, query, version="1.1", headers=headers))
    status, told, rest = read_head(connection)
    if status != SWITCHING_PROTOCOLS:
        document_of(HttpReply(status, told, read_body(connection, rest, told)))
    wanted = base64.b64encode(hashlib.sha1(key + _KEY_SUFFIX, usedforsecurity=False).digest()).decode()
    if status != SWITCHING_PROTOCOLS or told.get("sec-websocket-accept") != wanted:
        raise BadAnswer("the daemon does not open a WebSocket")
    return rest
