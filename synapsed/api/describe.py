"""What the OpenAPI document says of a route stands at its handler: `@describe(…)`.

Paths, methods and what follows from them (an agent in the path that there may not be) need no words of their own:
`synapsed.api.openapi` takes them from the route table.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from synapsed.api.problems import Handler
from synapsed.api.query import Parameter
from synapsed.errors import SynapsedError

_KEY = "__synapsed_description__"


@dataclass(frozen=True, slots=True)
class Response:
    """A response of `media` types; `model` is any type that pydantic knows, None for what is no JSON."""

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
    summary: str
    answer: Response | Streamed
    body: type[BaseModel] | None = None
    query: tuple[Parameter, ...] = ()
    errors: tuple[type[SynapsedError], ...] = ()


def describe(
    summary: str,
    answer: Response | Streamed,
    *,
    body: type[BaseModel] | None = None,
    query: tuple[Parameter, ...] = (),
    errors: tuple[type[SynapsedError], ...] = (),
) -> Callable[[Handler], Handler]:
    """`errors` are those that do not follow from the path, the query and the body."""
    described = Description(summary=summary, answer=answer, body=body, query=query, errors=errors)

    def mark(handler: Handler) -> Handler:
        setattr(handler, _KEY, described)
        return handler

    return mark


def description_of(handler: Any) -> Description | None:
    found = getattr(handler, _KEY, None)
    return found if isinstance(found, Description) else None
