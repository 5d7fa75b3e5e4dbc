"""The A2A routes of an agent: its card and its JSON-RPC endpoint."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from synapsed.a2a.card import CARD_PATH, agent_card
from synapsed.a2a.replies import Reply, Stream
from synapsed.api.body import encode_json, parse_json
from synapsed.api.caching import document
from synapsed.api.context import CONTEXT, ApiContext, agent_id_of, agent_of, rights_of
from synapsed.api.describe import Answer, describe
from synapsed.api.rights import Rights
from synapsed.api.security import JSON_TYPES, on_unix, public
from synapsed.api.sending import send
from synapsed.api.sse import frame, serve
from synapsed.errors import InvalidRequest, SynapsedError
from synapsed.interfaces import SendRequest
from synapsed.model.task import Task

__all__ = ["CARD", "answer", "routes"]

CARD = Answer("an A2A agent card", dict[str, Any], headers={"ETag": "of the document"})


def routes(prefix: str) -> list[web.RouteDef]:
    return [
        web.get(f"{prefix}{CARD_PATH}", card),
        web.get(f"{prefix}/.well-known/agent.json", card),
        web.post(f"{prefix}/a2a", rpc),
        web.post(f"{prefix}/a2a/", rpc),
    ]


@public
@describe("The agent's A2A card", CARD)
async def card(request: web.Request) -> web.Response:
    """With ETag; `If-None-Match` is answered 304. URLs follow the address that the client used."""
    context = request.app[CONTEXT]
    view = agent_of(request)
    rpc_url = f"{_base_url(request, view.endpoint)}/a2a"
    told = agent_card(view, rpc_url=rpc_url, version=context.version, serve_v03=context.serve_v03)
    return document(request, encode_json(told))


def _base_url(request: web.Request, endpoint: str) -> str:
    """What stands before the agent's routes: on the Unix socket, which has no URL, the agent's own port."""
    if on_unix(request):
        return endpoint
    return f"{request.scheme}://{request.host}{request.rel_url.raw_path.partition('/.well-known/')[0]}"


@dataclass(frozen=True, slots=True)
class _Caller:
    """The request's rights, and its way into the agent's mailbox."""

    request: web.Request
    context: ApiContext
    rights: Rights
    agent_id: str

    def require_read(self, task: Task) -> None:
        self.rights.require_read(task)

    def require_cancel(self, task: Task) -> None:
        self.rights.require_cancel(task)

    def require_list(self) -> None:
        self.rights.require_list()

    def may_read(self, task: Task) -> bool:
        return self.rights.may_read(task)

    async def send(self, request: SendRequest) -> Task:
        return await send(self.request, self.context.control, self.agent_id, request)


async def rpc(request: web.Request) -> web.StreamResponse:
    """One JSON-RPC request; streams as SSE without comments."""
    agent_id = agent_id_of(request)
    return await answer(request, lambda _: agent_id)


async def answer(request: web.Request, addressed: Callable[[Any], str]) -> web.StreamResponse:
    """A JSON-RPC request to the agent that `addressed` finds in the body; what that raises is told in the envelope."""
    context = request.app[CONTEXT]
    endpoint = await context.sdk.rpc()
    raw = await request.read()
    try:
        body = parse_json(raw)
    except InvalidRequest as error:
        return _reply(request, endpoint.parse_error(error.message))
    try:
        agent_id = addressed(body)
    except SynapsedError as error:
        return _reply(request, endpoint.refused(body, error))
    caller = _Caller(request, context, rights_of(request), agent_id)
    version = request.headers.get("A2A-Version") or request.query.get("A2A-Version")
    reply = await _while_connected(request, endpoint.handle(agent_id, caller, body, version))
    if isinstance(reply, Stream):
        return await serve(request, _frames(reply.bodies), comments=False)
    return _reply(request, reply)


async def _while_connected[T](request: web.Request, answer: Coroutine[Any, Any, T]) -> T:
    """A blocking call of hours must not outlive its client. The task that it waits for does."""
    context = request.app[CONTEXT]
    # Eager: what needs no waiting, as GetTask, is done at once.
    task = asyncio.Task(answer, loop=asyncio.get_running_loop(), eager_start=True)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=context.limits.keepalive)
            if request.transport is None or request.transport.is_closing():
                raise ConnectionResetError("the client has left")
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    return task.result()


def _reply(request: web.Request, answer: Reply) -> web.Response:
    """With the media type that the client sent."""
    kind = request.content_type if request.content_type in JSON_TYPES else "application/json"
    return web.Response(body=encode_json(answer.body), status=answer.status, content_type=kind)


async def _frames(bodies: AsyncGenerator[dict[str, Any]]) -> AsyncGenerator[bytes]:
    try:
        async for body in bodies:
            yield frame(encode_json(body))
    finally:
        await bodies.aclose()
