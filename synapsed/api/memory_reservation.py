"""Reserves memory for one large answer, from before it is read from the store until it is written; and for one large
body, from before it is read from the client until its message is in the mailbox, or the request is over.

A request that only reads is refused if there is no room for its answer, and has to be repeated. The answer to an action
waits for room, because a refusal would not undo the action. A body waits for room too, but not for long, and nothing of
it is read meanwhile.
"""

import asyncio
from collections.abc import Awaitable
from typing import Final

from aiohttp import web

from synapsed.api.problems import Handler
from synapsed.documents.budget import Budget, Large, Lease
from synapsed.documents.writing import has_large
from synapsed.errors import Busy
from synapsed.interfaces import Control, TaskFilter
from synapsed.model.task import Task

RETRY_S: Final = 5
"""Seconds that a client is asked to wait."""
_LEASES: Final = web.RequestKey("LEASES", list[Lease])
_BODY: Final = web.RequestKey("BODY", Lease)
BODIES: Final = 24 * 1024 * 1024
"""Bytes of large bodies that are read at once, as they come; their texts take up to eight times that for a moment."""
SMALL_BODY: Final = 64 * 1024
"""Bytes of a body that needs no room."""
PATIENCE_S: Final = 10.0
"""Seconds that a body waits for room."""
ROUNDS: Final = 8
"""Turns of the event loop between two steps with a large body: more than a small request takes."""
WAITING_MAX: Final = 64
"""Largest number of bodies that wait; the connection of each holds up to 128 KiB."""


@web.middleware
async def reserving(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Releases a request's reservations at its end."""
    request[_LEASES] = []
    try:
        return await handler(request)
    finally:
        release(request)
        release_body(request)


async def reserve_body(request: web.Request, room: Budget, size_max: int, *, times: int = 1) -> None:
    """Reserves room for a body before it is read; at most `size_max` bytes of it are read. Raises Busy."""
    size = size_max if request.content_length is None else min(request.content_length, size_max)
    if size <= SMALL_BODY or not request.can_read_body:
        return
    try:
        async with asyncio.timeout(PATIENCE_S if room.waiting < WAITING_MAX else 0):
            request[_BODY] = await room.take(object(), size * times)
    except TimeoutError:
        raise Busy(
            "too many large requests are being read at once, and this one was not read: send it again in a moment",
            retry_after=RETRY_S,
        ) from None


async def others_first(request: web.Request) -> None:
    """Lets others use the event loop between two steps with a large body, each of which takes some 20 ms."""
    for _ in range(ROUNDS if _BODY in request else 0):
        await asyncio.sleep(0)


def release_body(request: web.Request) -> None:
    """Releases the room of a body whose content is stored. May be called again."""
    if (lease := request.get(_BODY)) is not None:
        lease.release()


def release(request: web.Request) -> None:
    """Releases the room of an answer that is written, or is not wanted after all."""
    while leases := request[_LEASES]:
        leases.pop().release()


async def reserve_task(request: web.Request, control: Control, task_id: str) -> None:
    """Reserves room before the task is read for an answer. Raises Busy."""
    _reserve(request, control, await control.tasks.weigh(task_id))


async def reserve_page(request: web.Request, control: Control, which: TaskFilter) -> None:
    """Reserves room before the page is read for an answer. Raises Busy, and InvalidRequest for a wrong cursor."""
    _reserve(request, control, await control.tasks.weigh(which))


async def with_room(request: web.Request, control: Control, act: Awaitable[Task]) -> Task:
    """Returns the task of `act`, once there is room for it. It is read again then: waiting takes no memory."""
    task = await act
    if request[_LEASES] or not has_large(task):
        return task
    task_id = task.id
    del task
    for one in await control.tasks.weigh(task_id):
        request[_LEASES].append(await control.events.room.take((one.id, one.version), one.size))
    return await control.tasks.find(task_id)


def _reserve(request: web.Request, control: Control, large: list[Large]) -> None:
    for one in large:
        lease = control.events.room.take_now((one.id, one.version), one.size)
        if lease is None:
            release(request)
            raise Busy(
                "too many large answers wait for clients that read them slowly: ask again in a moment",
                retry_after=RETRY_S,
            )
        request[_LEASES].append(lease)
