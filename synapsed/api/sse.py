"""Server-sent events as pull views of the log.

A stream holds a cursor and nothing else: a slow client is a lagging cursor, never a queue. `id:` is the event's id in
the log, so that `Last-Event-ID` resumes without a gap or a double, over restarts of the daemon too.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping

from aiohttp import web

from synapsed.api.context import CONTEXT
from synapsed.api.query import INPUT_SHOWN
from synapsed.errors import InvalidRequest
from synapsed.interfaces import EventLog

__all__ = ["SSE_HEADERS", "cursor_of", "frame", "serve"]

SSE_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache, no-store",
    "X-Accel-Buffering": "no",
}
KEEPALIVE = b": keepalive\n\n"
TRUNCATED = b'event: truncated\ndata: {"reason": "read too slowly; go on after the last id"}\n\n'
"""The last that a client is told which did not read for too long. It has no id: the one before it is where to go on."""


def frame(data: bytes, *, event: str | None = None, event_id: int | None = None) -> bytes:
    """One event; `data` is JSON in one line."""
    lines = [] if event_id is None else [b"id: %d" % event_id]
    if event is not None:
        lines.append(b"event: " + event.encode())
    lines.append(b"data: " + data)
    return b"\n".join(lines) + b"\n\n"


def cursor_of(request: web.Request, log: EventLog, default: int) -> int:
    """Where to go on: `Last-Event-ID`, `?lastEventId=` or `?after=`. Raises InvalidRequest for what is no id of this
    log: a client that went on silently would miss events."""
    text = request.headers.get("Last-Event-ID") or request.query.get("lastEventId") or request.query.get("after")
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InvalidRequest(
            f"the cursor (Last-Event-ID, lastEventId or after) must be an id of an event, not {text[:INPUT_SHOWN]!r}",
            field="lastEventId",
        )
    if int(text) > log.last_id:
        raise InvalidRequest(f"there is no event {text} yet; the newest is {log.last_id}", last_id=log.last_id)
    return int(text)


async def serve(
    request: web.Request,
    frames: AsyncIterator[bytes],
    *,
    comments: bool = True,
    headers: Mapping[str, str] | None = None,
) -> web.StreamResponse:
    """Write `frames` until they end, the client leaves or stalls, or the daemon goes.

    What a client has not read yet is bounded by its connection's buffers. One that lets them stand full for
    `Limits.write_stall` is told `truncated`, and gets as long again to read that; the log has what it missed.

    Without `comments` nothing but events of A2A is written (some old clients of it stumble over comments).
    """
    context = request.app[CONTEXT]
    limits = context.limits
    with context.streams.opened():
        response = web.StreamResponse(headers={**SSE_HEADERS, **(headers or {})})
        await response.prepare(request)
        if comments:
            await response.write(KEEPALIVE)  # sends the head now: an idle stream must be seen to be open
        items = context.streams.items(frames, limits.keepalive)
        try:
            async for item in items:
                if item is None and (request.transport is None or request.transport.is_closing()):
                    break
                if item is not None or comments:
                    async with asyncio.timeout(limits.write_stall):
                        await response.write(KEEPALIVE if item is None else item)
        except TimeoutError:
            await _truncate(request, response, limits.write_stall if comments else 0)
        except ConnectionError:
            pass  # the client has left; its task goes on
        finally:
            await items.aclose()
        return response


async def _truncate(request: web.Request, response: web.StreamResponse, patience: float) -> None:
    """End the stream of a client that stalled. An end that it does not read either would be waited for for ever."""
    try:
        async with asyncio.timeout(patience):
            if patience:
                await response.write(TRUNCATED)
                await response.write_eof()
                return
    except ConnectionError:
        return
    except TimeoutError:
        pass
    if request.transport is not None:
        request.transport.abort()
