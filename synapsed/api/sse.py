"""Sends server-sent events, which each stream reads from the log at its own speed.

A stream holds a cursor and the event that it writes: for a slow client the cursor falls behind, and no queue grows. A
large event is shared by all its writers, and each has only a buffer's amount of it in its connection. `id:` is the
event's id in the log, so that `Last-Event-ID` resumes without a gap or a double, over restarts of the daemon too.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import structlog
from aiohttp import hdrs, web

from synapsed.aio import at_once
from synapsed.api.context import CONTEXT
from synapsed.api.memory_reservation import release
from synapsed.api.slow_readers import cut_off, ended, hold_little, patience, write
from synapsed.documents.writing import Parts, Texts

SSE_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache, no-store",
    "X-Accel-Buffering": "no",
}
KEEPALIVE = b": keepalive\n\n"
TRUNCATED = b'event: truncated\ndata: {"reason": "read too slowly; go on after the last id"}\n\n'
"""The last message to a client that has not read too long. It has no id: the client goes on after the one before it."""


log = structlog.stdlib.get_logger("synapsed.api")


@dataclass(frozen=True, slots=True)
class SseFrame:
    """One event; `data` is a JSON value, or JSON in one line."""

    data: Any
    event: str | None = None
    event_id: int | str | None = None

    def encode(self, texts: Texts) -> Parts:
        """Returns the frame as it is written, in parts."""
        head = b"" if self.event_id is None else f"id: {self.event_id}\n".encode()
        if self.event is not None:
            head += b"event: " + self.event.encode() + b"\n"
        data: Parts = [self.data] if isinstance(self.data, bytes) else texts.encode(self.data)
        return [head + b"data: ", *data, b"\n\n"]


async def serve(
    request: web.Request,
    frames: AsyncIterator[SseFrame],
    *,
    comments: bool = True,
    headers: Mapping[str, str] | None = None,
) -> web.StreamResponse:
    """Writes `frames` until they end, the client leaves or stops reading, or the daemon ends.

    Unread data of a client are bounded by its connection's buffers. A client whose buffers stay full for
    `RequestLimits.write_stall` (for a large event longer, by `patience`) gets `truncated`, and as much time again,
    `RequestLimits.keepalive` at least, to read the rest of that event and this message. The log has the missed events.
    A fault cuts the connection.

    Without `comments` only events are written (some old clients cannot handle comments).
    """
    context = request.app[CONTEXT]
    limits = context.limits
    response = web.StreamResponse(headers={**SSE_HEADERS, **(headers or {})})
    if request.method == hdrs.METH_HEAD:
        await response.prepare(request)
        return response
    with context.streams.opened():
        await response.prepare(request)
        hold_little(request)
        if comments:
            await response.write(KEEPALIVE)  # sends the head now: the client must see that an idle stream is open
        items = context.streams.items(frames, limits.keepalive)
        last = max(limits.write_stall, limits.keepalive)
        try:
            with _cutting_at_a_fault(request):
                async for item in items:
                    if item is None and (request.transport is None or request.transport.is_closing()):
                        break
                    if item is not None or comments:
                        parts: Parts = [KEEPALIVE] if item is None else item.encode(context.texts)
                        seconds = patience(limits.write_stall, parts)
                        writing = at_once(write(response, parts, context.pace))
                        del parts, item  # the next item may take long
                        if not await ended(writing, seconds):
                            ending = at_once(_truncate(response, writing)) if comments else writing
                            if ending is writing or not await ended(ending, last):
                                await cut_off(request, ending)
                            break
                        release(request)  # the next item has its own
        finally:
            await items.aclose()
        return response


@contextmanager
def _cutting_at_a_fault(request: web.Request) -> Iterator[None]:
    """Context of a stream that has begun, which ends if the client leaves; its task goes on."""
    try:
        yield
    except ConnectionError:
        pass
    except Exception:  # an answer to it would stand among the events
        log.exception("a stream failed", path=request.path)
        if request.transport is not None:
            request.transport.abort()


async def _truncate(response: web.StreamResponse, writing: asyncio.Task[None]) -> None:
    """Ends the stream of a client that stalled, after its present event."""
    await writing
    await response.write(TRUNCATED)
    response.force_close()
    await response.write_eof()
