"""Events of tasks."""

from typing import Annotated, Literal

from pydantic import Field

from synapsed.model.events.base import LARGE, Data
from synapsed.model.task import Artifact, Prompt, TaskError, TaskState


class TaskStatusChanged(Data):
    """A task went into `state`; the first of a task is `submitted`."""

    type: Literal["taskStatus"] = "taskStatus"
    state: TaskState
    reason: str | None = None
    error: Annotated[TaskError | None, LARGE] = None
    prompt: Annotated[Prompt | None, LARGE] = None


class TaskDelivered(Data):
    """The task's message is typed at the agent's terminal, and submitted: the turn begins. Once for each attempt."""

    type: Literal["taskDelivered"] = "taskDelivered"
    attempt: int = Field(1, ge=1, description="The same task may be typed again where its program ended before")


class TaskArtifactAdded(Data):
    """Output of a task. With `append` false the artifact replaces what was told under its `artifact_id` before."""

    type: Literal["taskArtifact"] = "taskArtifact"
    artifact: Annotated[Artifact, LARGE]
    append: bool = False
    last_chunk: bool = True
