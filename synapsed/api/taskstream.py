"""A task's events in the seeds' shapes (S1), read from the log from a cursor on."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from synapsed.api.sse import Frame
from synapsed.clock import iso
from synapsed.interfaces import Control
from synapsed.model.events import Event, TaskArtifactAdded, TaskStatusChanged
from synapsed.model.task import INTERRUPTED_STATES, TERMINAL_STATES, Task

__all__ = ["frames_until_end", "frames_until_settled", "has_frames", "render"]

BATCH = 500


def render(event: Event) -> Frame | None:
    """The frame of a task's event, None for one that the seeds' stream has no shape for."""
    data = event.data
    if isinstance(data, TaskStatusChanged):
        return Frame(_status(event, data), event="status", event_id=event.id)
    if isinstance(data, TaskArtifactAdded):
        artifact = data.artifact.model_dump(mode="json", by_alias=True, exclude_none=True)
        body = {"taskId": event.task_id, "artifact": artifact, "append": data.append, "lastChunk": data.last_chunk}
        return Frame(body, event="artifact", event_id=event.id)
    return None


def _status(event: Event, data: TaskStatusChanged) -> dict[str, Any]:
    body: dict[str, Any] = {"taskId": event.task_id, "state": data.state.value, "timestamp": iso(event.at)}
    if data.reason is not None:
        body["reason"] = data.reason
    if data.error is not None:
        body["error"] = data.error.model_dump(mode="json")
    if data.prompt is not None:
        body["prompt"] = data.prompt.model_dump(mode="json")
    return body


async def frames_until_end(control: Control, task: Task, after: int) -> AsyncGenerator[Frame]:
    """The task's events after `after`, up to its end."""
    async for event in _events(control, task, after):
        if (frame := render(event)) is not None:
            yield frame
        if isinstance(event.data, TaskStatusChanged) and event.data.state in TERMINAL_STATES:
            return


async def has_frames(control: Control, task: Task, after: int) -> bool:
    """Whether anything is to be told of the task, which is over, after `after`."""
    async with aclosing(_events(control, task, after)) as events:
        async for event in events:
            if render(event) is not None:
                return True
    return False


async def frames_until_settled(control: Control, task: Task, after: int) -> AsyncGenerator[Frame]:
    """As above, and it ends as well where the task waits for a person *now*: at its present prompt, not at one that
    was answered long ago."""
    async for event in _events(control, task, after):
        if (frame := render(event)) is not None:
            yield frame
        data = event.data
        if not isinstance(data, TaskStatusChanged):
            continue
        if data.state in TERMINAL_STATES:
            return
        if data.state in INTERRUPTED_STATES and _is_present(await control.task(task.id), data):
            return


def _is_present(task: Task, told: TaskStatusChanged) -> bool:
    now = task.prompt.prompt_id if task.prompt else None
    then = told.prompt.prompt_id if told.prompt else None
    return task.status is told.state and now == then


async def _events(control: Control, task: Task, after: int) -> AsyncGenerator[Event]:
    """A task that was over when it was read has all its events in the log: they are read, and nothing is waited for,
    even where the cursor is behind its end."""
    if not task.terminal:
        async for event in control.events.follow(after, task_id=task.id):
            yield event
    while batch := await control.events.read(after, task_id=task.id, limit=BATCH):
        for event in batch:
            yield event
        after = batch[-1].id
