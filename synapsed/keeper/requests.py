"""One client of the keeper: its connection (frames in, frames out, and its place in each channel's output), and its
requests, with one method per frame type.

Output is never queued for a client. A connection holds about HIGH_WATER bytes, and is filled again from the spool, by
offset, when the socket takes more. So a slow client costs no memory, and one that is too slow gets a GAP in place of
output that the spool has dropped. The keeper reads nothing from a client that does not read its answers.
"""

from __future__ import annotations

import signal
import socket
import struct
from collections import deque

from . import frames
from .frames import Decoder, Frame, ProtocolError
from .inputs import Entry, Pending
from .spec import MAX_CELLS
from .spool import OutputChannel

HIGH_WATER = 128 * 1024
"""Bytes waiting for the socket from which on no output is added: two frames, so that the socket always has data."""

FILLS_PER_TURN = 8
"""Output frames given to one client before others, and the program, get their turn."""


class Connection:
    """A connected client. A broken socket raises no error: `broken` is set, and the keeper drops the client."""

    __slots__ = (
        "_cursors",
        "_decoder",
        "_out",
        "backlog",
        "broken",
        "closing",
        "exit_sent",
        "paused",
        "registered",
        "sock",
        "version",
    )

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.version = 0
        """The version agreed on; 0 until the client has sent HELLO."""
        self.backlog: deque[Frame] = deque()
        """Requests that wait until the answers to earlier ones are sent; nothing is read from the client meanwhile."""
        self.broken = False
        self.closing = False
        """True if nothing more is read from the client; the connection ends when the waiting data is sent."""
        self.exit_sent = False
        self.paused = False
        """True if the client requested a pause of the output (FLOW); everything else goes on."""
        self.registered = 0
        """The event mask under which the selector knows this socket."""
        self._decoder = Decoder()
        self._out = bytearray()
        self._cursors: dict[str, int] = {}

    @property
    def has_room(self) -> bool:
        """True if further answers may be made for this client."""
        return len(self._out) < 2 * HIGH_WATER

    @property
    def wants_writing(self) -> bool:
        return bool(self._out)

    def dismiss(self, code: str, message: str) -> None:
        """Closes the connection of a client that broke the protocol, after a last frame: REFUSED with the error."""
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

    def subscribe(self, channel: str, offset: int) -> None:
        """Sends the output of `channel` from `offset` on, in place of any earlier subscription to the channel."""
        self._cursors[channel] = offset
        self.exit_sent = False

    def pump(self, channels: dict[str, OutputChannel], exit_record: dict[str, object] | None) -> bool:
        """Sends as much as possible. Returns True if there may be more to send and the socket would take it."""
        for _ in range(FILLS_PER_TURN):
            self._fill(channels)
            if not self._out and not self._announce_exit(channels, exit_record):
                return False
            if not self._flush():
                return False
        return True

    def _announce_exit(self, channels: dict[str, OutputChannel], exit_record: dict[str, object] | None) -> bool:
        """Queues EXITED after the last byte of output of every channel that the client has subscribed to, and returns
        True if so. A client without a subscription learns of the exit by PING."""
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


MYPY = False
if MYPY:  # true for type checkers: the keeper imports no typing at run time
    from .program import Keeper

MAX_OFFSET = (1 << 62) - 1
MAX_REQUEST = (1 << 53) - 1
MAX_INPUT_ID = 200
MAX_GRACE_S = 3600.0


class Refusal(Exception):
    """Error for a request that is understood and refused. `code` is stable (listed in docs/keeper-protocol.md)."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Requests:
    """Serves requests on behalf of one keeper."""

    __slots__ = ("_handlers", "_keeper")

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._handlers = {
            frames.SUBSCRIBE: self._subscribe,
            frames.WRITE: self._write,
            frames.RESIZE: self._resize,
            frames.SIGNAL: self._signal,
            frames.STOP: self._stop,
            frames.READ: self._read,
            frames.PING: self._ping,
            frames.ACK_EXIT: self._acknowledge,
            frames.DISCARD: self._discard,
            frames.CLOSE_INPUT: self._close_input,
        }

    def serve(self, client: Connection, frame: Frame) -> None:
        """Answers one frame. Raises ProtocolError if the client must be dropped."""
        if frame.type == frames.HELLO:
            self._hello(client, frame)
            return
        if not client.version:
            raise ProtocolError("no_hello", "the first frame must be HELLO")
        if frame.type == frames.FLOW:
            client.paused = frame.header.get("paused") is True
            return
        request = frame.integer("req", 0, MAX_REQUEST)
        handler = self._handlers.get(frame.type, self._unknown)
        try:
            answer = handler(client, request, frame)
        except Refusal as error:
            refuse(client, request, error.code, str(error))
        except ProtocolError as error:  # a bad field: this request is refused, the connection is fine
            refuse(client, request, error.code, str(error))
        else:
            if answer is not None:
                client.send(frames.REPLY, {"req": request, **answer})

    def _unknown(self, client: Connection, _request: int, frame: Frame) -> None:
        raise Refusal("unknown_type", f"frame type 0x{frame.type:02x} is not known to version {client.version}")

    def _hello(self, client: Connection, frame: Frame) -> None:
        low = frame.integer("min", 1, 1 << 16)
        high = frame.integer("max", low, 1 << 16)
        version = min(high, frames.VERSION)
        if version < max(low, frames.OLDEST_VERSION):
            spoken = f"{frames.OLDEST_VERSION} to {frames.VERSION}"
            raise ProtocolError("version", f"this keeper speaks versions {spoken}, not {low} to {high}")
        client.version = version
        client.send(frames.WELCOME, {"version": version, **self._keeper.describe()})

    def _subscribe(self, client: Connection, _request: int, frame: Frame) -> dict[str, object]:
        channel = self._channel(frame)
        spool = channel.spool
        offset = spool.end
        if frame.header.get("offset") is not None:
            offset = frame.integer("offset", 0, MAX_OFFSET)
        if offset > spool.end:
            raise Refusal("beyond_end", f"offset {offset} is beyond the end of the output, {spool.end}")
        client.subscribe(channel.name, offset)
        return {"offset": offset, "start": spool.start, "end": spool.end}

    def _write(self, client: Connection, request: int, frame: Frame) -> dict[str, object] | None:
        keeper = self._keeper
        input_id = None
        if frame.header.get("id") is not None:
            input_id = frame.text("id", MAX_INPUT_ID)
            pending, entry = keeper.input.queue.known(input_id)
            if pending is not None:
                pending.waiters.append((client, request))
                return None
            if entry is not None:
                return outcome("duplicate", entry)
            if frame.header.get("recall") is True:
                raise Refusal("unknown_id", f"no input {input_id!r} was ever written in this launch")
        if not keeper.takes_input:
            raise Refusal("exited", "the program has ended or its input is closed")
        if not keeper.input.queue.has_room(len(frame.payload)):
            raise Refusal("busy", f"the program does not read: {keeper.input.queue.size} bytes of input wait already")
        pending = Pending(frame.payload, input_id)
        if frame.header.get("quiet") is not True:
            pending.waiters.append((client, request))
        keeper.put_input(pending)
        return None

    def _resize(self, _client: Connection, _request: int, frame: Frame) -> dict[str, object]:
        cols, rows = frame.integer("cols", 1, MAX_CELLS), frame.integer("rows", 1, MAX_CELLS)
        x, y = frame.integer("xpixel", 0, 65535, 0), frame.integer("ypixel", 0, 65535, 0)
        if not self._keeper.program.terminal:
            raise Refusal("no_terminal", "the program runs on pipes, which have no size")
        if self._keeper.exit_record is None:
            import fcntl
            import termios

            fcntl.ioctl(self._keeper.program.input, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, x, y))
        self._keeper.resized(cols, rows)
        return {"cols": cols, "rows": rows}

    def _signal(self, _client: Connection, _request: int, frame: Frame) -> dict[str, object]:
        number = frame.integer("signum", 1, 64)
        target = frame.text("target", 16, "child")
        if number not in signal.valid_signals():
            raise Refusal("bad_signal", f"there is no signal {number} here")
        if target not in ("child", "foreground"):
            raise ProtocolError("bad_field", "field 'target' must be 'child' or 'foreground'")
        try:
            self._keeper.signal_program(number, foreground=target == "foreground")
        except ProcessLookupError:
            raise Refusal("exited", "the program has ended, or no process group reads its terminal") from None
        except PermissionError as error:
            raise Refusal("not_permitted", str(error)) from None
        return {}

    def _stop(self, client: Connection, request: int, frame: Frame) -> dict[str, object] | None:
        grace = frame.number("grace_s", 0.0, MAX_GRACE_S, self._keeper.spec.term_grace_s)
        if self._keeper.exit_record is not None:
            return {"status": "stopped", "leftover": 0}
        self._keeper.stop(grace, (client, request))
        return None

    def _read(self, client: Connection, request: int, frame: Frame) -> None:
        spool = self._channel(frame).spool
        start = frame.integer("start", 0, MAX_OFFSET)
        limit = frame.integer("limit", 1, frames.MAX_PAYLOAD, frames.MAX_PAYLOAD)
        offset, data = spool.read(start, limit)
        header: dict[str, object] = {"req": request, "offset": offset, "start": spool.start, "end": spool.end}
        client.send(frames.REPLY, header, data)

    def _ping(self, client: Connection, _request: int, frame: Frame) -> dict[str, object]:
        if frame.header.get("brief") is True:
            return {}
        return {"version": client.version, **self._keeper.describe()}

    def _acknowledge(self, _client: Connection, _request: int, frame: Frame) -> dict[str, object]:
        if frame.text("launch_id", MAX_INPUT_ID) != self._keeper.spec.launch_id:
            raise Refusal("other_launch", f"this keeper's launch is {self._keeper.spec.launch_id}")
        if self._keeper.exit_record is None:
            raise Refusal("running", "the program has not ended")
        self._keeper.leave()
        return {}

    def _discard(self, _client: Connection, _request: int, _frame: Frame) -> dict[str, object]:
        return {"discarded": self._keeper.discard_input()}

    def _close_input(self, _client: Connection, _request: int, _frame: Frame) -> dict[str, object]:
        if self._keeper.program.terminal:
            raise Refusal("no_pipes", "a terminal has no end of input; write its end-of-file character")
        self._keeper.close_input()
        return {}

    def _channel(self, frame: Frame) -> OutputChannel:
        name = frame.text("channel", 16, self._keeper.spec.channels[0])
        channel = self._keeper.channels.get(name)
        if channel is None:
            raise Refusal("no_channel", f"there is no channel {name!r}; this launch has {self._keeper.spec.channels}")
        return channel


def outcome(status: str, entry: Entry) -> dict[str, object]:
    """Returns the header of the answer to a WRITE, from the journal's entry."""
    return {
        "status": status,
        "at": entry.at,
        "offset": entry.at if entry.offset is None else entry.offset,
        "written": entry.written,
        "length": entry.length,
    }


def refuse(client: Connection, request: int, code: str, message: str, **facts: object) -> None:
    client.send(frames.REFUSED, {"req": request, "code": code, "message": message, **facts})
