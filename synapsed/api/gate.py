"""The gate in front of every route (docs/security.md)."""

from dataclasses import replace

from aiohttp import web

from synapsed.api.context import CONTEXT, RIGHTS
from synapsed.api.describe import loaded
from synapsed.api.problems import Handler
from synapsed.api.rights import Rights, Standing
from synapsed.api.route_rights import check_needs
from synapsed.api.security import is_public, on_unix
from synapsed.errors import Forbidden, Unauthorized

_READING = frozenset({"GET", "HEAD"})


@web.middleware
async def gate(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuses a request, or passes it on with its rights. Its errors go to `problems`."""
    security = request.app[CONTEXT].security
    await loaded(request.match_info.handler)
    security.check_form(request)
    rights = await security.rights(request)
    _check_known(rights, request)
    if rights.grant is None and request.path.startswith("/control/") and not security.has_control(request):
        raise Forbidden("control answers on the Unix socket, or with the control token")
    check_needs(request, rights)  # for a grant, the table of routes decides about control, too
    if rights.agent_id is not None:
        rights = replace(rights, granted=request.app[CONTEXT].control.directory.granted(rights.agent_id))
    if rights.person and request.method not in _READING and on_unix(request):
        request.app[CONTEXT].parts.acted()
    request[RIGHTS] = rights
    if rights.grant is None:
        return await handler(request)
    with security.bearers.at_work(rights.grant, request):
        return await handler(request)


def _check_known(rights: Rights, request: web.Request) -> None:
    """Raises Unauthorized if an unknown caller asks for a route that is not public."""
    if rights.standing is not Standing.NONE or is_public(request.match_info.handler):
        return
    if rights.route is None:
        raise Unauthorized("connections from other machines need a token")
    if rights.route != request.path:
        raise Unauthorized(f"this token reads {rights.route}, and nothing else")


def base_url(request: web.Request) -> str:
    """Returns `http://host:port` as the client has it: on the Unix socket, which has no URL, the main listener's."""
    if on_unix(request):
        listening = request.app[CONTEXT].listening
        return f"http://{listening[0]}" if listening else "http://localhost"
    return request.app[CONTEXT].security.origin(request)
