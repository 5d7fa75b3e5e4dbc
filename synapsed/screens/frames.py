"""What the daemon and a process of screens say to each other: frames of a fixed header, JSON and bytes.

Both come of one installation. The first frame of the process says its version all the same: files may have been
replaced since the daemon began.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

VERSION = 4
"""Of all that is defined here and in `wire`."""

TEXT_MAX = 4 << 20
"""Bytes of a frame's JSON: a screen of 1000 x 1000 is about one million characters."""

BLOB_MAX = 64 << 20
"""Bytes of a frame's own: a screen at its largest with all its scrollback."""

_HEAD = struct.Struct("<IIBBIQQd")


AS_DRAWN = 2
"""In `flag` of what is asked: as the screen is by now, without the output that waits to be drawn."""


class ScreenFrameError(Exception):
    """What came is no frame, or says what cannot be."""


class FrameKind(IntEnum):
    # To the process.
    OPEN = 1
    FEED = 2
    NOTE = 3
    RESIZE = 4
    CLOSE = 5
    PASS = 6
    """Output that ends before `offset`, and is not drawn, is not drawn any more."""
    LOOK = 16
    EXPLAIN = 17
    CHECKPOINT = 18
    REDRAW = 19
    TEXT = 20
    SHOWN = 21
    LINES = 22
    KEPT = 23
    PANE = 24
    # From it.
    HELLO = 64
    ALIVE = 65
    DRAWN = 66
    ANSWER = 67
    FAILED = 68
    AT = 69
    """It begins with something of that agent; not said where it had nothing to do before."""


class ScreenFrame(NamedTuple):
    """`agent` is whose screen it is about, by a number that the daemon gave; `number` that of a request, which its
    answer repeats; `offset` a spool offset (from the process: up to which output is drawn)."""

    kind: int
    agent: int = 0
    number: int = 0
    offset: int = 0
    now: float = 0.0
    flag: int = 0
    text: bytes = b""
    blob: bytes = b""


def encode(frame: ScreenFrame) -> bytes:
    head = _HEAD.pack(
        len(frame.text), len(frame.blob), frame.kind, frame.flag, frame.agent, frame.number, frame.offset, frame.now
    )
    return b"".join((head, frame.text, frame.blob))


class ScreenFrameReader:
    """Frames out of a stream that is cut anywhere. Raises ScreenFrameError for one that is too long."""

    def __init__(self) -> None:
        self._came = bytearray()
        self._wanted = _HEAD.size

    def feed(self, data: bytes) -> Iterator[ScreenFrame]:
        self._came += data
        if len(self._came) < self._wanted:
            return
        done = 0
        while (left := len(self._came) - done) >= _HEAD.size:
            text, blob, kind, flag, agent, number, offset, now = _HEAD.unpack_from(self._came, done)
            if text > TEXT_MAX or blob > BLOB_MAX:
                raise ScreenFrameError(f"a frame of {text} and {blob} bytes")
            self._wanted = _HEAD.size + text + blob
            if left < self._wanted:
                break
            middle = done + _HEAD.size + text
            end = middle + blob
            parts = bytes(self._came[done + _HEAD.size : middle]), bytes(self._came[middle:end])
            done = end
            yield ScreenFrame(kind, agent, number, offset, now, flag, *parts)
        else:
            self._wanted = _HEAD.size
        del self._came[:done]
