"""`GET /agents`: the rows of `list --json`; `GET /teams`."""

from aiohttp import web

from synapsed.api.context import ApiContext, rights_of
from synapsed.api.operation import operation
from synapsed.api.query import Flag, Query, flag
from synapsed.api.response_models import Team
from synapsed.interfaces import AgentSource
from synapsed.model.agent import AgentView


class AgentsQuery(Query):
    hosts: Flag = flag("those of other hosts too, as far as they can be reached")


def routes() -> list[web.RouteDef]:
    return [web.get("/agents", list_agents), web.get("/teams", list_teams)]


@operation("The agents", "as `synapsectl list --json`")
async def list_agents(request: web.Request, query: AgentsQuery, context: ApiContext) -> list[AgentView]:
    agents = context.control.directory.agents()
    if query.hosts:
        agents += await elsewhere(context)
    rights = rights_of(request)
    return [rights.seen(one) for one in agents]


async def elsewhere(context: ApiContext) -> list[AgentView]:
    """Returns the agents of the other hosts. An agent of several parts is listed by the last of them, which also
    carries its messages."""
    found: dict[str, AgentView] = {}
    for source in reversed(context.parts.all(AgentSource)):
        for one in await source.agents():
            found.setdefault(one.name, one)
    return list(found.values())


class TeamsQuery(Query):
    hosts: Flag = flag("their members on other hosts of the fleet too, as addresses")


@operation("The teams", "each with its members")
async def list_teams(request: web.Request, query: TeamsQuery, context: ApiContext) -> list[Team]:
    teams = dict(context.control.directory.teams())
    for source in context.parts.all(AgentSource) if query.hosts else ():
        for name, members in (await source.teams()).items():
            teams[name] = [*teams.get(name, ()), *members]
    return [Team(name=name, members=members) for name, members in teams.items()]
