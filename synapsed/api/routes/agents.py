"""`GET /agents`: as `list --json`; `GET /teams`."""

from aiohttp import web
from pydantic import TypeAdapter

from synapsed.api.answers import Team
from synapsed.api.body import json_response, model_response
from synapsed.api.context import CONTEXT, rights_of
from synapsed.api.describe import Response, describe
from synapsed.api.query import Flag
from synapsed.model.agent import AgentView

HOSTS = Flag("hosts", "those of other hosts too, as far as they can be reached")
_AGENTS = TypeAdapter(list[AgentView])


def routes() -> list[web.RouteDef]:
    return [web.get("/agents", list_agents), web.get("/teams", list_teams)]


@describe("The agents", Response("as `synapsectl list --json`", list[AgentView]), query=(HOSTS,))
async def list_agents(request: web.Request) -> web.Response:
    context = request.app[CONTEXT]
    agents = context.control.directory.agents()
    if HOSTS.of(request):
        agents = [*agents, *await context.hosts.agents()]
    rights = rights_of(request)
    return model_response(_AGENTS, [one if rights.may_see_agent(one.id) else one.unseen() for one in agents])


@describe("The teams", Response("each with its members", list[Team]))
async def list_teams(request: web.Request) -> web.Response:
    teams = request.app[CONTEXT].control.directory.teams()
    return json_response([{"name": name, "members": members} for name, members in teams.items()])
