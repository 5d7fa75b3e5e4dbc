"""The interface of the supervisor for the API, in four parts: the directory of agents, their processes, their tasks,
and their terminals. Each caller gets only the parts that it needs.

Agents are named by id; `Directory.resolve` returns the id that an address means. Errors are those of `synapsed.errors`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from synapsed.documents.budget import Large
from synapsed.interfaces.agent_link import Attachment, ScreenWatch
from synapsed.interfaces.storage import EventLog, TaskFilter
from synapsed.model.agent import (
    AgentDetail,
    AgentView,
    ConversationAnswer,
    ProfileAnswer,
    RegistryEntry,
    StartedAgent,
    Testimony,
)
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
    """Raw output from offset `start` on. `ended`: the program has ended for good, and this was its last output."""

    start: int
    data: bytes
    ended: bool


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """Effect of a new configuration on `agent` (None: the daemon itself): the agent is added or started, restarted when
    it is idle, stopped, updated without these, or refused; `daemon` is for settings that are read at its start only."""

    agent: str | None
    action: Literal["add", "start", "restart", "stop", "update", "refused", "daemon"]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest:
    """`synapsectl start` (docs/synapsectl.md). `env` is the caller's whole environment, None for the daemon's."""

    profile: str
    name: str | None = None
    port: int | Literal[False] | None = None
    """False: the agent has no port."""
    cwd: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] | None = None
    extra_env: dict[str, str] = field(default_factory=dict)
    attributes: ProcessAttributes | None = None
    """Attributes of the caller's process; for an unknown attribute the daemon's own counts."""
    cols: int = 120
    rows: int = 40
    save: bool = False
    """True: the agent is also written to `config/agents.d`, and started with every daemon."""
    conversation: str | None = None
    """The program's own id of an earlier conversation that is to be continued."""
    accept_agents: bool = False
    """True: messages of other agents are typed even if no model reads them."""
    without_approval: bool = False
    """True: the agent is started even if deny rules cannot be enforced."""
    prompt: str | None = None
    """The program's prompt, if no profile describes it."""
    resume_at_reset: bool = False
    """True: a task that meets the account's usage limit goes on when the limit ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """A message for an agent. `task_id` continues a task that waits for input, `prompt_id` names the prompt that the
    message answers."""

    message: Message
    priority: int = 1
    context_id: str | None = None
    task_id: str | None = None
    prompt_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    command: bool = False
    wait: bool = False
    """The sender does nothing but wait for the answer."""
    key: str | None = None
    """Idempotency key chosen by the sender: a second request with the same key gets the same task."""
    of_agent: bool = False
    """True if an agent wrote the message, on this host or another one; else a person did."""
    marks: Mapping[str, Any] = field(default_factory=dict)
    """Marks of the part that sends the message: the task keeps them under keys no client sets (`released_names`)."""
    named: bool = False
    """The message has an id of its sender's own: the same message again gets the same task."""
    where: Where | None = None
    """Origin of the request."""

    @property
    def origin(self) -> Origin:
        """The sender, and the place from which the request came."""
        sender = Sender.of(self.metadata)
        agent = self.of_agent or sender is not None
        return Origin("agent" if agent else "person", who=sender.id if sender is not None else None, where=self.where)


class Directory(Protocol):
    """The list of agents: their names, ids and descriptions."""

    def agents(self) -> list[AgentView]: ...

    def entries(self, agent_ids: Collection[str] | None = None) -> dict[str, RegistryEntry | None]:
        """Returns short descriptions, for other programs, of those of these agents that exist (None: of all agents);
        None for an agent whose address takes no messages."""

    async def believed(self, agent_ids: Iterable[str]) -> None:
        """Returns when these agents have handled all their events that are in the log so far."""

    def resolve(self, address: str, *, folders: bool = True) -> str:
        """Returns the id of the agent that `address` means: an agent of this host, or else one elsewhere, or else
        (`folders`) the agent in the folder of that name. Raises UnknownAgent, AmbiguousAddress."""

    def teams(self) -> dict[str, list[str]]:
        """Returns the members of each team, by name."""

    def agent_on_port(self, port: int) -> str | None: ...

    def view(self, agent_id: str) -> AgentView: ...

    def detail(self, agent_id: str) -> AgentDetail:
        """Returns all details of the agent except the text on its screen, which `Terminals.visible` returns."""

    async def gone(self, agent_id: str) -> list[str]:
        """Returns the variables of the agent's next start whose values name files that do not exist."""

    async def explain(self, agent_id: str) -> list[Testimony]:
        """Returns the evidence for the agent's state, strongest first: its process, then the reports of its link."""

    def profiles(self, names: Collection[str] | None = None) -> list[ProfileAnswer]:
        """Returns these profiles, or all of them; the latter takes as long as reading all files."""

    async def conversations(
        self, home: str | None, *, profile: str | None, cwd: str | None, env: Mapping[str, str]
    ) -> list[ConversationAnswer]:
        """Returns conversations found on disk below `home` (None: the daemon's home), or at the place that `env` names,
        newest first: each with the beginning of its prompt, and the name of the agent that has it open now."""

    async def process_of(self, pid: int) -> str | None:
        """Returns the agent whose program is `pid` or an ancestor of it, by pid and start time; else None."""

    def granted(self, agent_id: str) -> frozenset[str]:
        """Returns the rights that the agent's profile grants beyond an agent's rights; empty if the agent is gone."""

    def token_owner(self, token: str) -> str | None:
        """Returns the agent that got this SYNAPSE_AGENT_TOKEN; None if no agent did."""


class Processes(Protocol):
    """The programs of the agents, and the end of the daemon itself."""

    async def start(self, request: StartRequest) -> StartedAgent: ...

    async def stop(self, agent_id: str, *, remove: bool = False) -> AgentView: ...

    async def restart(self, agent_id: str, *, when_idle: bool = False, without_approval: bool = False) -> AgentView:
        """Restarts the agent's program. `when_idle`: only when no turn (work on a message) runs and no text is being
        typed; the call returns at once, and the request survives a restart of the daemon. `without_approval`: even if
        deny rules cannot be enforced, from now on."""

    async def bring(self, agent_id: str, env: dict[str, str], bringing: Bringing) -> list[str]:
        """Stores variables of a shell's environment for the agent's next start: those that lead to the shell's login
        (`connection`), those that replace a value that names a missing file (`missing`), or `all`. Returns the names of
        changed variables; with `all`, of those that decide which code runs."""

    async def park(self, agent_id: str) -> AgentView:
        """Ends the agent's program until the next message, terminal or start; returns when it has ended. Raises
        NotReady if the agent is not idle, InvalidRequest if its conversation would be lost."""

    async def kill(self, agent_id: str) -> AgentView:
        """Sends SIGKILL to the program; the restart policy applies."""

    async def reload(self, *, dry_run: bool = False) -> list[ConfigChange]:
        """Reads configuration and profiles again and applies the changes; with `dry_run` only returns them. Raises
        ConfigError, and then has changed nothing."""

    async def shutdown(self, *, keep_agents: bool) -> None: ...


class Tasks(Protocol):
    """Messages for agents, and the tasks that they become."""

    async def send(self, agent_id: str, request: SendRequest) -> Task: ...

    async def sent_before(self, address: str, request: SendRequest) -> Task | None:
        """Returns the task of a message that was sent to `address` before, under the request's key; None if there is no
        such task. It is for an address that means no agent any more, or not yet. Raises InvalidRequest if the key
        belongs to another message."""

    async def expect_reply(self, agent_id: str, request: SendRequest, limit: float | None) -> Task:
        """Makes a task of the agent's own that a reply will complete, within `limit` seconds after the question."""

    async def reply(self, agent_id: str, request: SendRequest) -> Task:
        """Sends the agent's reply: to `metadata.in_reply_to`, else to the last question that the agent got."""

    async def collected(self, task_id: str) -> None:
        """Called when the waiting caller has the reply."""

    def waiting(self, waiter: str | None, task: Task) -> AbstractContextManager[None]:
        """Context in which agent `waiter` does nothing but wait for the task. Raises WouldDeadlock."""

    async def find(self, task_id: str, agent_id: str | None = None, visible_to: str | None = None) -> Task:
        """Returns the task by its id or an unambiguous prefix of at least 8 characters; see `find_id`."""

    async def find_id(self, named: str, agent_id: str | None = None, visible_to: str | None = None) -> str:
        """Returns the whole id of the task, without reading the task. A prefix is searched for among the tasks of agent
        `agent_id` that agent `visible_to` may see: other tasks are neither found nor make it ambiguous. A whole id is
        returned as it is. Raises TaskNotFound, AmbiguousAddress."""

    async def page(self, which: TaskFilter) -> tuple[list[Task], int]:
        """Returns the tasks of `Store.tasks`, each with the facts about its place in the queue."""

    async def weigh(self, which: str | TaskFilter) -> list[Large]:
        """Returns the result of `Store.weigh`."""

    async def has_any(self, which: TaskFilter) -> bool:
        """Returns the result of `Store.has_tasks`."""

    async def cancel(self, task_id: str) -> Task: ...

    async def provide_input(
        self, task_id: str, text: str, prompt_id: str | None = None, origin: Origin = PERSON
    ) -> Task: ...

    async def hand_over(self, task_id: str, artifact: Artifact, *, append: bool, last_chunk: bool) -> Task:
        """Adds the agent's output in the running turn: a new artifact, one that replaces the artifact with its id, or
        with `append` further parts of that. Raises NotWaiting if the agent does not work on the task."""

    async def report(self, agent_id: str, told: EventData, task: Task | None = None) -> None:
        """Appends the event `told` about the agent, perhaps reported by itself, and about its `task` to the log."""


class Terminals(Protocol):
    """The screens of the agents, and keys for them outside of any task."""

    async def screen(self, agent_id: str, fmt: ScreenForm) -> Shown:
        """Returns the agent's screen; for a parked agent, its last screen."""

    async def visible(self, agent_id: str) -> str:
        """Returns the text on the agent's screen, or on its last one."""

    async def context(self, agent_id: str, limit: int = 2000) -> str:
        """Returns the last `limit` characters of the agent's output as text."""

    async def output(self, agent_id: str, start: int | None, limit: int) -> OutputPiece:
        """Returns at most `limit` bytes of raw output from offset `start` on, or from the oldest kept byte if that
        offset is gone; None: the last bytes."""

    async def recording(self, agent_id: str, limit: int) -> str:
        """Returns the last `limit` bytes of raw output as an asciicast."""

    async def attach(
        self,
        agent_id: str,
        *,
        cols: int,
        rows: int,
        read_only: bool,
        keep_size: bool = False,
        reach: frozenset[str] | None = None,
    ) -> Attachment:
        """Attaches a person's terminal. `keep_size`: see `LinkTerminal.attach`. `reach`: names of the agents to which
        typed lines may go (`LineRouting`); None: to all."""

    def watch(self, agent_id: str) -> ScreenWatch:
        """Returns a watch that reports when the agent's screen may have changed. It does not count as a terminal, and
        does not start a parked agent. Raises NotReady if no program runs."""

    def settings(self) -> dict[str, Any]:
        """Returns the settings of attached terminals (`[attach]`)."""

    def looked_at(self, agent_id: str) -> bool:
        """Returns True if a person sits at a terminal that is attached to the agent, and could answer its question."""

    def hands_at(self) -> float | None:
        """Returns when a person last pressed a key at any agent's terminal (monotonic); None if none did."""

    async def press(self, agent_id: str, keys: Sequence[str]) -> None:
        """Presses keys at the agent's terminal, for a person. Raises InvalidRequest, NotReady."""

    async def answer(self, agent_id: str, text: str, prompt_id: str | None = None, origin: Origin = PERSON) -> None:
        """Answers a prompt outside any task."""

    async def interrupt(self, agent_id: str, *, background: bool = False) -> bool:
        """Stops the running turn, also one that a person began; its task ends `canceled`. `background`: stops instead
        all background tasks of a program at rest. Raises NotReady."""

    async def decide(self, agent_id: str, event: str, told: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the approval policy's decision on the program's question `event`; None leaves it to a person."""


class Control(Protocol):
    """All requests of the API and of the person's tool, and the log of events."""

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
    """Context in which a message's `task`, for any agent, is made durable: it counts the hops of the message, and
    yields the record of the awaited reply, which is to be stored with the task. Raises WouldDeadlock, HopLimit,
    InvalidRequest, Forbidden."""

    def __call__(self, task: Task, *, wait: bool) -> AbstractContextManager[ReplyRecord | None]: ...


class Carrier(Protocol):
    """One way to agents outside this daemon, under their names on this host (`model.external.alias_of`): it finds them,
    sends to them, and cancels and answers the tasks that it has sent."""

    @property
    def hint(self) -> str:
        """Advice for an error about an unknown host: the place where hosts are listed. May be empty."""

    def find(self, address: str) -> str | None:
        """Returns the id of the agent elsewhere that `address` means. Raises UnknownAgent for an unknown host,
        NotKnownYet until a connection that decides this is open."""

    def carries(self, task: Task) -> bool:
        """Returns True if this carrier carries the task, which is for an agent elsewhere; the result never changes."""

    async def send(
        self, alias: str, request: SendRequest, asking: OutboundQuestion, *, sender: str | None = None
    ) -> Task:
        """Sends a message. `sender` is the name on this host of the agent that sends to another host of the user; None
        for the user."""

    async def cancel(self, task: Task) -> Task: ...

    async def answer(self, task: Task, message: Message, prompt_id: str | None = None, origin: Origin = PERSON) -> Task:
        """Answers the question of the remote task; `origin` names the author of the answer."""
