"""Data of events, one model for each type: of tasks and agents, of the daemon, and of automatic actions."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from synapsed.model.agent import Activity, ProcessState
from synapsed.model.task import Artifact, Prompt, TaskError, TaskState

type By = Literal["person", "agent", "policy", "rule", "daemon"]
"""Actor: `policy` is the agent's approval policy, `rule` a rule of the configuration, `daemon` synapsed by itself."""

type Where = Literal["terminal", "control", "http", "a2a"]
"""Origin of an action: the agent's own terminal, the control socket, the agent's or the main port, or A2A."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Actor and place of an action. `who` is an agent's id, or the name of a rule."""

    by: By
    who: str | None = None
    where: Where | None = None


ReportedBy = Annotated[
    str | None,
    Field(description="Who reported it from outside: `person`, or an agent's id; null: synapsed saw it itself"),
]


@dataclass(frozen=True)
class _Large:
    """Marks a field that may be large. If an event is too large for a stream, `{truncated, size}` takes its place."""


LARGE = _Large()


class Data(BaseModel):
    """Base of all event data. The log keeps `type` with the other fields; clients get it as `event`, beside `data`.
    Fields of newer versions are ignored."""

    model_config = ConfigDict(extra="ignore", ser_json_inf_nan="null")

    type: str

    @classmethod
    def large_fields(cls) -> frozenset[str]:
        """Returns the names, for clients, of the fields that may be large."""
        marked = ((name, field) for name, field in cls.model_fields.items() if LARGE in field.metadata)
        return frozenset(field.serialization_alias or name for name, field in marked)


REMOVED: Literal["removed"] = "removed"
"""`state` in the last event of an agent that was removed."""


FINE = "is fine"
"""End of the message about an exit that the restart policy does not count as a failure."""


class StateChanged(Data):
    """An agent's process went into `state`. `exit_code` is negative for a signal, as in subprocess."""

    type: Literal["agentState"] = "agentState"
    state: ProcessState | Literal["removed"]
    reason: str = ""
    pid: int | None = None
    exit_code: int | None = None
    restarts: int = 0

    @property
    def fine(self) -> bool:
        """True if its program ended in the usual way, with nothing more to do."""
        return self.exit_code == 0 or self.reason.endswith(FINE)


class ActivityChanged(Data):
    """An agent's activity changed; `evidence` names the channel and its report."""

    type: Literal["activity"] = "activity"
    activity: Activity
    evidence: str
    prompt: Annotated[Prompt | None, LARGE] = None
    background: int | None = Field(
        default=None, ge=0, description="How much it runs in its background; null: not reported with this"
    )


class InputRequired(Data):
    """A program asks, and a person has to answer: in a task, or outside of tasks."""

    type: Literal["inputRequired"] = "inputRequired"
    prompt: Annotated[Prompt, LARGE]


class InputAnswered(Data):
    """The program took an answer. An answer to a password prompt is not included."""

    type: Literal["inputAnswered"] = "inputAnswered"
    prompt_id: str
    answer: Annotated[str | None, LARGE] = Field(description="null where it is secret, or was typed at the terminal")
    by: By | None = Field(default=None, description="Who answered; null: not known")
    who: str | None = Field(default=None, description="The agent's id, or the name of the rule or policy's rule")
    where: Where | None = Field(default=None, description="From where it was answered")


class AttentionChanged(Data):
    """A person is needed, or no longer; the inbox is made of these. `opened` comes once for each `id`, then once
    `answered` or `gone` (it was withdrawn, or it is not known who handled it)."""

    type: Literal["attention"] = "attention"
    id: str
    state: Literal["opened", "answered", "gone"]
    kind: str = Field(
        description="permission, question, plan, sign_in, limit, account, failure, crash_loop, unreadable, finished or "
        "alert"
    )
    question: str = Field(default="", description="Its beginning, or what is the matter")
    prompt_id: str | None = None
    code: str | None = Field(default=None, description="The alert's")
    until: str | None = Field(default=None, description="When a limit ends, or is tried out (RFC 3339, UTC)")
    by: By | None = None
    who: str | None = None
    where: Where | None = None


class PermissionDecided(Data):
    """An agent's approval policy was asked about a tool call. `rule` is the rule that decided, null for the default;
    `input` is what was to be done, with secrets masked."""

    type: Literal["permissionDecided"] = "permissionDecided"
    verdict: Literal["allow", "deny", "escalate"]
    rule: str | None
    tool: str
    input: Annotated[dict[str, Any], LARGE] = Field(default_factory=dict)


class AgentAlert(Data):
    """A problem that a person should know of: a gap in the spool, a full disk, a lost keeper."""

    type: Literal["agentAlert"] = "agentAlert"
    code: str
    message: str
    details: Annotated[dict[str, Any], LARGE] = Field(default_factory=dict)


class AgentReported(Data):
    """Report from an agent for the person who watches it."""

    type: Literal["agentReported"] = "agentReported"
    kind: str
    message: Annotated[str, LARGE]
    reported_by: ReportedBy = None


class TurnSeen(Data):
    """A turn that a person typed at the agent's terminal, if a side channel reports it."""

    type: Literal["turnSeen"] = "turnSeen"
    text: Annotated[str, LARGE]
    answer: Annotated[str | None, LARGE] = None
    turn_id: str | None = Field(default=None, description="The program's own id of it")
    source: str | None = Field(default=None, description="The channel that reported it")


class TokensUsed(Data):
    """Tokens that a turn has used, if the program reports them. It is never a running total, so that a sum is right."""

    type: Literal["usage"] = "usage"
    model: str | None = None
    input_tokens: int | None = Field(default=None, ge=0, description="Without those read from or written to a cache")
    output_tokens: int | None = Field(default=None, ge=0)
    cache_read_tokens: int | None = Field(default=None, ge=0)
    cache_write_tokens: int | None = Field(default=None, ge=0)
    cost_usd: float | None = Field(default=None, ge=0)
    turn_id: str | None = Field(default=None, description="The program's own id of it")
    source: str | None = Field(default=None, description="The channel that reported it")


class PlanStep(BaseModel):
    """One step of a plan."""

    text: str
    status: Literal["pending", "in_progress", "completed"] = "pending"


class PlanUpdated(Data):
    """The whole current plan of a program; it replaces the plan before it."""

    type: Literal["plan"] = "plan"
    steps: Annotated[list[PlanStep], LARGE]
    note: str | None = Field(default=None, description="What the program says of the change")
    turn_id: str | None = Field(default=None, description="The program's own id of the turn")
    source: str | None = Field(default=None, description="The channel that reported it")


class DiffUpdated(Data):
    """All changes that a turn has made in files so far; it replaces the event before it of the same turn."""

    type: Literal["diff"] = "diff"
    diff: Annotated[str, LARGE] = Field(description="In the unified format")
    truncated: bool = Field(default=False, description="The end is left out")
    turn_id: str | None = Field(default=None, description="The program's own id of the turn")
    source: str | None = Field(default=None, description="The channel that reported it")


class RateWindow(BaseModel):
    """One limit of an account over a stretch of time."""

    name: str
    used_percent: float = Field(ge=0)
    minutes: int | None = Field(default=None, ge=0, description="How long the stretch is")
    resets_at: str | None = Field(default=None, description="RFC 3339, UTC")


class RateLimitsSeen(Data):
    """The used share of its account's limits, as a program reports it; sent when it has changed."""

    type: Literal["rateLimits"] = "rateLimits"
    windows: list[RateWindow]
    plan: str | None = Field(default=None, description="The account's plan, as its program calls it")
    source: str | None = Field(default=None, description="The channel that reported it")


class ScreenRested(Data):
    """An agent's screen came to rest, and shows something else than the last time."""

    type: Literal["screen"] = "screen"
    digest: str = Field(description="Of its text: the same text has the same")


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
    """Output of a task. With `append` false the artifact replaces the former content under its `artifact_id`."""

    type: Literal["taskArtifact"] = "taskArtifact"
    artifact: Annotated[Artifact, LARGE]
    append: bool = False
    last_chunk: bool = True


class ScheduleCame(Data):
    """A scheduled time came. `sent`: its message is the task; `missed`: no daemon ran, or the machine slept, and
    nothing is sent; `refused`: it could not be sent, and `problem` says why."""

    type: Literal["schedule"] = "schedule"
    schedule: str = Field(description="Its id")
    outcome: Literal["sent", "missed", "refused"]
    at: str = Field(description="The time of the schedule (RFC 3339, UTC)")
    missed_since: str | None = Field(default=None, description="The first time that was missed, where any was")
    problem: str = ""


class RuleFired(Data):
    """A rule matched an event, which is `cause`. `done`: its action was taken (a webhook: is about to be called);
    `failed`: `problem` says why not; `held`: nothing was done, to prevent a loop."""

    type: Literal["ruleFired"] = "ruleFired"
    rule: str
    cause: int = Field(description="Id of the event")
    cause_event: str = Field(description="Its type")
    action: Literal["notify", "approve", "deny", "send", "restart", "webhook"]
    outcome: Literal["done", "failed", "held"]
    sent: str | None = Field(default=None, description="The task that was sent")
    webhook: str | None = Field(default=None, description="The receiver that is notified")
    text: str = Field(default="", description="The text for the person")
    problem: str = ""


# The next three are document 004's, by its names and constraints; what we add to them is optional.


class ToolExecution(Data):
    """A program began a tool call, or the call ended."""

    type: Literal["toolExecution"] = "toolExecution"
    tool_name: str = Field(description="The tool, as its program calls it")
    status: Literal["started", "completed", "failed"]
    input: Annotated[dict[str, Any] | None, LARGE] = Field(
        default=None, description="What the tool was given, secrets masked"
    )
    output: Annotated[dict[str, Any] | None, LARGE] = Field(
        default=None, description="What it gave back; a text is `{text: …}`"
    )
    error: Annotated[str | None, LARGE] = Field(
        default=None, description="Why it failed; for a denied one, the reason of the denial"
    )
    call_id: str | None = Field(default=None, description="The same of a call's start and its end")
    duration_ms: int | None = Field(default=None, ge=0, description="From start to end, where both were seen")
    denied: bool = Field(default=False, description="It failed because it was not allowed")
    exact: bool = Field(default=True, description="False: read off the screen")
    source: str | None = Field(
        default=None, description="The channel that reported it, such as `hooks`, `server`, `screen`"
    )
    reported_by: ReportedBy = None


class AgentTransition(Data):
    """Work passed from one agent to another."""

    type: Literal["agentTransition"] = "agentTransition"
    from_agent: str | None = Field(default=None, description="Who had it; null: a person")
    to_agent: str = Field(description="Who has it now")
    reason: str | None = None
    kind: Literal["message", "reply", "external"] | None = Field(
        default=None,
        description="What carried it: a message, the reply to one, or a message to or from another machine",
    )
    from_task: str | None = Field(default=None, description="The sender's own task that this is part of")
    reported_by: ReportedBy = None


class EmotionUpdate(Data):
    """Estimated feeling of the person who works with an agent."""

    type: Literal["emotionUpdate"] = "emotionUpdate"
    emotion_type: Literal["frustration", "confidence", "fatigue", "joy"]
    level: int = Field(ge=1, le=5)
    detected_from: Literal["voice_tone", "text_analysis", "interaction_pattern"]
    evidence: str | None = Field(default=None, description="What was seen, in words; never what the person wrote")
    reported_by: ReportedBy = None


class DaemonChanged(Data):
    """The daemon has started, or is about to end."""

    type: Literal["daemon"] = "daemon"
    state: Literal["started", "stopping"]
    version: str
    pid: int
    agents: int = Field(description="How many there are")


class Gap(Data):
    """Events were skipped: not all of those from id `from` to `to` are kept. A gap is not in the log, and has no id."""

    type: Literal["gap"] = "gap"
    first: int = Field(serialization_alias="from")
    last: int = Field(serialization_alias="to")


class Truncated(BaseModel):
    """Placeholder for a field that makes its event too large for a stream: `GET /events/{id}` has it whole."""

    truncated: Literal[True] = True
    size: int = Field(description="Characters of what it stands for, as JSON")


EventData = Annotated[
    TaskStatusChanged
    | TaskArtifactAdded
    | TaskDelivered
    | StateChanged
    | ActivityChanged
    | InputRequired
    | InputAnswered
    | AttentionChanged
    | PermissionDecided
    | AgentAlert
    | AgentReported
    | TurnSeen
    | TokensUsed
    | PlanUpdated
    | DiffUpdated
    | RateLimitsSeen
    | ScreenRested
    | DaemonChanged
    | RuleFired
    | ScheduleCame
    | ToolExecution
    | AgentTransition
    | EmotionUpdate,
    Field(discriminator="type"),
]
"""Data of any event in the log."""
