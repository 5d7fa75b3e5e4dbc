"""`GET …/status`: the short status, or `status --json` with `?detail=1`; `?explain=1` adds evidence."""

from aiohttp import web

from synapsed.api.context import agent_id_of, rights_of
from synapsed.api.operation import operation
from synapsed.api.query import Flag, Query, flag
from synapsed.api.response_models import SeedStatus, StatusDetail
from synapsed.interfaces import Control
from synapsed.model.agent import seed_status

CONTEXT_CHARACTERS = 2000
DETAIL_CHARACTERS = 20_000


class StatusQuery(Query):
    detail: Flag = flag("as `synapsectl status --json`, instead of the short form")
    explain: Flag = flag("add `explain`, the chain of evidence")


def routes(prefix: str) -> list[web.RouteDef]:
    return [web.get(f"{prefix}/status", status)]


@operation("How the agent does", "its status")
async def status(request: web.Request, query: StatusQuery, control: Control) -> SeedStatus | StatusDetail:
    """Returns the status. The content of the screen is left out for other agents; of a question they learn the kind,
    unless they may answer it."""
    agent_id = agent_id_of(request)
    sees = rights_of(request).may_see_agent(agent_id)
    detail = rights_of(request).seen(control.directory.detail(agent_id))
    explain = None
    if query.explain:  # it quotes titles, prompts and rows of the screen
        explain = await control.directory.explain(agent_id) if sees else []
    if query.detail:
        screen = (await control.terminals.visible(agent_id))[-DETAIL_CHARACTERS:] if sees else ""
        gone = await control.directory.gone(agent_id) if sees else []
        return StatusDetail.model_construct(**{**detail.__dict__, "screen": screen, "gone": gone}, explain=explain)
    return SeedStatus(
        status=seed_status(detail.state, detail.activity, asks=detail.prompt is not None),
        context=await control.terminals.context(agent_id, CONTEXT_CHARACTERS) if sees else "",
        activity=detail.activity.value,
        since=detail.since,
        evidence=detail.evidence,
        held=detail.held,
        queue=detail.queue,
        background=detail.background,
        task=detail.task,
        prompt=detail.prompt,
        explain=explain,
    )
