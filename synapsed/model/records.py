"""What the store keeps of agents, turns and followers of the log: a daemon that was killed goes on where it was."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from synapsed.model.attributes import ProcessAttributes


class LogProgress(BaseModel):
    """Events up to `cursor` are seen to. Of a receiver elsewhere also its failures since the last success: `attempt`
    counts them, `failing_since` and `retry_at` are None while nothing fails, in seconds since the epoch."""

    cursor: int
    state: Literal["active", "done", "given_up"] = "active"
    attempt: int = 0
    failing_since: float | None = None
    retry_at: float | None = None


class FollowerState(LogProgress):
    """As it is in the database."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    partly: tuple[str, ...] = ()
    """Rules that have seen to the event after `cursor`."""
    problem: str = ""
    """What was wrong the last time that it failed."""
    secret: str = ""
    """What it keeps for itself. By its name it is encrypted in the database."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore")


class LaunchRecord(_Record):
    """One launch of an agent's program: enough to find its keeper again, and to know it from a stranger.

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
    """The program's, where it told it."""
    session_ns: int = 0
    """When the program told of the conversation that it is in (CLOCK_MONOTONIC)."""
    withheld: list[str] = []
    """Attributes that the program could not have, in words for people."""
    settings: list[str] = []
    """What the person's own settings of the program mean here, in words for people."""
    keys: str = ""
    """Which keys that are pressed here do something else, in words."""


class LimitRecord(_Record):
    """A usage limit that the program told of. Times are Unix seconds; `until` is None where it did not say; `attempt`
    counts how often it was met without a turn that ended between; `lifted`: it is being tried out. `attention` is the
    id under which a person is told of it.

    `account`: it is no limit, the account does not work. It is not over by itself: `marks` are those of its files when
    it was met, `reach` is the address that could not be reached, if it was that, looked for from `resume_at` on;
    without `attention` a person was told of it by another agent of the account."""

    since: float
    until: float | None = None
    resume_at: float
    attempt: int = 1
    words: str = ""
    lifted: bool = False
    attention: str | None = None
    account: bool = False
    marks: str = ""
    reach: str = ""


class AgentRecord(_Record):
    """An agent as it was asked for, plus its launch. `env` is the whole environment of the shell that started it,
    or None for the daemon's own; it may hold secrets, so the database is 0600 and this is never logged."""

    id: str
    name: str
    profile: str
    port: int | None
    cwd: str
    args: list[str] = []
    env: dict[str, str] | None = None
    connection: dict[str, str] = {}
    """Variables that later shells brought, over `env`; as secret as that."""
    extra_env: dict[str, str] = {}
    attributes: ProcessAttributes | None = None
    """Those of the shell that started it; None for the daemon's own."""
    prompt: str | None = None
    """Its program's prompt, as a person says, where no profile describes that."""
    desired: Literal["running", "stopped"] = "running"
    state: str = "stopped"
    """The process state last written (`ProcessState`)."""
    from_config: bool = False
    accept_agents: bool = False
    """What other agents write is typed although no model reads it."""
    without_approval: bool = False
    """It is started, too, where deny rules cannot be enforced."""
    resume_at_reset: bool = False
    """A task that meets the account's usage limit goes on when that ends, where no configuration says what it does."""
    restart_pending: bool = False
    """It is to be restarted when it is idle."""
    parking: bool = False
    """It is parked, or being stopped for that."""
    cols: int = 120
    rows: int = 40
    restarts: int = 0
    created_at: float
    generation: str = ""
    """Tells it from agents that had its id before; empty for one that an older version made."""
    changed_at: float = 0.0
    conversation: str | None = None
    """The program's own id of its current conversation, once it can be resumed."""
    said: bool = False
    """Something was said in the current conversation."""
    context_id: str | None = None
    """The current conversation's name to clients; None before the first launch."""
    conversation_note: str | None = None
    """How the conversation came about, where it is not the agent's first, for people."""
    told: str | None = None
    """Fingerprint of the instructions that it was given last."""
    launch: LaunchRecord | None = None
    limit: LimitRecord | None = None
    failure: str | None = None


class TurnRecord(_Record):
    """The turn in flight. `link` is the link's own business (offsets, attempt, ids): JSON, written ahead of each
    irreversible act, so that nothing is ever typed twice."""

    task_id: str
    launch_id: str
    attempt: int = 1
    continued: str | None = None
    """The launch that has the message already: this turn only tells it to go on."""
    link: dict[str, Any] = {}


class ReplyRecord(_Record):
    """A reply that is awaited (S20), or that has come and of which its agent has not been told. `state` is that of
    `supervisor.replies`; times are Unix seconds."""

    task_id: str
    """The task that the reply completes, an agent's own: it has made it for that."""
    asker: str
    """The agent that wants the reply."""
    state: Literal["open", "asked", "over"] = "open"
    asked: str | None = None
    """The agent that was asked."""
    request: str | None = None
    """The task with which it was asked."""
    wait: bool = False
    """A caller waits for the reply, so that the agent need not be told."""
    limit: float
    """Seconds that the reply may take once somebody is asked."""
    due: float
    """When it is too late for the reply; once it is over, when the agent is told unless the caller has it by then."""
    hops: int = 0
    """Through how many agents the request had gone."""


class Checkpoint(_Record):
    """A screen at a spool offset: `redraw` fed to an empty terminal of `cols` x `rows` gives that screen."""

    offset: int
    cols: int
    rows: int
    redraw: bytes
    state: dict[str, Any] = {}
    """What the screen does not say: status records, activity, what stands before the prompt (`TerminalObserver`)."""
