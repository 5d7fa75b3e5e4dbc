"""The supervisor, as the API sees it, in four parts: which agents there are, their processes, their tasks, and their
terminals. Whoever needs one part is given that part.

Agents are named by id; `Directory.resolve` makes ids of addresses. Errors are those of `synapsed.errors`.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from synapsed.documents.budget import Large
from synapsed.interfaces.agent_link import Attachment, ScreenWatch
from synapsed.interfaces.storage import EventLog, TaskFilter
from synapsed.model.agent import AgentDetail, AgentView, ConversationAnswer, ProfileAnswer, StartedAgent, Testimony
from synapsed.model.attributes import ProcessAttributes
from synapsed.model.events import EventData, Origin, Where
from synapsed.model.picture import ScreenForm, Shown
from synapsed.model.records import ReplyRecord
from synapsed.model.sender import Sender
from synapsed.model.task import Artifact, Message, Task

type Bringing = Literal["connection", "missing", "all"]

PERSON = Origin("person")
"""A person of whom nothing more is known."""


@dataclass(frozen=True, slots=True)
class OutputPiece:
    """Raw output from offset `start` on. `ended`: the program has ended for good, and this was the last of it."""

    start: int
    data: bytes
    ended: bool


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """What a new configuration does to `agent` (None: the daemon itself): it is added or started, restarted when it is
    idle, stopped, brought up to date without any of this, or refused; `daemon` is for what a daemon reads only once."""

    agent: str | None
    action: Literal["add", "start", "restart", "stop", "update", "refused", "daemon"]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest:
    """`synapsectl start` (docs/synapsectl.md). `env` is the caller's whole environment, None for the daemon's."""

    profile: str
    name: str | None = None
    port: int | Literal[False] | None = None
    """False: it has none."""
    cwd: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] | None = None
    extra_env: dict[str, str] = field(default_factory=dict)
    attributes: ProcessAttributes | None = None
    """Attributes of the caller's process; each that is not known is as the daemon has it."""
    cols: int = 120
    rows: int = 40
    save: bool = False
    """Also write it to `config/agents.d`, to be started with every daemon."""
    conversation: str | None = None
    """The program's own id of an earlier conversation to go on with."""
    accept_agents: bool = False
    """Type what other agents write also where no model reads it."""
    without_approval: bool = False
    """Start it also where deny rules cannot be enforced."""
    prompt: str | None = None
    """The program's prompt, where no profile describes it."""
    resume_at_reset: bool = False
    """Have a task that meets the account's usage limit go on when that ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """A message for an agent. `task_id` continues a task that waits for input, `prompt_id` says with which."""

    message: Message
    priority: int = 1
    context_id: str | None = None
    task_id: str | None = None
    prompt_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    command: bool = False
    wait: bool = False
    """The sender does nothing else until there is an answer."""
    key: str | None = None
    """Of the sender's own: what comes again under the same key is the same task."""
    of_agent: bool = False
    """An agent wrote it, here or on another host; else it is a person's."""
    marks: Mapping[str, Any] = field(default_factory=dict)
    """Marks of the part that sends it: its task keeps them by keys that no client sets (`released_names`)."""
    named: bool = False
    """The message's id is its sender's own: the same message again is the same task."""
    where: Where | None = None
    """Where it came from."""

    @property
    def origin(self) -> Origin:
        """Who sends it, and from where."""
        sender = Sender.of(self.metadata)
        agent = self.of_agent or sender is not None
        return Origin("agent" if agent else "person", who=sender.id if sender is not None else None, where=self.where)


class Directory(Protocol):
    """Which agents there are, who they are and what they show of themselves."""

    def agents(self) -> list[AgentView]: ...

    def resolve(self, address: str, *, folders: bool = True) -> str:
        """The id of the agent that `address` means: one of ours, or else one elsewhere, or else (`folders`) the one in
        the folder of that name. Raises UnknownAgent, AmbiguousAddress."""
        ...

    def teams(self) -> dict[str, list[str]]:
        """The members of each team, by name."""
        ...

    def agent_on_port(self, port: int) -> str | None: ...

    def view(self, agent_id: str) -> AgentView: ...

    def detail(self, agent_id: str) -> AgentDetail:
        """All but what its screen shows, which `Terminals.visible` tells."""
        ...

    async def gone(self, agent_id: str) -> list[str]:
        """The names of variables of the environment of the agent's next start that lead to what is not there."""
        ...

    async def explain(self, agent_id: str) -> list[Testimony]:
        """The chain of evidence for what is believed of the agent, strongest channel first: its process, then what
        its link tells."""
        ...

    def profiles(self) -> list[ProfileAnswer]: ...

    async def conversations(
        self, home: str | None, *, profile: str | None, cwd: str | None, env: Mapping[str, str]
    ) -> list[ConversationAnswer]:
        """Conversations found on disk below `home` (None: the daemon's), or where `env` says, newest first: each with
        the beginning of its prompt, and the name of the agent that is in it now."""
        ...

    async def process_of(self, pid: int) -> str | None:
        """The agent whose program is `pid` or an ancestor of it, by pid and start time; None for none of them."""
        ...

    def granted(self, agent_id: str) -> frozenset[str]:
        """What the agent's profile grants it beyond an agent's rights; nothing for one that is gone."""
        ...

    def token_owner(self, token: str) -> str | None:
        """The agent that was given this SYNAPSE_AGENT_TOKEN."""
        ...


class Processes(Protocol):
    """The programs of the agents, and the daemon's own life."""

    async def start(self, request: StartRequest) -> StartedAgent: ...

    async def stop(self, agent_id: str, *, remove: bool = False) -> AgentView: ...

    async def restart(self, agent_id: str, *, when_idle: bool = False, without_approval: bool = False) -> AgentView:
        """`when_idle`: not now, but when no turn runs and nothing is being typed; this returns at once, and a restart
        of the daemon does not forget it. `without_approval`: also where deny rules cannot be enforced, from now on."""
        ...

    async def bring(self, agent_id: str, env: dict[str, str], bringing: Bringing) -> list[str]:
        """Keep for the agent's next start, of the environment of a shell, what tells how its login is reached
        (`connection`), what of that replaces something that is gone (`missing`), or `all`. Returns the names of what
        is another now; with `all`, of what decides which code runs."""
        ...

    async def park(self, agent_id: str) -> AgentView:
        """End its program until the next message, terminal or start; returns when it is parked. Raises NotReady where
        it is not idle, InvalidRequest where its conversation would be lost."""
        ...

    async def kill(self, agent_id: str) -> AgentView:
        """SIGKILL to the program; the restart policy applies."""
        ...

    async def reload(self, *, dry_run: bool = False) -> list[ConfigChange]:
        """Read configuration and profiles again and do what changed; or only say it. Raises ConfigError, and then
        nothing has changed."""
        ...

    async def shutdown(self, *, keep_agents: bool) -> None: ...


class Tasks(Protocol):
    """Messages for agents, and the tasks that they become."""

    async def send(self, agent_id: str, request: SendRequest) -> Task: ...

    async def sent_before(self, address: str, request: SendRequest) -> Task | None:
        """The task that the message has become which was sent to `address` under the request's key, while nobody knows
        (any more, or yet) whom that means; None where there is none. Raises InvalidRequest where the key stands for
        another message."""
        ...

    async def expect_reply(self, agent_id: str, request: SendRequest, limit: float | None) -> Task:
        """A task of the agent's own that a reply will complete, within `limit` seconds of the question."""
        ...

    async def reply(self, agent_id: str, request: SendRequest) -> Task:
        """The agent replies: to `metadata.in_reply_to`, else to what it was asked last."""
        ...

    async def collected(self, task_id: str) -> None:
        """The caller that waited for the reply has it."""
        ...

    def waiting(self, waiter: str | None, task: Task) -> AbstractContextManager[None]:
        """While agent `waiter` does nothing but wait for the task. Raises WouldDeadlock."""
        ...

    async def find(self, task_id: str, agent_id: str | None = None, visible_to: str | None = None) -> Task:
        """The task by its id or an unambiguous prefix of at least 8 characters; see `find_id`."""
        ...

    async def find_id(self, named: str, agent_id: str | None = None, visible_to: str | None = None) -> str:
        """The whole id of the task, without reading it. A prefix is one of the tasks of agent `agent_id` and of those
        that agent `visible_to` may see: others neither are found nor make it ambiguous. A whole id is given back as it
        is. Raises TaskNotFound, AmbiguousAddress."""
        ...

    async def page(self, which: TaskFilter) -> tuple[list[Task], int]:
        """See `Store.tasks`."""
        ...

    async def weigh(self, which: str | TaskFilter) -> list[Large]:
        """See `Store.weigh`."""
        ...

    async def has_any(self, which: TaskFilter) -> bool:
        """See `Store.has_tasks`."""
        ...

    async def cancel(self, task_id: str) -> Task: ...

    async def provide_input(
        self, task_id: str, text: str, prompt_id: str | None = None, origin: Origin = PERSON
    ) -> Task: ...

    async def hand_over(self, task_id: str, artifact: Artifact, *, append: bool, last_chunk: bool) -> Task:
        """What the agent made in the turn that runs: a new artifact, one in place of another of its id, or with
        `append` further parts of it. Raises NotWaiting where the agent does not work on the task."""
        ...

    async def report(self, agent_id: str, told: EventData, task: Task | None = None) -> None:
        """Put into the log what somebody reports of the agent, itself perhaps, and of a task of it."""
        ...


class Terminals(Protocol):
    """What the agents show, and what is typed to them outside of any task."""

    async def screen(self, agent_id: str, fmt: ScreenForm) -> Shown:
        """What the agent shows; of a parked one, what it showed last."""
        ...

    async def visible(self, agent_id: str) -> str:
        """What stands on the agent's screen, or did last."""
        ...

    async def context(self, agent_id: str, limit: int = 2000) -> str:
        """The last `limit` characters of what the agent shows."""
        ...

    async def output(self, agent_id: str, start: int | None, limit: int) -> OutputPiece:
        """At most `limit` bytes of raw output from offset `start` on, or where it is not kept any more from the oldest
        that is; None: the last."""
        ...

    async def recording(self, agent_id: str, limit: int) -> str:
        """The last `limit` bytes of raw output as an asciicast."""
        ...

    async def attach(
        self, agent_id: str, *, cols: int, rows: int, read_only: bool, reach: frozenset[str] | None = None
    ) -> Attachment:
        """`reach`: names of the only agents that lines typed there may go to (`LineRouting`); None: to all."""
        ...

    def watch(self, agent_id: str) -> ScreenWatch:
        """To be told when what the agent shows may have changed. Nothing is attached by that, and a parked agent stays
        so. Raises NotReady where no program runs."""
        ...

    def settings(self) -> dict[str, Any]:
        """What holds in attached terminals (`[attach]`)."""
        ...

    def looked_at(self, agent_id: str) -> bool:
        """Returns True if a person sits at a terminal that is attached to the agent, and could answer what it asks."""
        ...

    def hands_at(self) -> float | None:
        """When a person last pressed a key at any agent's terminal, on the monotonic clock; None if nobody has."""
        ...

    async def press(self, agent_id: str, keys: Sequence[str]) -> None:
        """Press keys at the agent's terminal, for a person. Raises InvalidRequest, NotReady."""
        ...

    async def answer(self, agent_id: str, text: str, prompt_id: str | None = None, origin: Origin = PERSON) -> None:
        """Answer a prompt outside any task."""
        ...

    async def interrupt(self, agent_id: str, *, background: bool = False) -> bool:
        """Stop the turn that runs, a person's own too; a task that ran ends `canceled`. `background`: instead all that
        runs in the background of a program at rest. Raises NotReady."""
        ...

    async def decide(self, agent_id: str, event: str, told: dict[str, Any]) -> dict[str, Any] | None:
        """What the agent's approval policy answers to its program's question `event`; None leaves it to a person."""
        ...


class Control(Protocol):
    """Everything that the API and the person's tool can ask, and the log of what happens."""

    @property
    def directory(self) -> Directory: ...

    @property
    def processes(self) -> Processes: ...

    @property
    def tasks(self) -> Tasks: ...

    @property
    def terminals(self) -> Terminals: ...

    @property
    def events(self) -> EventLog: ...


class OutboundQuestion(Protocol):
    """Is put around making a message's `task` durable, for whatever agent it is: counts how far it has gone, and gives
    the reply that is awaited for it, to be durable with it. Raises WouldDeadlock, HopLimit, InvalidRequest,
    Forbidden."""

    def __call__(self, task: Task, *, wait: bool) -> AbstractContextManager[ReplyRecord | None]: ...


class Carrier(Protocol):
    """One way to agents that are not this daemon's, under the names that they have here (`model.external.alias_of`): it
    finds them, sends to them, and cancels and answers what it has sent."""

    @property
    def hint(self) -> str:
        """What it says to whom an address leads to no host that it knows: where those are listed. May be empty."""
        ...

    def find(self, address: str) -> str | None:
        """The id of the agent elsewhere that `address` means. Raises UnknownAgent for a host that is not known,
        NotKnownYet where that is not to be said before something is up."""
        ...

    def carries(self, task: Task) -> bool:
        """Returns whether the task, which is one of agents elsewhere, is its own: it stays so."""
        ...

    async def send(
        self, alias: str, request: SendRequest, asking: OutboundQuestion, *, sender: str | None = None
    ) -> Task:
        """`sender` is what the agent that sends to another host of the user's is called here, None for the user."""
        ...

    async def cancel(self, task: Task) -> Task: ...

    async def answer(self, task: Task, message: Message, prompt_id: str | None = None, origin: Origin = PERSON) -> Task:
        """Answer what the task waits for over there; `origin` is who does."""
        ...
