"""The work of A2A's methods (specification 3.1), on `Tasks`. Streams and blocking waits are views of the event log."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Final, Literal, Protocol

from a2a.types import a2a_pb2 as pb

from synapsed.a2a_types.a2a_errors import (
    CONTENT_TYPE_NOT_SUPPORTED,
    TASK_NOT_CANCELABLE,
    UNSUPPORTED_OPERATION,
    A2aError,
    invalid_params,
)
from synapsed.a2a_types.convert import STATES, artifact_update, message_from, status_update, struct_dict, task_dict
from synapsed.a2a_types.extensions import INTERRUPTS, answered_prompt, taken
from synapsed.clock import iso
from synapsed.errors import AmbiguousAddress, InvalidRequest, TaskNotFound
from synapsed.interfaces import PAGE_SIZE, EventLog, SendRequest, TaskFilter, Tasks, task_cursor
from synapsed.model.events import Event, TaskArtifactAdded, TaskStatusChanged
from synapsed.model.sender import Sender
from synapsed.model.task import INTERRUPTED_STATES, TERMINAL_STATES, Task, TextPart
from synapsed.parts.a2a.card import TEXT
from synapsed.parts.a2a.continuing import answered_by
from synapsed.parts.a2a.push.operations import PushOperations
from synapsed.parts.a2a.push.sender import PushSender
from synapsed.tasks.transitions import has_answer

_SETTLED: Final = TERMINAL_STATES | INTERRUPTED_STATES
_OUR_STATES: Final = {pb.TaskState.Value(name): state for state, name in STATES.items()}
_TEXTS: Final = frozenset({TEXT, "text", "text/*", "*/*", "*"})
_NO_ANSWERS: Final = frozenset({"in_reply_to", "new_conversation", "response_expected", "sender_task_id"})
"""Metadata that marks a message as something other than an answer."""
ID_MAX: Final = 1024
"""Most characters of a message's and a context's id: every event of the task repeats that of its context."""
PAGE_DEFAULT: Final = 50
PAGE_MAX: Final = 100
SNAPSHOT_TRIES: Final = 5
"""Times that a snapshot is taken again because the task moved meanwhile."""


class RequestScope(Protocol):
    """The caller, and its way into the mailbox of the requested agent. A method that refuses raises Forbidden."""

    def require_cancel(self, task: Task) -> None: ...

    def require_notify(self, task: Task) -> None: ...

    def require_notify_own(self) -> None:
        """Checks the right of `require_notify` for the task that the caller's message is about to make."""
        ...

    def require_list(self) -> None: ...

    def may_read(self, task: Task) -> bool: ...

    @property
    def scope(self) -> str | None:
        """The agent to whose own tasks this caller is limited; None if it may see all."""
        ...

    @property
    def may_answer(self) -> bool:
        """True if this caller may answer the agent's questions."""
        ...

    @property
    def extensions(self) -> frozenset[str]:
        """URIs of the extensions that the client asked for."""
        ...

    def extended_card(self) -> dict[str, Any]:
        """Returns the agent's card for authenticated callers. Raises Unauthorized."""
        ...

    async def reserve_task(self, task_id: str) -> None:
        """Reserves room for the task in an answer, before it is read. Raises Busy."""
        ...

    async def reserve_page(self, which: TaskFilter) -> None:
        """Reserves room for such a page of tasks in an answer. Raises Busy, InvalidRequest."""
        ...

    async def with_room(self, act: Awaitable[Task]) -> Task:
        """Returns the task that results from `act`, once there is room for it in the answer."""
        ...

    async def send(self, request: SendRequest) -> Task: ...


class Operations:
    """The operations of all agents; every method names the agent and the caller. `repeats`: a repeated message, known
    by its `messageId`, is the same task."""

    def __init__(
        self,
        tasks: Tasks,
        events: EventLog,
        pushes: PushSender | None = None,
        *,
        dialect: Literal["1.0", "0.3"] = "1.0",
        repeats: bool = True,
    ) -> None:
        self._tasks = tasks
        self._events = events
        self._repeats = repeats
        self.push = PushOperations(self._task, events, pushes, dialect=dialect)

    async def send_message(self, agent_id: str, caller: RequestScope, request: pb.SendMessageRequest) -> dict[str, Any]:
        """Sends a message; blocks until the task is over or waits for input, unless `returnImmediately` (3.2.2)."""
        history = _history(request.configuration)
        wait = not request.configuration.return_immediately
        wanted = replace(await self._wanted(agent_id, caller, request), wait=wait)
        cursor = self._events.last_id
        sending = self._send(caller, wanted, request, cursor)
        del wanted, request  # they may be large, and the turn long
        task = await caller.with_room(self._settled(sending, cursor) if wait else sending)
        return {"task": task_dict(task, history_length=history)}

    async def stream_message(
        self, agent_id: str, caller: RequestScope, request: pb.SendMessageRequest
    ) -> AsyncGenerator[dict[str, Any]]:
        """Sends a message; yields the task, then its updates, up to its end or to where it waits for input (3.1.2)."""
        history = _history(request.configuration)
        wanted = await self._wanted(agent_id, caller, request)
        cursor = self._events.last_id
        new = wanted.task_id is None
        task = await caller.with_room(self._send(caller, wanted, request, cursor))
        if new:
            task, cursor = await self._snapshot(agent_id, task.id)
        over = task.status in (_SETTLED if new else TERMINAL_STATES)
        return self._updates(task, cursor, history, over=over)

    async def subscribe(
        self, agent_id: str, caller: RequestScope, request: pb.SubscribeToTaskRequest
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yields the task as it is, then its updates (3.1.6). Refuses (-32004) a task that is over. A task that waits
        for input is followed further: its subscriber wants the updates after the answer."""
        await self._task(agent_id, caller, request.id)
        task, cursor = await self._snapshot(agent_id, request.id)
        if task.terminal:
            raise A2aError(UNSUPPORTED_OPERATION, f"task {task.id} is {task.status}: there is nothing to follow")
        return self._updates(task, cursor, None, over=False)

    async def get_task(self, agent_id: str, caller: RequestScope, request: pb.GetTaskRequest) -> dict[str, Any]:
        history = _history(request)
        return task_dict(await self._task(agent_id, caller, request.id), history_length=history)

    async def list_tasks(self, agent_id: str, caller: RequestScope, request: pb.ListTasksRequest) -> dict[str, Any]:
        """Returns the tasks that the caller may see (13.1), newest first, in pages (3.1.4)."""
        caller.require_list()
        history = _history(request)
        size = request.page_size if request.HasField("page_size") else PAGE_DEFAULT
        if not 1 <= size <= PAGE_MAX:
            raise invalid_params("pageSize", f"must be from 1 to {PAGE_MAX}")
        since = request.status_timestamp_after if request.HasField("status_timestamp_after") else None
        state = _OUR_STATES.get(request.status)
        which = TaskFilter(
            agent_id=agent_id,
            context_id=request.context_id or None,
            states=None if state is None else frozenset({state}),
            updated_since=None if since is None else iso(since.ToNanoseconds() / 1e9),
            limit=size,
            before=request.page_token or None,
            visible_to=caller.scope,
            size=PAGE_SIZE,
        )
        try:
            await caller.reserve_page(which)
            tasks, total = await self._tasks.page(which)
        except InvalidRequest as error:
            raise invalid_params("pageToken", error.message) from error
        token = task_cursor(tasks[-1]) if tasks else ""
        if total <= len(tasks) or not tasks or not await self._tasks.has_any(replace(which, before=token)):
            token = ""
        return {
            "tasks": [task_dict(task, history_length=history, artifacts=request.include_artifacts) for task in tasks],
            "nextPageToken": token,
            "pageSize": size,
            "totalSize": total,
        }

    async def cancel_task(self, agent_id: str, caller: RequestScope, request: pb.CancelTaskRequest) -> dict[str, Any]:
        task = await self._task(agent_id, caller, request.id)
        caller.require_cancel(task)
        if task.terminal:
            raise A2aError(TASK_NOT_CANCELABLE, f"task {task.id} is {task.status}", metadata={"taskId": task.id})
        return task_dict(await caller.with_room(self._tasks.cancel(task.id)))

    async def extended_card(
        self, agent_id: str, caller: RequestScope, request: pb.GetExtendedAgentCardRequest
    ) -> dict[str, Any]:
        return caller.extended_card()

    async def _wanted(self, agent_id: str, caller: RequestScope, request: pb.SendMessageRequest) -> SendRequest:
        message = message_from(request.message)
        _check_ids(request.message)
        _check_output(request.configuration.accepted_output_modes)
        told = {**(message.metadata or {}), **struct_dict(request.metadata)}
        priority, metadata = taken(told)
        context_id = request.message.context_id or None
        task_id = request.message.task_id or None
        if task_id is not None:
            task = await self._task(agent_id, caller, task_id)
            _check_context(task, context_id)
            again = self._repeats and has_answer(task, message)
            if not again:  # a repeated answer gives the same task, whatever its state is by now
                _check_waits(task)
            context_id = task.context_id
        wanted = SendRequest(
            message=message,
            priority=priority,
            context_id=context_id,
            task_id=task_id,
            prompt_id=answered_prompt(told),
            metadata=metadata,
            named=self._repeats,
            where="a2a",
        )
        return wanted if task_id is not None else await self._continued(agent_id, caller, wanted)

    async def _continued(self, agent_id: str, caller: RequestScope, wanted: SendRequest) -> SendRequest:
        """Returns the request, made an answer to a task of its context if it can be nothing else (3.4.3)."""
        meant_otherwise = wanted.priority == INTERRUPTS or _NO_ANSWERS & wanted.metadata.keys()
        if wanted.context_id is None or not caller.may_answer or meant_otherwise:
            return wanted
        which = TaskFilter(agent_id=agent_id, context_id=wanted.context_id, states=INTERRUPTED_STATES, limit=2)
        tasks, _ = await self._tasks.page(which)
        claimed = Sender.of(wanted.metadata)
        sender = caller.scope or (claimed.id if claimed is not None else None)
        task = answered_by(wanted.message, sender, tasks)
        if task is None or task.prompt is None:
            return wanted
        return replace(wanted, task_id=task.id, prompt_id=wanted.prompt_id or task.prompt.prompt_id)

    async def _send(
        self, caller: RequestScope, wanted: SendRequest, request: pb.SendMessageRequest, cursor: int
    ) -> Task:
        """Hands the message over; a config that came with it is durable before the caller gets the task."""
        if request.configuration.HasField("task_push_notification_config"):
            caller.require_notify_own()
        receiver = await self.push.inline(request)
        if receiver is None:
            return await caller.send(wanted)

        async def whole() -> Task:
            task = await caller.send(wanted)
            await self.push.begin(receiver, task, cursor)
            return task

        # A client that leaves in the middle still gets its notifications: they may be why it leaves.
        return await asyncio.shield(whole())

    async def _task(self, agent_id: str, caller: RequestScope, task_id: str) -> Task:
        """Returns a task by its whole id: A2A has no prefixes, which `Control` takes from people. A task that the
        caller may not see does not exist for it (3.3.2)."""
        if not task_id:
            raise invalid_params("id", "is required")
        task = None
        with suppress(TaskNotFound, AmbiguousAddress):
            if await self._tasks.find_id(task_id, agent_id, caller.scope) == task_id:
                await caller.reserve_task(task_id)
                task = await self._tasks.find(task_id, agent_id, caller.scope)
        if task is None or task.id != task_id or task.agent_id != agent_id or not caller.may_read(task):
            raise TaskNotFound(f"no task {task_id[:64]!r} of this agent", task_id=task_id[:64])
        return task

    async def _settled(self, sending: Awaitable[Task], cursor: int) -> Task:
        """Returns the task when it is over or waits for input; events decide, so that an older prompt of it does not
        count."""
        task = await sending
        if task.terminal:
            return task
        task_id = task.id
        del task  # it may be large, and the turn long
        async with self._following(cursor, task_id) as events:
            async for event in events:
                if isinstance(event.data, TaskStatusChanged) and event.data.state in _SETTLED:
                    now = await self._tasks.find(task_id)
                    if now.status in _SETTLED:
                        return now
                del event  # the next one may be long in coming
        return await self._tasks.find(task_id)

    async def _snapshot(self, agent_id: str, task_id: str) -> tuple[Task, int]:
        """Returns the task and the cursor after the last event that it contains; takes it again if it moved
        meanwhile."""
        log = self._events
        for _ in range(SNAPSHOT_TRIES):
            before = log.last_id
            task = await self._tasks.find(task_id, agent_id)
            upto = log.last_id
            if upto == before or not await log.read(before, task_id=task_id, limit=1):
                return task, upto
        return task, before

    async def _updates(
        self, task: Task, cursor: int, history: int | None, *, over: bool
    ) -> AsyncGenerator[dict[str, Any]]:
        yield {"task": task_dict(task, history_length=history)}
        if over:
            return
        task_id, context_id = task.id, task.context_id
        del task  # it may be large, and the stream long
        begun: set[str] = set()
        async with self._following(cursor, task_id) as events:
            async for event in events:
                if isinstance(event.data, TaskArtifactAdded):
                    if event.data.artifact.is_block:
                        continue
                    first = event.data.artifact.artifact_id not in begun
                    begun.add(event.data.artifact.artifact_id)
                    told = await self._whole_artifact(event, event.data) if event.data.append and first else event.data
                    yield artifact_update(event, told, context_id)
                    del told
                elif isinstance(event.data, TaskStatusChanged):
                    yield status_update(event, event.data, context_id)
                    if event.data.state in _SETTLED:
                        return
                del event

    async def _whole_artifact(self, event: Event, piece: TaskArtifactAdded) -> TaskArtifactAdded:
        """Returns the artifact's whole text up to this piece: the first piece that a stream sends begins the artifact,
        because clients have nothing to append to."""
        text, after = "", 0
        while batch := await self._events.read(after, task_id=event.task_id):
            for told in batch:
                data = told.data
                if told.id > event.id or not isinstance(data, TaskArtifactAdded):
                    continue
                if data.artifact.artifact_id == piece.artifact.artifact_id:
                    text = text + data.artifact.text if data.append else data.artifact.text
            after = batch[-1].id
        whole = piece.artifact.model_copy(update={"parts": [TextPart(text=text)]})
        return TaskArtifactAdded(artifact=whole, append=False, last_chunk=piece.last_chunk)

    @asynccontextmanager
    async def _following(self, cursor: int, task_id: str) -> AsyncGenerator[AsyncIterator[Event]]:
        events = self._events.follow(cursor, task_id=task_id, reserved=True)
        try:
            yield events
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()


class _HasHistory(Protocol):
    history_length: int

    def HasField(self, field_name: Any) -> bool: ...  # noqa: N802 - protobuf's name


def _history(request: _HasHistory) -> int | None:
    if not request.HasField("history_length"):
        return None
    if request.history_length < 0:
        raise invalid_params("historyLength", "must not be negative")
    return request.history_length


def _check_ids(message: pb.Message) -> None:
    for name, text in (("messageId", message.message_id), ("contextId", message.context_id)):
        if len(text) > ID_MAX:
            raise invalid_params(f"message.{name}", f"must have at most {ID_MAX} characters")


def _check_context(task: Task, context_id: str | None) -> None:
    if context_id is not None and context_id != task.context_id:
        raise invalid_params("message.contextId", f"task {task.id} belongs to another context")


def _check_waits(task: Task) -> None:
    if task.terminal:
        raise A2aError(UNSUPPORTED_OPERATION, f"task {task.id} is {task.status} and takes no more messages")
    if task.status not in INTERRUPTED_STATES:
        raise A2aError(
            UNSUPPORTED_OPERATION,
            f"task {task.id} is {task.status} and waits for nothing; send without taskId to add to its context",
        )


def _check_output(modes: Iterable[str]) -> None:
    """Refuses a client that takes no text before anything is typed, because an answer is text. Raises A2aError
    (-32005)."""
    wanted = [mode.partition(";")[0].strip().lower() for mode in modes]
    if wanted and not _TEXTS.intersection(wanted):
        raise A2aError(
            CONTENT_TYPE_NOT_SUPPORTED,
            f"answers are {TEXT}, which acceptedOutputModes does not have",
            metadata={"supported": TEXT},
        )
