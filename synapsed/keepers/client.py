"""The daemon's connection to a keeper: requests as coroutines, the program's output and end as a stream of events.

One connection carries both. To hold up the output, the client asks the keeper to pause it (FLOW) and does not pause the
transport: so answers to requests always arrive.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import structlog

from synapsed.config.sockets import why_not_our_peer
from synapsed.errors import KeeperLost
from synapsed.keeper import frames
from synapsed.keeper.frames import Frame
from synapsed.keepers.keeper_messages import (
    Alert,
    Exited,
    ExitRecord,
    Hello,
    KeeperBusy,
    KeeperConnection,
    KeeperEvent,
    KeeperRefused,
    KeeperSilent,
    Lost,
    Output,
    OutputGap,
    WriteResult,
)

CONNECT_TIMEOUT_S = 5.0
"""Seconds for connecting and the handshake; a keeper answers within a millisecond, a stopped one never."""

REPLY_TIMEOUT_S = 10.0
"""Seconds for requests that a keeper answers at once."""

STOP_MARGIN_S = 15.0
"""Seconds for a stop beyond its grace: for killing, sweeping, and the last output."""

QUIET_MAX = 4096
"""Bytes that one write without an answer may have: the amount that a terminal sends at a time."""

CONFIRM_EVERY = 16
UNCONFIRMED_MAX = 64
"""One in CONFIRM_EVERY writes of `write_now` is confirmed by the keeper, and at most UNCONFIRMED_MAX may be
unconfirmed; then the writer has to wait until the program reads. Their bytes are far below the keeper's limit."""


log = structlog.stdlib.get_logger("synapsed.keeper")


class KeeperClient:
    """A connection to one keeper. Requests raise KeeperLost if it is broken, KeeperRefused if the keeper refuses."""

    def __init__(self, on_event: Callable[[KeeperEvent], None]) -> None:
        """Makes an unconnected client; callers use `connect`."""
        self._on_event = on_event
        self._link = KeeperConnection(self._frame, self._lose)
        self._hello: Hello | None = None
        self._requests: dict[int, asyncio.Future[Frame]] = {}
        self._next_request = 0
        self._unconfirmed = 0
        """Number of the writes of `write_now` that may still wait at the keeper."""
        self.lost: str | None = None
        """Reason why the connection is gone; None while it is open."""
        self._paused = False

    @classmethod
    async def connect(
        cls,
        socket_path: str | Path,
        *,
        on_event: Callable[[KeeperEvent], None] = lambda _event: None,
        timeout: float = CONNECT_TIMEOUT_S,
    ) -> "KeeperClient":
        """Connects and shakes hands. Raises KeeperSilent if no answer comes in `timeout` seconds, KeeperLost for other
        reasons. `on_event` gets every event, in the loop, in order, Lost as the last. It may call `pause_output`; its
        exceptions are logged."""
        client = cls(on_event)
        welcome: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        client._requests[_WELCOME_KEY] = welcome
        try:
            async with asyncio.timeout(timeout):
                transport, _ = await asyncio.get_running_loop().create_unix_connection(
                    lambda: client._link, str(socket_path)
                )
                if (reason := why_not_our_peer(transport.get_extra_info("socket"))) is not None:
                    raise PermissionError(reason)  # noqa: TRY301 - what follows is the same as for one that is gone
                client._link.send(frames.HELLO, {"min": frames.OLDEST_VERSION, "max": frames.VERSION})
                header = (await welcome).header
        except (OSError, TimeoutError) as error:
            client.close()
            late = isinstance(error, TimeoutError | BlockingIOError)  # the latter: the socket's backlog is full
            kind = KeeperSilent if late else KeeperLost
            raise kind(
                f"no keeper (the process that holds a terminal) answers on {socket_path}: {str(error) or 'timed out'}"
            ) from error
        except BaseException:
            client.close()
            raise
        try:
            client._hello = Hello.from_json(header)
        except KeyError as error:
            client.close()
            raise KeeperLost(
                f"the keeper (the process that holds a terminal) on {socket_path} did not say its {error}"
            ) from error
        return client

    @property
    def hello(self) -> Hello:
        """The keeper's facts from the handshake; `ping` returns the present ones."""
        assert self._hello is not None
        return self._hello

    async def subscribe(self, offset: int | None, *, channel: str | None = None) -> int:
        """Requests the output from `offset` on (None: from now on), which then arrives as events. Returns the offset
        where the output begins; waits for that as long as the keeper takes. A second call replaces the first. Raises
        KeeperRefused `beyond_end`."""
        return _int(await self._ask(frames.SUBSCRIBE, _with_channel(channel, offset=offset), timeout=None), "offset")

    async def write(self, data: bytes, input_id: str | None = None) -> WriteResult:
        """Writes `data` to the program; returns when the last byte is written, however long that takes. Cancelling this
        does not take the input back; `discard_input` does.

        With an `input_id` the data is written only once per launch, so the caller may repeat the call after a
        reconnection. More than MAX_PAYLOAD bytes are sent in parts, one after the other, with ids derived from
        `input_id`; a repeated call continues at the part where the first one stopped. Raises KeeperBusy; KeeperRefused
        `exited`, `line_too_long`, `discarded`, `journal_failed`.
        """
        if len(data) <= frames.MAX_PAYLOAD:
            return await self._write(data, input_id)
        results = []
        for number, start in enumerate(range(0, len(data), frames.MAX_PAYLOAD)):
            part_id = None if input_id is None else f"{input_id}+{number}"
            results.append(await self._write(data[start : start + frames.MAX_PAYLOAD], part_id))
        return WriteResult(
            status="written" if any(result.status == "written" for result in results) else "duplicate",
            at=results[0].at,
            offset=results[-1].offset,
            written=sum(result.written for result in results),
            length=len(data),
            hidden=any(result.hidden for result in results),
        )

    def can_write_now(self, data: bytes) -> bool:
        """Returns True if `write_now` may be called with `data`: it may not while the program leaves much unread."""
        return self.lost is None and len(data) <= QUIET_MAX and self._unconfirmed < UNCONFIRMED_MAX

    def write_now(self, data: bytes) -> None:
        """Writes `data`, such as a key of a person, without waiting for a result. The order of all writes is kept. The
        keeper answers only one such write in CONFIRM_EVERY."""
        self._unconfirmed += 1
        if self._unconfirmed % CONFIRM_EVERY:
            self._link.send_frame(frames.encode_quiet_write(data))
            return
        self._next_request += 1
        future: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._requests[self._next_request] = future
        future.add_done_callback(self._confirmed)
        self._link.send(frames.WRITE, {"req": self._next_request}, data)

    def _confirmed(self, answer: "asyncio.Future[Frame]") -> None:
        """Notes that this write, and so all earlier ones, were written or refused."""
        self._unconfirmed -= CONFIRM_EVERY
        if not answer.cancelled():
            answer.exception()  # marks a refusal as seen: no caller waits for it

    async def recall(self, input_id: str) -> WriteResult | None:
        """Returns the result of an earlier write with this id; None if there was none. Writes nothing."""
        for first in (input_id, f"{input_id}+0"):
            try:
                return await self._write(b"", first, recall=True)
            except KeeperRefused as error:
                if error.reason != "unknown_id":
                    raise
        return None

    async def _write(self, data: bytes, input_id: str | None, *, recall: bool = False) -> WriteResult:
        header: dict[str, object] = {} if input_id is None else {"id": input_id}
        if recall:
            header["recall"] = True
        answer = await self._ask(frames.WRITE, header, data, timeout=None)
        status = answer.header["status"]
        assert status == "written" or status == "duplicate"
        places = {name: _int(answer, name) for name in ("at", "offset", "written", "length")}
        return WriteResult(status=status, **places, hidden=answer.header.get("hidden") is True)

    async def resize(self, cols: int, rows: int, *, xpixel: int = 0, ypixel: int = 0) -> None:
        """Sets the window size; the program gets SIGWINCH from the kernel."""
        await self._ask(frames.RESIZE, {"cols": cols, "rows": rows, "xpixel": xpixel, "ypixel": ypixel})

    async def signal(self, signum: int, *, target: Literal["child", "foreground"] = "child") -> None:
        """Sends a signal to the program itself or to the terminal's foreground process group."""
        await self._ask(frames.SIGNAL, {"signum": int(signum), "target": target})

    async def stop(self, grace_s: float) -> int:
        """Ends the program and all its descendants: TERM, `grace_s` seconds, KILL; 0 kills at once. Returns the number
        of processes that could not be ended, when all others are gone. The event Exited follows."""
        answer = await self._ask(frames.STOP, {"grace_s": grace_s}, timeout=grace_s + STOP_MARGIN_S)
        return _int(answer, "leftover")

    async def discard_input(self) -> int:
        """Drops the input that the keeper has not yet written to the program; those writes raise KeeperRefused. Returns
        the number of bytes dropped."""
        return _int(await self._ask(frames.DISCARD, {}), "discarded")

    async def close_input(self) -> None:
        """Closes the program's standard input after earlier writes. On pipes only."""
        await self._ask(frames.CLOSE_INPUT, {})

    async def read(self, start: int, limit: int, *, channel: str | None = None) -> tuple[int, bytes]:
        """Returns earlier output: up to `limit` bytes from `start`, as (offset, data). The offset is greater than
        `start` if older bytes are gone."""
        chunks: list[bytes] = []
        begin = at = start
        while limit > 0:
            header = _with_channel(channel, start=at, limit=min(limit, frames.MAX_PAYLOAD))
            answer = await self._ask(frames.READ, header)
            offset, data = _int(answer, "offset"), answer.payload
            if not data:
                begin = begin if chunks else offset
                break
            if offset > at:  # a gap: the earlier chunks do not join this one
                chunks.clear()
            if not chunks:
                begin = offset
            chunks.append(data)
            at = offset + len(data)
            limit -= len(data)
        return begin, b"".join(chunks)

    async def ping(self, *, timeout: float = REPLY_TIMEOUT_S) -> Hello:
        """Returns the present values of the facts in `hello`. Raises KeeperLost if none come in `timeout` seconds."""
        return Hello.from_json((await self._ask(frames.PING, {}, timeout=timeout)).header)

    async def ping_briefly(self, *, timeout: float | None = REPLY_TIMEOUT_S) -> None:
        """Returns when the keeper has answered, without its facts (older keepers send them nevertheless). Raises
        KeeperLost as `ping` does."""
        await self._ask(frames.PING, {"brief": True}, timeout=timeout)

    async def acknowledge_exit(self) -> None:
        """Confirms that the exit is recorded: the keeper ends, and Lost follows. Raises KeeperRefused `running`."""
        await self._ask(frames.ACK_EXIT, {"launch_id": self.hello.launch_id})

    def pause_output(self) -> None:
        """Requests no further output until `resume_output`; output that was already sent still arrives."""
        if not self._paused:
            self._paused = True
            self._link.send(frames.FLOW, {"paused": True})

    def resume_output(self) -> None:
        if self._paused:
            self._paused = False
            self._link.send(frames.FLOW, {"paused": False})

    def close(self) -> None:
        """Closes the connection; the keeper runs on. Requests under way raise KeeperLost; Lost is the last event."""
        self._link.abort()
        self._lose("closed")

    # --- inside

    async def _ask(
        self, kind: int, header: dict[str, object], payload: bytes = b"", *, timeout: float | None = REPLY_TIMEOUT_S
    ) -> Frame:
        if self.lost is not None:
            raise KeeperLost(f"the connection to the keeper (the process that holds its terminal) is gone: {self.lost}")
        self._next_request += 1
        request = self._next_request
        future: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._requests[request] = future
        self._link.send(kind, {"req": request, **header}, payload)
        try:
            async with asyncio.timeout(timeout):
                return await future
        except TimeoutError:
            raise KeeperSilent(
                f"the keeper (the process that holds its terminal) did not answer within {timeout:.0f} s"
            ) from None
        finally:
            self._requests.pop(request, None)

    def _frame(self, frame: Frame) -> None:
        header: dict[str, Any] = frame.header
        kind = frame.type
        if kind == frames.OUTPUT:
            continues = header.get("continues", False)
            self._emit(Output(header["offset"], frame.payload, header["channel"], continues))
        elif kind == frames.REPLY:
            self._settle(header["req"], frame)
        elif kind == frames.REFUSED:
            self._refused(header)
        elif kind == frames.GAP:
            self._emit(OutputGap(header["from"], header["to"], header["channel"]))
        elif kind == frames.EXITED:
            self._emit(Exited(ExitRecord.from_json(header["record"])))
        elif kind == frames.ALERT:
            self._emit(Alert(header["code"], header["active"], header["message"]))
        elif kind == frames.WELCOME:
            self._settle(_WELCOME_KEY, frame)
        # The protocol's rule: any other type was pushed by a newer keeper and is ignored.

    def _settle(self, request: int, frame: Frame) -> None:
        future = self._requests.pop(request, None)
        if future is not None and not future.done():
            future.set_result(frame)

    def _refused(self, header: dict[str, Any]) -> None:
        reason, message = header["code"], header["message"]
        if header["req"] is None:
            self._link.abort()
            self._lose(f"the keeper refused the connection: {message} ({reason})")
            return
        future = self._requests.pop(header["req"], None)
        if future is None or future.done():
            return
        kind = KeeperBusy if reason == "busy" else KeeperRefused
        future.set_exception(kind(message, reason=reason, written=header.get("written", 0)))

    def _emit(self, event: KeeperEvent) -> None:
        try:
            self._on_event(event)
        except Exception:  # an error in the handler loses one event, not the connection to the program
            log.exception("an event of the keeper could not be handled", kind=type(event).__name__)

    def _lose(self, reason: str) -> None:
        if self.lost is not None:
            return
        self.lost = reason
        requests, self._requests = self._requests, {}
        for future in requests.values():
            if not future.done():
                future.set_exception(KeeperLost(f"the connection to the keeper is gone: {reason}"))
                future.exception()  # marks it as seen: a cancelled caller never asks, and asyncio would log it
        self._emit(Lost(reason))


_WELCOME_KEY = 0


def _int(frame: Frame, name: str) -> int:
    value = frame.header[name]
    assert isinstance(value, int)
    return value


def _with_channel(channel: str | None, **fields: object) -> dict[str, object]:
    return fields if channel is None else {"channel": channel, **fields}
