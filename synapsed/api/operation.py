"""`@operation(…)`: turns a function with typed arguments and a typed answer into the handler of a route.

Its signature defines both: `body` and `query` are read as the models of their annotations, `context` and `control` are
the daemon's, any other name is the object that a part provides for the type of its annotation, and the return value is
written as JSON, as the model of its annotation. The OpenAPI document describes the route by the same signature.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, Final, get_args, get_origin, get_type_hints

from aiohttp import web

from synapsed.api.body import read_model
from synapsed.api.context import CONTEXT, agent_id_of, rights_of
from synapsed.api.describe import KEY, Description, Response, Streamed
from synapsed.api.problems import Handler
from synapsed.api.slow_readers import respond
from synapsed.errors import SynapsedError

__all__ = ["Response", "Streamed", "WithHeaders", "granted", "operation", "person"]

_OWN: Final[dict[str, Callable[[web.Request], Any]]] = {
    "context": lambda request: request.app[CONTEXT],
    "control": lambda request: request.app[CONTEXT].control,
}
"""Arguments that a handler may have besides those read from the request."""
_READ: Final = frozenset({"request", "body", "query", "return"})


@dataclass(frozen=True, slots=True)
class WithHeaders[T]:
    """An answer with headers of its own."""

    answer: T
    headers: dict[str, str] = field(default_factory=dict)


def person(act: str) -> Callable[[web.Request], None]:
    """Returns a check that only persons pass; `act` completes "an agent may not …"."""
    return lambda request: rights_of(request).require_person(act)


def granted(right: str, act: str) -> Callable[[web.Request], None]:
    """Returns a check that lets persons pass, and agents with `right` that are not the agent of the path."""
    return lambda request: rights_of(request).require(right, act, of=agent_id_of(request))


def operation(
    summary: str,
    answer: str | Response | Streamed,
    *,
    allowed: Callable[[web.Request], object] | None = None,
    errors: tuple[type[SynapsedError], ...] = (),
) -> Callable[[Callable[..., Awaitable[Any]]], Handler]:
    """Marks a handler. `allowed` is called before anything is read, and raises the refusal; `errors` are those that do
    not follow from the path, the query and the body."""

    def mark(handler: Callable[..., Awaitable[Any]]) -> Handler:
        hints = get_type_hints(handler)
        body, query, model = hints.get("body"), hints.get("query"), hints["return"]
        own = {name: _OWN.get(name) or _provided(hint) for name, hint in hints.items() if name not in _READ}

        @wraps(handler)
        async def handle(request: web.Request) -> web.StreamResponse:
            if allowed is not None:
                allowed(request)
            given: dict[str, Any] = {}
            if body is not None:
                given["body"] = await read_model(request, body)
            if query is not None:
                given["query"] = query.of(request)
            given |= {name: read(request) for name, read in own.items()}
            answering = handler(request, **given)
            given.clear()  # a body may be large, and the reader of the answer slow
            return await _written(request, await answering)

        told = Response(answer) if isinstance(answer, str) else answer
        writes_itself = isinstance(model, type) and issubclass(model, web.StreamResponse)
        if isinstance(told, Response) and told.model is None and not writes_itself:
            told = replace(told, model=get_args(model)[0] if get_origin(model) is WithHeaders else model)
        setattr(handle, KEY, Description(summary=summary, answer=told, body=body, query=query, errors=errors))
        return handle

    return mark


def _provided(kind: type) -> Callable[[web.Request], Any]:
    return lambda request: request.app[CONTEXT].parts.provided(kind)


async def _written(request: web.Request, answer: Any) -> web.StreamResponse:
    """Returns the answer as JSON."""
    if isinstance(answer, web.StreamResponse):
        return answer
    if isinstance(answer, WithHeaders):
        return await respond(request, answer.answer, headers=answer.headers)
    return await respond(request, answer)
