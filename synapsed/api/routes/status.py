"""`GET …/status`: the seeds' status, or `status --json` with `?detail=1`; `?explain=1` adds the chain of evidence."""

from aiohttp import web
from pydantic import TypeAdapter

from synapsed.api.answers import SeedStatus, StatusDetail
from synapsed.api.body import json_response
from synapsed.api.context import CONTEXT, agent_id_of, rights_of
from synapsed.api.describe import Response, describe
from synapsed.api.query import Flag
from synapsed.model.agent import AgentDetail, Testimony, seed_status

CONTEXT_CHARACTERS = 2000
DETAIL_CHARACTERS = 20_000
DETAIL = Flag("detail", "as `synapsectl status --json`, instead of the short form")
EXPLAIN = Flag("explain", "add `explain`, the chain of evidence")
_DETAIL = TypeAdapter(AgentDetail)
_CHAIN = TypeAdapter(list[Testimony])


def routes(prefix: str) -> list[web.RouteDef]:
    return [web.get(f"{prefix}/status", status)]


@describe("How the agent does", Response("its status", SeedStatus | StatusDetail), query=(DETAIL, EXPLAIN))
async def status(request: web.Request) -> web.Response:
    """What the screen shows is left out for other agents: they may know how an agent does, not what it shows."""
    control = request.app[CONTEXT].control
    agent_id = agent_id_of(request)
    sees = rights_of(request).may_see_agent(agent_id)
    detail = control.directory.detail(agent_id)
    detail = detail if sees else detail.unseen()
    if not sees and detail.prompt is not None and detail.prompt.type == "screen":
        hidden = detail.prompt.model_copy(update={"prompt": ""})  # it is the screen
        detail = detail.model_copy(update={"prompt": hidden})
    if DETAIL.of(request):
        screen = (await control.terminals.visible(agent_id))[-DETAIL_CHARACTERS:] if sees else ""
        answer = _DETAIL.dump_python(detail.model_copy(update={"screen": screen}), mode="json")
    else:
        answer = {
            "status": seed_status(detail.state, detail.activity, asks=detail.prompt is not None),
            "context": await control.terminals.context(agent_id, CONTEXT_CHARACTERS) if sees else "",
            "activity": detail.activity.value,
            "since": detail.since,
            "evidence": detail.evidence,
            "held": detail.held,
            "queue": detail.queue,
            "task": detail.task,
            "prompt": detail.prompt.model_dump(mode="json") if detail.prompt else None,
        }
    if EXPLAIN.of(request):
        # It quotes titles, prompts and rows of the screen.
        answer["explain"] = _CHAIN.dump_python(await control.directory.explain(agent_id), mode="json") if sees else []
    return json_response(answer)
