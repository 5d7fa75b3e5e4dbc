"""The API: its OpenAPI document, the rights that its routes take, and the events' schema."""

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, cast

from aiohttp import hdrs, web

from scripts.surface.schemas import compact, definition, untitled
from synapsed.api.app import build_agent_app, build_main_app
from synapsed.api.context import ApiContext, RequestLimits
from synapsed.api.route_rights import needs_of
from synapsed.api.security import is_public
from synapsed.model.events.json_schema import event_schema
from synapsed.parts.loading import faces

_ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}}


@cache
def _app(build: Callable[[ApiContext], web.Application]) -> web.Application:
    """An application with its routes and nothing behind them."""
    return build(cast("ApiContext", SimpleNamespace(limits=RequestLimits(), faces=faces())))


def openapi() -> Iterator[str]:
    """The document of the main listener and the Unix socket. An agent's own port serves the operations below
    `/agents/{agent}` (`routes`). Nothing where that part is not there."""
    if find_spec("synapsed.parts.openapi") is None:
        return
    told = import_module("synapsed.parts.openapi.document").document(
        _app(build_main_app), version="VERSION", server="SERVER"
    )
    for path, methods in told.pop("paths").items():
        for method, operation in methods.items():
            yield from _operation(f"{method.upper()} {path}", untitled(operation))
    components = told.pop("components")
    for name, schema in components.pop("schemas").items():
        yield from definition(f"schema {name}", schema)
    for kind, named in components.items():
        yield from (f"{kind} {name}: {compact(one)}" for name, one in named.items())
    yield from (f"tag {tag['name']}" for tag in told.pop("tags"))
    yield from (f"{key}: {compact(value)}" for key, value in told.items())


def _operation(name: str, operation: dict[str, Any]) -> Iterator[str]:
    for one in operation.pop("parameters", ()):
        place, parameter = one.pop("in"), one.pop("name")
        yield f"{name} {place} {parameter}: {compact(one)}"
    for status, response in operation.pop("responses").items():
        is_error = response.get("content") == _ERROR
        yield f"{name} response {status}: {response['description'] if is_error else compact(response)}"
    yield from (f"{name} {key}: {compact(value)}" for key, value in operation.items())


def routes() -> Iterator[str]:
    """All routes, A2A's among them, with what a device or a token needs for each."""
    for where, build in (("main", build_main_app), ("agent-port", build_agent_app)):
        for route in _app(build).router.routes():
            path = route.resource.canonical if route.resource else ""
            if route.method == hdrs.METH_HEAD and "a2a" not in path.split("/"):
                continue
            needs = needs_of(route.method, path, route.handler, agent_port=where == "agent-port")
            rights = "public" if is_public(route.handler) else "closed" if needs is None else " or ".join(sorted(needs))
            yield f"{where} {route.method} {path}: {rights}"


def events() -> Iterator[str]:
    """`GET /events/schema`."""
    told = dict(event_schema())
    for name, schema in told.pop("$defs").items():
        yield from definition(name, schema)
    yield from definition("(message)", told)
    yield f"(message) title: {told['title']}"
