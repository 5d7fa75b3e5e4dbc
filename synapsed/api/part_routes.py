"""The routes of parts. Their handlers are loaded at the first request (`gate`)."""

from functools import cache
from importlib import import_module
from typing import Any, Literal

from aiohttp import web

from synapsed.api.context import CONTEXT, agent_id_of
from synapsed.api.describe import LOADS, ROUTE
from synapsed.api.route_rights import OF_AGENT_PORT
from synapsed.api.security import public
from synapsed.kernel import Face, Route


def routes(face: Face, *, at: Literal["daemon", "agent"] = "daemon", prefix: str = "") -> list[web.RouteDef]:
    """Returns the routes of one part at that place, each below `prefix`."""
    return [
        web.route(route.method, f"{prefix}{route.path}", _handler(face, route))
        for route in face.routes
        if route.at == at
    ]


def routes_on_ports(face: Face) -> list[web.RouteDef]:
    """Returns the daemon's routes that are on agents' own ports, too."""
    return [web.route(route.method, route.path, _handler(face, route)) for route in face.routes if route.on_ports]


def _handler(face: Face, route: Route) -> Any:
    module, _, name = f"{face.routes_in}.{route.handler}".rpartition(".")

    @cache
    def load() -> Any:
        return getattr(import_module(module), name)

    async def handle(request: web.Request) -> web.StreamResponse:
        await request.app[CONTEXT].parts.check(face.name)
        if route.on_ports and request.app.get(OF_AGENT_PORT, False):
            agent_id_of(request)  # refuses the port of an agent that has stopped
        answer: web.StreamResponse = await load()(request)
        return answer

    setattr(handle, LOADS, load)
    setattr(handle, ROUTE, route)
    handle.__module__ = module if "." in route.handler else f"{__name__}.{face.name}"
    return public(handle) if route.public else handle
