"""The two applications: the main listener's (and Unix socket's), and the one behind every agent's own port."""

from aiohttp import web

from synapsed.api import part_routes
from synapsed.api.connection_limits import timed
from synapsed.api.context import CONTEXT, ApiContext
from synapsed.api.event_stream import EventCache
from synapsed.api.gate import gate
from synapsed.api.memory_reservation import reserving
from synapsed.api.problems import problems
from synapsed.api.route_rights import OF_AGENT_PORT
from synapsed.api.routes import agents, control, events, health, messages, screen, status, tasks, terminal

_HARDENING = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_AGENT_ROUTES = (status, messages, tasks, screen, terminal, events)
_DAEMON_ROUTES = (health, agents, control)


def build_main_app(context: ApiContext) -> web.Application:
    """Returns the application with all agents under `/agents/{agent}`, and the daemon's own routes."""
    app = _application(context)
    for face in context.faces:
        app.add_routes(part_routes.routes(face, at="agent", prefix="/agents/{agent}"))
    for resource in _AGENT_ROUTES:
        app.add_routes(resource.routes("/agents/{agent}"))
    for resource in _DAEMON_ROUTES:
        app.add_routes(resource.routes())
    for face in context.faces:
        app.add_routes(part_routes.routes(face))
    app.add_routes(events.global_routes())
    return app


def build_agent_app(context: ApiContext) -> web.Application:
    """Returns the application with one agent's routes at the root; the port of the connection identifies the agent."""
    app = _application(context)
    for face in context.faces:
        app.add_routes(part_routes.routes(face, at="agent"))
    for resource in _AGENT_ROUTES:
        app.add_routes(resource.routes(""))
    app[OF_AGENT_PORT] = True
    for face in context.faces:
        app.add_routes(part_routes.routes_on_ports(face))
    return app


def _application(context: ApiContext) -> web.Application:
    app = web.Application(middlewares=[timed, reserving, problems, gate], client_max_size=context.limits.body)
    app[CONTEXT] = context
    app[events.ENCODED] = EventCache()
    app.on_shutdown.append(_end_streams)
    app.on_response_prepare.append(_harden)
    return app


async def _harden(request: web.Request, response: web.StreamResponse) -> None:
    """Adds headers before an answer begins, so that no browser takes it for another type, or for a page."""
    for name, value in _HARDENING.items():
        response.headers.setdefault(name, value)


async def _end_streams(app: web.Application) -> None:
    """Ends the streams before the runner waits for unfinished handlers."""
    app[CONTEXT].streams.closing.set()
