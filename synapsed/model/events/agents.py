"""Events of agents: their programs, what they do, what they ask, and what a person should know of them."""

from typing import Annotated, Any, Literal

from pydantic import Field

from synapsed.model.agent import Activity, ProcessState
from synapsed.model.events.base import LARGE, By, Data, ReportedBy, Where
from synapsed.model.task import Prompt

REMOVED: Literal["removed"] = "removed"
"""`state` of the last event of an agent that is no more."""


FINE = "is fine"
"""How the words about an exit end that the restart policy takes for no failure."""


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
        """Its program ended as programs do that have nothing more to do."""
        return self.exit_code == 0 or self.reason.endswith(FINE)


class ActivityChanged(Data):
    """What an agent is doing changed; `evidence` names the channel and what it said."""

    type: Literal["activity"] = "activity"
    activity: Activity
    evidence: str
    prompt: Annotated[Prompt | None, LARGE] = None


class InputRequired(Data):
    """A program asks, and a person has to answer: in a task, or outside any."""

    type: Literal["inputRequired"] = "inputRequired"
    prompt: Annotated[Prompt, LARGE]


class InputAnswered(Data):
    """The program took an answer. What a password prompt was given is not in here."""

    type: Literal["inputAnswered"] = "inputAnswered"
    prompt_id: str
    answer: Annotated[str | None, LARGE] = Field(description="null where it is secret, or was typed at the terminal")
    by: By | None = Field(default=None, description="Who answered; null: not known")
    who: str | None = Field(default=None, description="The agent's id, or the name of the rule or policy's rule")
    where: Where | None = Field(default=None, description="From where it was answered")


class AttentionChanged(Data):
    """A person is needed, or no longer: what an inbox is made of. `opened` comes once for each `id`, then once
    `answered` or `gone` (it was withdrawn, or nobody knows who saw to it)."""

    type: Literal["attention"] = "attention"
    id: str
    state: Literal["opened", "answered", "gone"]
    kind: str = Field(
        description="permission, question, plan, sign_in, limit, failure, crash_loop, unreadable, finished or alert"
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
    """Something a person should know of: a gap in the spool, a full disk, a lost keeper."""

    type: Literal["agentAlert"] = "agentAlert"
    code: str
    message: str
    details: Annotated[dict[str, Any], LARGE] = Field(default_factory=dict)


class AgentReported(Data):
    """What an agent wants the person who watches to know."""

    type: Literal["agentReported"] = "agentReported"
    kind: str
    message: Annotated[str, LARGE]
    reported_by: ReportedBy = None


class TurnSeen(Data):
    """A turn that a person typed at the agent's terminal, where a side channel tells of it."""

    type: Literal["turnSeen"] = "turnSeen"
    text: Annotated[str, LARGE]
    answer: Annotated[str | None, LARGE] = None
    turn_id: str | None = Field(default=None, description="The program's own id of it")
    source: str | None = Field(default=None, description="The channel that told it")


class TokensUsed(Data):
    """What a turn has used, where the program tells it: never a running total, so that a sum is right."""

    type: Literal["usage"] = "usage"
    model: str | None = None
    input_tokens: int | None = Field(default=None, ge=0, description="Without those read from or written to a cache")
    output_tokens: int | None = Field(default=None, ge=0)
    cache_read_tokens: int | None = Field(default=None, ge=0)
    cache_write_tokens: int | None = Field(default=None, ge=0)
    cost_usd: float | None = Field(default=None, ge=0)
    turn_id: str | None = Field(default=None, description="The program's own id of it")
    source: str | None = Field(default=None, description="The channel that told it")


class ScreenRested(Data):
    """An agent's screen came to rest and shows something else than when it did so last."""

    type: Literal["screen"] = "screen"
    digest: str = Field(description="Of its text: the same text has the same")
