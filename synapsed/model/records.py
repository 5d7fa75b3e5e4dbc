"""Records of agents, turns and followers (readers of the event log) in the store: the next daemon goes on with them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from synapsed.model.attributes import ProcessAttributes


class LogProgress(BaseModel):
    """Progress in the log: events up to `cursor` are done. For a receiver elsewhere also its failures since the last
    success: `attempt` counts them; `failing_since` and `retry_at` are in seconds since the epoch, None while nothing
    fails."""

    cursor: int
    state: Literal["active", "done", "given_up"] = "active"
    attempt: int = 0
    failing_since: float | None = None
    retry_at: float | None = None


class FollowerState(LogProgress):
    """State of a follower as the database keeps it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    partly: tuple[str, ...] = ()
    """Rules that have handled the event after `cursor`."""
    problem: str = ""
    """Problem of its last failure."""
    secret: str = ""
    """Secret value that it keeps for itself. By its name it is encrypted in the database."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore")


class LaunchRecord(_Record):
    """One launch of an agent's program, with the facts by which its keeper, the process that holds its terminal or
    pipes, is found again and recognised.

    `keeper_start` and `pid_start` are the kernel's start times (clock ticks since boot on Linux): a pid alone is
    never believed.
    """

    launch_id: str
    socket: str
    keeper_pid: int
    keeper_start: int
    pid: int
    pid_start: int
    spool_start: int
    """Spool offset at which this launch's output begins."""
    started_at: float
    resumed: bool = False
    version: str | None = None
    """Version that the program reported."""
    session_ns: int = 0
    """Time at which the program reported its conversation (CLOCK_MONOTONIC)."""
    withheld: list[str] = []
    """Attributes that the program could not have, in words for people."""
    settings: list[str] = []
    """Effects of the person's own settings of the program, in words for people."""
    keys: str = ""
    """The program's keys to which the person has given another meaning, in words."""


class AgentRecord(_Record):
    """An agent as it was requested, plus its launch. `env` is the whole environment of the shell that started it, or
    None for the daemon's own; it may hold secrets, so the database is 0600 and this is never logged."""

    id: str
    name: str
    profile: str
    port: int | None
    cwd: str
    args: list[str] = []
    env: dict[str, str] | None = None
    connection: dict[str, str] = {}
    """Variables from later shells, which override `env`; as secret as that."""
    extra_env: dict[str, str] = {}
    attributes: ProcessAttributes | None = None
    """Attributes of the shell that started it; None for the daemon's own."""
    prompt: str | None = None
    """Pattern of its program's prompt, given by a person if no profile describes it."""
    desired: Literal["running", "stopped"] = "running"
    state: str = "stopped"
    """The process state last written (`ProcessState`)."""
    from_config: bool = False
    accept_agents: bool = False
    """True if messages of other agents are typed although no model reads them first."""
    without_approval: bool = False
    """True if it is started even if deny rules cannot be enforced."""
    resume_at_reset: bool = False
    """True if a task that waits for the end of a hold goes on then, unless the configuration decides this."""
    restart_pending: bool = False
    """True if it is to be restarted when it is idle."""
    parking: bool = False
    """True if it is parked (its idle program was ended), or being stopped for that."""
    cols: int = 120
    rows: int = 40
    restarts: int = 0
    created_at: float
    generation: str = ""
    """Distinguishes it from earlier agents with its id; empty for one that an older version made."""
    changed_at: float = 0.0
    conversation: str | None = None
    """The program's own id of its current conversation, once it can be resumed."""
    said: bool = False
    """True if a message was sent in the current conversation."""
    context_id: str | None = None
    """The current conversation's name to clients; None before the first launch."""
    conversation_note: str | None = None
    """Origin of the conversation, for people, if it is not the agent's first."""
    told: str | None = None
    """Fingerprint of the instructions that it got last."""
    launch: LaunchRecord | None = None
    limit: dict[str, Any] | None = None
    """Document of the part that holds its messages back (`HoldOwner.keep_hold`)."""
    failure: str | None = None


class TurnRecord(_Record):
    """The turn in flight. `link` has data of the link, which talks to the program (offsets, attempt, ids), as JSON; it
    is written before each irreversible act, so that nothing is ever typed twice."""

    task_id: str
    launch_id: str
    attempt: int = 1
    continued: str | None = None
    """The launch that has the message already: in this turn the program is only asked to go on."""
    link: dict[str, Any] = {}


class ReplyRecord(_Record):
    """A reply that is awaited (S20), or that has come but is not yet delivered to its agent. `state` is that of
    `tasks.replies`; times are Unix seconds."""

    task_id: str
    """The task that the reply completes: the asking agent's own, which it made for that."""
    asker: str
    """The agent that wants the reply."""
    state: Literal["open", "asked", "over"] = "open"
    asked: str | None = None
    """The agent that was asked."""
    request: str | None = None
    """The task with which it was asked."""
    wait: bool = False
    """True if a caller waits for the reply, so that the agent need not be notified."""
    limit: float
    """Seconds that the reply may take after the question was asked."""
    due: float
    """Time after which the reply is too late; after the reply, when the agent is notified unless the caller has it."""
    hops: int = 0
    """Number of agents that the request has gone through."""


class Checkpoint(_Record):
    """A screen at a spool offset: `redraw` fed to an empty terminal of `cols` x `rows` gives that screen."""

    offset: int
    cols: int
    rows: int
    redraw: bytes
    state: dict[str, Any] = {}
    """State that no screen shows: status records, activity, the text before the prompt (`TerminalObserver`)."""
