"""Requests that type something, which may come more than once (`Idempotency-Key`)."""

from collections.abc import Callable, Coroutine
from typing import Any

from aiohttp import web
from pydantic import BaseModel

from synapsed.api.context import CONTEXT, origin_of, to_the_end
from synapsed.api.sending import key_of


async def once[T: BaseModel](
    request: web.Request, what: str, body: BaseModel, act: Callable[[], Coroutine[Any, Any, T]], kind: type[T]
) -> T:
    """What `act` answers: under the same key of the same caller it is done once to `what`. Without a key it is done."""
    if (key := key_of(request)) is None:
        return await to_the_end(act())
    who = origin_of(request).who or "person"
    return await request.app[CONTEXT].acts.once(f"{who}\0{what}\0{key}", body, act, kind)
