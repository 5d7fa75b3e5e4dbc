"""`/healthz` and `/whoami`."""

from typing import Literal

from aiohttp import web

from synapsed.api.context import ApiContext, rights_of
from synapsed.api.operation import operation
from synapsed.api.response_models import HealthAnswer, WhoAnswer
from synapsed.api.security import public


def routes() -> list[web.RouteDef]:
    return [web.get("/healthz", healthz), web.get("/whoami", whoami)]


@public
@operation("Whether the daemon lives", "it does")
async def healthz(request: web.Request, context: ApiContext) -> HealthAnswer:
    return HealthAnswer(status="ok", version=context.version)


@operation("Whom the daemon takes the caller for", "a person, or which agent")
async def whoami(request: web.Request) -> WhoAnswer:
    rights = rights_of(request)
    standing: Literal["person", "agent"] = "person" if rights.person else "agent"
    return WhoAnswer(standing=standing, agent=rights.agent_id, rights=sorted(rights.granted))
