"""Who asks, and from where, for what becomes an event."""

from aiohttp import web

from synapsed.api.context import rights_of
from synapsed.api.security import on_unix
from synapsed.model.events import Origin, Where


def origin_of(request: web.Request) -> Origin:
    rights = rights_of(request)
    where: Where = "control" if on_unix(request) else "http"
    return Origin("person" if rights.person else "agent", who=rights.agent_id, where=where)
