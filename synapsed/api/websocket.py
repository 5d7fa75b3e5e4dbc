"""Serves WebSockets: with limits for frames, heartbeats if a peer can vanish, an orderly end when the daemon ends."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import Any

import structlog
from aiohttp import WSCloseCode, WSMsgType, hdrs, web

from synapsed.api.context import CONTEXT
from synapsed.api.security import on_unix
from synapsed.api.slow_readers import READ_RATE
from synapsed.errors import InvalidRequest

CLOSE_SECONDS = 1.0
"""Seconds that a peer has to answer our close: enough for one that reads."""
HEARTBEAT = 20.0
"""Seconds between pings over TCP: after half of that a peer without an answer is dropped. Over the Unix socket a dead
peer is noticed without pings, and a suspended one may stay."""

log = structlog.stdlib.get_logger("synapsed.api")


def is_upgrade(request: web.Request) -> bool:
    return request.headers.get(hdrs.UPGRADE, "").lower() == "websocket"


async def open_websocket(request: web.Request, *, suspended: bool = True) -> web.WebSocketResponse:
    """Returns the accepted WebSocket, uncompressed: keystrokes must not wait for a compressor. A suspended client on
    the Unix socket is waited for, unless `suspended` is False."""
    if not is_upgrade(request):
        raise InvalidRequest("this path is a WebSocket: send an upgrade")
    socket = web.WebSocketResponse(
        timeout=CLOSE_SECONDS,
        heartbeat=None if suspended and on_unix(request) else HEARTBEAT,
        compress=False,
        max_msg_size=request.app[CONTEXT].limits.ws_message,
    )
    await socket.prepare(request)
    return socket


async def push(request: web.Request, bodies: AsyncGenerator[Any]) -> web.WebSocketResponse:
    """Sends `bodies` (JSON values, or JSON) as texts one by one until they end, the client leaves or stops reading, or
    the daemon ends. The client's messages are read and dropped."""
    context = request.app[CONTEXT]
    with context.streams.opened():
        socket = await open_websocket(request)
        sender = asyncio.create_task(_send_all(request, socket, bodies))
        try:
            await _drain(socket)
            if context.streams.closing.is_set():
                await asyncio.wait({sender}, timeout=CLOSE_SECONDS)  # it is closing the socket
        finally:
            sender.cancel()
            with suppress(asyncio.CancelledError):
                await sender
        return socket


async def _send_all(request: web.Request, socket: web.WebSocketResponse, bodies: AsyncIterator[Any]) -> None:
    context = request.app[CONTEXT]
    items = context.streams.items(bodies, context.limits.keepalive)
    try:
        async for body in items:
            if body is not None:
                whole = await context.texts.whole(body)
                await context.pace.turn()
                async with asyncio.timeout(context.limits.write_stall + len(whole.data) / READ_RATE):
                    await socket.send_frame(whole.data, WSMsgType.TEXT)
                del whole, body  # the next item may take long
        await socket.close(code=WSCloseCode.GOING_AWAY)
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
    except ConnectionError:
        pass  # the client has left
    except Exception:  # a client that stayed connected would believe that nothing happens
        log.exception("a stream failed")
        await socket.close(code=WSCloseCode.INTERNAL_ERROR)
    finally:
        await items.aclose()


async def _drain(socket: web.WebSocketResponse) -> None:
    async for message in socket:
        if message.type is WSMsgType.ERROR:
            return
