"""`/events` and `…/events`: the typed events of the log, as SSE by `Accept` or `?stream=sse`, else over a WebSocket.

Both resume after `Last-Event-ID` (header, `?lastEventId=` or `?after=`); without it they begin with the next event. The
messages are the same on both: `{id, event, data, time, agent, task, context}`.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, Literal

from aiohttp import hdrs, web
from pydantic import Field

from synapsed.api.context import CONTEXT, agent_id_of, origin_of, rights_of, to_the_end
from synapsed.api.describe import Response, Streamed
from synapsed.api.event_stream import EventCache, SentEvent, Subscription
from synapsed.api.operation import operation, person
from synapsed.api.query import INPUT_SHOWN, Names, Resumed, one_of, some_of, time_span
from synapsed.api.request_models import ReportBody
from synapsed.api.response_models import Reported
from synapsed.api.slow_readers import respond
from synapsed.api.sse import SseFrame, serve
from synapsed.api.websocket import is_upgrade, push
from synapsed.errors import EventNotFound, InvalidRequest, QueueFull, TaskNotFound
from synapsed.interfaces import Control, EventFilter
from synapsed.model.events.json_schema import event_schema
from synapsed.model.events.wire import TYPES, masked

EVENTS = Streamed("typed events, from now on or after the cursor", websocket=True)
ENCODED = web.AppKey("ENCODED", EventCache)
_Sse = Literal["", "sse"]
_Newest = Literal["", "newest"]


class EventsQuery(Resumed):
    stream: Annotated[_Sse, one_of(_Sse)] = Field(
        "", description="`sse` has the same effect as `Accept: text/event-stream`"
    )
    until: Annotated[_Newest, one_of(_Newest)] = Field(
        "", description="`newest`: the stream ends with the newest event that there is"
    )
    types: Annotated[list[str] | None, some_of(TYPES)] = Field(None, description="only these types")
    tasks: Names = Field(None, description="only these tasks, by id or its first 8 characters")
    batch: Annotated[float | None, time_span(10.0)] = Field(
        None, description="events are collected for so long and sent as one `batchEvents`"
    )


class AllEventsQuery(EventsQuery):
    agents: Names = Field(None, description="only these agents, by name or id")


def routes(prefix: str) -> list[web.RouteDef]:
    return [web.get(f"{prefix}/events", agent_events), web.post(f"{prefix}/events", report)]


def global_routes() -> list[web.RouteDef]:
    return [web.get("/events", all_events), web.get("/events/schema", schema), web.get("/events/{event}", one_event)]


@operation(
    "The events of all agents",
    EVENTS,
    allowed=person("read the events of all agents"),
    errors=(QueueFull, TaskNotFound),
)
async def all_events(request: web.Request, query: AllEventsQuery, control: Control) -> web.StreamResponse:
    found = None if query.agents is None else frozenset(map(control.directory.resolve, query.agents))
    return await _events(request, query, found, None)


@operation("The agent's events", EVENTS, errors=(QueueFull, TaskNotFound))
async def agent_events(request: web.Request, query: EventsQuery) -> web.StreamResponse:
    agent_id = agent_id_of(request)
    rights = rights_of(request)
    rights.require_sight_of(agent_id, "other agents' events")
    visible_to, worker = None if rights.person else agent_id, agent_id if rights.scoped else None
    return await _events(request, query, frozenset({agent_id}), visible_to, worker)


@operation("What a stream of events sends, as JSON Schema", Response("the schema"))
async def schema(request: web.Request) -> web.StreamResponse:
    """Returns JSON Schema 2020-12 of one message; TypeScript's types are `packaging/events.d.ts`."""
    return await respond(request, event_schema())


@operation("An event, whole", Response("the event"), errors=(EventNotFound,))
async def one_event(request: web.Request, control: Control) -> web.StreamResponse:
    """Returns one event whole, with the fields that are too large for a stream. A large one waits for room."""
    rights, log = rights_of(request), control.events
    text = request.match_info["event"][:INPUT_SHOWN]
    event_id = int(text[:19]) if text.isascii() and text.isdigit() else 0
    known = 0 < event_id <= log.last_id
    after, upto = (event_id - 1, event_id) if known else (0, 0)
    async with aclosing(log.follow(after, upto=upto, reserved=True)) as found:
        event = await anext(found, None)
        if event is not None and not rights.person and event_id <= log.born(event.agent_id):
            event = None  # it belongs to a former agent with the id
        if event is None:
            rights.require_person("read events of other agents")
            why = "or it is not kept any more" if event_id else "an event's id is a number"
            raise EventNotFound(f"there is no event {text!r}, {why}", last_id=log.last_id)
        rights.require_sight_of(event.agent_id, "other agents' events")
        place = ("event", event_id)  # `follow` has taken room under this key
        body = log.room.shared(place)
        if body is None:
            body = await asyncio.to_thread(masked, event)
            log.room.share(place, body)
        del event  # the text to write is complete
        return await respond(request, body)


def _may_report(request: web.Request) -> None:
    rights = rights_of(request)
    if rights.agent_id != agent_id_of(request):
        rights.require_person("report events of another agent")


@operation("Report an event of the agent's own", "it is in the log", allowed=_may_report, errors=(TaskNotFound,))
async def report(request: web.Request, body: ReportBody, control: Control) -> Reported:
    agent_id = agent_id_of(request)
    tasks = control.tasks
    told = body.told(rights_of(request).agent_id or "person")
    task = None if body.task is None else await tasks.find(body.task, agent_id)
    await to_the_end(tasks.report(agent_id, told, task))
    return Reported(status="reported")


async def _events(
    request: web.Request,
    query: EventsQuery,
    agents: frozenset[str] | None,
    visible_to: str | None,
    worker: str | None = None,
) -> web.StreamResponse:
    """Sends events. `visible_to`: the only agent whose tasks may be named by the beginning of an id; `worker`: agent
    that must have done the named tasks."""
    context = request.app[CONTEXT]
    log, tasks = context.control.events, query.tasks
    after = query.cursor(log, log.last_id)
    found = None if tasks is None else [await context.control.tasks.find(task, worker, visible_to) for task in tasks]
    which = EventFilter(
        types=None if query.types is None else frozenset(query.types),
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
        window=query.batch or 0.0,
        who=_who(request),
    )
    sent = subscription.follow(upto=log.last_id if query.until else None)
    if query.stream == "sse" or "text/event-stream" in request.headers.get(hdrs.ACCEPT, ""):
        return await serve(request, _frames(sent))
    if not is_upgrade(request):
        raise InvalidRequest("ask for text/event-stream (Accept, or ?stream=sse) or upgrade to a WebSocket")
    return await push(request, _texts(sent))


def _who(request: web.Request) -> dict[str, object]:
    """Returns the subscriber, for the daemon's log."""
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
