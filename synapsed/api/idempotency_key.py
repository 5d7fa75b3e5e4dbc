"""Does the action of a request once, even if the request comes more than once (`Idempotency-Key`)."""

from collections.abc import Callable, Coroutine
from typing import Any

from aiohttp import web
from pydantic import BaseModel

from synapsed.api.context import CONTEXT, origin_of, to_the_end
from synapsed.api.sending import key_of


async def once[T: BaseModel](
    request: web.Request,
    what: str,
    body: BaseModel,
    act: Callable[[], Coroutine[Any, Any, T]],
    kind: type[T],
    *,
    agent_id: str,
) -> T:
    """Returns the answer of `act`, which is done once for the same key of the same caller, `what` and agent. Without a
    key it is done each time."""
    if (key := key_of(request)) is None:
        return await to_the_end(act())
    who = origin_of(request).who or "person"
    born = request.app[CONTEXT].control.events.born
    since = max(born(who), born(agent_id))  # actions for, or on, a removed agent do not belong to another one
    whose = f"{who}\0{what}\0{key}" + (f"\0{since}" if since else "")
    return await request.app[CONTEXT].acts.once(whose, body, act, kind)
