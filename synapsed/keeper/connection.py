"""One client's connection: frames in, frames out, and the client's place in each channel's output.

Output is never queued for a client. A connection holds at most HIGH_WATER bytes and fills up from the spool, by
offset, when the socket takes more; so a slow client costs nothing, and one that is too slow meets a gap. A client
that sends requests and does not read the answers is not read from until it does.
"""

import socket
import time
from collections import deque

from . import frames
from .frames import Decoder, Frame
from .spool import OutputChannel

HIGH_WATER = 128 * 1024
"""Bytes waiting for the socket from which on no output is added: two frames, so that the socket never runs dry."""

FILLS_PER_TURN = 8
"""Output frames given to one client before others, and the program, get their turn."""

LATE_S = 0.002
"""Seconds for which word of a key may wait for its echo: whoever types waits for that, and nobody for the word."""


class Connection:
    """A connected client. Raises nothing on a broken socket: `broken` is set and the keeper drops it."""

    __slots__ = (
        "_cursors",
        "_decoder",
        "_late_until",
        "_out",
        "backlog",
        "broken",
        "closing",
        "exit_sent",
        "joined",
        "paused",
        "registered",
        "sock",
        "version",
    )

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.version = 0
        """The version agreed on; 0 until the client said HELLO."""
        self.backlog: deque[Frame] = deque()
        """Requests that wait until the answers to earlier ones are sent; nothing is read meanwhile."""
        self.broken = False
        self.closing = False
        """Nothing more is read; the connection ends when what waits is sent."""
        self.exit_sent = False
        self.paused = False
        """The client asked for a pause of the output (FLOW); everything else goes on."""
        self.joined = False
        """It has become a person's terminal (`terminals`), once what waits is sent."""
        self.registered = 0
        """The event mask under which the selector knows this socket."""
        self._decoder = Decoder()
        self._out = bytearray()
        self._late_until: float | None = None
        """All that waits may wait until then."""
        self._cursors: dict[str, int] = {}

    @property
    def has_room(self) -> bool:
        """Further answers may be made for this client."""
        return len(self._out) < 2 * HIGH_WATER

    @property
    def wants_reading(self) -> bool:
        return not (self.closing or self.joined or self.backlog) and self.has_room

    @property
    def wants_writing(self) -> bool:
        return bool(self._out) and self._late_until is None

    @property
    def late_until(self) -> float | None:
        """When what waits is to be sent though nothing else is."""
        return self._late_until if self._out else None

    def dismiss(self, code: str, message: str) -> None:
        """The client broke the protocol: it is told so, and nothing else."""
        self._cursors.clear()
        self.backlog.clear()
        self.send(frames.REFUSED, {"req": None, "code": code, "message": message})
        self.closing = True

    def receive(self) -> None:
        """Puts the frames that arrived into the backlog. Raises ProtocolError."""
        try:
            data = self.sock.recv(64 * 1024)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.broken = True
            return
        self.backlog.extend(self._decoder.feed(data))

    def send(self, kind: int, header: dict[str, object], payload: bytes = b"") -> None:
        self.send_encoded(frames.encode(kind, header, payload))

    def send_encoded(self, frame: bytes) -> None:
        self._out += frame
        self._late_until = None

    def send_late(self, frame: bytes) -> None:
        """Sends a frame that wakes nobody by itself for LATE_S, if it can go with what follows."""
        if not self._out:
            self._late_until = time.monotonic() + LATE_S
        self._out += frame

    def subscribe(self, channel: str, offset: int) -> None:
        """Output of `spool` is sent from `offset` on, in place of any earlier subscription to it."""
        self._cursors[channel] = offset
        self.exit_sent = False

    def pump(self, channels: dict[str, OutputChannel], exit_record: dict[str, object] | None) -> bool:
        """Sends what can be sent. True when there is more to send and the socket would take it."""
        for _ in range(FILLS_PER_TURN):
            self._fill(channels)
            if self._late_until is not None and self._late_until > time.monotonic():
                return False
            self._late_until = None
            if not self._out and not self._announce_exit(channels, exit_record):
                return False
            if not self._flush():
                return False
        return True

    def _announce_exit(self, channels: dict[str, OutputChannel], exit_record: dict[str, object] | None) -> bool:
        """EXITED comes after the last byte of output of every channel that the client follows; a client that follows
        none asks (PING)."""
        if exit_record is None or self.exit_sent or not self._cursors:
            return False
        if any(offset < channels[name].spool.end for name, offset in self._cursors.items()):
            return False
        self.exit_sent = True
        self.send(frames.EXITED, {"record": exit_record})
        return True

    def _fill(self, channels: dict[str, OutputChannel]) -> None:
        if self.paused:
            return
        for name in self._cursors:
            while len(self._out) < HIGH_WATER and self._cursors[name] < channels[name].spool.end:
                offset = self._cursors[name]
                start, data = channels[name].spool.read(offset, frames.MAX_OUTPUT)
                if start > offset:
                    self.send(frames.GAP, {"channel": name, "from": offset, "to": start})
                if data:
                    self.send_encoded(frames.encode_output(name, start, data))
                self._cursors[name] = start + len(data)

    def _flush(self) -> bool:
        try:
            count = self.sock.send(self._out)
        except BlockingIOError:
            return False
        except OSError:
            self.broken = True
            return False
        del self._out[:count]
        return not self._out
