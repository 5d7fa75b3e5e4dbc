"""`/healthz`, `/metrics`, and `/whoami`."""

from collections.abc import Sequence

from aiohttp import web

from synapsed.api.answers import Health, WhoAnswer
from synapsed.api.body import json_response
from synapsed.api.context import CONTEXT, ApiContext, rights_of
from synapsed.api.describe import Answer, describe
from synapsed.api.security import public
from synapsed.model.agent import ProcessState

__all__ = ["routes"]

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def routes() -> list[web.RouteDef]:
    return [web.get("/healthz", healthz), web.get("/metrics", metrics), web.get("/whoami", whoami)]


@public
@describe("Whether the daemon lives", Answer("it does", Health))
async def healthz(request: web.Request) -> web.Response:
    return json_response({"status": "ok", "version": request.app[CONTEXT].version})


@describe("Metrics, for Prometheus", Answer("Prometheus' text format", media=("text/plain",)))
async def metrics(request: web.Request) -> web.Response:
    text = "\n".join(_metrics(request.app[CONTEXT])) + "\n"
    return web.Response(body=text.encode(), headers={"Content-Type": METRICS_TYPE})


@describe("Whom the daemon takes the caller for", Answer("a person, or which agent", WhoAnswer))
async def whoami(request: web.Request) -> web.Response:
    rights = rights_of(request)
    standing = "person" if rights.person else "agent"
    return json_response({"standing": standing, "agent": rights.agent_id, "rights": sorted(rights.granted)})


def _metrics(context: ApiContext) -> list[str]:
    """Prometheus' text format."""
    agents = context.control.agents()
    lines = _metric("synapsed_info", "gauge", "The daemon's version.", [({"version": context.version}, 1)])
    uptime = context.clock.monotonic() - context.started
    lines += _metric("synapsed_uptime_seconds", "gauge", "Time since the daemon began.", [({}, round(uptime, 3))])
    lines += _metric("synapsed_events_total", "counter", "Events in the log.", [({}, context.control.events.last_id)])
    lines += _metric("synapsed_open_streams", "gauge", "SSE streams and WebSockets.", [({}, context.streams.open)])
    states = [({"state": state.value}, sum(a.state is state for a in agents)) for state in ProcessState]
    lines += _metric("synapsed_agents", "gauge", "Agents by state of their process.", states)
    queues = [({"agent": agent.name}, agent.queue) for agent in agents]
    lines += _metric("synapsed_agent_queue", "gauge", "Messages that wait for the agent.", queues)
    restarts = [({"agent": agent.name}, agent.restarts) for agent in agents]
    return lines + _metric("synapsed_agent_restarts_total", "counter", "Restarts by the policy.", restarts)


def _metric(name: str, kind: str, about: str, samples: Sequence[tuple[dict[str, str], float]]) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}", *(_sample(name, *sample) for sample in samples)]


def _sample(name: str, labels: dict[str, str], value: float) -> str:
    pairs = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
    return f"{name}{{{pairs}}} {value}" if pairs else f"{name} {value}"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
