"""Writes to clients piece by piece, with a time limit for those that do not read."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import hdrs, web

from synapsed.aio import Pace, at_once
from synapsed.api.context import CONTEXT
from synapsed.documents.writing import PIECE, Parts, sliced

READ_RATE: Final = 128 * 1024
"""Bytes a second that a client has to read of a large event or answer."""


def hold_little(request: web.Request) -> None:
    """Limits the connection's buffer to one piece of the following output."""
    if request.transport is not None:
        request.transport.set_write_buffer_limits(high=PIECE)


async def write(response: web.StreamResponse, parts: Parts, pace: Pace) -> None:
    """Writes `parts` piece by piece; between two pieces others use the event loop."""
    for piece in sliced(parts):
        await pace.turn()
        await response.write(piece)


def patience(stall: float, parts: Parts) -> float:
    """Returns the seconds that a client may take to read `parts`."""
    return stall + sum(map(len, parts)) / READ_RATE


async def ended(act: asyncio.Task[None], seconds: float) -> bool:
    """Returns True if `act` is over within `seconds`; `act` is cancelled if the caller is."""
    try:
        if not act.done():
            await asyncio.wait({act}, timeout=seconds)
    except asyncio.CancelledError:
        act.cancel()
        raise
    if act.done():
        act.result()
    return act.done()


async def cut_off(request: web.Request, act: asyncio.Task[None]) -> None:
    """Aborts the connection: an orderly end would wait for ever for a client that does not read."""
    if request.transport is not None:
        request.transport.abort()
    await asyncio.wait({act})
    act.exception()


async def respond(
    request: web.Request,
    value: Any,
    *,
    status: int = 200,
    media_type: str = "application/json",
    charset: str | None = "utf-8",
    headers: Mapping[str, str] | None = None,
) -> web.StreamResponse:
    """Answers with `value` as JSON. One with large texts goes piece by piece, as the client reads it; a client that
    does not read is cut off, after the same time as for a large event in a stream."""
    context = request.app[CONTEXT]
    parts = context.texts.encode(value)
    if len(parts) == 1 and isinstance(parts[0], bytes):
        return web.Response(body=parts[0], status=status, headers=headers, content_type=media_type, charset=charset)
    response = web.StreamResponse(status=status, headers=headers)
    response.content_type = media_type
    response.charset = charset
    await response.prepare(request)
    if request.method == hdrs.METH_HEAD:
        return response
    hold_little(request)
    try:
        # The writer is waited for, and not cancelled while it may go on: else it could not be waited for again.
        writing = at_once(write(response, parts, context.pace))
        if not await ended(writing, patience(context.limits.write_stall, parts)):
            await cut_off(request, writing)
    except ConnectionError:
        pass  # the client has left
    return response
