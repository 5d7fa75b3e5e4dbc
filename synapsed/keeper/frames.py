"""Frames between a keeper and its clients: the codec, and the limits both sides rely on.

A frame is an 8-byte prefix, a JSON object (the header) and raw bytes (the payload)::

    offset 0  u8   magic, 0x4B
           1  u8   frame type
           2  u16  length of the header in bytes, big-endian
           4  u32  length of the payload in bytes, big-endian
           8  ...  header: one JSON object in UTF-8
              ...  payload

Both lengths are checked against the limits before anything is buffered for them, so a peer can make the decoder hold
at most one frame. A receiver ignores fields that it does not know, so fields can be added without a new version.
"""

import json
import struct

VERSION = 1
"""Version of the protocol that this code prefers."""

OLDEST_VERSION = 1
"""Oldest version that this code still speaks: always VERSION or VERSION - 1."""

MAX_HEADER = 16 * 1024
"""Bytes of a header; the largest, a WELCOME with an exit record, stays below 2 KiB."""

MAX_PAYLOAD = 256 * 1024
"""Bytes of a payload: the most that one peer can make the other hold in one frame."""

MAX_OUTPUT = 64 * 1024
"""Bytes of output in one OUTPUT frame: large enough to amortise the header, small enough to keep replies quick."""

MAGIC = 0x4B
_PREFIX = struct.Struct("!BBHI")
PREFIX_SIZE = _PREFIX.size

# Requests, from a client. All but HELLO and FLOW carry `req`, which the answer repeats.
HELLO = 0x01
SUBSCRIBE = 0x02
WRITE = 0x03
RESIZE = 0x04
SIGNAL = 0x05
STOP = 0x06
READ = 0x07
PING = 0x08
ACK_EXIT = 0x09
FLOW = 0x0A
DISCARD = 0x0B
CLOSE_INPUT = 0x0C
# 0x0D to 0x0F, and 0x94 and 0x95 below, had a meaning in an earlier version: do not use them again.

# Answers, from the keeper.
WELCOME = 0x80
REPLY = 0x81
REFUSED = 0x82

# Pushed by the keeper, unasked.
OUTPUT = 0x90
GAP = 0x91
EXITED = 0x92
ALERT = 0x93


class ProtocolError(Exception):
    """Error of a peer that sent no frame, or one that breaks the rules. `code` is stable: REFUSED frames have it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Frame:
    """One decoded frame: `type`, `header` (a JSON object) and `payload` (bytes)."""

    __slots__ = ("header", "payload", "type")

    def __init__(self, kind: int, header: dict[str, object], payload: bytes = b"") -> None:
        self.type = kind
        self.header = header
        self.payload = payload

    def __repr__(self) -> str:
        return f"Frame(0x{self.type:02x}, {self.header!r}, {len(self.payload)} bytes)"

    def integer(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """Returns the field as an int within [low, high]. Raises ProtocolError `bad_field`."""
        value = self.header.get(name, default)
        if type(value) is not int or not low <= value <= high:
            raise ProtocolError("bad_field", f"field {name!r} must be an integer from {low} to {high}")
        return value

    def number(self, name: str, low: float, high: float, default: float | None = None) -> float:
        """Returns the field as a float within [low, high]. Raises ProtocolError `bad_field`."""
        value = self.header.get(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
            raise ProtocolError("bad_field", f"field {name!r} must be a number from {low} to {high}")
        return float(value)

    def text(self, name: str, max_length: int, default: str | None = None) -> str:
        """Returns the field as a str of 1 to `max_length` characters. Raises ProtocolError `bad_field`."""
        value = self.header.get(name, default)
        if not isinstance(value, str) or not 0 < len(value) <= max_length:
            raise ProtocolError("bad_field", f"field {name!r} must be a string of 1 to {max_length} characters")
        return value


def encode(kind: int, header: dict[str, object], payload: bytes | memoryview = b"") -> bytes:
    """Returns the bytes of one frame. Raises ValueError when header or payload exceed their limits."""
    head = json.dumps(header, separators=(",", ":")).encode("ascii")
    if len(head) > MAX_HEADER or len(payload) > MAX_PAYLOAD:
        raise ValueError(f"frame too large: header {len(head)}, payload {len(payload)} bytes")
    return b"".join((_PREFIX.pack(MAGIC, kind, len(head), len(payload)), head, payload))


def encode_output(channel: str, offset: int, payload: bytes) -> bytes:
    """Returns the bytes of an OUTPUT frame, in a third of `encode`'s time: nearly all frames are of this type."""
    head = b'{"channel":"%b","offset":%d}' % (channel.encode("ascii"), offset)
    return _PREFIX.pack(MAGIC, OUTPUT, len(head), len(payload)) + head + payload


_QUIET = b'{"req":0,"quiet":true}'


def encode_quiet_write(payload: bytes) -> bytes:
    """Returns the bytes of a WRITE that gets no answer. It is for a person's keys, where only the echo matters."""
    return _PREFIX.pack(MAGIC, WRITE, len(_QUIET), len(payload)) + _QUIET + payload


class Decoder:
    """Turns a byte stream, cut anywhere, into frames. After an error it raises the same error for ever."""

    __slots__ = ("_broken", "_buffer")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._broken: ProtocolError | None = None

    def __len__(self) -> int:
        """Returns the number of bytes held back for an incomplete frame."""
        return len(self._buffer)

    def feed(self, data: bytes | memoryview) -> list[Frame]:
        """Returns the frames that `data` completes. Raises ProtocolError. Then the frames before the wrong one in the
        same `data` are lost too: the caller closes the connection anyway."""
        if self._broken is not None:
            raise self._broken
        self._buffer += data
        try:
            return self._take()
        except ProtocolError as error:
            self._broken = error
            self._buffer.clear()
            raise

    def _take(self) -> list[Frame]:
        frames = []
        buffer = self._buffer
        at = 0
        while len(buffer) - at >= PREFIX_SIZE:
            magic, kind, head_size, payload_size = _PREFIX.unpack_from(buffer, at)
            if magic != MAGIC:
                raise ProtocolError("bad_magic", f"a frame starts with 0x{MAGIC:02x}, not 0x{magic:02x}")
            if head_size > MAX_HEADER or payload_size > MAX_PAYLOAD:
                raise ProtocolError("too_large", f"frame too large: header {head_size}, payload {payload_size} bytes")
            body = at + PREFIX_SIZE
            end = body + head_size + payload_size
            if len(buffer) < end:
                break
            header = _header(buffer[body : body + head_size])
            frames.append(Frame(kind, header, bytes(buffer[body + head_size : end])))
            at = end
        if at:
            del buffer[:at]
        return frames


def _header(raw: bytearray) -> dict[str, object]:
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError) as error:  # RecursionError: thousands of nested brackets
        raise ProtocolError("bad_header", f"the header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise ProtocolError("bad_header", "the header is no JSON object")
    return header
