"""The A2A routes of an agent: its card, its JSON-RPC endpoint and its HTTP+JSON one."""

from collections.abc import Callable
from typing import Any

from aiohttp import web

from synapsed.api import (
    ApiContext,
    agent_id_of,
    agent_of,
    document,
    others_first,
    parse_json,
    read_body,
    refusing_as,
    task_routes,
)
from synapsed.api.operation import Response, operation
from synapsed.documents.writing import encode_json
from synapsed.errors import InvalidRequest, SynapsedError
from synapsed.parts.a2a.a2a_http import (
    A2A_JSON,
    PLAIN_JSON,
    HttpCaller,
    accepted_type,
    agent_base,
    answered,
    authentication_of,
    replied,
    rest_problem,
    rpc_problem,
    said_version,
)
from synapsed.parts.a2a.a2a_loading import A2aSdk
from synapsed.parts.a2a.card import agent_card
from synapsed.parts.a2a.endpoint_types import RestRequest

CARD = Response("an A2A agent card", dict[str, Any], headers={"ETag": "of the document"})

COPIES = 2
"""Copies of a message in memory: it is held as protobuf too."""

cancel = task_routes.cancel
get_task = task_routes.get_task
provide_input = task_routes.provide_input
send_priority = task_routes.send_priority
send_subscribe = task_routes.send_subscribe
send_task = task_routes.send_task
subscribe = task_routes.subscribe


@operation("The agent's A2A card", CARD)
async def card(request: web.Request, context: ApiContext, sdk: A2aSdk) -> web.Response:
    """Returns the agent's card with ETag; `If-None-Match` is answered 304. URLs follow the address that the client
    used.

    A GET on the JSON-RPC endpoint gives it too: the compatibility kit of 0.3 looks for it there.
    """
    view = agent_of(request)
    base = agent_base(request, view)
    authentication = authentication_of(request)
    told = agent_card(view, base=base, version=context.version, pushes=sdk.pushes, authentication=authentication)
    return document(request, context.changes, encode_json(told))


@refusing_as(rpc_problem)
async def rpc(request: web.Request) -> web.StreamResponse:
    """Answers one JSON-RPC request."""
    agent_id = agent_id_of(request)
    return await answer(request, lambda _: agent_id)


async def answer(request: web.Request, addressed: Callable[[Any], str]) -> web.StreamResponse:
    """Answers a JSON-RPC request to the agent that `addressed` finds in the body; errors of `addressed` stand in the
    envelope."""
    endpoint = (await A2aSdk.of(request).endpoints()).rpc
    kind = accepted_type(request, PLAIN_JSON)
    raw = await read_body(request, times=COPIES)
    try:
        body = await parse_json(raw)
    except InvalidRequest as error:
        return await replied(request, endpoint.parse_error(error.message), kind)
    await others_first(request)
    try:
        agent_id = addressed(body)
    except SynapsedError as error:
        return await replied(request, endpoint.refused(body, error), kind)
    handling = endpoint.handle(agent_id, HttpCaller.of(request, agent_id), body, said_version(request))
    return await answered(request, handling, media_type=kind)


@refusing_as(rest_problem)
async def rest(request: web.Request) -> web.StreamResponse:
    """Answers one request of HTTP+JSON; the table of the A2A methods names its operation."""
    agent_id = agent_id_of(request)
    return await answer_rest(request, agent_id, f"/{request.match_info['path']}")


async def answer_rest(request: web.Request, agent_id: str, path: str) -> web.StreamResponse:
    """Answers a request of HTTP+JSON to the agent; `path` is the part after the binding's URL."""
    endpoint = (await A2aSdk.of(request).endpoints()).rest
    kind = accepted_type(request, A2A_JSON)
    raw = await read_body(request, times=COPIES)
    try:
        body = await parse_json(raw) if raw.strip() else {}
    except InvalidRequest as error:
        return await replied(request, endpoint.parse_error(error.message), kind)
    await others_first(request)
    asked = RestRequest(request.method, path, list(request.query.items()), body)
    handling = endpoint.handle(agent_id, HttpCaller.of(request, agent_id), asked, said_version(request))
    return await answered(request, handling, media_type=kind)
