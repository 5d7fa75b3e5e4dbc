"""`/external/…`: A2A agents elsewhere, under an alias (S11). A person adds and removes them; agents may write to them.

A message to one makes a task like any other: `/control/tasks/{task}` has it, and its streams.
"""

import asyncio
from collections.abc import Awaitable
from typing import Annotated, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from synapsed.api import (
    CONTEXT,
    SEND_ERRORS,
    WAIT_MAX,
    ApiContext,
    Query,
    Resumed,
    SendBody,
    ShownTask,
    TaskAnswer,
    Whole,
    answered,
    between,
    frames_until_end,
    frames_until_settled,
    read_task,
    release,
    rights_of,
    send,
    sent_before,
    serve,
    to_the_end,
    with_room,
)
from synapsed.api.operation import Streamed, operation, person
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
from synapsed.interfaces import Control
from synapsed.model.external import external_id
from synapsed.model.task import Artifact, Task, TaskState
from synapsed.parts.elsewhere.external_agent import ExternalAgent
from synapsed.parts.elsewhere.externals import Externals

KEY_MAX = 64 * 1024
"""Most characters of the public keys of a card."""
_Id = Annotated[str, StringConstraints(min_length=1, max_length=256)]
_Header = Annotated[str, StringConstraints(pattern=r"^[!-~]([ -~]{0,8190}[!-~])?$")]
_HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,64}$")]
_Headers = Annotated[
    dict[_HeaderName, _Header], Field(max_length=16, json_schema_extra={"additionalProperties": False})
]
_Member = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._~-]{1,64}$")]
_Query = Annotated[dict[_Member, _Header], Field(max_length=16, json_schema_extra={"additionalProperties": False})]


class DiscoverBody(BaseModel):
    """Body of `external/discover`: `token` goes as `Authorization: Bearer`, `headers` and `query` go unchanged; without
    any of the three the stored ones are kept. With `key` (PEM, a JWK or a JWK set) the card must be signed; null keeps
    the stored one, "" removes it. Without `alias` the name is made of the card's. `other_host` accepts an agent that
    listens on another host than the one that has its card, `in_the_clear` that credentials are sent to it
    unencrypted."""

    model_config = ConfigDict(extra="forbid", strict=True)

    url: Annotated[str, StringConstraints(min_length=1, max_length=2048)]
    alias: _Id | None = None
    token: _Header | None = None
    headers: _Headers | None = None
    query: _Query | None = None
    key: Annotated[str, StringConstraints(max_length=KEY_MAX)] | None = None
    other_host: bool = False
    in_the_clear: bool = False

    def credentials(self) -> dict[str, str] | None:
        if self.token is None:
            return self.headers
        return {**(self.headers or {}), "Authorization": f"Bearer {self.token}"}


class ExternalSendBody(SendBody):
    """Body of `external/agents/{alias}/send`, also in the format of clients of synapse-a2a: with `wait_for_completion`
    the answer comes when the task is over, or waits for a person or an agent, or after `timeout` seconds."""

    wait_for_completion: bool = False
    timeout: Annotated[int, Field(ge=1, le=WAIT_MAX), Whole] = 60

    @property
    def patience(self) -> int:
        """Returns the seconds to wait for the answer."""
        return self.timeout if self.wait_for_completion else 0


class ExternalRemoved(BaseModel):
    model_config = ConfigDict(extra="forbid")

    status: Literal["removed"]
    alias: str


class ExternalTaskAnswer(TaskAnswer):
    """Answer of a send. Beside `task` it has the members that clients of synapse-a2a read."""

    id: str
    status: TaskState
    artifacts: list[Artifact]

    @classmethod
    def of(cls, task: Task) -> "ExternalTaskAnswer":
        return cls.model_construct(
            task=ShownTask.of(task, dialect=False), id=task.id, status=task.status, artifacts=task.artifacts
        )


class WaitQuery(Query):
    wait: Annotated[int, between(0, WAIT_MAX)] = Field(
        0, description="seconds to wait for the task's end, or its question to a person"
    )


@operation(
    "Add an agent elsewhere",
    "the agent",
    allowed=person("add agents of elsewhere"),
    errors=(CardInvalid, Unreachable, NameTaken, QueueFull),
)
async def discover(request: web.Request, body: DiscoverBody, control: Control, externals: Externals) -> ExternalAgent:
    """Looks at the card of an agent and adds the agent; if the card names no A2A interface, checks if the agent speaks
    as synapse-a2a does. A known alias, or a known URL without an alias, is looked at again."""
    act = externals.discover(
        body.url,
        body.alias,
        headers=body.credentials(),
        query=body.query,
        key=body.key,
        other_host=body.other_host,
        in_the_clear=body.in_the_clear,
        taken={view.name for view in control.directory.agents()},
    )
    return await to_the_end(act)


@operation("The agents elsewhere", "agents")
async def list_agents(request: web.Request, externals: Externals) -> list[ExternalAgent]:
    return externals.agents()


@operation("An agent elsewhere", "the agent", errors=(UnknownAgent,))
async def get_agent(request: web.Request, externals: Externals) -> ExternalAgent:
    return externals.view(request.match_info["alias"])


@operation(
    "Forget an agent elsewhere",
    "it is forgotten",
    allowed=person("remove agents of elsewhere"),
    errors=(UnknownAgent,),
)
async def remove(request: web.Request, externals: Externals) -> ExternalRemoved:
    agent = await to_the_end(externals.remove(request.match_info["alias"]))
    return ExternalRemoved(status="removed", alias=agent.alias)


@operation(
    "Send a message to an agent elsewhere",
    "the task",
    errors=(UnknownAgent, *SEND_ERRORS, Unreachable, CardChanged, CardInvalid),
)
async def send_task(
    request: web.Request, body: ExternalSendBody, query: WaitQuery, context: ApiContext, externals: Externals
) -> ExternalTaskAnswer:
    patience, control, alias = query.wait or body.patience, context.control, request.match_info["alias"]
    before = control.events.last_id
    act: Awaitable[Task]
    try:
        act = send(request, control, external_id(externals.view(alias).alias), body.request())
    except UnknownAgent:
        if (known := await sent_before(request, control, alias, body.request())) is None:
            raise
        act = control.tasks.find(known.id)
    if patience:
        act = _settled(context, act, before, patience)
    return ExternalTaskAnswer.of(await with_room(request, context.control, act))


async def _settled(context: ApiContext, sending: Awaitable[Task], after: int, patience: int) -> Task:
    """Returns the task at its end or its question, or as it is after `patience` seconds."""
    task = await sending
    task_id, control = task.id, context.control
    frames = frames_until_settled(control.tasks, control.events, task, after, context.parts)
    del task  # it may be large, and the turn long
    try:
        async with asyncio.timeout(patience):
            async for _ in frames:
                pass
    except TimeoutError:
        pass
    return await context.control.tasks.find(task_id)


@operation("A task of an agent elsewhere", "the task", errors=(UnknownAgent,))
async def get_task(request: web.Request) -> TaskAnswer:
    return TaskAnswer.of(await _task(request))


@operation("Follow a task of an agent elsewhere", Streamed("the task's events"), errors=(QueueFull,))
async def subscribe(request: web.Request, query: Resumed, control: Control) -> web.StreamResponse:
    task = await _task(request)
    frames = frames_until_end(control.events, task, query.cursor(control.events, 0))
    del task  # it may be large, and the stream long
    release(request)
    return await serve(request, frames)


@operation(
    "Cancel a task of an agent elsewhere",
    "the task",
    errors=(UnknownAgent, TaskNotCancelable, NotReady, Unreachable, RemoteRefused),
)
async def cancel(request: web.Request, control: Control) -> TaskAnswer:
    task = await _task(request)
    rights_of(request).require_cancel(task)
    return await answered(request, control, to_the_end(control.tasks.cancel(task.id)))


async def _task(request: web.Request) -> Task:
    """Returns the task of the request. A task stays when its agent is removed."""
    control = request.app[CONTEXT].control
    alias, task_id = request.match_info["alias"].removeprefix("@"), request.match_info["task"]
    try:
        return await read_task(request, control, external_id(alias))
    except TaskNotFound:
        message = f"{alias[:64]} has no task {task_id[:64]}"
        raise TaskNotFound(message, task_id=task_id[:64], agent=alias[:64]) from None
