"""What a receiver is sent (specification 4.3.3): a StreamResponse, or in 0.3 the Task."""

from typing import Any, Literal

from synapsed.a2a.convert import artifact_update, status_update, task_dict
from synapsed.a2a.convert03 import task03
from synapsed.model.events import Event, TaskArtifactAdded, TaskStatusChanged
from synapsed.model.task import Task

__all__ = ["is_told", "notification", "whole"]

type Dialect = Literal["1.0", "0.3"]


def is_told(event: Event) -> bool:
    """Whether receivers are told: no pieces of text that is still being written, and no blocks, which are the answer
    once more."""
    match event.data:
        case TaskStatusChanged():
            return True
        case TaskArtifactAdded(artifact=artifact, last_chunk=whole_now):
            return whole_now and not artifact.is_block
        case _:
            return False


def notification(event: Event, task: Task, dialect: Dialect) -> dict[str, Any]:
    """Of an event that is told. `task` is as it is now, which only 0.3 shows."""
    if dialect == "0.3":
        return whole(task, dialect)
    if isinstance(event.data, TaskArtifactAdded):
        return artifact_update(event, event.data, task.context_id)
    assert isinstance(event.data, TaskStatusChanged)
    return status_update(event, event.data, task.context_id)


def whole(task: Task, dialect: Dialect) -> dict[str, Any]:
    """The task itself."""
    document = task_dict(task)
    return task03(document) if dialect == "0.3" else {"task": document}
