"""The seeds' task routes: send, read, list, follow, cancel, answer (S1, S5, S10, S13, S15)."""

from dataclasses import replace
from http import HTTPStatus

from aiohttp import web
from pydantic import TypeAdapter

from synapsed.api.answers import InputProvided, ShownTask, TaskAnswer
from synapsed.api.body import json_response, read_model
from synapsed.api.context import CONTEXT, agent_id_of, rights_of, task_of
from synapsed.api.describe import Response, Streamed, describe
from synapsed.api.origin import origin_of
from synapsed.api.outgoing import respond, respond_task, shown
from synapsed.api.query import CURSOR, Integer, Text, Words
from synapsed.api.reserving import release, reserve_page, with_room
from synapsed.api.routes.a2a import RPC_PATH
from synapsed.api.schemas import ArtifactBody, CreateBody, InputBody, ReplyBody, SendBody
from synapsed.api.sending import REPLY_ERRORS, SEND_ERRORS, expect_reply, reply, send
from synapsed.api.sse import cursor_of, serve
from synapsed.api.taskstream import frames_until_end, has_frames
from synapsed.errors import (
    Busy,
    InvalidChoice,
    InvalidRequest,
    NotReady,
    NotTaken,
    NotWaiting,
    PromptChanged,
    QueueFull,
    TaskNotCancelable,
)
from synapsed.interfaces import PAGE_SIZE, Control, TaskFilter, task_cursor
from synapsed.model.task import ANSWER_ID, Task, TaskState

LIST_LIMIT = 500
PRIORITY = Integer("priority", "1 to 4: its place in the mailbox; 5 interrupts the turn that runs", None, 1, 5)
STATUS = Words("status", "only tasks in one of these states", tuple(TaskState))
CONTEXT_ID = Text("context_id", "only tasks of this context")
LIMIT = Integer("limit", "how many at the most", LIST_LIMIT, 1, LIST_LIMIT)
BEFORE = Text(
    "before",
    "only tasks after this cursor, which the header `Link` of the page before it has",
    pattern=r"^[^\u0000~]*~[^\u0000]*$",
    expected="a cursor that a page came with",
)
FILTERS = (STATUS, CONTEXT_ID, LIMIT, BEFORE)
TASK = Response("the task", TaskAnswer)
STREAM = Streamed("the task's events, from its first or after the cursor, up to its end")
_TASKS = TypeAdapter(list[Task])


def routes(prefix: str) -> list[web.RouteDef]:
    return [
        *(route for base in (prefix, f"{prefix}{RPC_PATH}") for route in _of_one_task(base)),
        web.post(f"{prefix}/tasks/create", create_task),
        web.post(f"{prefix}/tasks/reply", reply_task),
        web.get(f"{prefix}/tasks", get_tasks),
        web.post(f"{prefix}/tasks/{{task}}/artifacts", hand_over),
    ]


def _of_one_task(base: str) -> list[web.RouteDef]:
    """Below the card's `url` too: synapse-a2a's client appends its paths to that, whatever the card's protocol is."""
    return [
        web.post(f"{base}/tasks/send", send_task),
        web.post(f"{base}/tasks/send-priority", send_priority),
        web.post(f"{base}/tasks/sendSubscribe", send_subscribe),
        web.get(f"{base}/tasks/{{task}}", get_task),
        web.get(f"{base}/tasks/{{task}}/subscribe", subscribe),
        web.post(f"{base}/tasks/{{task}}/cancel", cancel),
        web.post(f"{base}/tasks/{{task}}/input", provide_input),
    ]


@describe("Send a message", TASK, body=SendBody, errors=SEND_ERRORS)
async def send_task(request: web.Request) -> web.StreamResponse:
    agent_id = agent_id_of(request)
    body = await read_model(request, SendBody)
    control = request.app[CONTEXT].control
    sending = send(request, control, agent_id, body.request())
    del body  # it may be large, and whoever reads the answer slow
    return await respond_task(request, await with_room(request, control, sending))


@describe("Make a task of the agent's own, for a reply to complete", TASK, body=CreateBody, errors=(QueueFull,))
async def create_task(request: web.Request) -> web.StreamResponse:
    """Nothing is typed. Its id goes with the message that asks, as `metadata.sender_task_id` (S20)."""
    agent_id = agent_id_of(request)
    body = await read_model(request, CreateBody)
    control = request.app[CONTEXT].control
    making = expect_reply(request, control, agent_id, body.request(), body.limit)
    del body
    return await respond_task(request, await with_room(request, control, making))


@describe("Reply as the agent, to what it was asked last", TASK, body=ReplyBody, errors=REPLY_ERRORS)
async def reply_task(request: web.Request) -> web.StreamResponse:
    """Or to `metadata.in_reply_to`. The answer is the task of whoever asked."""
    agent_id = agent_id_of(request)
    body = await read_model(request, ReplyBody)
    control = request.app[CONTEXT].control
    replying = reply(request, control, agent_id, body.request())
    del body
    return await respond_task(request, await with_room(request, control, replying))


@describe("Send a message with a priority", TASK, body=SendBody, query=(PRIORITY,), errors=SEND_ERRORS)
async def send_priority(request: web.Request) -> web.StreamResponse:
    """`?priority=` counts for more than the body's."""
    agent_id = agent_id_of(request)
    body = await read_model(request, SendBody)
    control = request.app[CONTEXT].control
    sending = send(request, control, agent_id, body.request(priority=PRIORITY.of(request)))
    del body
    return await respond_task(request, await with_room(request, control, sending))


@describe("Send a message and follow its task", STREAM, body=SendBody, errors=SEND_ERRORS)
async def send_subscribe(request: web.Request) -> web.StreamResponse:
    agent_id = agent_id_of(request)
    body = await read_model(request, SendBody)
    control = request.app[CONTEXT].control
    before = control.events.last_id
    task = await send(request, control, agent_id, body.request())
    frames = frames_until_end(control.events, task, before)
    del task, body  # they may be large, and the stream long
    return await serve(request, frames)


@describe("Follow a task", replace(STREAM, ends=True), query=(CURSOR,), errors=(QueueFull,))
async def subscribe(request: web.Request) -> web.StreamResponse:
    """From the task's first event, or after `Last-Event-ID`. Where that was the last, 204: a browser's EventSource
    takes the end of a stream for a broken one and would come again for ever."""
    control = request.app[CONTEXT].control
    task = await task_of(request)
    cursor = cursor_of(request, control.events, 0)
    release(request)
    if task.terminal and not await has_frames(control.events, task, cursor):
        return web.Response(status=HTTPStatus.NO_CONTENT)
    frames = frames_until_end(control.events, task, cursor)
    del task  # it may be large, and the stream long
    return await serve(request, frames)


@describe("A task", Response("the task", ShownTask))
async def get_task(request: web.Request) -> web.StreamResponse:
    """The bare Task."""
    task = await task_of(request)
    return await respond(request, shown(task))


@describe("The agent's tasks, newest first", Response("tasks", list[Task]), query=FILTERS, errors=(Busy,))
async def get_tasks(request: web.Request) -> web.StreamResponse:
    return await list_tasks(request, request.app[CONTEXT].control, agent_id_of(request))


async def list_tasks(request: web.Request, control: Control, agent_id: str | None) -> web.StreamResponse:
    """Newest first, by `?status=`, `?context_id=`, `?limit=`, `?before=`; an agent gets those that are its own. The
    page ends earlier where they are large; where there are more, `Link` says where."""
    rights = rights_of(request)
    rights.require_list()
    words = STATUS.of(request)
    which = TaskFilter(
        agent_id=agent_id,
        context_id=CONTEXT_ID.of(request),
        states=None if words is None else frozenset(map(TaskState, words)),
        limit=LIMIT.of(request),
        visible_to=rights.scope,
        before=BEFORE.of(request),
        size=PAGE_SIZE,
    )
    await reserve_page(request, control, which)
    tasks, total = await control.tasks.page(which)
    headers = {}
    if tasks and total > len(tasks):
        cursor = task_cursor(tasks[-1])
        if await control.tasks.has_any(replace(which, before=cursor)):
            headers["Link"] = f'<{request.rel_url.update_query(before=cursor)}>; rel="next"'
    return await respond(
        request, _TASKS.dump_python([rights.shown(task) for task in tasks], mode="json", by_alias=True), headers=headers
    )


@describe("Cancel a task", TASK, errors=(TaskNotCancelable,))
async def cancel(request: web.Request) -> web.StreamResponse:
    task = await task_of(request)
    rights_of(request).require_cancel(task)
    control = request.app[CONTEXT].control
    return await respond_task(request, await with_room(request, control, control.tasks.cancel(task.id)))


@describe("Hand over what was made in a task", TASK, body=ArtifactBody, errors=(NotWaiting,))
async def hand_over(request: web.Request) -> web.StreamResponse:
    """For the agent that works on the task: it is an artifact beside the answer."""
    body = await read_model(request, ArtifactBody)
    task = await task_of(request)
    rights_of(request).require_work_on(task)
    task_id = task.id
    del task
    release(request)  # it will be another one
    made = body.artifact()
    if made.artifact_id == ANSWER_ID or made.is_block:
        raise InvalidRequest(f"artifact_id: {made.artifact_id!r} is the answer's", field="artifact_id")
    control = request.app[CONTEXT].control
    handing = control.tasks.hand_over(task_id, made, append=body.append, last_chunk=body.last_chunk)
    del body, made
    return await respond_task(request, await with_room(request, control, handing))


@describe(
    "Answer the prompt that the task waits at",
    Response("the program took it", InputProvided),
    body=InputBody,
    errors=(NotWaiting, InvalidChoice, PromptChanged, NotTaken, NotReady),
)
async def provide_input(request: web.Request) -> web.Response:
    body = await read_model(request, InputBody)
    task = await task_of(request)
    rights_of(request).require("answer_prompts", "answer prompts", of=task.agent_id)
    await request.app[CONTEXT].control.tasks.provide_input(
        task.id, body.input, body.prompt_id, origin=origin_of(request)
    )
    return json_response({"status": "input_provided", "task_id": task.id})
