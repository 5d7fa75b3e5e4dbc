"""`GET /metrics`: the metrics, for Prometheus."""

from aiohttp import hdrs, web

from synapsed.api.operation import Response, operation
from synapsed.parts.telemetry.pipeline import Telemetry

METRICS_TYPES = ("text/plain", "application/openmetrics-text")


@operation(
    "Metrics, for Prometheus", Response("Prometheus' text format, or OpenMetrics by `Accept`", media=METRICS_TYPES)
)
async def metrics(request: web.Request, telemetry: Telemetry) -> web.Response:
    """Returns the metrics, for callers that may list the agents, and for the token in `state/metrics-token`."""
    if telemetry.metrics is None:
        raise web.HTTPNotFound
    accept = ",".join(request.headers.getall(hdrs.ACCEPT, ()))
    content_type, document = await telemetry.metrics.scrape(accept)
    return web.Response(body=document, headers={hdrs.CONTENT_TYPE: content_type})
