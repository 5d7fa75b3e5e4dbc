"""The host of the agents: its card, the catalogs, and one JSON-RPC endpoint where a request names its agent."""

from collections.abc import Sequence
from typing import Any

from aiohttp import hdrs, web

from synapsed.api import CONTEXT, ApiContext, Standing, base_url, document, refusing_as, rights_of
from synapsed.api.operation import Response, operation
from synapsed.documents.writing import encode_json
from synapsed.errors import AmbiguousAddress, UnknownAgent
from synapsed.interfaces import AgentView, Control
from synapsed.parts.a2a.a2a_http import rest_problem, rpc_problem
from synapsed.parts.a2a.a2a_loading import A2aSdk
from synapsed.parts.a2a.card import AI_CATALOG_TYPE, LINKSET_TYPE, ai_catalog, api_catalog, host_card
from synapsed.parts.a2a.routes.a2a import CARD, answer, answer_rest

_ETAG = {"ETag": "of the document"}
VARY = f"{hdrs.HOST}, {hdrs.AUTHORIZATION}"


@operation("The host's A2A card", CARD)
async def card(request: web.Request, context: ApiContext, sdk: A2aSdk) -> web.Response:
    """Returns the host's card. A caller that needs a token and has none does not see the agents in it."""
    rights = rights_of(request)
    agents = [] if rights.standing is Standing.NONE else _agents(request)
    if rights.grant is not None:
        agents = [agent for agent in agents if rights.grant.covers(agent.name)]
    told = host_card(agents, base=base_url(request), version=context.version, pushes=sdk.pushes)
    return document(request, context.changes, encode_json(told), vary=VARY)


@operation(
    "The agents as an AI Catalog", Response("a catalog", dict[str, Any], media=(AI_CATALOG_TYPE,), headers=_ETAG)
)
async def agents_catalog(request: web.Request, context: ApiContext) -> web.Response:
    body = encode_json(ai_catalog(_agents(request), base=base_url(request)))
    return document(request, context.changes, body, AI_CATALOG_TYPE, vary=VARY)


@operation(
    "The APIs of this host (RFC 9727)", Response("a linkset", dict[str, Any], media=(LINKSET_TYPE,), headers=_ETAG)
)
async def apis_catalog(request: web.Request, context: ApiContext) -> web.Response:
    body = encode_json(api_catalog(_agents(request), base=base_url(request)))
    return document(request, context.changes, body, LINKSET_TYPE, vary=VARY)


@refusing_as(rpc_problem)
async def rpc(request: web.Request) -> web.StreamResponse:
    """Answers a request of A2A 1.0: `params.tenant` is the agent's address, and may be left out if there is only
    one."""
    control = request.app[CONTEXT].control
    return await answer(request, lambda body: _addressed(control, body))


@refusing_as(rest_problem)
async def rest(request: web.Request) -> web.StreamResponse:
    """Answers a request of A2A 1.0 over HTTP+JSON, with the agent's address before the path:
    `/a2a/rest/{tenant}/message:send`."""
    control = request.app[CONTEXT].control
    path = f"/{request.match_info['path']}"
    tenant = path.split("/", 2)[1]
    agents = control.directory.agents()
    if tenant.split(":")[0] in ("message", "tasks", "extendedAgentCard") and len(agents) == 1:
        return await answer_rest(request, agents[0].id, path)
    return await answer_rest(request, control.directory.resolve(tenant), path)


def _addressed(control: Control, body: Any) -> str:
    """Returns the agent that the request is for. Raises SynapsedError."""
    params = body.get("params") if isinstance(body, dict) else None
    tenant = params.get("tenant") if isinstance(params, dict) else None
    if isinstance(tenant, str) and tenant:
        return control.directory.resolve(tenant)
    agents = control.directory.agents()
    if len(agents) == 1:
        return agents[0].id
    names = sorted(agent.name for agent in agents)
    if not names:
        raise UnknownAgent("there is no agent here; start one with 'synapsectl start PROFILE'")
    raise AmbiguousAddress(f"tenant: name one of {', '.join(names)}", field="tenant", candidates=names)


def _agents(request: web.Request) -> Sequence[AgentView]:
    return request.app[CONTEXT].control.directory.agents()
