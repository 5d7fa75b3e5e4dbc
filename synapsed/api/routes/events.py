"""`/events` and `…/events`: the typed events of the log, as SSE by `Accept` or `?stream=sse`, else over a WebSocket.

Both resume after `Last-Event-ID` (header, `?lastEventId=` or `?after=`); without it they begin with what comes next.
A frame is `{id, event, data, time, agent, task, context}`. Where some of what comes after the cursor is not kept any
more, the first frame says so (`gap`).
"""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from aiohttp import hdrs, web

from synapsed.api.answers import Reported
from synapsed.api.body import json_response, read_model
from synapsed.api.context import CONTEXT, agent_id_of, rights_of, to_the_end
from synapsed.api.describe import Answer, Streamed, describe
from synapsed.api.query import CURSOR, Choice
from synapsed.api.schemas import ReportBody
from synapsed.api.sse import Frame, cursor_of, serve
from synapsed.api.websocket import is_upgrade, push
from synapsed.errors import InvalidRequest, QueueFull
from synapsed.interfaces import EventLog
from synapsed.model.events import Event, Gap, envelope, enveloped

__all__ = ["routes"]

STREAM = Choice("stream", "`sse` has the same effect as `Accept: text/event-stream`", ("", "sse"))
UNTIL = Choice("until", "`newest`: the stream ends with the newest event that there is", ("", "newest"))
EVENTS = Streamed("typed events, from now on or after the cursor", websocket=True)


def routes(prefix: str) -> list[web.RouteDef]:
    return [web.get(f"{prefix}/events", agent_events), web.post(f"{prefix}/events", report)]


def global_routes() -> list[web.RouteDef]:
    return [web.get("/events", all_events)]


@describe("The events of all agents", EVENTS, query=(CURSOR, STREAM, UNTIL), errors=(QueueFull,))
async def all_events(request: web.Request) -> web.StreamResponse:
    rights_of(request).require_person("read the events of all agents")
    return await _events(request, None)


@describe("The agent's events", EVENTS, query=(CURSOR, STREAM, UNTIL), errors=(QueueFull,))
async def agent_events(request: web.Request) -> web.StreamResponse:
    agent_id = agent_id_of(request)
    rights_of(request).require_sight_of(agent_id, "other agents' events")
    return await _events(request, agent_id)


@describe("Report an event of the agent's own", Answer("it is in the log", Reported), body=ReportBody)
async def report(request: web.Request) -> web.Response:
    agent_id = agent_id_of(request)
    rights = rights_of(request)
    if rights.agent_id != agent_id:
        rights.require_person("report events of another agent")
    body = await read_model(request, ReportBody)
    by = rights.agent_id or "person"
    await to_the_end(request.app[CONTEXT].control.report(agent_id, body.kind, body.message, by=by))
    return json_response({"status": "reported"})


async def _events(request: web.Request, agent_id: str | None) -> web.StreamResponse:
    log = request.app[CONTEXT].control.events
    after = cursor_of(request, log, log.last_id)
    accepts_sse = "text/event-stream" in request.headers.get(hdrs.ACCEPT, "")
    gap = _gap(request, log, after, agent_id)
    events = _until(log, after, agent_id) if UNTIL.of(request) else log.follow(after, agent_id=agent_id)
    if accepts_sse or STREAM.of(request) == "sse":
        return await serve(request, _frames(events, gap))
    if not is_upgrade(request):
        raise InvalidRequest("ask for text/event-stream (Accept, or ?stream=sse) or upgrade to a WebSocket")
    return await push(request, _texts(events, gap))


def _gap(request: web.Request, log: EventLog, after: int, agent_id: str | None) -> dict[str, Any] | None:
    """What is told first to a reader that resumes where events are not kept any more."""
    if (until := log.gap(after, agent_id=agent_id)) is None:
        return None
    return enveloped(Gap(first=after + 1, last=until), at=request.app[CONTEXT].clock.wall(), agent_id=agent_id)


async def _until(log: EventLog, after: int, agent_id: str | None) -> AsyncGenerator[Event]:
    """The events up to the one that is the newest now."""
    newest = log.last_id
    while batch := await log.read(after, agent_id=agent_id):
        for event in batch:
            if event.id > newest:
                return
            yield event
        after = batch[-1].id


async def _frames(events: AsyncIterator[Event], gap: dict[str, Any] | None) -> AsyncGenerator[Frame]:
    if gap is not None:
        yield Frame(gap, event=gap["event"])
    async for event in events:
        yield Frame(envelope(event), event=event.data.type, event_id=event.id)


async def _texts(events: AsyncIterator[Event], gap: dict[str, Any] | None) -> AsyncGenerator[Any]:
    if gap is not None:
        yield gap
    async for event in events:
        yield envelope(event)
