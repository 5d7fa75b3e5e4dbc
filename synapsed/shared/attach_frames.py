"""The frames of an attached terminal on the daemon's Unix socket (docs/http-api.md, "A terminal as frames"): one byte
that says what it is, four of length, and the bytes themselves. The person's tool imports it too.

Keys and output are plain bytes, which nobody on the way has a reason to look into. A WebSocket has two things that a
Unix socket needs not: masks, and messages in pieces.
"""

UPGRADE = "synapse-terminal"
"""What the request's `Upgrade` header asks for."""

KEYS = 0x01
"""To the daemon: bytes that the person's terminal sent."""
COMMAND = 0x02
"""To the daemon: one JSON object, as the WebSocket has in its text frames."""
LEASED = 0x03
"""To the daemon: the same as KEYS, behind the number of the lease that the sender has and that of the piece, four bytes
each."""
OUTPUT = 0x81
"""From the daemon: bytes for the person's terminal, behind those before."""
SCREEN = 0x82
"""From the daemon: bytes that draw the whole screen, whatever was there. What was sent before can be left out."""
NEWS = 0x83
"""From the daemon: one JSON object."""
EARLIER = 0x84
"""From the daemon: a part of what was printed before, as the news before it says."""

HEAD = 5
FRAME_MAX = 1024 * 1024
"""Bytes of one frame from a client."""
SCREEN_MAX = 256 * 1024 * 1024
"""Bytes of one frame from the daemon: a screen of a thousand rows and columns, every cell in a colour of its own, and
what is above it."""


class FrameError(Exception):
    """The other side breaks the protocol."""


def frame(kind: int, payload: bytes) -> bytes:
    """The bytes of one frame."""
    return b"%c%b%b" % (kind, len(payload).to_bytes(4), payload)


class FrameReader:
    """Feed it what the other side sends, in any chunking."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """The frames that `data` completes, each with what it is. Raises FrameError."""
        if not self._buffer and len(data) >= HEAD and int.from_bytes(data[1:HEAD]) == len(data) - HEAD:
            return [(data[0], data[HEAD:])]  # one frame and nothing else, as a key or its echo comes
        buffer = self._buffer
        buffer += data
        frames: list[tuple[int, bytes]] = []
        at = 0
        while len(buffer) - at >= HEAD:
            size = int.from_bytes(buffer[at + 1 : at + HEAD])
            if size > self._longest:
                raise FrameError(f"a frame of {size} bytes; at most {self._longest} are taken")
            end = at + HEAD + size
            if len(buffer) < end:
                break
            frames.append((buffer[at], bytes(buffer[at + HEAD : end])))
            at = end
        del buffer[:at]
        return frames
