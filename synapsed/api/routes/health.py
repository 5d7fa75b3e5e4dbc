"""`/healthz`, `/metrics`, and `/whoami`."""

from aiohttp import hdrs, web

from synapsed.api.answers import HealthAnswer, WhoAnswer
from synapsed.api.body import json_response
from synapsed.api.context import CONTEXT, rights_of
from synapsed.api.describe import Response, describe
from synapsed.api.security import public, scraped

METRICS_TYPES = ("text/plain", "application/openmetrics-text")


def routes() -> list[web.RouteDef]:
    return [web.get("/healthz", healthz), web.get("/metrics", metrics), web.get("/whoami", whoami)]


@public
@describe("Whether the daemon lives", Response("it does", HealthAnswer))
async def healthz(request: web.Request) -> web.Response:
    return json_response({"status": "ok", "version": request.app[CONTEXT].version})


@scraped
@describe(
    "Metrics, for Prometheus", Response("Prometheus' text format, or OpenMetrics by `Accept`", media=METRICS_TYPES)
)
async def metrics(request: web.Request) -> web.Response:
    """For whoever may list the agents, and for the token in `state/metrics-token`."""
    context = request.app[CONTEXT]
    if context.metrics is None:
        raise web.HTTPNotFound
    accept = ",".join(request.headers.getall(hdrs.ACCEPT, ()))
    content_type, document = await context.metrics.scrape(accept, subscribers=context.streams.open)
    return web.Response(body=document, headers={hdrs.CONTENT_TYPE: content_type})


@describe("Whom the daemon takes the caller for", Response("a person, or which agent", WhoAnswer))
async def whoami(request: web.Request) -> web.Response:
    rights = rights_of(request)
    standing = "person" if rights.person else "agent"
    return json_response({"standing": standing, "agent": rights.agent_id, "rights": sorted(rights.granted)})
