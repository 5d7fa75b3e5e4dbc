"""Messages of a keeper: its greeting, its events, results of writes, and refusals (docs/keeper-protocol.md); and their
transport, which hands frames on in order, some at a time.

A program with endless or expensive output must not keep the event loop from other work. So OUTPUT is handed on in
portions, and after `TURN_S` the rest waits for the loop's next turn. Until then nothing more is read from the socket,
so at most one read waits in memory. Answers to requests wait as well: they come after output in the stream, and their
callers rely on that output having been handled.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from synapsed.errors import KeeperLost, SynapsedError
from synapsed.keeper import frames
from synapsed.keeper.frames import Decoder, Frame, ProtocolError


class KeeperRefused(SynapsedError):
    """Error for a request that the keeper understood and refused; `reason` is its code (docs/keeper-protocol.md). For a
    write, `details["written"]` is the number of bytes that had reached the program; 0 if it is missing."""

    code = "KEEPER_REFUSED"

    def __init__(self, message: str, *, reason: str, **details: Any) -> None:
        super().__init__(message, reason=reason, **details)
        self.reason = reason


class KeeperSilent(KeeperLost):
    """Error for a keeper that did not answer in time. It may still live, stopped or on an overloaded machine."""


class KeeperBusy(KeeperRefused):
    """Error for a full input queue at the keeper, because the program does not read: try later."""


@dataclass(frozen=True, slots=True)
class ExitRecord:
    """Record of the program's end. `code` or `signal` is set; neither if the program could not be killed."""

    launch_id: str
    pid: int
    code: int | None
    signal: int | None
    stopped: bool
    """True if a stop had been requested."""
    leftover: int
    """Number of descendants that could not be ended."""
    output_lost: int
    """Bytes that a full disk refused, if a stop was requested, which does not wait for the disk; else always 0."""
    final_offset: int
    started_at: float
    exited_at: float

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "ExitRecord":
        """Reads the record of an EXITED frame or of `exit.json`; unknown fields are ignored. Raises KeyError."""
        return cls(**{name: record[name] for name in cls.__slots__})

    @property
    def exit_code(self) -> int | None:
        """The code, or the signal as a negative number."""
        return self.code if self.signal is None else -self.signal


@dataclass(frozen=True, slots=True)
class Hello:
    """Facts that the keeper sent when the connection was made."""

    version: int
    launch_id: str
    keeper_pid: int
    keeper_start: int | None
    pid: int
    pid_start: int | None
    """None once the program has ended."""
    transport: Literal["pty", "pipes"]
    cols: int
    rows: int
    spool_start: int
    """Offset of the oldest byte kept."""
    spool_end: int
    launch_start: int
    """Offset at which this launch's output begins."""
    alert: str | None
    started_at: float
    exit: ExitRecord | None
    unread: int
    """Bytes of input that the program has not read, as far as the system reports them."""
    line_mode: bool | None = None
    """True if the terminal gives the program whole lines: then no line editor is running."""
    echo: bool | None = None
    """True if the terminal shows typed text."""
    foreground: int | None = None
    """The process group that reads the terminal."""
    sizes: tuple[tuple[int, int, int], ...] = ()
    """The last window sizes, each as (first offset, columns, rows). Older keepers send none."""

    @classmethod
    def from_json(cls, header: dict[str, Any]) -> "Hello":
        """Reads the header of WELCOME, or of the answer to PING. Raises KeyError."""
        exit_record = header["exit"]
        later = ("exit", "unread", "line_mode", "echo", "foreground", "sizes")
        plain = {name: header[name] for name in cls.__slots__ if name not in later}
        return cls(
            exit=None if exit_record is None else ExitRecord.from_json(exit_record),
            unread=header["input_pending"] + (header.get("input_unread") or 0),  # older keepers do not send the latter
            line_mode=header.get("line_mode"),
            echo=header.get("echo"),
            foreground=header.get("foreground"),
            sizes=tuple((at, cols, rows) for at, cols, rows in header.get("sizes", ())),
            **plain,
        )


@dataclass(frozen=True, slots=True)
class Output:
    """Bytes that the program wrote, at `offset` of its channel."""

    offset: int
    data: bytes
    channel: str = "pty"
    continues: bool = False
    """True if this arrived in one frame with the output before it, and was only split from it by `_in_portions`."""

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


@dataclass(frozen=True, slots=True)
class OutputGap:
    """Says that the output from `start` to `end` is gone: the spool dropped it before it was read."""

    start: int
    end: int
    channel: str = "pty"


@dataclass(frozen=True, slots=True)
class Exited:
    """Says that the program ended. All its output came before this event."""

    record: ExitRecord


@dataclass(frozen=True, slots=True)
class Alert:
    """Says that the keeper needs a person's help (`code` "disk": its disk is full), or no longer (`active` False)."""

    code: str
    active: bool
    message: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Says that the connection is gone: the keeper ended, was killed, or broke the protocol; or the client closed it.
    Always the last event."""

    reason: str


KeeperEvent = Output | OutputGap | Exited | Alert | Lost


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Says that the program has the input: since now (`written`), or an earlier request of that id (`duplicate`)."""

    status: Literal["written", "duplicate"]
    at: int
    """End of the spool just before the first byte was written: output below this offset is older than the input."""
    offset: int
    """End of the spool when the last byte was written."""
    written: int
    """Bytes that reached the program: less than `length` only for a duplicate that was cut short by `discard`."""
    length: int
    hidden: bool = False
    """True if the terminal was in line mode without echo, as for a password prompt. Unknown (False) for a duplicate."""


READ_MAX = 64 * 1024
"""Bytes taken from a connection at a time."""

PORTION = 2 * 1024
"""Bytes of output handed on at a time. This process does not draw them, so their content hardly changes their cost."""

TURN_S = 0.002
"""Seconds of CPU time for which frames are handed on before the loop has its turn; one portion takes a fraction of
that. It is not wall-clock time: on a busy machine one portion would then fill a turn."""


class KeeperConnection(asyncio.BufferedProtocol):
    """The transport: calls `on_frame` with every frame, and after the last one `on_lost` with the reason of the end."""

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
        """Frames that were read and are not handed on yet."""
        self._waits = False
        """True if `_hand_on` is due in the loop's next turn."""
        self._over: str | None = None
        """Reason why the connection is gone, reported after the last frame; None while it is open."""

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
        """Ends the connection and drops the remaining frames."""
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
