"""The routes of tasks: send, read, list, follow, cancel, answer, reply, hand over artifacts (S1, S5, S10, S13, S15)."""

from dataclasses import replace
from http import HTTPStatus
from typing import Annotated

from aiohttp import web
from pydantic import Field

from synapsed.api.context import CONTEXT, agent_id_of, origin_of, rights_of, task_of
from synapsed.api.describe import Streamed
from synapsed.api.idempotency_key import once
from synapsed.api.memory_reservation import release, reserve_page
from synapsed.api.operation import WithHeaders, operation
from synapsed.api.query import Query, Resumed, Text, between, some_of, text_like
from synapsed.api.request_models import ArtifactBody, CreateBody, InputBody, ReplyBody, SendBody
from synapsed.api.response_models import InputProvided, ShownTask, TaskAnswer
from synapsed.api.sending import REPLY_ERRORS, SEND_ERRORS, addressed, answered, expect_reply, reply, send_to
from synapsed.api.sse import serve
from synapsed.api.task_stream import frames_until_end, has_frames
from synapsed.errors import (
    Busy,
    InvalidChoice,
    InvalidRequest,
    NotReady,
    NotTaken,
    NotWaiting,
    OutcomeUnknown,
    PromptChanged,
    QueueFull,
    TaskNotCancelable,
)
from synapsed.interfaces import PAGE_SIZE, Control, TaskFilter, task_cursor
from synapsed.model.task import ANSWER_ID, Task, TaskState

LIST_LIMIT = 500


class PriorityQuery(Query):
    priority: Annotated[int | None, between(1, 5)] = Field(
        None, description="1 to 4: its place in the mailbox; 5 interrupts the turn that runs"
    )


class TasksQuery(Query):
    status: Annotated[list[TaskState] | None, some_of(tuple(TaskState))] = Field(
        None, description="only tasks in one of these states"
    )
    context_id: Text = Field(None, description="only tasks of this context")
    limit: Annotated[int, between(1, LIST_LIMIT)] = Field(LIST_LIMIT, description="how many at the most")
    before: Annotated[str | None, text_like(r"^[^\u0000~]*~[^\u0000]*$", "a cursor that a page came with")] = Field(
        None, description="only tasks after this cursor, which the header `Link` of the page before it has"
    )


STREAM = Streamed("the task's events, from its first or after the cursor, up to its end")


def routes(prefix: str) -> list[web.RouteDef]:
    return [
        web.post(f"{prefix}/tasks/send", send_task),
        web.post(f"{prefix}/tasks/send-priority", send_priority),
        web.post(f"{prefix}/tasks/sendSubscribe", send_subscribe),
        web.get(f"{prefix}/tasks/{{task}}", get_task),
        web.get(f"{prefix}/tasks/{{task}}/subscribe", subscribe),
        web.post(f"{prefix}/tasks/{{task}}/cancel", cancel),
        web.post(f"{prefix}/tasks/{{task}}/input", provide_input),
        web.post(f"{prefix}/tasks/create", create_task),
        web.post(f"{prefix}/tasks/reply", reply_task),
        web.get(f"{prefix}/tasks", get_tasks),
        web.post(f"{prefix}/tasks/{{task}}/artifacts", hand_over),
    ]


@operation("Send a message", "the task", allowed=addressed, errors=SEND_ERRORS)
async def send_task(request: web.Request, body: SendBody, control: Control) -> TaskAnswer:
    sending = send_to(request, control, body.request())
    del body  # it may be large, and the reader of the answer slow
    return await answered(request, control, sending)


@operation(
    "Make a task of the agent's own, for a reply to complete", "the task", allowed=agent_id_of, errors=(QueueFull,)
)
async def create_task(request: web.Request, body: CreateBody, control: Control) -> TaskAnswer:
    """Makes a task for a reply; nothing is typed. Its id goes with the question, as `metadata.sender_task_id` (S20)."""
    making = expect_reply(request, control, agent_id_of(request), body.request(), body.limit)
    del body
    return await answered(request, control, making)


@operation("Reply as the agent, to what it was asked last", "the task", allowed=agent_id_of, errors=REPLY_ERRORS)
async def reply_task(request: web.Request, body: ReplyBody, control: Control) -> TaskAnswer:
    """Replies to the last question, or to `metadata.in_reply_to`. The answer is the asker's task."""
    replying = reply(request, control, agent_id_of(request), body.request())
    del body
    return await answered(request, control, replying)


@operation("Send a message with a priority", "the task", allowed=addressed, errors=SEND_ERRORS)
async def send_priority(request: web.Request, body: SendBody, query: PriorityQuery, control: Control) -> TaskAnswer:
    """Sends with `?priority=`, which overrides the body's."""
    wanted = body.request()
    wanted = wanted if query.priority is None else replace(wanted, priority=query.priority)
    sending = send_to(request, control, wanted)
    del body, wanted
    return await answered(request, control, sending)


@operation("Send a message and follow its task", STREAM, allowed=addressed, errors=SEND_ERRORS)
async def send_subscribe(request: web.Request, body: SendBody, control: Control) -> web.StreamResponse:
    before = control.events.last_id
    task = await send_to(request, control, body.request())
    frames = frames_until_end(control.events, task, before)
    del task, body  # they may be large, and the stream long
    return await serve(request, frames)


@operation("Follow a task", replace(STREAM, ends=True), errors=(QueueFull,))
async def subscribe(request: web.Request, query: Resumed, control: Control) -> web.StreamResponse:
    """Streams the events of a task, from its first one, or after `Last-Event-ID`. If that was the last, 204: a
    browser's EventSource takes the end of a stream for a broken one and would come again for ever."""
    task = await task_of(request)
    cursor = query.cursor(control.events, 0)
    release(request)
    if task.terminal and not await has_frames(control.events, task, cursor):
        return web.Response(status=HTTPStatus.NO_CONTENT)
    frames = frames_until_end(control.events, task, cursor)
    del task  # it may be large, and the stream long
    return await serve(request, frames)


@operation("A task", "the task")
async def get_task(request: web.Request) -> ShownTask:
    """Returns the task itself, without an object around it."""
    return ShownTask.of(await task_of(request))


@operation("The agent's tasks, newest first", "tasks", errors=(Busy,))
async def get_tasks(request: web.Request, query: TasksQuery) -> WithHeaders[list[Task]]:
    return await list_tasks(request, query, agent_id_of(request))


async def list_tasks(request: web.Request, query: TasksQuery, agent_id: str | None) -> WithHeaders[list[Task]]:
    """Lists tasks, newest first; an agent gets its own. The page ends earlier if they are large; if there are more,
    `Link` has the next page."""
    control = request.app[CONTEXT].control
    rights = rights_of(request)
    rights.require_list()
    which = TaskFilter(
        agent_id=agent_id,
        context_id=query.context_id,
        states=None if query.status is None else frozenset(map(TaskState, query.status)),
        limit=query.limit,
        visible_to=rights.scope,
        before=query.before,
        size=PAGE_SIZE,
    )
    await reserve_page(request, control, which)
    tasks, total = await control.tasks.page(which)
    headers = {}
    if tasks and total > len(tasks):
        cursor = task_cursor(tasks[-1])
        if await control.tasks.has_any(replace(which, before=cursor)):
            prefix = request.app[CONTEXT].security.prefix(request)
            headers["Link"] = f'<{prefix}{request.rel_url.update_query(before=cursor)}>; rel="next"'
    return WithHeaders([rights.shown(task) for task in tasks], headers)


@operation("Cancel a task", "the task", errors=(TaskNotCancelable,))
async def cancel(request: web.Request, control: Control) -> TaskAnswer:
    task = await task_of(request)
    rights_of(request).require_cancel(task)
    return await answered(request, control, control.tasks.cancel(task.id))


@operation("Hand over what was made in a task", "the task", errors=(NotWaiting,))
async def hand_over(request: web.Request, body: ArtifactBody, control: Control) -> TaskAnswer:
    """Adds an artifact beside the answer, for the agent that works on the task."""
    task = await task_of(request)
    rights_of(request).require_work_on(task)
    task_id = task.id
    del task
    release(request)  # the answer needs room of its own
    made = body.artifact()
    if made.artifact_id == ANSWER_ID or made.is_block:
        raise InvalidRequest(f"artifact_id: {made.artifact_id!r} is the answer's", field="artifact_id")
    handing = control.tasks.hand_over(task_id, made, append=body.append, last_chunk=body.last_chunk)
    del body, made
    return await answered(request, control, handing)


@operation(
    "Answer the prompt that the task waits at",
    "the program took it",
    errors=(NotWaiting, InvalidChoice, PromptChanged, NotTaken, NotReady, OutcomeUnknown),
)
async def provide_input(request: web.Request, body: InputBody, control: Control) -> InputProvided:
    """Answers the task's prompt; under the same `Idempotency-Key` only once."""
    task = await task_of(request)
    rights_of(request).require("answer_prompts", "answer prompts", of=task.agent_id)
    task_id, agent_id, origin = task.id, task.agent_id, origin_of(request)
    del task

    async def give() -> InputProvided:
        await control.tasks.provide_input(task_id, body.input, body.prompt_id, origin=origin)
        return InputProvided(status="input_provided", task_id=task_id)

    return await once(request, f"input {task_id}", body, give, InputProvided, agent_id=agent_id)
