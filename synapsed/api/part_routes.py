"""The routes that parts say they have. Their handlers are loaded when one of them is first asked for (`gate`)."""

from functools import cache
from importlib import import_module
from typing import Any, Final

from aiohttp import web

from synapsed.api.context import CONTEXT
from synapsed.api.describe import LOADS, NEEDS, OF_CALLER, PARAMETERS
from synapsed.api.security import public
from synapsed.kernel import Face, Route

_METHODS: Final = {"GET": web.get, "POST": web.post, "PUT": web.put, "PATCH": web.patch, "DELETE": web.delete}


def routes(face: Face) -> list[web.RouteDef]:
    """Returns those of one part."""
    return [_METHODS[route.method](route.path, _handler(face, route)) for route in face.routes]


def _handler(face: Face, route: Route) -> Any:
    module, _, name = f"{face.routes_in}.{route.handler}".rpartition(".")

    @cache
    def load() -> Any:
        return getattr(import_module(module), name)

    async def handle(request: web.Request) -> web.StreamResponse:
        request.app[CONTEXT].parts.check(face.name)
        answer: web.StreamResponse = await load()(request)
        return answer

    setattr(handle, LOADS, load)
    setattr(handle, NEEDS, route.needs)
    setattr(handle, OF_CALLER, route.of_caller)
    setattr(handle, PARAMETERS, route.parameters)
    handle.__module__ = module if "." in route.handler else f"{__name__}.{face.name}"
    return public(handle) if route.public else handle
