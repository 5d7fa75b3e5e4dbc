"""The HTTP side of both bindings of A2A: the caller's rights, the wait for an answer, and the form of the answer."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from aiohttp import hdrs, web

from synapsed.a2a_types.a2a_errors import from_synapsed, rest_error, rpc_failure
from synapsed.a2a_types.extensions import EXTENSIONS, asked_for
from synapsed.aio import at_once
from synapsed.api import (
    CONTEXT,
    JSON_TYPES,
    ApiContext,
    Rights,
    SseFrame,
    Standing,
    base_url,
    on_unix,
    port_of,
    reserve_page,
    reserve_task,
    respond,
    rights_of,
    send,
    serve,
    with_room,
)
from synapsed.documents.writing import encode_json
from synapsed.errors import SynapsedError, Unauthorized
from synapsed.interfaces import AgentView, SendRequest, TaskFilter
from synapsed.model.task import Task
from synapsed.parts.a2a.a2a_loading import A2aSdk
from synapsed.parts.a2a.card import Authentication, extended_card
from synapsed.parts.a2a.endpoint_types import MessageReply, StreamReply

A2A_JSON: Final = "application/a2a+json"
PLAIN_JSON: Final = "application/json"
EXTENSIONS_HEADERS: Final = ("A2A-Extensions", "X-A2A-Extensions")
"""Headers that ask for extensions, and that name the active ones in responses; the second is 0.3's name for it."""
_VERSION: Final = "A2A-Version"


@dataclass(frozen=True, slots=True)
class HttpCaller:
    """The request's rights, and its way into the agent's mailbox."""

    request: web.Request
    context: ApiContext
    rights: Rights
    agent_id: str

    @classmethod
    def of(cls, request: web.Request, agent_id: str) -> "HttpCaller":
        return cls(request, request.app[CONTEXT], rights_of(request), agent_id)

    def require_cancel(self, task: Task) -> None:
        self.rights.require_cancel(task)

    def require_notify(self, task: Task) -> None:
        self.rights.require_notify(task)

    def require_notify_own(self) -> None:
        self.rights.require_whole("have notifications sent elsewhere")

    def require_list(self) -> None:
        self.rights.require_list()

    def may_read(self, task: Task) -> bool:
        return self.rights.may_read(task)

    @property
    def scope(self) -> str | None:
        return self.rights.scope

    @property
    def may_answer(self) -> bool:
        return self.rights.may_answer(self.agent_id)

    @property
    def extensions(self) -> frozenset[str]:
        return _extensions(self.request)

    def extended_card(self) -> dict[str, Any]:
        """Returns the extended card, for callers whose identity is known: by a token, or on this machine by the
        connection's process."""
        if not self.rights.person and self.rights.agent_id is None:
            raise Unauthorized("it is not known who asks for the extended card: send 'Authorization: Bearer <token>'")
        control = self.context.control
        view = control.directory.view(self.agent_id)
        profile = next(iter(control.directory.profiles([view.type])), None)
        return extended_card(
            view,
            profile,
            base=agent_base(self.request, view),
            version=self.context.version,
            pushes=A2aSdk.of(self.request).pushes,
            rights=self.rights.standing.value,
            authentication=authentication_of(self.request),
        )

    async def reserve_task(self, task_id: str) -> None:
        await reserve_task(self.request, self.context.control, task_id)

    async def reserve_page(self, which: TaskFilter) -> None:
        await reserve_page(self.request, self.context.control, which)

    async def with_room(self, act: Awaitable[Task]) -> Task:
        return await with_room(self.request, self.context.control, act)

    async def send(self, request: SendRequest) -> Task:
        return await send(self.request, self.context.control, self.agent_id, request)


def authentication_of(request: web.Request) -> Authentication:
    """Returns the proof that a caller has to give: a known process on this machine needs no proof."""
    rights = rights_of(request)
    if rights.remote or rights.standing is Standing.NONE:
        return "required"
    return "none" if rights.person or rights.agent_id is not None else "optional"


def agent_base(request: web.Request, view: AgentView) -> str:
    """Returns the address before the agent's routes, as the client has it: on the Unix socket, which has no URL, the
    agent's own port."""
    if on_unix(request):
        return view.endpoint
    if "agent" in request.match_info:
        return base_url(request) + "/".join(request.rel_url.raw_path.split("/", 3)[:3])  # /agents/{agent}
    if request.app[CONTEXT].control.directory.agent_on_port(port_of(request)) == view.id:
        return base_url(request)
    return f"{base_url(request)}/agents/{quote(view.name)}"  # found by the tenant of the host's endpoint


def said_version(request: web.Request) -> str | None:
    """Returns `A2A-Version`, which may stand in the query in place of the header (3.6.1)."""
    said = request.headers.get(_VERSION)
    # The names of such parameters are in any case (3.2.6).
    return said or next((text for name, text in request.query.items() if name.lower() == _VERSION.lower()), None)


def accepted_type(request: web.Request, otherwise: str) -> str:
    """Returns the media type of the answer: the one that the client sent, or without a body the one that it accepts."""
    if request.content_type in JSON_TYPES and hdrs.CONTENT_TYPE in request.headers:
        return request.content_type
    accepts = request.headers.get(hdrs.ACCEPT, "")
    others = JSON_TYPES - {otherwise}
    return next((kind for kind in others if kind in accepts and otherwise not in accepts), otherwise)


async def answered(
    request: web.Request, handling: Coroutine[Any, Any, MessageReply | StreamReply], *, media_type: str
) -> web.StreamResponse:
    """Returns the result of `handling` as a response; streams as SSE without comments, with an error that ends one as
    `error`."""
    reply = await _while_connected(request, handling)
    asked = _extensions(request)
    active = [each.uri for each in EXTENSIONS if each.uri in asked]
    names = [name for name in EXTENSIONS_HEADERS if name in request.headers]
    headers = dict.fromkeys(names, ", ".join(active)) if active else {}
    if isinstance(reply, StreamReply):
        return await serve(request, _frames(reply.bodies), comments=False, headers=headers)
    return await replied(request, reply, media_type, headers)


def _extensions(request: web.Request) -> frozenset[str]:
    return asked_for([text for name in EXTENSIONS_HEADERS for text in request.headers.getall(name, ())])


async def replied(
    request: web.Request, reply: MessageReply, media_type: str, headers: Mapping[str, str] | None = None
) -> web.StreamResponse:
    told = {**reply.headers, **(headers or {})}
    return await respond(request, reply.body, status=reply.status, media_type=media_type, charset=None, headers=told)


async def _while_connected[T](request: web.Request, answer: Coroutine[Any, Any, T]) -> T:
    """Awaits `answer` while the client is connected: a blocking call of hours must not outlive its client, though
    the task that it waits for does."""
    context = request.app[CONTEXT]
    # Eager: a method that need not wait, such as GetTask, is done at once.
    task = at_once(answer)
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


async def _frames(bodies: AsyncGenerator[dict[str, Any]]) -> AsyncGenerator[SseFrame]:
    try:
        async for body in bodies:
            # Over JSON-RPC an error has its place in the envelope; a bare StreamResponse has none for it.
            failed = "error" in body and "jsonrpc" not in body
            yield SseFrame(body, event="error" if failed else None)
            del body  # it may be large, and the next one may be long in coming
    finally:
        await bodies.aclose()


def rpc_problem(request: web.Request, error: SynapsedError, status: int) -> web.Response:
    """Returns a refusal for a request whose envelope was not read."""
    body = rpc_failure(None, from_synapsed(error))
    return web.Response(body=encode_json(body), status=status, content_type=accepted_type(request, PLAIN_JSON))


def rest_problem(request: web.Request, error: SynapsedError, status: int) -> web.Response:
    """Returns a refusal as google.rpc.Status, with the same HTTP status as on all routes."""
    body = rest_error(from_synapsed(error), status)
    return web.Response(body=encode_json(body), status=status, content_type=accepted_type(request, A2A_JSON))
