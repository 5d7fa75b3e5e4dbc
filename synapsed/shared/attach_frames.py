"""The frames of an attached terminal on the daemon's Unix socket (docs/http-api.md, "A terminal as frames"): one byte
for the kind, four for the length, and the bytes themselves. The person's tool imports it too.

Keys and output are plain bytes, and no code on the way has to parse them. A WebSocket has two features that a Unix
socket does not need: masks, and messages in pieces.
"""

UPGRADE = "synapse-terminal"
"""Value of the request's `Upgrade` header."""

KEYS = 0x01
"""Frame to the daemon: bytes that the person's terminal sent."""
COMMAND = 0x02
"""Frame to the daemon: one JSON object, as in a text frame of the WebSocket."""
LEASED = 0x03
"""Frame to the daemon: as KEYS, after the number of the sender's lease and the number of the piece, four bytes each."""
OUTPUT = 0x81
"""Frame from the daemon: bytes for the person's terminal, which continue the ones before."""
SCREEN = 0x82
"""Frame from the daemon: bytes that draw the whole screen, over all that is shown. Earlier frames can be skipped."""
NEWS = 0x83
"""Frame from the daemon: one JSON object."""
EARLIER = 0x84
"""Frame from the daemon: a part of the earlier output, as the NEWS frame before it says."""

HEAD = 5
FRAME_MAX = 1024 * 1024
"""Bytes of one frame from a client."""
SCREEN_MAX = 256 * 1024 * 1024
"""Bytes of one frame from the daemon: a screen of a thousand rows and columns, every cell in a colour of its own, and
the rows above it."""


class FrameError(Exception):
    """The other side breaks the protocol."""


def frame(kind: int, payload: bytes) -> bytes:
    return b"%c%b%b" % (kind, len(payload).to_bytes(4), payload)


class FrameReader:
    """Splits the bytes of the other side into frames, in any chunking."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Returns the frames that `data` completes, each with its kind. Raises FrameError."""
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
