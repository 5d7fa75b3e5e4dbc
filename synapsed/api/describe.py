"""Description of a route, for the OpenAPI document and the gate; `synapsed.api.operation` puts it at the handler.

Paths, methods and their consequences (an unknown agent in the path) need no description: they are in the route table.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from synapsed.api.query import Query
from synapsed.errors import SynapsedError
from synapsed.kernel import Route

KEY = "__synapsed_description__"
LOADS = "__synapsed_loads__"
"""Attribute of a handler that stands for another one: the cached function that returns that one."""
ROUTE = "__synapsed_route__"
"""Attribute of a part's handler: its row in the part's description (`kernel.Face.routes`)."""


@dataclass(frozen=True, slots=True)
class Response:
    """A response of `media` types; `model` is any type that pydantic knows, for a handler that writes its response
    itself; for other handlers it is their return type."""

    about: str
    model: Any = None
    media: tuple[str, ...] = ("application/json",)
    headers: dict[str, str] = field(default_factory=dict)
    """Descriptions of headers by name."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """A stream of events. `websocket`: a WebSocket is possible; `sse`: server-sent events are possible. `ends`: a
    client that resumes after the last event gets 204."""

    about: str
    websocket: bool = False
    sse: bool = True
    ends: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """Description of one route. `errors` are those that do not follow from the path, the query and the body."""

    summary: str
    answer: Response | Streamed
    body: type[BaseModel] | None
    query: type[Query] | None
    errors: tuple[type[SynapsedError], ...]


async def loaded(handler: Any) -> None:
    """Returns once the handler behind this one is loaded. It is loaded in a thread: it would block the event loop."""
    load = getattr(handler, LOADS, None)
    if load is not None and not load.cache_info().currsize:
        await asyncio.to_thread(load)


def meant(handler: Any) -> Any:
    """Returns the handler that `handler` stands for, if that is loaded; else `handler` itself."""
    load = getattr(handler, LOADS, None)
    return load() if load is not None and load.cache_info().currsize else handler


def description_of(handler: Any) -> Description | None:
    found = getattr(getattr(handler, LOADS, lambda: handler)(), KEY, None)
    return found if isinstance(found, Description) else None


def route_of(handler: object) -> Route | None:
    """Returns the row of `kernel.Face.routes` for this handler; None for a handler of the kernel."""
    route: Route | None = getattr(handler, ROUTE, None)
    return route
