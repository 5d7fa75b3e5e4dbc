"""The transport of a keeper's client: frames in order, some at a time.

A program that writes without end leaves the event loop to the others, and so does one whose output costs much: OUTPUT
is handed on in portions, and where they have taken `TURN_S` the rest waits for the loop's next turn. Nothing is read
meanwhile, so that no more waits here than was read at once; the answers to requests wait too, because they stand behind
output in the stream, and whoever asked counts on that output having been seen.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from synapsed.keeper import frames
from synapsed.keeper.frames import Decoder, Frame, ProtocolError

READ_MAX = 64 * 1024
"""Bytes taken from a connection at a time."""

PORTION = 2 * 1024
"""Bytes of output handed on at a time. They are not drawn here: what they hold hardly changes what they cost."""

TURN_S = 0.002
"""CPU time for which frames are handed on before the loop has its turn; a portion that is begun within it takes a
fraction of that. By the clock on the wall a busy machine would be given one portion a turn, and be the busier."""


class KeeperConnection(asyncio.BufferedProtocol):
    """`on_frame` gets every frame, `on_lost` the reason of the end, once all frames are handed on."""

    def __init__(
        self,
        on_frame: Callable[[Frame], None],
        on_lost: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._clock = clock
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._decoder = Decoder()
        self._buffer = memoryview(bytearray(READ_MAX))
        self._transport: asyncio.Transport | None = None
        self._frames: Iterator[Frame] = iter(())
        """What was read and is not handed on."""
        self._waits = False
        """It waits for the loop's next turn."""
        self._over: str | None = None
        """The connection is gone, for this reason, which is told behind the last frame."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        try:
            came = self._decoder.feed(self._buffer[:nbytes])
        except ProtocolError as error:
            self._break(error)
            return
        self._frames = chain(self._frames, _in_portions(came)) if self._waits else _in_portions(came)
        if not self._waits:
            self._hand_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._over = str(exc) if exc else "the keeper closed the connection"
        if not self._waits:
            self._on_lost(self._over)

    def send(self, kind: int, header: dict[str, object], payload: bytes = b"") -> None:
        self.send_frame(frames.encode(kind, header, payload))

    def send_frame(self, frame: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame)

    def abort(self) -> None:
        """End it; what is not handed on never is."""
        self._frames = iter(())
        if self._transport is not None:
            self._transport.abort()

    def _hand_on(self) -> None:
        waited, self._waits = self._waits, False
        until = self._clock() + TURN_S
        try:
            while (frame := next(self._frames, None)) is not None:
                self._on_frame(frame)
                if self._clock() >= until:
                    self._wait(again=waited)
                    return
        except KeyError as error:
            self._break(error)
        if self._over is not None:
            self._on_lost(self._over)
        elif waited and self._transport is not None:
            self._transport.resume_reading()

    def _wait(self, *, again: bool) -> None:
        self._waits = True
        if not again and self._transport is not None:
            self._transport.pause_reading()
        asyncio.get_running_loop().call_soon(self._hand_on)

    def _break(self, error: Exception) -> None:
        self.abort()
        self._on_lost(f"the keeper broke the protocol: {error!r}")


def _in_portions(came: Iterable[Frame]) -> Iterator[Frame]:
    for frame in came:
        if frame.type != frames.OUTPUT:
            yield frame
            continue
        offset = frame.header["offset"]
        assert isinstance(offset, int)
        for at in range(0, len(frame.payload), PORTION):
            header = {**frame.header, "offset": offset + at, "continues": at > 0}
            yield Frame(frames.OUTPUT, header, frame.payload[at : at + PORTION])
