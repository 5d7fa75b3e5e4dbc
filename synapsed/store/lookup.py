"""Finds a task by its id, or by the beginning of the id that a person types; also reads the beginning of an unfinished
answer from the log."""

from typing import Final

from synapsed.errors import AmbiguousAddress, TaskNotFound
from synapsed.interfaces import EventLog, Store
from synapsed.model.events import TaskArtifactAdded
from synapsed.model.task import ANSWER_ID, Task

TASK_PREFIX_MIN: Final = 8
"""Characters of a task's id that are enough to name it."""
WHOLE: Final = 36
"""Characters of a whole id."""
SHOWN: Final = 10
"""Tasks that the error lists if a beginning fits many."""


async def find_task(store: Store, task_id: str, agent_id: str | None = None, visible_to: str | None = None) -> Task:
    """Returns the task, which must be of agent `agent_id` if that is given; see `find_id`. Tasks that are older than an
    agent are not its own, and not visible to it. Raises TaskNotFound, AmbiguousAddress."""
    task = await store.task(await find_id(store, task_id, agent_id, visible_to))
    if task is None or agent_id not in (None, task.agent_id):
        raise _not_found(task_id)
    for whose in (agent_id, visible_to):
        if whose is not None and await store.is_former(task.id, whose):
            raise _not_found(task_id)
    return task


async def find_id(store: Store, named: str, agent_id: str | None = None, visible_to: str | None = None) -> str:
    """Implements `Tasks.find_id`. A text that is too short for a beginning is returned as it is."""
    if not TASK_PREFIX_MIN <= len(named) < WHOLE:
        return named
    found = await store.find_tasks(named, SHOWN, agent_id=agent_id, visible_to=visible_to)
    if named in found:
        return named
    if not found:
        raise _not_found(named)
    if len(found) > 1:
        raise AmbiguousAddress(f"{named!r} could be {', '.join(found)}", candidates=found)
    return found[0]


def _not_found(named: str) -> TaskNotFound:
    return TaskNotFound(f"no task {named[:64]!r}; 'synapsectl tasks' lists them", task=named[:64])


async def told_before(log: EventLog, task_id: str) -> str:
    """Returns the answer of an unfinished task so far, as the log has it."""
    text, after = "", 0
    while batch := await log.read(after, task_id=task_id):
        for event in batch:
            data = event.data
            if isinstance(data, TaskArtifactAdded) and data.artifact.artifact_id == ANSWER_ID:
                text = text + data.artifact.text if data.append else data.artifact.text
        after = batch[-1].id
    return text
