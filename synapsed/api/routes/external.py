"""`/external/…`: A2A agents elsewhere, under an alias (S11). A person adds and removes them; agents may write to them.

What is sent to one is a task like any other: `/control/tasks/{task}` has it, and its streams.
"""

import asyncio
from collections.abc import Awaitable
from functools import wraps
from typing import Any

from aiohttp import web
from pydantic import TypeAdapter

from synapsed.api.answers import ExternalRemoved, ExternalTaskAnswer, TaskAnswer
from synapsed.api.body import json_response, model_response, read_model
from synapsed.api.context import CONTEXT, ApiContext, agent_id_of, read_task, rights_of, to_the_end
from synapsed.api.describe import Response, Streamed, describe
from synapsed.api.outgoing import respond, respond_task
from synapsed.api.problems import Handler
from synapsed.api.query import CURSOR, Integer
from synapsed.api.reserving import release, with_room
from synapsed.api.schemas import WAIT_MAX, DiscoverBody, ExternalSendBody
from synapsed.api.sending import SEND_ERRORS, send
from synapsed.api.sse import cursor_of, serve
from synapsed.api.taskstream import frames_until_end, frames_until_settled
from synapsed.errors import (
    CardChanged,
    CardInvalid,
    NameTaken,
    NotReady,
    QueueFull,
    RemoteRefused,
    TaskNotCancelable,
    TaskNotFound,
    UnknownAgent,
    Unreachable,
)
from synapsed.model.external import ExternalAgent, external_id
from synapsed.model.task import Task

WAIT = Integer("wait", "seconds to wait for the task's end, or its question to a person", 0, 0, WAIT_MAX)
AGENT = Response("the agent", ExternalAgent)
TASK = Response("the task", TaskAnswer)
_AGENT = TypeAdapter(ExternalAgent)
_AGENTS = TypeAdapter(list[ExternalAgent])


def agent_routes() -> list[web.RouteDef]:
    """On agents' own ports, where the seeds' clients look for them; not behind one that has stopped."""
    return [web.route(route.method, route.path, _while_it_runs(route.handler), **route.kwargs) for route in routes()]


def _while_it_runs(handler: Any) -> Handler:
    @wraps(handler)
    async def checked(request: web.Request) -> web.StreamResponse:
        agent_id_of(request)
        response: web.StreamResponse = await handler(request)
        return response

    return checked


def routes() -> list[web.RouteDef]:
    agent = "/external/agents/{alias}"
    return [
        web.post("/external/discover", discover),
        web.get("/external/agents", list_agents),
        web.get(agent, get_agent),
        web.delete(agent, remove),
        web.post(f"{agent}/send", send_task),
        web.get(f"{agent}/tasks/{{task}}", get_task),
        web.get(f"{agent}/tasks/{{task}}/subscribe", subscribe),
        web.post(f"{agent}/tasks/{{task}}/cancel", cancel),
    ]


@describe("Add an agent elsewhere", AGENT, body=DiscoverBody, errors=(CardInvalid, Unreachable, NameTaken, QueueFull))
async def discover(request: web.Request) -> web.Response:
    """Looks at its card, and where that names no A2A interface, whether it speaks as synapse-a2a does. Again for a
    known alias, or without one for a known URL: it is looked at again."""
    rights_of(request).require_person("add agents of elsewhere")
    body = await read_model(request, DiscoverBody)
    context = request.app[CONTEXT]
    act = context.externals.discover(
        body.url,
        body.alias,
        headers=body.credentials(),
        other_host=body.other_host,
        in_the_clear=body.in_the_clear,
        taken={view.name for view in context.control.directory.agents()},
    )
    return model_response(_AGENT, await to_the_end(act))


@describe("The agents elsewhere", Response("agents", list[ExternalAgent]))
async def list_agents(request: web.Request) -> web.Response:
    return model_response(_AGENTS, request.app[CONTEXT].externals.agents())


@describe("An agent elsewhere", AGENT, errors=(UnknownAgent,))
async def get_agent(request: web.Request) -> web.Response:
    return model_response(_AGENT, request.app[CONTEXT].externals.view(request.match_info["alias"]))


@describe("Forget an agent elsewhere", Response("it is forgotten", ExternalRemoved), errors=(UnknownAgent,))
async def remove(request: web.Request) -> web.Response:
    rights_of(request).require_person("remove agents of elsewhere")
    agent = await to_the_end(request.app[CONTEXT].externals.remove(request.match_info["alias"]))
    return json_response({"status": "removed", "alias": agent.alias})


@describe(
    "Send a message to an agent elsewhere",
    Response("the task", ExternalTaskAnswer),
    body=ExternalSendBody,
    query=(WAIT,),
    errors=(UnknownAgent, *SEND_ERRORS, Unreachable, CardChanged, CardInvalid),
)
async def send_task(request: web.Request) -> web.StreamResponse:
    context = request.app[CONTEXT]
    body = await read_model(request, ExternalSendBody)
    patience = WAIT.of(request) or body.patience
    agent = context.externals.view(request.match_info["alias"])
    before = context.control.events.last_id
    act = send(request, context.control, external_id(agent.alias), body.request())
    if patience:
        act = _settled(context, act, before, patience)
    task = await with_room(request, context.control, act)
    told = task.model_dump(mode="json", by_alias=True)
    return await respond(request, {"task": told, **{key: told[key] for key in ("id", "status", "artifacts")}})


async def _settled(context: ApiContext, sending: Awaitable[Task], after: int, patience: int) -> Task:
    """The task at its end or its question, or as it is when the patience is at its end."""
    task = await sending
    task_id, frames = task.id, frames_until_settled(context.control.tasks, context.control.events, task, after)
    del task  # it may be large, and the turn long
    try:
        async with asyncio.timeout(patience):
            async for _ in frames:
                pass
    except TimeoutError:
        pass
    return await context.control.tasks.find(task_id)


@describe("A task of an agent elsewhere", TASK, errors=(UnknownAgent,))
async def get_task(request: web.Request) -> web.StreamResponse:
    return await respond_task(request, await _task(request))


@describe("Follow a task of an agent elsewhere", Streamed("the task's events"), query=(CURSOR,), errors=(QueueFull,))
async def subscribe(request: web.Request) -> web.StreamResponse:
    control = request.app[CONTEXT].control
    task = await _task(request)
    frames = frames_until_end(control.events, task, cursor_of(request, control.events, 0))
    del task  # it may be large, and the stream long
    release(request)
    return await serve(request, frames)


@describe(
    "Cancel a task of an agent elsewhere",
    TASK,
    errors=(UnknownAgent, TaskNotCancelable, NotReady, Unreachable, RemoteRefused),
)
async def cancel(request: web.Request) -> web.StreamResponse:
    task = await _task(request)
    rights_of(request).require_cancel(task)
    control = request.app[CONTEXT].control
    return await respond_task(request, await with_room(request, control, to_the_end(control.tasks.cancel(task.id))))


async def _task(request: web.Request) -> Task:
    """A task stays when its agent is removed."""
    control = request.app[CONTEXT].control
    alias, task_id = request.match_info["alias"].removeprefix("@"), request.match_info["task"]
    try:
        return await read_task(request, control, external_id(alias))
    except TaskNotFound:
        message = f"{alias[:64]} has no task {task_id[:64]}"
        raise TaskNotFound(message, task_id=task_id[:64], agent=alias[:64]) from None
