"""`/healthz`, `/metrics`, and `/whoami`."""

from typing import Literal

from aiohttp import hdrs, web

from synapsed.api.context import ApiContext, rights_of
from synapsed.api.describe import Response
from synapsed.api.operation import operation
from synapsed.api.response_models import HealthAnswer, WhoAnswer
from synapsed.api.security import public, scraped

METRICS_TYPES = ("text/plain", "application/openmetrics-text")


def routes() -> list[web.RouteDef]:
    return [web.get("/healthz", healthz), web.get("/metrics", metrics), web.get("/whoami", whoami)]


@public
@operation("Whether the daemon lives", "it does")
async def healthz(request: web.Request, context: ApiContext) -> HealthAnswer:
    return HealthAnswer(status="ok", version=context.version)


@scraped
@operation(
    "Metrics, for Prometheus", Response("Prometheus' text format, or OpenMetrics by `Accept`", media=METRICS_TYPES)
)
async def metrics(request: web.Request, context: ApiContext) -> web.Response:
    """For whoever may list the agents, and for the token in `state/metrics-token`."""
    if context.metrics is None:
        raise web.HTTPNotFound
    accept = ",".join(request.headers.getall(hdrs.ACCEPT, ()))
    content_type, document = await context.metrics.scrape(accept, subscribers=context.streams.open)
    return web.Response(body=document, headers={hdrs.CONTENT_TYPE: content_type})


@operation("Whom the daemon takes the caller for", "a person, or which agent")
async def whoami(request: web.Request) -> WhoAnswer:
    rights = rights_of(request)
    standing: Literal["person", "agent"] = "person" if rights.person else "agent"
    return WhoAnswer(standing=standing, agent=rights.agent_id, rights=sorted(rights.granted))
