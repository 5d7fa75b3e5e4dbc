"""`GET /agents`: as `list --json`; `GET /teams`."""

from aiohttp import web

from synapsed.api.answers import Team
from synapsed.api.context import ApiContext, rights_of
from synapsed.api.operation import operation
from synapsed.api.query import Flag, Query, flag
from synapsed.interfaces import Control
from synapsed.model.agent import AgentView


class AgentsQuery(Query):
    hosts: Flag = flag("those of other hosts too, as far as they can be reached")


def routes() -> list[web.RouteDef]:
    return [web.get("/agents", list_agents), web.get("/teams", list_teams)]


@operation("The agents", "as `synapsectl list --json`")
async def list_agents(request: web.Request, query: AgentsQuery, context: ApiContext) -> list[AgentView]:
    agents = [*context.control.directory.agents(), *(await context.hosts.agents() if query.hosts else ())]
    rights = rights_of(request)
    return [one if rights.may_see_agent(one.id) else one.unseen() for one in agents]


@operation("The teams", "each with its members")
async def list_teams(request: web.Request, control: Control) -> list[Team]:
    teams = control.directory.teams()
    return [Team(name=name, members=members) for name, members in teams.items()]
