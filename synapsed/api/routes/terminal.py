"""`…/terminal`: a person's terminal on an agent, over a WebSocket.

Binary frames are bytes both ways, the first from the server is the redraw. Text frames are JSON: `resize` {cols, rows},
`signal` {signal}, `detach` from the client; `exit` {exit_code} and `error` {error} from the server.
"""

import asyncio
from contextlib import suppress
from typing import Annotated, Any

from aiohttp import WSCloseCode, WSMsgType, web
from pydantic import Field

from synapsed.api.body import parse_json
from synapsed.api.context import CONTEXT, ApiContext, agent_id_of
from synapsed.api.describe import Streamed
from synapsed.api.operation import operation, person
from synapsed.api.problems import body_of
from synapsed.api.query import Flag, Query, between, flag
from synapsed.api.schemas import COLS_MAX, ROWS_MAX
from synapsed.api.websocket import CLOSE_SECONDS, is_upgrade, open_websocket
from synapsed.documents.writing import encode_json
from synapsed.errors import InvalidRequest, NotReady, QueueFull, SynapsedError
from synapsed.interfaces import Attachment
from synapsed.model.agent import ProcessState
from synapsed.model.events import REMOVED, StateChanged

_TERMINAL_SIGNALS = {"SIGINT": b"\x03", "SIGQUIT": b"\x1c", "SIGTSTP": b"\x1a"}
"""Signals that a terminal makes of keys; they go the way of keys, so that the program may take them as keys."""
_LIVE = frozenset({ProcessState.STARTING, ProcessState.RUNNING, ProcessState.STOPPING})


class TerminalQuery(Query):
    cols: Annotated[int, between(1, COLS_MAX)] = Field(80, description="columns of the viewer's window")
    rows: Annotated[int, between(1, ROWS_MAX)] = Field(24, description="rows of the viewer's window")
    read_only: Flag = flag("keys are refused, and the window keeps its size")


def routes(prefix: str) -> list[web.RouteDef]:
    return [web.get(f"{prefix}/terminal", terminal)]


@operation(
    "A person's terminal on the agent",
    Streamed("binary frames are bytes both ways, text frames JSON", websocket=True, sse=False),
    allowed=person("use a terminal"),
    errors=(NotReady, QueueFull),
)
async def terminal(request: web.Request, query: TerminalQuery) -> web.StreamResponse:
    context = request.app[CONTEXT]
    if not is_upgrade(request):
        raise InvalidRequest("this path is a WebSocket: send an upgrade")
    agent_id = agent_id_of(request)
    with context.streams.opened():
        cursor = context.control.events.last_id
        attachment = await context.control.terminals.attach(
            agent_id, cols=query.cols, rows=query.rows, read_only=query.read_only
        )
        try:
            socket = await open_websocket(request)
            await _Session(context, agent_id, cursor, attachment, socket).run()
        finally:
            await attachment.close()
        return socket


class _Session:
    """One open terminal: two directions, whichever ends first ends the other."""

    def __init__(
        self,
        context: ApiContext,
        agent_id: str,
        cursor: int,
        attachment: Attachment,
        socket: web.WebSocketResponse,
    ) -> None:
        self._context = context
        self._agent_id = agent_id
        self._cursor = cursor
        self._attachment = attachment
        self._socket = socket
        self._ending = False

    async def run(self) -> None:
        output = asyncio.create_task(self._output())
        keys = asyncio.create_task(self._keys())
        ending = asyncio.create_task(self._end_with_the_daemon())
        try:
            await asyncio.wait({output, keys}, return_when=asyncio.FIRST_COMPLETED)
            if self._ending:
                await asyncio.wait({output}, timeout=CLOSE_SECONDS)  # our own goodbye has ended `keys`
        finally:
            for task in (output, keys, ending):
                task.cancel()
            results = await asyncio.gather(output, keys, ending, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, ConnectionError):
                raise result

    async def _output(self) -> None:
        """Screen to viewer. A viewer that stops reading stops this loop alone; the attachment's buffer is bounded."""
        with suppress(ConnectionError):
            await self._socket.send_bytes(await self._attachment.redraw())
            async for data in self._attachment.output():
                if data:
                    await self._socket.send_bytes(data)
            self._ending = True
            code = None if self._context.streams.closing else await self._exit_code()
            if self._context.streams.closing and code is None:
                await self._socket.close(code=WSCloseCode.GOING_AWAY, message=b"the daemon goes")
                return
            await self._say({"type": "exit", "exit_code": code})
            await self._socket.close()

    async def _end_with_the_daemon(self) -> None:
        """Ends the output; by itself, so that nothing stands between the output and its viewer."""
        await self._context.streams.ended()
        await self._attachment.close()

    async def _exit_code(self) -> int | None:
        """The code with which the program ended, from the log; None where nobody knows it."""
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

    async def _keys(self) -> None:
        """Viewer to program, one frame after the other: a program that does not read holds up its own typist only."""
        async for message in self._socket:
            try:
                if message.type is WSMsgType.BINARY:
                    await self._attachment.write(message.data)
                elif message.type is WSMsgType.TEXT and await self._command(message.data):
                    return
            except SynapsedError as error:
                await self._say({"type": "error", **body_of(error)})

    async def _command(self, text: str) -> bool:
        """Act on a text frame; True for `detach`."""
        command = await parse_json(text.encode("utf-8", "replace"))
        match command:
            case {"type": "resize", "cols": int(cols), "rows": int(rows)} if (
                1 <= cols <= COLS_MAX and 1 <= rows <= ROWS_MAX
            ):
                await self._attachment.resize(cols, rows)
            case {"type": "signal", "signal": str(name)} if name in _TERMINAL_SIGNALS:
                await self._attachment.write(_TERMINAL_SIGNALS[name])
            case {"type": "detach"}:
                await self._socket.close()
                return True
            case _:
                raise InvalidRequest(
                    "a text frame must be resize {cols, rows}, signal {signal} or detach",
                    signals=sorted(_TERMINAL_SIGNALS),
                )
        return False

    async def _say(self, value: dict[str, Any]) -> None:
        with suppress(ConnectionError):
            await self._socket.send_str(encode_json(value).decode())
