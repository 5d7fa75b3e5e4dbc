"""`GET /agents`: as `list --json`."""

from aiohttp import web
from pydantic import TypeAdapter

from synapsed.api.body import model_response
from synapsed.api.context import CONTEXT
from synapsed.api.describe import Answer, describe
from synapsed.model.agent import AgentView

__all__ = ["routes"]

_AGENTS = TypeAdapter(list[AgentView])


def routes() -> list[web.RouteDef]:
    return [web.get("/agents", list_agents)]


@describe("The agents", Answer("as `synapsectl list --json`", list[AgentView]))
async def list_agents(request: web.Request) -> web.Response:
    return model_response(_AGENTS, request.app[CONTEXT].control.agents())
