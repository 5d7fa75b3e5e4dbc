"""Bodies of responses, as the OpenAPI document describes them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from synapsed.interfaces import ConfigChange
from synapsed.model.agent import AgentDetail, Testimony
from synapsed.model.task import Artifact, Prompt, Task, TaskState


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ExternalRemoved(_Answer):
    status: Literal["removed"]
    alias: str


class HostRemoved(_Answer):
    status: Literal["removed"]
    name: str


class ScheduleRemoved(_Answer):
    status: Literal["removed"]
    name: str


class PutAway(_Answer):
    status: Literal["seen"]
    id: str


class ErrorTold(_Answer):
    """`code` is for programs, `message` for people; `details` name what it is about."""

    code: str
    message: str
    details: dict[str, Any]


class ErrorAnswer(_Answer):
    """Every error, of every route."""

    error: ErrorTold


class HealthAnswer(_Answer):
    status: Literal["ok"]
    version: str


class Reported(_Answer):
    status: Literal["reported"]


class WhoAnswer(_Answer):
    """`agent`: the id of the agent whose process asks, null for a person; `rights`: what its profile grants it."""

    standing: Literal["person", "agent"]
    agent: str | None
    rights: list[str]


class ShownArtifact(Artifact):
    """`text` has only the answer to who has sent `metadata.response_mode`, as synapse-a2a's client does: it reads no
    `parts`."""

    whole: str = Field(default="", serialization_alias="text")


class ShownTask(Task):
    artifacts: list[ShownArtifact] = Field(default=[])  # type: ignore[assignment]


class TaskAnswer(_Answer):
    task: ShownTask


class ExternalTaskAnswer(TaskAnswer):
    """With the members that the seeds' clients read beside `task`."""

    id: str
    status: TaskState
    artifacts: list[Artifact]


class Team(_Answer):
    """`members` are names of agents, whether they run or not."""

    name: str
    members: list[str]


class MessageSent(_Answer):
    status: Literal["sent"]
    priority: int
    task_id: str


class InputProvided(_Answer):
    """`task_id` is missing where the prompt belonged to no task."""

    status: Literal["input_provided"]
    task_id: str = ""


class SeedStatus(_Answer):
    status: Literal["STARTING", "IDLE", "BUSY", "INPUT_REQUIRED", "STOPPED", "EXITED", "FAILED"]
    context: str
    activity: str
    since: str
    evidence: str
    held: str | None
    queue: int
    task: str | None
    prompt: Prompt | None
    explain: list[Testimony] = []


class StatusDetail(AgentDetail):
    explain: list[Testimony] = Field(default=[])


class Pressed(_Answer):
    """Of keys pressed at an agent's terminal."""

    status: Literal["pressed"]


class InterruptedAnswer(_Answer):
    interrupted: bool


class ChangesAnswer(_Answer):
    dry_run: bool
    changes: list[ConfigChange]


class ProfileAnswer(_Answer):
    name: str
    description: str
    command: str
    ports: list[int]
    verified: str | None
    skills: list[dict[str, Any]]
    source: str


class ConversationAnswer(_Answer):
    profile: str
    id: str
    cwd: str | None
    updated_at: str
    prompt: str
    agent: str | None


class DaemonPaths(_Answer):
    config: str
    state: str
    run: str
    a2a: str
    control_socket: str
    database: str


class DaemonStatus(_Answer):
    """`uptime` in seconds; `listen`: `host:port` of each main listener."""

    version: str
    pid: int
    uptime: float
    listen: list[str]
    agents: int
    alerts: list[str]
    paths: DaemonPaths


class ShuttingDown(_Answer):
    status: Literal["shutting_down"]
    keep_agents: bool
