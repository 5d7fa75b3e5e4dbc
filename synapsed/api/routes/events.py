"""`/events` and `…/events`: the typed events of the log, as SSE by `Accept` or `?stream=sse`, else over a WebSocket.

Both resume after `Last-Event-ID` (header, `?lastEventId=` or `?after=`); without it they begin with what comes next.
What is sent is the same on both: `{id, event, data, time, agent, task, context}`.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from aiohttp import hdrs, web

from synapsed.api.answers import Reported
from synapsed.api.body import json_response, read_model
from synapsed.api.context import CONTEXT, agent_id_of, rights_of, to_the_end
from synapsed.api.describe import Response, Streamed, describe
from synapsed.api.eventstream import EventCache, SentEvent, Subscription
from synapsed.api.origin import origin_of
from synapsed.api.outgoing import respond
from synapsed.api.query import CURSOR, INPUT_SHOWN, Choice, Names, TimeSpan, Words
from synapsed.api.schemas import ReportBody
from synapsed.api.sse import SseFrame, cursor_of, serve
from synapsed.api.websocket import is_upgrade, push
from synapsed.errors import EventNotFound, InvalidRequest, QueueFull, TaskNotFound
from synapsed.interfaces import EventFilter
from synapsed.model.events.schema import event_schema
from synapsed.model.events.wire import TYPES, masked

STREAM = Choice("stream", "`sse` has the same effect as `Accept: text/event-stream`", ("", "sse"))
UNTIL = Choice("until", "`newest`: the stream ends with the newest event that there is", ("", "newest"))
ONLY_TYPES = Words("types", "only these types", TYPES)
ONLY_AGENTS = Names("agents", "only these agents, by name or id")
ONLY_TASKS = Names("tasks", "only these tasks, by id or its first 8 characters")
BATCH = TimeSpan("batch", "events are collected for so long and sent as one `batchEvents`", 10.0)
EVENTS = Streamed("typed events, from now on or after the cursor", websocket=True)
OF_ONE = (CURSOR, STREAM, UNTIL, ONLY_TYPES, ONLY_TASKS, BATCH)
ENCODED = web.AppKey("ENCODED", EventCache)


def routes(prefix: str) -> list[web.RouteDef]:
    return [web.get(f"{prefix}/events", agent_events), web.post(f"{prefix}/events", report)]


def global_routes() -> list[web.RouteDef]:
    return [
        web.get("/events", all_events),
        web.get("/events/schema", schema),
        web.get("/events/{event}", one_event),
    ]


@describe("The events of all agents", EVENTS, query=(*OF_ONE, ONLY_AGENTS), errors=(QueueFull, TaskNotFound))
async def all_events(request: web.Request) -> web.StreamResponse:
    rights_of(request).require_person("read the events of all agents")
    control = request.app[CONTEXT].control
    agents = ONLY_AGENTS.of(request)
    found = None if agents is None else frozenset(control.directory.resolve(name) for name in agents)
    return await _events(request, found, None)


@describe("The agent's events", EVENTS, query=OF_ONE, errors=(QueueFull, TaskNotFound))
async def agent_events(request: web.Request) -> web.StreamResponse:
    agent_id = agent_id_of(request)
    rights = rights_of(request)
    rights.require_sight_of(agent_id, "other agents' events")
    return await _events(request, frozenset({agent_id}), None if rights.person else agent_id)


@describe("What a stream of events sends, as JSON Schema", Response("the schema"))
async def schema(request: web.Request) -> web.Response:
    """JSON Schema 2020-12 of one message; TypeScript's types are `packaging/events.d.ts`."""
    return json_response(event_schema())


@describe("An event, whole", Response("the event"), errors=(EventNotFound,))
async def one_event(request: web.Request) -> web.StreamResponse:
    """What of an event is too large for a stream is here. A large one is read when there is room for it."""
    rights, log = rights_of(request), request.app[CONTEXT].control.events
    text = request.match_info["event"][:INPUT_SHOWN]
    event_id = int(text[:19]) if text.isascii() and text.isdigit() else 0
    known = 0 < event_id <= log.last_id
    after, upto = (event_id - 1, event_id) if known else (0, 0)
    async with aclosing(log.follow(after, upto=upto, reserved=True)) as found:
        event = await anext(found, None)
        if event is None:
            rights.require_person("read events of other agents")
            why = "or it is not kept any more" if event_id else "an event's id is a number"
            raise EventNotFound(f"there is no event {text!r}, {why}", last_id=log.last_id)
        rights.require_sight_of(event.agent_id, "other agents' events")
        place = ("event", event_id)  # where `follow` has taken room for it
        body = log.room.shared(place)
        if body is None:
            body = await asyncio.to_thread(masked, event)
            log.room.share(place, body)
        del event  # what is written has what it needs of it
        return await respond(request, body)


@describe(
    "Report an event of the agent's own",
    Response("it is in the log", Reported),
    body=ReportBody,
    errors=(TaskNotFound,),
)
async def report(request: web.Request) -> web.Response:
    agent_id = agent_id_of(request)
    rights = rights_of(request)
    if rights.agent_id != agent_id:
        rights.require_person("report events of another agent")
    body = await read_model(request, ReportBody)
    control = request.app[CONTEXT].control
    told = body.told(rights.agent_id or "person")
    task = None if body.task is None else await control.tasks.find(body.task, agent_id)
    await to_the_end(control.tasks.report(agent_id, told, task))
    return json_response({"status": "reported"})


async def _events(request: web.Request, agents: frozenset[str] | None, visible_to: str | None) -> web.StreamResponse:
    """`visible_to`: whose tasks alone may be named by the beginning of an id."""
    context = request.app[CONTEXT]
    log = context.control.events
    after = cursor_of(request, log, log.last_id)
    types, tasks = ONLY_TYPES.of(request), ONLY_TASKS.of(request)
    found = None if tasks is None else [await context.control.tasks.find(task, None, visible_to) for task in tasks]
    which = EventFilter(
        types=None if types is None else frozenset(types),
        agents=agents,
        tasks=None if found is None else frozenset(task.id for task in found),
    )
    subscription = Subscription(
        log,
        request.app[ENCODED],
        context.clock,
        context.pace,
        after=after,
        which=which,
        window=BATCH.of(request),
        who=_who(request),
    )
    sent = subscription.follow(upto=log.last_id if UNTIL.of(request) else None)
    if STREAM.of(request) == "sse" or "text/event-stream" in request.headers.get(hdrs.ACCEPT, ""):
        return await serve(request, _frames(sent))
    if not is_upgrade(request):
        raise InvalidRequest("ask for text/event-stream (Accept, or ?stream=sse) or upgrade to a WebSocket")
    return await push(request, _texts(sent))


def _who(request: web.Request) -> dict[str, object]:
    """The subscriber, for the daemon's log."""
    origin = origin_of(request)
    agent = request.headers.get(hdrs.USER_AGENT, "")[:100]
    return {"subscriber": origin.who or origin.by, "where": origin.where, "remote": request.remote, "program": agent}


async def _frames(subscription: AsyncGenerator[SentEvent]) -> AsyncGenerator[SseFrame]:
    async with aclosing(subscription):
        async for sent in subscription:
            yield SseFrame(sent.data, event=sent.event, event_id=sent.event_id)


async def _texts(subscription: AsyncGenerator[SentEvent]) -> AsyncGenerator[Any]:
    async with aclosing(subscription):
        async for sent in subscription:
            yield sent.data
