"""`GET …/status`: the seeds' status, or `status --json` with `?detail=1`."""

from aiohttp import web
from pydantic import TypeAdapter

from synapsed.api.body import json_response, model_response
from synapsed.api.context import CONTEXT, agent_id_of, rights_of
from synapsed.model.agent import AgentDetail, seed_status

__all__ = ["routes"]

CONTEXT_CHARACTERS = 2000
_DETAIL = TypeAdapter(AgentDetail)


def routes(prefix: str) -> list[web.RouteDef]:
    return [web.get(f"{prefix}/status", status)]


async def status(request: web.Request) -> web.Response:
    """What the screen shows is left out for other agents: they may know how an agent does, not what it shows."""
    control = request.app[CONTEXT].control
    agent_id = agent_id_of(request)
    sees = rights_of(request).may_see_agent(agent_id)
    detail = control.detail(agent_id)
    if request.query.get("detail", "0") not in ("", "0", "false"):
        return model_response(_DETAIL, detail if sees else detail.model_copy(update={"screen": ""}))
    return json_response(
        {
            "status": seed_status(detail.state, detail.activity),
            "context": control.context(agent_id, CONTEXT_CHARACTERS) if sees else "",
            "activity": detail.activity.value,
            "since": detail.since,
            "evidence": detail.evidence,
            "held": detail.held,
            "queue": detail.queue,
            "task": detail.task,
            "prompt": detail.prompt.model_dump(mode="json") if detail.prompt else None,
        }
    )
