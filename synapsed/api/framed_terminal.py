"""Speaks the frames of `shared.attach_frames` on a connection that began as HTTP, on the Unix socket only.

aiohttp reads the request and writes the answer `101`; then the transport goes to a protocol of our own, which gets
every byte at once, without a task between it and its receiver.
"""

import array
import asyncio
import fcntl
import socket
import termios
from collections.abc import Callable

from aiohttp import hdrs, web

from synapsed.api.security import on_unix
from synapsed.errors import InvalidRequest
from synapsed.shared.attach_frames import FRAME_MAX, UPGRADE, FrameError, FrameReader, frame

READ_MAX = 64 * 1024
"""Bytes taken from one client at a time, into one buffer: allocating asyncio's default amount takes longer than all the
work for a key."""

IN_FLIGHT_MAX = 512 * 1024
"""Most bytes that the buffers of both sockets can hold unread."""

UNSENT_MAX = 256 * 1024
"""Bytes that wait for one client's socket; beyond them its attachment holds back."""


def wants_frames(request: web.Request) -> bool:
    return request.headers.get(hdrs.UPGRADE, "").lower() == UPGRADE


class FramedConnection(asyncio.BufferedProtocol):
    """A connection, made by `accept`. `on_frame` gets each frame; a client that breaks the protocol is cut off."""

    def __init__(self, before: asyncio.BaseProtocol, on_frame: Callable[[int, bytes], None]) -> None:
        self._before = before
        """The protocol whose place this takes; it also counts the connection, until it hears of its end."""
        self._on_frame = on_frame
        self._reader = FrameReader(FRAME_MAX)
        self._buffer = memoryview(bytearray(READ_MAX))
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self.lost = asyncio.Event()
        self._sent = self._read_upto = 0
        """Number of bytes sent, and number of bytes handed to the system when the client was last seen to read."""

    @classmethod
    async def accept(cls, request: web.Request, on_frame: Callable[[int, bytes], None]) -> "FramedConnection":
        """Answers `request` with 101 and speaks frames from then on. Raises InvalidRequest except on the Unix socket,
        because elsewhere a browser's page could not be distinguished from a person's tool."""
        if not on_unix(request):
            raise InvalidRequest(f"{UPGRADE} works on the Unix socket only; open a WebSocket on this listener")
        answer = web.StreamResponse(status=101, headers={hdrs.UPGRADE: UPGRADE, hdrs.CONNECTION: "Upgrade"})
        await answer.prepare(request)
        transport = request.transport
        if transport is None:
            raise ConnectionResetError("the client has left")
        connection = cls(transport.get_protocol(), on_frame)
        connection._transport = transport
        transport.set_protocol(connection)
        transport.set_write_buffer_limits(high=UNSENT_MAX)
        transport.resume_reading()
        connection.answer = answer
        return connection

    answer: web.StreamResponse
    """Return value of the handler."""

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for kind, payload in self._reader.feed(bytes(self._buffer[:nbytes])):
                self._on_frame(kind, payload)
        except FrameError:
            self.abort()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.lost.set()
        self._writable.set()
        self._before.connection_lost(exc)

    def has_room(self) -> bool:
        """Returns True if more may be sent without waiting."""
        return self._writable.is_set()

    def send(self, kind: int, payload: bytes) -> None:
        """Sends one frame; does nothing if the client has left."""
        if self._transport is not None:
            data = frame(kind, payload)
            self._sent += len(data)
            self._transport.write(data)

    def is_read(self) -> bool:
        """Returns True if the client has surely read something since the last call: nothing is unread, or more was sent
        than the buffers can hold."""
        if self._transport is None:
            return False
        taken = self._sent - self._transport.get_write_buffer_size()
        if not _waits(self._transport.get_extra_info("socket")) or taken - self._read_upto > IN_FLIGHT_MAX:
            self._read_upto = taken
            return True
        return False

    async def drained(self) -> None:
        """Returns when the client has taken enough of the data. Raises ConnectionResetError if it has left."""
        await self._writable.wait()
        if self._transport is None:
            raise ConnectionResetError("the client has left")

    def pause(self) -> None:
        """Reads nothing until `resume`."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    def close(self) -> None:
        """Closes the connection when the client has all data."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _waits(sock: socket.socket) -> bool:
    """Returns True if `sock` has data that its peer has not read; False if the system cannot report that."""
    size = array.array("i", [0])
    try:
        fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, size)
    except OSError:
        return False
    return size[0] > 0
