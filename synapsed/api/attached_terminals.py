"""Serves terminals that a person has opened on an agent, over a WebSocket or the Unix socket.

A terminal has two directions; when one of them ends, the other is ended. Over a WebSocket, binary frames are bytes and
text frames JSON; on the Unix socket the same data are the frames of `shared.attach_frames`, and simple data pass at
once in both directions: a key and its echo wait for no task.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from functools import partial
from typing import Any, Final

import structlog
from aiohttp import WSCloseCode, WSMsgType, web

from synapsed.aio import TaskSet
from synapsed.api.body import parse_json
from synapsed.api.context import ApiContext, rights_of
from synapsed.api.framed_terminal import FramedConnection
from synapsed.api.leases import GRANT_S, HEAD, KeyPiece, Leases
from synapsed.api.problems import body_of
from synapsed.api.request_models import VIEWER_MAX
from synapsed.api.websocket import CLOSE_SECONDS, open_websocket
from synapsed.documents.writing import encode_json
from synapsed.errors import InvalidRequest, SynapsedError, UnknownAgent
from synapsed.interfaces import Attachment
from synapsed.model.agent import ProcessState
from synapsed.model.events import REMOVED, StateChanged
from synapsed.model.outer_terminal import read_outer
from synapsed.shared import attach_frames as wire

log = structlog.stdlib.get_logger("synapsed.terminals")

_TERMINAL_SIGNALS: Final = {"SIGINT": b"\x03", "SIGQUIT": b"\x1c", "SIGTSTP": b"\x1a"}
"""Signals that a terminal makes of keys; they are sent as keys, so that the program may take them as keys."""
_LIVE: Final = frozenset({ProcessState.STARTING, ProcessState.RUNNING, ProcessState.STOPPING})

EARLIER_MAX: Final = 8 * 1024 * 1024
"""Bytes of earlier output that are sent at once."""

DOING_S: Final = 1.0
"""Seconds between two reads of the agent's activity, for the status line."""

BEAT_S: Final = 10.0
"""Seconds within which something is sent to a client, so that a missing reader is noticed."""

UNREAD_S: Final = 25.0
"""Seconds after which a client that reads nothing, because it was stopped or hangs, is dropped. So is one that answers
no lease: over a tunnel its end of the line is read by the tunnel, which may not know that the line is dead."""

UNTYPED_MAX: Final = 256 * 1024
"""Bytes of a client's frames that wait for the program; nothing more is read from it until they are typed."""


class TerminalSession(ABC):
    """An open terminal. `cursor` is the place in the event log before the attachment."""

    def __init__(
        self, request: web.Request, context: ApiContext, agent_id: str, cursor: int, attachment: Attachment
    ) -> None:
        self._rights = rights_of(request)
        self._context = context
        self._agent_id = agent_id
        self._cursor = cursor
        self._attachment = attachment
        self._ending = False
        self._leases: Leases | None = None
        """Set if the client's connection may be dead without notice: its keys are typed only if they come in time."""
        self._granting = TaskSet()

    async def run(self) -> None:
        output = asyncio.create_task(self._output())
        keys = asyncio.create_task(self._keys())
        ending = asyncio.create_task(self._end_with_the_daemon())
        telling = asyncio.create_task(self._tell())
        leaving = asyncio.create_task(self._left())
        try:
            await asyncio.wait({output, keys, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if self._ending:
                await asyncio.wait({output}, timeout=CLOSE_SECONDS)  # our closing message has ended `keys`
        finally:
            for task in (output, keys, ending, telling, leaving):
                task.cancel()
            await self._granting.cancel()
            if self._leases is not None and self._leases.unfinished:
                log.info("a paste was cut off", agent=self._agent_id, bytes=self._leases.unfinished)
            results = await asyncio.gather(output, keys, ending, telling, leaving, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, ConnectionError):
                raise result

    @abstractmethod
    async def _keys(self) -> None:
        """Handles the client's frames until it leaves, one after the other: a program that does not read delays only
        the person who types to it."""

    @abstractmethod
    async def _show(self, data: bytes, *, screen: bool) -> None:
        """Sends output; `screen`: it draws the whole screen. Raises ConnectionError."""

    @abstractmethod
    async def _say(self, value: dict[str, Any]) -> None: ...

    @abstractmethod
    async def _leave(self, *, going: bool) -> None:
        """Closes the connection in order; `going`: because the daemon ends."""

    async def _left(self) -> None:
        """Returns UNREAD_S after the client has left: its last keys have that long to be typed into a program that does
        not read."""
        await self._lost()
        await asyncio.sleep(UNREAD_S)

    @abstractmethod
    async def _lost(self) -> None:
        """Returns when there is no connection any more."""

    async def _output(self) -> None:
        """Sends the screen. A viewer that stops reading stops only this loop; the attachment's buffer is bounded."""
        with suppress(ConnectionError):
            await self._show(await self._attachment.redraw(), screen=True)
            self._flow()
            async for data in self._attachment.output():
                if data:
                    await self._show(data, screen=False)
            self._ending = True
            code = None if self._context.streams.closing.is_set() else await self._exit_code()
            going = self._context.streams.closing.is_set() and code is None
            if not going:
                await self._say({"type": "exit", "exit_code": code})
            await self._leave(going=going)

    def _flow(self) -> None:  # noqa: B027 - only one subclass needs it
        """Called when the screen has been sent: from now on, output may be passed on as it comes."""

    async def _tell(self) -> None:  # noqa: B027 - the same
        """Sends the data of a status line, for as long as the terminal is open."""

    async def _end_with_the_daemon(self) -> None:
        """Ends the output when the daemon ends. It is a task of its own: the output needs no wrapper."""
        await self._context.streams.closing.wait()
        await self._attachment.close()

    async def _exit_code(self) -> int | None:
        """Returns the code with which the program ended, from the log; None if it is unknown."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._context.limits.exit_wait):
                async for event in self._context.control.events.follow(self._cursor, agent_id=self._agent_id):
                    if not isinstance(event.data, StateChanged):
                        continue
                    if event.data.state == REMOVED:
                        break
                    if event.data.state not in _LIVE:
                        return event.data.exit_code
        return None

    async def _command(self, text: bytes) -> bool:
        """Handles a JSON frame; returns True for `detach`."""
        command = await parse_json(text)
        match command:
            case {"type": "resize", "cols": int(cols), "rows": int(rows)} if (
                1 <= cols <= VIEWER_MAX and 1 <= rows <= VIEWER_MAX
            ):
                await self._attachment.resize(cols, rows)
            case {"type": "signal", "signal": str(name)} if name in _TERMINAL_SIGNALS and self._leases is None:
                await self._attachment.write(_TERMINAL_SIGNALS[name])
            case {"type": "lease", "lease": int(number)}:
                self._hear(number)
            case {"type": "again", "late": int(late), "gone": bool(gone)} if self._leases is not None:
                self._leases.again(late, gone=gone)
            case {"type": "detach"}:
                if self._leases is not None:
                    await self._say(self._leases.grant(self._now()))
                await self._leave(going=False)
                return True
            case {"type": "terminal"}:
                self._rights.require_right("type", "say in what terminal programs are seen")
                try:
                    self._attachment.seen_in(read_outer(command))
                except ValueError as error:
                    raise InvalidRequest(f"terminal: {error}") from None
            case _:
                await self._other_command(command)
        return False

    def _hear(self, number: int) -> None:
        """Notes that the client has that lease. By its first such message, the client asks for leases."""
        if self._leases is None:
            self._leases = Leases()
            self._granting.spawn(self._grant(self._leases))
        self._leases.heard(number, self._now())

    async def _grant(self, leases: Leases) -> None:
        with suppress(ConnectionError):
            while True:
                await self._say(leases.grant(self._now()))
                await asyncio.sleep(GRANT_S)

    def _in_time(self, leases: Leases, data: bytes, came: float) -> bytes | None:
        keys = leases.take(KeyPiece.read(data), came)
        if keys is None:
            log.info("keys came late, and were dropped", agent=self._agent_id, bytes=len(data) - HEAD)
        return keys

    def _now(self) -> float:
        return self._context.clock.boot()

    async def _other_command(self, command: Any) -> None:
        """Handles a command that not every kind of terminal knows."""
        raise InvalidRequest(
            "a text frame must be resize {cols, rows}, signal {signal}, detach or "
            "terminal {foreground, background, cell, keyboard}",
            signals=sorted(_TERMINAL_SIGNALS),
        )


class WebSocketTerminal(TerminalSession):
    """A terminal over a WebSocket, for a browser, or any client of the documented protocol."""

    _socket: web.WebSocketResponse
    _request: web.Request

    async def _lost(self) -> None:
        while self._request.transport is not None:  # noqa: ASYNC110 - aiohttp reports no event for this
            await asyncio.sleep(BEAT_S)

    async def serve(self, request: web.Request, *, one_screen: bool) -> web.StreamResponse:
        if one_screen:
            self._attachment.keep_one_screen()
        self._socket = await open_websocket(request, suspended=False)
        self._request = request
        await self.run()
        return self._socket

    async def _show(self, data: bytes, *, screen: bool) -> None:
        await self._socket.send_bytes(data)

    async def _keys(self) -> None:
        async for message in self._socket:
            try:
                if message.type is WSMsgType.BINARY:
                    await self._write(message.data)
                elif message.type is WSMsgType.TEXT and await self._command(message.data.encode("utf-8", "replace")):
                    return
            except SynapsedError as error:
                await self._say({"type": "error", **body_of(error)})

    async def _write(self, data: bytes) -> None:
        if self._leases is None:
            await self._attachment.write(data)
        elif keys := self._in_time(self._leases, data, self._now()):
            await self._attachment.write(keys)
        elif (late := self._leases.late()) is not None:
            await self._say(late)

    async def _say(self, value: dict[str, Any]) -> None:
        with suppress(ConnectionError):
            await self._socket.send_str(encode_json(value).decode())

    async def _leave(self, *, going: bool) -> None:
        if going:
            await self._socket.close(code=WSCloseCode.GOING_AWAY, message=b"the daemon goes")
        else:
            await self._socket.close()


class FramedTerminal(TerminalSession):
    """A terminal over frames on the Unix socket, for the person's tool."""

    def __init__(
        self, request: web.Request, context: ApiContext, agent_id: str, cursor: int, attachment: Attachment
    ) -> None:
        super().__init__(request, context, agent_id, cursor, attachment)
        self._connection: FramedConnection
        self._came: deque[tuple[int, bytes, float]] = deque()
        """Frames that could not be handled at once, with the times at which they came."""
        self._untyped = 0
        self._busy = False
        """True while the task handles one of them."""
        self._heard_at = asyncio.get_running_loop().time()
        self._wake = asyncio.Event()

    async def serve(self, request: web.Request, *, one_screen: bool) -> web.StreamResponse:
        """Serves the connection. If `[attach] scrollback` puts the program's rows above the screen, `one_screen` is
        ignored; the first message says so."""
        settings = self._context.control.terminals.settings()
        one_screen = one_screen and not settings["scrollback"]
        if one_screen:
            self._attachment.keep_one_screen()
        self._connection = connection = await FramedConnection.accept(request, self._take)
        try:
            view = self._context.control.directory.view(self._agent_id)
            greeting = {"id": view.id, "name": view.name, "settings": settings, "one_screen": one_screen}
            await self._say({"type": "attached", **greeting, "leases": True})
            await self.run()
        finally:
            connection.close()
        return connection.answer

    async def _lost(self) -> None:
        await self._connection.lost.wait()

    async def _tell(self) -> None:
        with suppress(UnknownAgent):  # it was removed: the output ends too
            await self._tell_all()

    async def _tell_all(self) -> None:
        inbox = self._context.waiting
        told: dict[str, Any] = {}
        loop = asyncio.get_running_loop()
        told_at = read_at = loop.time()
        while True:
            moved = inbox.moved
            items = [item for item in inbox.items() if item.kind != "finished"]
            view = self._context.control.directory.view(self._agent_id)
            now = {
                "needs": len(items),
                "here": any(item.agent_id == self._agent_id for item in items),
                "doing": view.activity or view.state,
            }
            if self._connection.is_read():
                read_at = loop.time()
            if loop.time() - min(read_at, self._answered_at()) >= UNREAD_S:
                self._connection.abort()
                return
            if now != told or loop.time() - told_at >= BEAT_S:
                told, told_at = now, loop.time()
                await self._say({"type": "attention", **now})
            with suppress(TimeoutError):
                await asyncio.wait_for(moved.wait(), DOING_S)

    def _answered_at(self) -> float:
        """Returns the last time at which the client, if it answers leases, is known to have been there."""
        if self._leases is None or self._busy or self._came:
            self._heard_at = asyncio.get_running_loop().time()  # its frames that wait here keep later ones from coming
        return self._heard_at

    async def _other_command(self, command: Any) -> None:
        match command:
            case {"type": "earlier", "bytes": int(limit)} if 0 <= limit <= EARLIER_MAX:
                await self._say_earlier(limit)
            case _:
                await super()._other_command(command)

    async def _say_earlier(self, limit: int) -> None:
        """Sends the screen with the rows above it, and the last of the output that led to it."""
        screen = await self._attachment.earlier()
        piece = await self._context.control.terminals.output(self._agent_id, max(0, screen.offset - limit), limit)
        size = {"cols": screen.cols, "rows": screen.rows, "pieces": 2}
        await self._say({"type": "earlier", **size})
        for part in (screen.redraw, piece.data):
            await self._connection.drained()
            self._connection.send(wire.EARLIER, part)

    def _take(self, kind: int, payload: bytes) -> None:
        """Handles a frame at once, or puts it behind earlier ones."""
        now, self._heard_at = self._now(), asyncio.get_running_loop().time()
        if kind == wire.LEASED and self._leases is not None and not (self._busy or self._came):
            if not (keys := self._leased(self._leases, payload, now)):
                return
            kind, payload = wire.KEYS, keys
        if kind == wire.KEYS and not self._busy and not self._came and self._attachment.type_now(payload):
            return
        self._came.append((kind, payload, now))
        self._untyped += len(payload)
        if self._untyped > UNTYPED_MAX:
            self._connection.pause()
        self._wake.set()

    def _leased(self, leases: Leases, payload: bytes, came: float) -> bytes | None:
        """Returns the keys of a piece that came at the time `came`. It is handled after earlier frames, which may show
        that the sender is still there."""
        keys = self._in_time(leases, payload, came)
        if (late := leases.late()) is not None:
            self._connection.send(wire.NEWS, encode_json(late))
        return keys

    async def _keys(self) -> None:
        lost = asyncio.create_task(self._connection.lost.wait())
        try:
            while not lost.done():
                woken = asyncio.create_task(self._wake.wait())
                await asyncio.wait({lost, woken}, return_when=asyncio.FIRST_COMPLETED)
                woken.cancel()
                self._wake.clear()
                if await self._deal():
                    return
        finally:
            lost.cancel()

    async def _deal(self) -> bool:
        """Handles the frames in order; returns True for `detach`."""
        self._busy = True
        try:
            while self._came:
                if await self._deal_frame():
                    return True
        finally:
            self._busy = False
        return False

    async def _deal_frame(self) -> bool:
        kind, payload, came = self._came.popleft()
        self._untyped -= len(payload)
        try:
            if kind == wire.LEASED and self._leases is not None:
                kind, payload = wire.KEYS, self._leased(self._leases, payload, came) or b""
            if kind == wire.KEYS and payload:
                await self._attachment.write(payload)
            elif kind == wire.COMMAND and await self._command(payload):
                return True
        except SynapsedError as error:
            await self._say({"type": "error", **body_of(error)})
        if self._untyped <= UNTYPED_MAX // 2:
            self._connection.resume()
        return False

    def _flow(self) -> None:
        self._attachment.pass_to(partial(self._connection.send, wire.OUTPUT), self._connection.has_room)

    async def _show(self, data: bytes, *, screen: bool) -> None:
        await self._connection.drained()
        self._connection.send(wire.SCREEN if screen else wire.OUTPUT, data)

    async def _say(self, value: dict[str, Any]) -> None:
        self._connection.send(wire.NEWS, encode_json(value))

    async def _leave(self, *, going: bool) -> None:
        self._connection.close()
