"""The typed events of the one log: past-tense facts, each a row; every stream is a view of them.

An event is written once, in the transaction that changes what it tells of, and gets its `id` there: ids grow by one
log-wide and survive the daemon, so that an id is a cursor.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from synapsed.model.agent import Activity, ProcessState
from synapsed.model.task import Artifact, Prompt, TaskError, TaskState

__all__ = [
    "ActivityChanged",
    "AgentAlert",
    "AgentRemoved",
    "AgentReported",
    "Event",
    "EventData",
    "InputProvided",
    "PermissionDecided",
    "ProcessChanged",
    "TaskArtifactAdded",
    "TaskStatusChanged",
    "parse_event",
]


class _Event(BaseModel):
    model_config = ConfigDict(extra="ignore")


class TaskStatusChanged(_Event):
    """A task went into `state`; the first of a task is `submitted`."""

    type: Literal["taskStatus"] = "taskStatus"
    state: TaskState
    reason: str | None = None
    error: TaskError | None = None
    prompt: Prompt | None = None


class TaskArtifactAdded(_Event):
    """Output of a task. With `append` false the artifact replaces what was told under its `artifact_id` before."""

    type: Literal["taskArtifact"] = "taskArtifact"
    artifact: Artifact
    append: bool = False
    last_chunk: bool = True


class InputProvided(_Event):
    """A person answered a prompt. What a password prompt was given is not in here."""

    type: Literal["inputProvided"] = "inputProvided"
    prompt_id: str
    answer: str | None


class PermissionDecided(_Event):
    """An agent's approval policy was asked about a tool call. `rule` is the rule that decided, None for the default;
    `input` is what was to be done, with secrets masked."""

    type: Literal["permissionDecided"] = "permissionDecided"
    verdict: Literal["allow", "deny", "escalate"]
    rule: str | None
    tool: str
    input: dict[str, Any] = {}


class ProcessChanged(_Event):
    """An agent's process went into `state`. `exit_code` is negative for a signal, as in subprocess."""

    type: Literal["agentProcess"] = "agentProcess"
    state: ProcessState
    reason: str = ""
    pid: int | None = None
    exit_code: int | None = None
    restarts: int = 0


class ActivityChanged(_Event):
    """What an agent is doing changed; `evidence` names the channel and what it said."""

    type: Literal["agentActivity"] = "agentActivity"
    activity: Activity
    evidence: str
    prompt: Prompt | None = None


class AgentRemoved(_Event):
    type: Literal["agentRemoved"] = "agentRemoved"


class AgentAlert(_Event):
    """Something a person should know of: a gap in the spool, a full disk, a lost keeper."""

    type: Literal["agentAlert"] = "agentAlert"
    code: str
    message: str
    details: dict[str, Any] = {}


class AgentReported(_Event):
    """What an agent wants the person who watches to know."""

    type: Literal["agentReported"] = "agentReported"
    kind: str
    message: str


EventData = Annotated[
    TaskStatusChanged
    | TaskArtifactAdded
    | InputProvided
    | PermissionDecided
    | ProcessChanged
    | ActivityChanged
    | AgentRemoved
    | AgentAlert
    | AgentReported,
    Field(discriminator="type"),
]
_ADAPTER: TypeAdapter[EventData] = TypeAdapter(EventData)


class Event(BaseModel):
    """One row of the log. `at` is seconds since the epoch."""

    id: int
    at: float
    agent_id: str
    task_id: str | None
    data: EventData


def parse_event(payload: str | bytes) -> EventData:
    """The event of a row's JSON."""
    return _ADAPTER.validate_json(payload)
