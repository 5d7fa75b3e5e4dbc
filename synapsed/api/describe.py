"""What the OpenAPI document says of a route, and the gate asks of it; `synapsed.api.operation` puts it at the handler.

Paths, methods and what follows from them (an agent in the path that there may not be) need no words of their own:
`synapsed.api.openapi_document` takes them from the route table.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from synapsed.api.query import Query
from synapsed.errors import SynapsedError

KEY = "__synapsed_description__"
LOADS = "__synapsed_loads__"
"""At a handler that stands for another one, which this gives; cached."""
NEEDS = "__synapsed_needs__"
"""At a handler of a part: rights of a grant, of which any is enough; None: it is closed to grants."""
OF_CALLER = "__synapsed_of_caller__"
"""At a handler of a part: whether a grant for some agents is enough."""
PARAMETERS = "__synapsed_parameters__"
"""At a handler of a part: what the parameters of its path are."""
DESCRIBED = "__synapsed_described__"
"""At a handler of a part: whether the document describes it."""


@dataclass(frozen=True, slots=True)
class Response:
    """A response of `media` types; `model` is any type that pydantic knows, for a handler that writes it itself: of
    the others it is what they return."""

    about: str
    model: Any = None
    media: tuple[str, ...] = ("application/json",)
    headers: dict[str, str] = field(default_factory=dict)
    """Name → what it says."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """Server-sent events; `websocket`: a WebSocket can be had instead, and `sse` whether these can be had at all.
    `ends`: who resumes where nothing will follow gets 204."""

    about: str
    websocket: bool = False
    sse: bool = True
    ends: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """`errors` are those that do not follow from the path, the query and the body."""

    summary: str
    answer: Response | Streamed
    body: type[BaseModel] | None
    query: type[Query] | None
    errors: tuple[type[SynapsedError], ...]


async def loaded(handler: Any) -> None:
    """Returns once that is there for which a handler stands. It is loaded in a thread: that takes longer than the event
    loop has."""
    load = getattr(handler, LOADS, None)
    if load is not None and not load.cache_info().currsize:
        await asyncio.to_thread(load)


def meant(handler: Any) -> Any:
    """Returns the handler for which this one stands, if that is loaded; else this one."""
    load = getattr(handler, LOADS, None)
    return load() if load is not None and load.cache_info().currsize else handler


def description_of(handler: Any) -> Description | None:
    found = getattr(getattr(handler, LOADS, lambda: handler)(), KEY, None)
    return found if isinstance(found, Description) else None
