"""The seeds' task routes: send, read, list, follow, cancel, answer (S1, S5, S10, S13, S15)."""

from aiohttp import web
from pydantic import TypeAdapter

from synapsed.api.body import integer_query, json_response, model_response, read_model
from synapsed.api.context import CONTEXT, agent_id_of, rights_of, task_of
from synapsed.api.rights import Rights, sender_of
from synapsed.api.schemas import InputBody, SendBody
from synapsed.api.sending import send
from synapsed.api.sse import cursor_of, serve
from synapsed.api.taskstream import frames_until_end
from synapsed.errors import InvalidRequest
from synapsed.interfaces import Control, TaskFilter
from synapsed.model.task import Task, TaskState

__all__ = ["list_tasks", "provide_input", "routes", "task_response"]

LIST_LIMIT = 500
_TASKS = TypeAdapter(list[Task])


def routes(prefix: str) -> list[web.RouteDef]:
    return [
        web.post(f"{prefix}/tasks/send", send_task),
        web.post(f"{prefix}/tasks/send-priority", send_priority),
        web.post(f"{prefix}/tasks/sendSubscribe", send_subscribe),
        web.get(f"{prefix}/tasks", get_tasks),
        web.get(f"{prefix}/tasks/{{task}}", get_task),
        web.get(f"{prefix}/tasks/{{task}}/subscribe", subscribe),
        web.post(f"{prefix}/tasks/{{task}}/cancel", cancel),
        web.post(f"{prefix}/tasks/{{task}}/input", provide_input),
    ]


def task_response(task: Task) -> web.Response:
    return json_response({"task": task.model_dump(mode="json", by_alias=True)})


async def send_task(request: web.Request) -> web.Response:
    agent_id = agent_id_of(request)
    body = await read_model(request, SendBody)
    return task_response(await send(request, request.app[CONTEXT].control, agent_id, body.request()))


async def send_priority(request: web.Request) -> web.Response:
    """`?priority=` counts for more than the body's."""
    agent_id = agent_id_of(request)
    body = await read_model(request, SendBody)
    wanted = body.request(priority=integer_query(request, "priority", body.priority, 1, 5))
    return task_response(await send(request, request.app[CONTEXT].control, agent_id, wanted))


async def send_subscribe(request: web.Request) -> web.StreamResponse:
    agent_id = agent_id_of(request)
    body = await read_model(request, SendBody)
    control = request.app[CONTEXT].control
    before = control.events.last_id
    task = await send(request, control, agent_id, body.request())
    return await serve(request, frames_until_end(control, task, before))


async def subscribe(request: web.Request) -> web.StreamResponse:
    """From the task's first event, or after `Last-Event-ID`."""
    control = request.app[CONTEXT].control
    task = await task_of(request)
    return await serve(request, frames_until_end(control, task, cursor_of(request, control.events, 0)))


async def get_task(request: web.Request) -> web.Response:
    """The bare Task."""
    task = await task_of(request)
    return json_response(task.model_dump(mode="json", by_alias=True))


async def get_tasks(request: web.Request) -> web.Response:
    tasks = await list_tasks(request, request.app[CONTEXT].control, agent_id_of(request))
    return model_response(_TASKS, tasks)


async def list_tasks(request: web.Request, control: Control, agent_id: str | None) -> list[Task]:
    """Newest first, by `?status=`, `?context_id=`, `?limit=`; an agent gets those that are its own."""
    rights = rights_of(request)
    rights.require_list()
    which = TaskFilter(
        agent_id=agent_id,
        context_id=request.query.get("context_id"),
        states=_states(request.query.get("status")),
        limit=integer_query(request, "limit", LIST_LIMIT, 1, LIST_LIMIT),
    )
    tasks, _ = await control.tasks(which)
    return _own(tasks, rights)


def _own(tasks: list[Task], rights: Rights) -> list[Task]:
    if rights.person:
        return tasks
    return [task for task in tasks if rights.agent_id in (task.agent_id, sender_of(task))]


def _states(text: str | None) -> frozenset[TaskState] | None:
    if text is None:
        return None
    try:
        return frozenset(TaskState(word) for word in text.split(","))
    except ValueError as error:
        words = ", ".join(TaskState)
        raise InvalidRequest(f"status: must be of {words}", field="status", expected=list(TaskState)) from error


async def cancel(request: web.Request) -> web.Response:
    task = await task_of(request)
    rights_of(request).require_cancel(task)
    return task_response(await request.app[CONTEXT].control.cancel(task.id))


async def provide_input(request: web.Request) -> web.Response:
    body = await read_model(request, InputBody)
    rights_of(request).require_person("answer prompts")
    task = await task_of(request)
    await request.app[CONTEXT].control.provide_input(task.id, body.input, body.prompt_id)
    return json_response({"status": "input_provided", "task_id": task.id})
