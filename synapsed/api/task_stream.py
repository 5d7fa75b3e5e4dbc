"""Reads a task's events from the log, from a cursor on, in the form that was first asked for (S1)."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Protocol

from synapsed.api.sse import SseFrame
from synapsed.clock import iso
from synapsed.interfaces import EventLog, Tasks
from synapsed.model.events import Event, TaskArtifactAdded, TaskStatusChanged
from synapsed.model.task import INTERRUPTED_STATES, TERMINAL_STATES, Task


def render(event: Event) -> SseFrame | None:
    """Returns the frame of a task's event; None for an event that is not in such a stream."""
    data = event.data
    if isinstance(data, TaskStatusChanged):
        return SseFrame(_status(event, data), event="status", event_id=event.id)
    if isinstance(data, TaskArtifactAdded):
        artifact = data.artifact.model_dump(mode="json", by_alias=True, exclude_none=True)
        body = {"taskId": event.task_id, "artifact": artifact, "append": data.append, "lastChunk": data.last_chunk}
        return SseFrame(body, event="artifact", event_id=event.id)
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


async def frames_until_end(log: EventLog, task: Task, after: int) -> AsyncGenerator[SseFrame]:
    """Yields the task's events after `after`, up to its end."""
    events = _events(log, task, after)
    del task  # it may be large, and the stream long
    async for event in events:
        if (frame := render(event)) is not None:
            yield frame
        if isinstance(event.data, TaskStatusChanged) and event.data.state in TERMINAL_STATES:
            return
        del event, frame


async def has_frames(log: EventLog, task: Task, after: int) -> bool:
    """Returns True if there are events of the task, which is over, after `after`."""
    async with aclosing(_events(log, task, after)) as events:
        async for event in events:
            if render(event) is not None:
                return True
    return False


class Answerer(Protocol):
    """Parts that may answer questions of agents."""

    async def seen(self, agent_id: str) -> None:
        """Returns once the agent's remaining questions are for a person."""


async def frames_until_settled(
    tasks: Tasks, log: EventLog, task: Task, after: int, answering: Answerer
) -> AsyncGenerator[SseFrame]:
    """Yields the frames of `frames_until_end`, and also ends when the task waits for a person *now*: at its present
    prompt, not at one that was answered long ago, or that is about to be answered automatically. Such a prompt may
    stand before `after`, too."""
    events, task_id, agent_id = _events(log, task, after), task.id, task.agent_id
    then = TaskStatusChanged(state=task.status, prompt=task.prompt) if task.status in INTERRUPTED_STATES else None
    del task  # it may be large, and the stream long
    if then is not None:
        await answering.seen(agent_id)
        if _is_present(await tasks.find(task_id), then):
            events = log.follow(after, task_id=task_id, upto=log.last_id, reserved=True)
    async for event in events:
        if (frame := render(event)) is not None:
            yield frame
        told = event.data if isinstance(event.data, TaskStatusChanged) else None
        del event, frame
        if told is None:
            continue
        if told.state in TERMINAL_STATES:
            return
        if told.state in INTERRUPTED_STATES and _is_present(await tasks.find(task_id), told):
            await answering.seen(agent_id)
            if _is_present(await tasks.find(task_id), told):
                return


def _is_present(task: Task, told: TaskStatusChanged) -> bool:
    now = task.prompt.prompt_id if task.prompt else None
    then = told.prompt.prompt_id if told.prompt else None
    return task.status is told.state and now == then


def _events(log: EventLog, task: Task, after: int) -> AsyncGenerator[Event]:
    """Returns the events. A task that was over when it was read has all its events in the log: they are read without a
    wait, even if the cursor is behind its end."""
    return log.follow(after, task_id=task.id, upto=log.last_id if task.terminal else None, reserved=True)
