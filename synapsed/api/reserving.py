"""Room for large answers: taken before they are read from the store, kept until they are written.

Who asks for one where there is no room is refused, and comes again. What was done is not undone by a refusal: the
answer to that waits for room.
"""

from collections.abc import Awaitable
from typing import Final

from aiohttp import web

from synapsed.api.problems import Handler
from synapsed.documents.budget import Large, Lease
from synapsed.documents.writing import has_large
from synapsed.errors import Busy
from synapsed.interfaces import Control, TaskFilter
from synapsed.model.task import Task

RETRY_S: Final = 5
"""What a client is told to wait."""
_LEASES: Final = web.RequestKey("LEASES", list[Lease])


@web.middleware
async def reserving(request: web.Request, handler: Handler) -> web.StreamResponse:
    """What a request has reserved ends with it."""
    request[_LEASES] = []
    try:
        return await handler(request)
    finally:
        release(request)


def release(request: web.Request) -> None:
    """What it reserved is written, or is not wanted after all."""
    while leases := request[_LEASES]:
        leases.pop().release()


async def reserve_task(request: web.Request, control: Control, task_id: str) -> None:
    """Before the task is read for an answer. Raises Busy."""
    _reserve(request, control, await control.tasks.weigh(task_id))


async def reserve_page(request: web.Request, control: Control, which: TaskFilter) -> None:
    """Before the page is read for an answer. Raises Busy, and InvalidRequest for what is no cursor."""
    _reserve(request, control, await control.tasks.weigh(which))


async def with_room(request: web.Request, control: Control, act: Awaitable[Task]) -> Task:
    """What `act` makes of a task, once there is room for that in the answer. It is read again then: nothing of it is
    held by whoever waits."""
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
                "answers of many megabytes are on their way to clients that have not read them; ask again",
                retry_after=RETRY_S,
            )
        request[_LEASES].append(lease)
