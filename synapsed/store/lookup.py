"""A task by its id, or by the beginning of it that a person types; and what the log has of its answer."""

from typing import Final

from synapsed.errors import AmbiguousAddress, TaskNotFound
from synapsed.interfaces import EventLog, Store
from synapsed.model.events import TaskArtifactAdded
from synapsed.model.task import ANSWER_ID, Task

TASK_PREFIX_MIN: Final = 8
"""Characters of a task's id that are enough to name it."""
SHOWN: Final = 10
"""Tasks that are told where a beginning fits many."""


async def find_task(store: Store, task_id: str, agent_id: str | None) -> Task:
    """The task, of the agent if one is named. Raises TaskNotFound, AmbiguousAddress."""
    if (task := await store.task(task_id)) is None and len(task_id) >= TASK_PREFIX_MIN:
        found = await store.find_tasks(task_id, SHOWN)
        if len(found) > 1:
            raise AmbiguousAddress(f"{task_id!r} could be {', '.join(found)}", candidates=found)
        task = await store.task(found[0]) if found else None
    if task is None or agent_id not in (None, task.agent_id):
        raise TaskNotFound(f"no task {task_id[:64]!r}; 'synapsectl tasks' lists them", task=task_id[:64])
    return task


async def told_before(log: EventLog, task_id: str) -> str:
    """What the log has of the answer of a task that is not over."""
    text, after = "", 0
    while batch := await log.read(after, task_id=task_id):
        for event in batch:
            data = event.data
            if isinstance(data, TaskArtifactAdded) and data.artifact.artifact_id == ANSWER_ID:
                text = text + data.artifact.text if data.append else data.artifact.text
        after = batch[-1].id
    return text
