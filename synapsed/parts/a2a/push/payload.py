"""Bodies of notifications (specification 4.3.3): a StreamResponse, or in 0.3 the Task.

Receivers get no single pieces of an artifact: it is sent whole, with the last of them.
"""

from typing import Any, Literal

from synapsed.a2a_types.convert import artifact_update, status_update, task_dict
from synapsed.model.events import Event, TaskArtifactAdded, TaskStatusChanged
from synapsed.model.task import Task
from synapsed.parts.a2a.convert03 import task03

type Dialect = Literal["1.0", "0.3"]


def is_told(event: Event) -> bool:
    """Returns True if receivers get the event: they get no pieces of unfinished text, and no blocks, which repeat the
    answer."""
    match event.data:
        case TaskStatusChanged():
            return True
        case TaskArtifactAdded(artifact=artifact, last_chunk=whole_now):
            return whole_now and not artifact.is_block
        case _:
            return False


def of_task(event: Event, dialect: Dialect) -> bool:
    """Returns True if the body is made from the task: 0.3 sends the task itself, and 1.0 sends the whole artifact for
    its last piece, which only the task has."""
    return dialect == "0.3" or (isinstance(event.data, TaskArtifactAdded) and event.data.append)


def notification(event: Event, context_id: str) -> dict[str, Any]:
    """Returns the body for an event that is sent by itself."""
    if isinstance(event.data, TaskArtifactAdded):
        return artifact_update(event, event.data, context_id)
    assert isinstance(event.data, TaskStatusChanged)
    return status_update(event, event.data, context_id)


def notification_of(event: Event, task: Task, dialect: Dialect) -> dict[str, Any]:
    """Returns the body for an event for which `of_task` is True: the task in 0.3, the whole artifact in 1.0."""
    if dialect == "0.3":
        return whole(task, dialect)
    assert isinstance(event.data, TaskArtifactAdded)
    return artifact_update(event, _unbroken(event.data, task), task.context_id)


def _unbroken(piece: TaskArtifactAdded, task: Task) -> TaskArtifactAdded:
    found = next((one for one in task.artifacts if one.artifact_id == piece.artifact.artifact_id), None)
    return piece if found is None else TaskArtifactAdded(artifact=found, append=False, last_chunk=piece.last_chunk)


def whole(task: Task, dialect: Dialect) -> dict[str, Any]:
    """Returns the body for the task itself."""
    document = task_dict(task)
    return task03(document) if dialect == "0.3" else {"task": document}
