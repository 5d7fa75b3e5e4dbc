"""Types that describe an agent to others: ids, addresses, states, and the row that `list --json` prints."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from synapsed.errors import AmbiguousAddress, InvalidRequest, UnknownAgent
from synapsed.model.sender import PERSON, SYSTEM, UNKNOWN
from synapsed.model.task import Prompt
from synapsed.shared.regex import regex

NAME_PATTERN = regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SENDERS = frozenset({SYSTEM, UNKNOWN, PERSON})
"""Names of senders that are no agents."""
_LIKE_AN_ID = regex(r"(?i:synapse)-.+-\d{1,5}")
ADDRESS_MAX = 128
"""Largest number of characters of an address that are compared; every valid address is shorter."""


def _port_choice(value: object) -> object:
    if value is None or value is False or (type(value) is int and 1 <= value <= 65535):
        return value
    raise ValueError("must be a port from 1 to 65535, or false for an agent without one")


PortChoice = Annotated[Annotated[int, Field(ge=1, le=65535)] | Literal[False] | None, BeforeValidator(_port_choice)]
"""The requested port: None for one of the profile's range, False for no port."""


class ProcessState(StrEnum):
    """State of an agent's process (docs/architecture.md); the transitions are in `agents/lifecycle.py`."""

    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    PARKED = "parked"
    """Ended because it was idle; the next message starts it in its conversation."""
    EXITED = "exited"
    BACKOFF = "backoff"
    FAILED = "failed"


class Activity(StrEnum):
    """Activity of a running agent."""

    STARTING = "starting"
    READY = "ready"
    BUSY = "busy"
    WAITING = "waiting"
    LIMITED = "limited"
    """The usage limit of its account is reached: messages wait."""
    UNKNOWN = "unknown"


SeedState = Literal["STARTING", "IDLE", "BUSY", "INPUT_REQUIRED", "STOPPED", "EXITED", "FAILED"]

SEED_STATUS: dict[ProcessState, SeedState] = {
    ProcessState.STOPPED: "STOPPED",
    ProcessState.STARTING: "STARTING",
    ProcessState.STOPPING: "STOPPED",
    ProcessState.PARKED: "IDLE",
    ProcessState.EXITED: "EXITED",
    ProcessState.BACKOFF: "EXITED",
    ProcessState.FAILED: "FAILED",
}
_SEED_ACTIVITY: dict[Activity, SeedState] = {
    Activity.STARTING: "STARTING",
    Activity.READY: "IDLE",
    Activity.BUSY: "BUSY",
    Activity.WAITING: "INPUT_REQUIRED",
    Activity.LIMITED: "BUSY",
    Activity.UNKNOWN: "BUSY",
}


def seed_status(state: ProcessState, activity: Activity, *, asks: bool = False) -> SeedState:
    """Returns the word for an agent's state in synapse-a2a, and in programs modelled on it; `/status` and the registry
    show it. `asks`: a person is needed, even if the question is not understood."""
    if asks and state is ProcessState.RUNNING and activity is Activity.UNKNOWN:
        activity = Activity.WAITING
    return _SEED_ACTIVITY[activity] if state is ProcessState.RUNNING else SEED_STATUS[state]


def agent_id(profile: str, port: int | None, name: str) -> str:
    """Returns `synapse-<type>-<port>`, or `synapse-<type>-<name>` for an agent without a port. Raises InvalidRequest if
    that would be the id of an agent with a port."""
    if port is None and name.isdecimal():
        raise InvalidRequest(f"an agent without a port cannot be called {name!r}: choose a name that is no number")
    return f"synapse-{profile}-{name if port is None else port}"


def is_reserved(name: str) -> bool:
    """Returns True for a name that senders other than agents have, and for a name that looks like an agent's id."""
    return name.casefold() in _SENDERS or _LIKE_AN_ID.fullmatch(name) is not None


def validate_name(name: str) -> str:
    """Returns `name` if it can name an agent. Raises InvalidRequest."""
    if not NAME_PATTERN.fullmatch(name):
        raise InvalidRequest(
            f"{name[:80]!r} cannot name an agent: use letters, digits, '_', '.' and '-', at most 64, "
            "beginning with a letter or digit",
            name=name[:80],
        )
    if is_reserved(name):
        raise InvalidRequest(
            f"{name!r} cannot name an agent: messages would seem to come from it that do not; choose another name",
            name=name,
        )
    return name


def refuse_reserved_host(name: str) -> None:
    """Raises InvalidRequest if `name` cannot name a host, because synapsed's own messages come from such a name."""
    if is_reserved(name):
        raise InvalidRequest(
            f"{name!r} cannot name a host: synapsed uses this name, or names like it, itself; choose another name",
            field="name",
        )


FOLDER_MAX = 30
"""Largest number of characters of a folder in an agent's name."""


def folder_in_name(cwd: PurePath, *, home: PurePath) -> str | None:
    """Returns the part of the folder's name that can stand in an agent's name. Returns None if that part says nothing
    (the home folder, the root) or is a number, which would be taken for a port."""
    if cwd == home:
        return None
    text = re.sub(r"[^A-Za-z0-9_.-]+", "-", cwd.name).strip("-._")[:FOLDER_MAX].rstrip("-._")
    return text if text and not text.isdecimal() else None


@dataclass(frozen=True, slots=True)
class AgentRef:
    """The fields by which an address finds an agent. `folder` is the name of its working directory."""

    name: str
    id: str
    type: str
    port: int | None
    running: bool
    folder: str = ""


def resolve(address: str, agents: Iterable[AgentRef]) -> AgentRef:
    """Returns the one agent that `address` means: a name, an id, `type-port`, or a `type` with one running instance.
    The names of folders are handled by `resolve_folder`. A leading `@` is allowed. An exact name or id wins over a
    type. Raises UnknownAgent, which lists the known agents, or AmbiguousAddress, which lists the candidates."""
    wanted = address.removeprefix("@")[:ADDRESS_MAX]
    known = list(agents)
    for agent in known:
        if wanted in (agent.name, agent.id):
            return agent
    for agent in known:
        if agent.port is not None and wanted == f"{agent.type}-{agent.port}":
            return agent
    of_type = [agent for agent in known if agent.type == wanted]
    candidates = [agent for agent in of_type if agent.running] or of_type
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        names = sorted(agent.name for agent in candidates)
        raise AmbiguousAddress(
            f"{wanted!r} could be {', '.join(names)}: name one of them", address=wanted, candidates=names
        )
    names = sorted(agent.name for agent in known)
    raise UnknownAgent(f"no agent {wanted!r}: {_hint(wanted, names)}", address=wanted, agents=names)


def resolve_folder(address: str, agents: Iterable[AgentRef]) -> AgentRef | None:
    """Returns the one agent whose folder has the name `address`, or None. If there are several, the running one is
    meant. Raises AmbiguousAddress with the candidates."""
    wanted = address.removeprefix("@")[:ADDRESS_MAX]
    there = [agent for agent in agents if agent.folder == wanted]
    candidates = [agent for agent in there if agent.running] or there
    if len(candidates) > 1:
        names = sorted(agent.name for agent in candidates)
        raise AmbiguousAddress(
            f"{', '.join(names)} are all in a folder {wanted!r}: name one of them", address=wanted, candidates=names
        )
    return candidates[0] if candidates else None


def _hint(wanted: str, names: list[str]) -> str:
    if near := get_close_matches(wanted, names, n=1):
        return f"did you mean {near[0]!r}?"
    if names:
        return f"the agents are {', '.join(names)}"
    return "no agent is known; start one with 'synapsectl start PROFILE'"


class AgentView(BaseModel):
    """One element of `list --json` (docs/synapsectl.md). `since` is RFC 3339; `pid` is the agent program's."""

    model_config = ConfigDict(extra="forbid")

    name: str
    id: str
    type: str
    port: int | None
    pid: int | None
    state: ProcessState
    activity: Activity
    since: str
    evidence: str
    held: str | None
    queue: int
    task: str | None
    restarts: int
    cwd: str
    endpoint: str
    until: str | None = None
    """Time at which a usage limit ends or is tried again (RFC 3339), while `activity` is `limited`."""
    version: str | None = None
    """Version that the program reports; None if it reports none, or its profile has no way to ask."""
    verified: str | None = None
    """The version that its profile was measured on."""
    drift: str | None = None
    """Warning for a person if `version` and `verified` differ."""
    withheld: str | None = None
    """Attributes of the shell that started it that its process could not get: a lower nice value, limits, CPUs."""
    settings: list[str] = []
    """Effects of the person's own settings of its program: no hooks, another mode, other keys."""
    background: int = 0
    """Tasks in the program's background, as it reports them. `activity` says whether it takes a message meanwhile."""
    background_tasks: list[str] = []
    """The program's words for each; only for those who may see what its screen shows."""
    host: str | None = None
    """Host of an agent on another host. Then `name` and `id` are addresses (`name@host`), and `endpoint`, `pid` and
    `cwd` belong to that host."""
    asks: str | None = None
    """Question to a person, in one line; only for callers that may see its screen."""
    doing: str | None = None
    """Beginning of the message that it works on, in one line; only for callers that may see its screen."""

    def unseen(self) -> Self:
        """Returns a copy for callers that may not see its screen."""
        return self.model_copy(update={"asks": None, "doing": None, "background_tasks": []})


class StartedAgent(AgentView):
    """The agent that was started."""

    activated: list[str] = []
    """The names of variables of the caller's environment that went along and decide which code runs."""


class Testimony(BaseModel):
    """Report of one channel about an agent (`status --explain`). `since` is RFC 3339, None if it is not known;
    `decides`: the agent's state follows this report."""

    model_config = ConfigDict(extra="forbid")

    channel: str
    says: str
    since: str | None
    decides: bool


class Conversation(BaseModel):
    """`id` is the program's own, None if nothing was said yet or the program reports none; `resumed`: the running
    program was started in this conversation. `note` says how it began, if it is not the agent's first."""

    model_config = ConfigDict(extra="forbid")

    id: str | None
    context_id: str | None
    said: bool
    resumed: bool
    note: str | None


class ProfileAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    description: str
    command: str
    ports: list[int]
    verified: str | None
    unverified: str = ""
    """Sentence for a conversation that was not tested with the program: it says how far it was tested."""
    model: bool = Field(description="A model reads what is typed; to other programs it is a command")
    skills: list[dict[str, Any]]
    transport: Literal["pty", "pipes"] = "pty"
    commands: list[dict[str, str]] = Field(
        default=[], description="What works by its text alone; those with `files` stand for what a person has written"
    )
    source: str


class ConversationAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    profile: str
    id: str
    cwd: str | None
    updated_at: str
    prompt: str
    agent: str | None


class AgentDetail(AgentView):
    """`status --json A`."""

    alerts: list[str] = []
    """Problems for people that last until they are solved."""
    attributes: str | None = None
    """Attributes of its process that are not usual: `umask 077, nice 10`."""
    conversation: Conversation | None = None
    prompt: Prompt | None = None
    screen: str = ""
    error: str | None = None
    gone: list[str] = []
    """Names of variables of its next program that lead to files which do not exist any more."""

    def unseen(self) -> Self:
        prompt = None if self.prompt is None else self.prompt.unseen()
        return super().unseen().model_copy(update={"prompt": prompt, "screen": "", "gone": []})


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryEntry:
    """Entry of an agent in the registry (S9); `status` is a word of `seed_status`, `pid` the program's."""

    agent_id: str
    agent_type: str
    name: str
    port: int | None
    status: str
    pid: int | None
    working_dir: str
    endpoint: str
