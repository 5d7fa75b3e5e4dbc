"""The two applications: the main listener's (and Unix socket's), and the one behind every agent's own port."""

import os

from aiohttp import web

from synapsed.a2a.externals import Externals
from synapsed.a2a.hosts.hosts import Hosts
from synapsed.a2a.push.sender import PushSender
from synapsed.aio import Pace
from synapsed.api.caching import Changes
from synapsed.api.context import CONTEXT, ApiContext, RequestLimits, Streams
from synapsed.api.eventstream import EventCache
from synapsed.api.gate import gate
from synapsed.api.guard import timed
from synapsed.api.problems import problems
from synapsed.api.reserving import reserving
from synapsed.api.routes import (
    a2a,
    agents,
    control,
    events,
    external,
    health,
    history,
    host,
    hosts,
    inbox,
    messages,
    openapi,
    schedules,
    screen,
    status,
    tasks,
    terminal,
)
from synapsed.api.sdk import A2aSdk
from synapsed.api.security import Security
from synapsed.automation.health import Health
from synapsed.automation.inbox import PersonInbox
from synapsed.automation.scheduler import Scheduler
from synapsed.clock import Clock
from synapsed.documents.writing import Texts
from synapsed.interfaces import Control
from synapsed.interfaces.history import History
from synapsed.paths import Paths
from synapsed.telemetry.metrics import Metrics

PIECES_AT_ONCE = 8
"""How many write in one turn of the event loop; a piece takes some 0.1 ms."""

_HARDENING = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_AGENT_ROUTES = (a2a, status, messages, tasks, screen, terminal, events)


def build_context(
    *,
    control: Control,
    externals: Externals,
    hosts: Hosts,
    scheduler: Scheduler,
    attention: PersonInbox,
    security: Security,
    clock: Clock,
    paths: Paths,
    version: str,
    limits: RequestLimits | None = None,
    pushes: PushSender | None = None,
    metrics: Metrics | None = None,
    traced: float | None = None,
    repeats: bool = True,
    texts: Texts | None = None,
    history: History | None = None,
    health: Health | None = None,
) -> ApiContext:
    """What both applications share. Call it in the running event loop. `repeats`: see `a2a.operations`; `texts`: the
    store's, so that what it has encoded is not encoded again; `health`: without it, that of a configuration without
    rules."""
    limits = limits or RequestLimits()
    return ApiContext(
        control=control,
        externals=externals,
        hosts=hosts,
        scheduler=scheduler,
        attention=attention,
        health=health or Health(control.directory, scheduler),
        security=security,
        clock=clock,
        streams=Streams(limits.streams),
        sdk=A2aSdk(control.tasks, control.events, pushes, repeats=repeats),
        changes=Changes(clock),
        limits=limits,
        texts=texts or Texts(),
        pace=Pace(PIECES_AT_ONCE),
        version=version,
        paths=paths,
        started=clock.monotonic(),
        history=history,
        metrics=metrics,
        traced=traced,
        pid=os.getpid(),
    )


def build_main_app(context: ApiContext) -> web.Application:
    """All agents under `/agents/{agent}`, and the daemon's own routes."""
    app = _application(context)
    for resource in _AGENT_ROUTES:
        app.add_routes(resource.routes("/agents/{agent}"))
    for resource in (health, host, openapi, agents, inbox, external, hosts, schedules, history, control):
        app.add_routes(resource.routes())
    app.add_routes(events.global_routes())
    return app


def build_agent_app(context: ApiContext) -> web.Application:
    """One agent's routes at the root; which agent it is, the port of the connection says."""
    app = _application(context)
    for resource in _AGENT_ROUTES:
        app.add_routes(resource.routes(""))
    app.add_routes(external.agent_routes())
    app.add_routes(openapi.routes())
    return app


def _application(context: ApiContext) -> web.Application:
    app = web.Application(middlewares=[timed, reserving, problems, gate], client_max_size=context.limits.body)
    app[CONTEXT] = context
    app[events.ENCODED] = EventCache()
    app.on_shutdown.append(_end_streams)
    app.on_response_prepare.append(_harden)
    return app


async def _harden(request: web.Request, response: web.StreamResponse) -> None:
    """Before an answer begins. No browser takes one for what it does not say it is, nor for a page."""
    for name, value in _HARDENING.items():
        response.headers.setdefault(name, value)


async def _end_streams(app: web.Application) -> None:
    """Before the runner waits for the handlers that are still at work."""
    app[CONTEXT].streams.close()
