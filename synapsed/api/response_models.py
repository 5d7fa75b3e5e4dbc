"""Return values of handlers, besides the models of the supervisor itself."""

from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from synapsed.interfaces import ConfigChange
from synapsed.model.agent import AgentDetail, SeedState, Testimony
from synapsed.model.task import ANSWER_ID, Artifact, Prompt, Task

RESPONSE_MODE: Final = "response_mode"
"""Key of a message's metadata that clients of synapse-a2a set."""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _if_any(without: Any, **told: Any) -> Any:
    """Returns a field that is left out of the answer if it is None; for clients a missing field means `without`."""
    return Field(default=None, exclude_if=lambda it: it is None, json_schema_extra={"default": without}, **told)


class ErrorTold(_Answer):
    """`code` is for programs, `message` for people; `details` name the subject."""

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
    """`agent`: the id of the agent whose process asks, null for a person; `rights`: those that its profile grants."""

    standing: Literal["person", "agent"]
    agent: str | None
    rights: list[str]


class ShownArtifact(Artifact):
    """An artifact. `text` has the answer, but only for a sender of `metadata.response_mode`, such as synapse-a2a's
    client, which does not read `parts`."""

    whole: str | SkipJsonSchema[None] = _if_any("", serialization_alias="text")


class ShownTask(Task):
    artifacts: list[ShownArtifact] = Field(default=[])  # type: ignore[assignment]

    @classmethod
    def of(cls, task: Task, *, dialect: bool = True) -> Self:
        """Returns the task in the form that was first asked for; with `dialect` also with the field that synapse-a2a's
        client reads, if that client has sent the task."""
        words = dialect and RESPONSE_MODE in task.metadata
        artifacts = [
            ShownArtifact.model_construct(
                **one.__dict__, whole=one.text if words and one.artifact_id == ANSWER_ID else None
            )
            for one in task.artifacts
        ]
        return cls.model_construct(**{**task.__dict__, "artifacts": artifacts})


class TaskAnswer(_Answer):
    task: ShownTask

    @classmethod
    def of(cls, task: Task) -> "TaskAnswer":
        return TaskAnswer.model_construct(task=ShownTask.of(task))


class Team(_Answer):
    """A team. `members` are names of agents, running or not."""

    name: str
    members: list[str]


class MessageSent(_Answer):
    status: Literal["sent"]
    priority: int
    task_id: str


class InputProvided(_Answer):
    """`task_id` is missing where the prompt belonged to no task."""

    status: Literal["input_provided"]
    task_id: str | SkipJsonSchema[None] = _if_any("")


class SeedStatus(_Answer):
    status: SeedState
    context: str
    activity: str
    since: str
    evidence: str
    held: str | None
    queue: int
    background: int = 0
    task: str | None
    prompt: Prompt | None
    explain: list[Testimony] | SkipJsonSchema[None] = _if_any([])


class StatusDetail(AgentDetail):
    explain: list[Testimony] | SkipJsonSchema[None] = _if_any([])


class Pressed(_Answer):
    """Answer to keys pressed at an agent's terminal."""

    status: Literal["pressed"]


class EnvironmentAnswer(_Answer):
    """Names of variables: changed ones, or, if all were brought, those that decide which code runs."""

    names: list[str]


class InterruptedAnswer(_Answer):
    interrupted: bool


class ChangesAnswer(_Answer):
    dry_run: bool
    changes: list[ConfigChange]


class DaemonPaths(_Answer):
    config: str
    state: str
    run: str
    a2a: str
    control_socket: str
    database: str


class DaemonStatus(_Answer):
    """`uptime` in seconds; `listen`: `host:port` of each main listener; `secure`: addresses of the page at the listener
    with TLS; `commit`: that of its program, empty if it is unknown; `unused_proxies`: the variables of its environment
    that name a proxy, if `[outgoing]` names none: they are not obeyed."""

    version: str
    commit: str
    pid: int
    uptime: float
    listen: list[str]
    secure: list[str]
    agents: int
    alerts: list[str]
    unused_proxies: list[str]
    paths: DaemonPaths


class ShuttingDown(_Answer):
    status: Literal["shutting_down"]
    keep_agents: bool
