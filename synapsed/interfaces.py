"""The few seams between rooms: what the supervisor asks of the store and of a link, and the API of the supervisor.

The tests' fakes of store, link and control are under `tests/fakes`; that of the store is held to the same contract
tests as the real one.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self

from synapsed.documents.budget import Budget
from synapsed.model.agent import AgentDetail, AgentView, Testimony
from synapsed.model.events import Event, EventData, Origin, Where
from synapsed.model.facts import ChannelFact, PermissionAsked
from synapsed.model.link import LinkEvent, LinkExited, LinkObserved
from synapsed.model.picture import ScreenForm, Shown
from synapsed.model.records import AgentRecord, Checkpoint, LaunchRecord, ReplyRecord, TurnRecord
from synapsed.model.task import Artifact, Message, Task, TaskState

__all__ = [
    "EVERY_EVENT",
    "PERSON",
    "AgentLink",
    "Attachment",
    "ConfigChange",
    "Control",
    "Delivery",
    "EventFilter",
    "EventLog",
    "EventPage",
    "NewEvent",
    "OutputPiece",
    "SendRequest",
    "SideChannel",
    "StartRequest",
    "Store",
    "TaskFilter",
    "task_cursor",
]


PERSON = Origin("person")
"""A person of whom nothing more is known."""


# --- the store -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be appended; its id is given by the log."""

    agent_id: str
    """Empty for what concerns none."""
    data: EventData
    task_id: str | None = None
    context_id: str | None = None
    """The conversation that it belongs to."""

    @classmethod
    def of(cls, task: Task, data: EventData) -> Self:
        """An event of the task."""
        return cls(task.agent_id, data, task.id, task.context_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which tasks; None means any. `updated_since` is inclusive, in the form of `clock.iso`. `before` is the
    `task_cursor` of the last task of a page: only tasks that sort after that one are given (newest first).
    `visible_to` is an agent: tasks that it does or has sent. `size`: no more tasks are given after so many characters
    of their JSON, but one at least where there is one."""

    agent_id: str | None = None
    context_id: str | None = None
    states: frozenset[TaskState] | None = None
    updated_since: str | None = None
    limit: int = 50
    before: str | None = None
    visible_to: str | None = None
    size: int | None = None


PAGE_SIZE = 8 * 1024 * 1024
"""Characters of JSON after which a page of tasks that somebody asks for ends."""


def task_cursor(task: Task) -> str:
    """The cursor with which `TaskFilter.before` goes on after `task`: opaque to clients."""
    return f"{task.updated_at}~{task.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events; None means any. `types` are those of `model.events`, `agents` and `tasks` ids."""

    types: frozenset[str] | None = None
    agents: frozenset[str] | None = None
    tasks: frozenset[str] | None = None


EVERY_EVENT = EventFilter()


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events that are read at a time, and the id up to which there are no others."""

    events: list[Event]
    upto: int


class EventLog(Protocol):
    """The one append-only log. Ids grow by one and survive restarts, so that an id is a cursor."""

    @property
    def last_id(self) -> int:
        """Id of the newest event, 0 when there is none."""
        ...

    @property
    def room(self) -> Budget:
        """For what is large, and is read to be written to a client."""
        ...

    @property
    def published(self) -> Mapping[str, int]:
        """How many events were written since the log was opened, by type."""
        ...

    async def read(
        self,
        after: int,
        *,
        task_id: str | None = None,
        agent_id: str | None = None,
        limit: int = 500,
        types: frozenset[str] | None = None,
    ) -> list[Event]:
        """At most `limit` events with an id greater than `after`, oldest first; fewer where they are large, but none
        only where there are none. `types`: only events of these."""
        ...

    async def page(self, after: int, which: EventFilter, *, limit: int, size: int) -> EventPage:
        """At most `limit` events after `after`, fewer once they have `size` characters of JSON; it may have none
        although there are more, as not everything is looked at in one go."""
        ...

    async def changed(self, after: int, which: EventFilter) -> int | None:
        """Returns when there is something after `after`: the id after which such events can be. None: the store is
        closed, and nothing will come."""
        ...

    def gap(self, after: int, *, agent_id: str | None = None) -> int | None:
        """The id up to which events after `after` are not kept any more, None where they all are."""
        ...

    async def open_attention(self, agent_id: str) -> list[Event]:
        """What was said last (`attention`) of each thing that a person is still needed for."""
        ...

    def follow(
        self,
        after: int,
        *,
        task_id: str | None = None,
        agent_id: str | None = None,
        upto: int | None = None,
        reserved: bool = False,
    ) -> AsyncGenerator[Event]:
        """Every such event with an id greater than `after`, until the store is closed, or up to the event `upto`. A
        pull view: a slow reader costs nothing but its cursor. With `reserved` a large event is read when there is
        `room` for it, which it takes until the next is asked for. Leave it by `aclosing`."""
        ...


class Store(Protocol):
    """Durable state. Every method is safe to cancel; a commit that was begun completes. Where the database refuses,
    StoreError is raised (`details["reason"]`: `full`, `corrupt`, `busy`, `io`, …), nothing of that call is stored, and
    later calls work again when the cause is gone.

    What is put is taken as it is at the call. Tasks and records are given out as fresh objects; an event that is read
    is shared by its readers and must not be changed."""

    @property
    def events(self) -> EventLog: ...

    async def commit(
        self,
        *,
        events: Sequence[NewEvent] = (),
        tasks: Sequence[Task] = (),
        turn: TurnRecord | None = None,
        turn_ended: str | None = None,
        agents: Sequence[AgentRecord] = (),
        reply: ReplyRecord | None = None,
        reply_over: str | None = None,
    ) -> list[Event]:
        """One transaction: tasks and agents are put whole, `turn` and `reply` are put, the turn of task `turn_ended`
        and the reply of task `reply_over` are removed, events are appended. Returns the events with their ids, after
        they are durable against kill -9. Commits are done in the order of the calls. The tasks of `turn` and `reply`
        must be known."""
        ...

    async def agents(self) -> list[AgentRecord]: ...

    async def delete_agent(self, agent_id: str, events: Sequence[NewEvent] = ()) -> None:
        """Forget the agent and its checkpoint; its tasks stay."""
        ...

    async def task(self, task_id: str) -> Task | None: ...

    async def tasks(self, which: TaskFilter) -> tuple[list[Task], int]:
        """The tasks, most recently updated first, and how many there are without `limit` and `before`. Raises
        InvalidRequest for a cursor that is none."""
        ...

    async def weigh(self, task_id: str) -> list[tuple[str, int]]:
        """Id and characters of JSON of the task, or of those whose ids begin so, where it is large."""
        ...

    async def weigh_page(self, which: TaskFilter) -> list[tuple[str, int]]:
        """The same of the large tasks that `tasks` would give."""
        ...

    async def has_tasks(self, which: TaskFilter) -> bool:
        """Whether there is such a task, without reading one; `limit` and `size` do not count."""
        ...

    async def find_tasks(self, prefix: str, limit: int) -> list[str]:
        """At most `limit` ids of tasks that begin with `prefix`, sorted."""
        ...

    async def open_tasks(self) -> list[Task]:
        """Every task not in a terminal state, in order of arrival."""
        ...

    async def turns(self) -> list[TurnRecord]: ...

    async def replies(self) -> list[ReplyRecord]: ...

    async def save_checkpoint(self, agent_id: str, checkpoint: Checkpoint) -> None:
        """Replaces the one before; dropped where the agent is not (or no longer) known."""
        ...

    async def checkpoint(self, agent_id: str) -> Checkpoint | None: ...


# --- side channels ---------------------------------------------------------------------------------------------------


class SideChannel(Protocol):
    """An adapter for one protocol in which a program reports on itself, chosen by the profile."""

    name: str

    async def open(self, emit: Callable[[ChannelFact], None]) -> None:
        """Begin; `emit` is called in the event loop, facts in their order. Facts that came while nobody listened are
        told first."""
        ...

    async def poll(self) -> None:
        """Look for facts now (a poke came, or the sweep's timer)."""
        ...

    async def last_answer(self, since_ns: int) -> str | None:
        """The exact last assistant message of the turn submitted at `since_ns`, where the channel can look it up."""
        ...

    async def reply(self, request: str, answer: dict[str, Any]) -> bool:
        """Answer the PermissionAsked that has this `request`; whether the program took it."""
        ...

    async def settled(self, at_ns: int) -> None:
        """What was told up to `at_ns` is durable: it need not be told again after a restart."""
        ...

    async def close(self) -> None: ...


# --- links -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A turn to begin (`fresh`), or to go on with after a restart. `record` is what is durable of it: what
    `AgentLink.prepare` made of it, or what the link last reported in LinkTurnRecord."""

    task_id: str
    text: str
    command: bool = False
    """True: `text` may be a command of the program (a leading `/`), nothing is neutralised."""
    record: TurnRecord
    fresh: bool = False


class Attachment(Protocol):
    """A person's terminal on an agent."""

    def redraw(self) -> bytes:
        """What brings a terminal of this attachment's size to the agent's screen."""
        ...

    def output(self) -> AsyncIterator[bytes]:
        """The stream from the redraw on, queries removed. A viewer too slow for the bounded buffer gets a fresh
        redraw instead of what it missed."""
        ...

    async def write(self, data: bytes) -> None:
        """Keystrokes of a person; refused (Forbidden) on a read-only attachment."""
        ...

    async def resize(self, cols: int, rows: int) -> None:
        """The viewer's window changed; the agent's follows the viewer that typed last."""
        ...

    def composes(self) -> bool:
        """Whether something may stand in the program's composer: it is shown, or a key was pressed just now."""
        ...

    async def take_line(self, line: str) -> bool:
        """Remove what a person has written from the program's composer, if that is `line` and nothing else; whether
        it is gone. Nothing is touched otherwise."""
        ...

    def notice(self, text: str, *, stays: bool) -> None:
        """Show `text` over the screen of this viewer alone, for a moment, or (`stays`) until a key is pressed; what is
        beneath comes back unchanged."""
        ...

    async def close(self) -> None:
        """Let go of the agent; `output` ends."""
        ...


class AgentLink(Protocol):
    """A running program, seen through its capabilities; each is served by the best of the profile's channels."""

    @property
    def launch(self) -> LaunchRecord: ...

    @property
    def attached(self) -> int:
        """How many terminals are attached."""
        ...

    @property
    def output(self) -> int:
        """How many bytes of output were read, over all launches."""
        ...

    async def open(self, emit: Callable[[LinkEvent], None]) -> None:
        """Connect (to a fresh or an adopted program) and begin to report. `emit` is called in the event loop and
        never blocks."""
        ...

    def give_up(self) -> None:
        """Do not wait any longer for what does not answer: `open` raises, if it has not returned yet."""
        ...

    def observe(self) -> LinkObserved: ...

    def explain(self) -> list[Testimony]:
        """What every channel says now, strongest first."""
        ...

    def prepare(self, record: TurnRecord) -> TurnRecord:
        """The record of a turn that is about to be delivered, as it is made durable together with the turn: what the
        link writes ahead of its first act needs no commit of its own."""
        ...

    async def deliver(self, delivery: Delivery) -> None:
        """Begin the one turn, or go on with it; its course is told by events."""
        ...

    def recorded(self, record: TurnRecord) -> None:
        """The record of LinkTurnRecord is durable."""
        ...

    def settled(self) -> None:
        """The end of the last turn is durable: its channels' reports are not needed any more."""
        ...

    async def interrupt(self) -> bool:
        """Stop whatever turn runs, a person's too, by the profile's keys; True when that is confirmed."""
        ...

    async def answer(self, text: str, prompt_id: str | None) -> bool:
        """Answer the prompt on the screen; whether its terminal hid what was typed, so that it is kept nowhere.
        Raises NotWaiting, PromptChanged, InvalidChoice."""
        ...

    async def press(self, keys: Sequence[str]) -> None:
        """Press keys for a person, by their names or as text. Raises InvalidRequest; NotReady while a message is being
        typed."""
        ...

    async def reply(self, asked: PermissionAsked, answer: dict[str, Any]) -> bool:
        """Answer what a LinkTold told in the program's own words; whether it took that."""
        ...

    async def stop(self, grace: float) -> LinkExited:
        """End the program and everything it started: the profile's exit keys, TERM, KILL."""
        ...

    async def signal(self, signum: int) -> None: ...

    def screen_text(self, limit: int | None = None) -> str:
        """The visible screen (with scrollback when `limit` characters want it)."""
        ...

    def screen_as(self, fmt: ScreenForm) -> Shown: ...

    async def keep_screen(self) -> None:
        """Make what is on the screen durable: it can then be shown while no program runs (`Store.checkpoint`)."""
        ...

    async def attach(self, *, cols: int, rows: int, read_only: bool) -> Attachment: ...

    async def poke(self) -> None:
        """A side channel has news."""
        ...

    async def close(self) -> None:
        """Let go of the program, which lives on."""
        ...


# --- the supervisor, as the API sees it ------------------------------------------------------------------------------


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
    """`synapsectl start` (DESIGN §8). `env` is the caller's whole environment, None for the daemon's."""

    profile: str
    name: str | None = None
    port: int | Literal[False] | None = None
    """False: it has none."""
    cwd: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] | None = None
    extra_env: dict[str, str] = field(default_factory=dict)
    cols: int = 120
    rows: int = 40
    save: bool = False
    """Also write it to `config/agents.d`, to be started with every daemon."""
    conversation: str | None = None
    """The program's own id of an earlier conversation to go on with."""
    accept_agents: bool = False
    """Type what other agents write also where no model reads it."""


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
    fired: dict[str, Any] | None = None
    """The rule that sends it, and the event that it is for: what its task keeps."""
    scheduled: dict[str, Any] | None = None
    """The schedule, and the time of it, for which it is sent: what its task keeps."""
    named: bool = False
    """The message's id is its sender's own: the same message again is the same task."""
    where: Where | None = None
    """Where it came from."""


class Control(Protocol):
    """Everything the API and the person's tool can ask. Agents are named by id here; `resolve` makes ids of addresses.
    Errors are those of `synapsed.errors`."""

    @property
    def events(self) -> EventLog: ...

    def agents(self) -> list[AgentView]: ...

    def resolve(self, address: str) -> str: ...

    def teams(self) -> dict[str, list[str]]:
        """The members of each team, by name."""
        ...

    def agent_on_port(self, port: int) -> str | None: ...

    def view(self, agent_id: str) -> AgentView: ...

    def detail(self, agent_id: str) -> AgentDetail: ...

    def explain(self, agent_id: str) -> list[Testimony]:
        """The chain of evidence for what is believed of the agent, strongest channel first: its process, then what
        its link tells."""
        ...

    async def screen(self, agent_id: str, fmt: ScreenForm) -> Shown:
        """What the agent shows; of a parked one, what it showed last."""
        ...

    def context(self, agent_id: str, limit: int = 2000) -> str:
        """The last `limit` characters of what the agent shows."""
        ...

    async def output(self, agent_id: str, start: int | None, limit: int) -> OutputPiece:
        """At most `limit` bytes of raw output from offset `start` on, or where it is not kept any more from the oldest
        that is; None: the last."""
        ...

    async def recording(self, agent_id: str, limit: int) -> str:
        """The last `limit` bytes of raw output as an asciicast."""
        ...

    def profiles(self) -> list[dict[str, Any]]:
        """`name`, `description`, `command`, `ports`, `verified`, `skills`, `source` of each profile."""
        ...

    async def conversations(self, home: str | None, *, profile: str | None, cwd: str | None) -> list[dict[str, Any]]:
        """Conversations found on disk below `home` (None: the daemon's), newest first: `profile`, `id`, `cwd`,
        `updated_at`, `prompt` (its beginning), `agent` (the name of the one that is in it now)."""
        ...

    async def start(self, request: StartRequest) -> AgentView: ...

    async def stop(self, agent_id: str, *, remove: bool = False) -> AgentView: ...

    async def restart(self, agent_id: str, *, when_idle: bool = False) -> AgentView:
        """`when_idle`: not now, but when no turn runs and nothing is being typed; this returns at once, and a restart
        of the daemon does not forget it."""
        ...

    async def park(self, agent_id: str) -> AgentView:
        """End its program until the next message, terminal or start; returns when it is parked. Raises NotReady where
        it is not idle, InvalidRequest where its conversation would be lost."""
        ...

    async def reload(self, *, dry_run: bool = False) -> list[ConfigChange]:
        """Read configuration and profiles again and do what changed; or only say it. Raises ConfigError, and then
        nothing has changed."""
        ...

    async def kill(self, agent_id: str) -> AgentView:
        """SIGKILL to the program; the restart policy applies."""
        ...

    async def send(self, agent_id: str, request: SendRequest) -> Task: ...

    async def expect_reply(self, agent_id: str, request: SendRequest, limit: float | None) -> Task:
        """A task of the agent's own that a reply will complete, within `limit` seconds of the question."""
        ...

    async def reply(self, agent_id: str, request: SendRequest) -> Task:
        """The agent replies: to `metadata.in_reply_to`, else to what it was asked last."""
        ...

    def asking(self, task: Task, *, wait: bool) -> AbstractContextManager[ReplyRecord | None]:
        """Around making a message's `task` durable, for whoever it is: counts how far it has gone; gives the reply that
        is awaited for it, to be durable with it. Raises WouldDeadlock, HopLimit, InvalidRequest, Forbidden."""
        ...

    async def collected(self, task_id: str) -> None:
        """The caller that waited for the reply has it."""
        ...

    def waiting(self, waiter: str | None, task: Task) -> AbstractContextManager[None]:
        """While agent `waiter` does nothing but wait for the task. Raises WouldDeadlock."""
        ...

    async def interrupt(self, agent_id: str) -> bool:
        """Stop the turn that runs, a person's own too; a task that ran ends `canceled`."""
        ...

    async def task(self, task_id: str, agent_id: str | None = None) -> Task:
        """The task by its id or an unambiguous prefix of at least 8 characters."""
        ...

    async def tasks(self, which: TaskFilter) -> tuple[list[Task], int]: ...

    async def weigh(self, task_id: str) -> list[tuple[str, int]]: ...

    async def weigh_page(self, which: TaskFilter) -> list[tuple[str, int]]: ...

    async def has_tasks(self, which: TaskFilter) -> bool: ...

    async def cancel(self, task_id: str) -> Task: ...

    async def provide_input(
        self, task_id: str, text: str, prompt_id: str | None = None, origin: Origin = PERSON
    ) -> Task: ...

    async def hand_over(self, task_id: str, artifact: Artifact, *, append: bool, last_chunk: bool) -> Task:
        """What the agent made in the turn that runs: a new artifact, one in place of another of its id, or with
        `append` further parts of it. Raises NotWaiting where the agent does not work on the task."""
        ...

    async def answer_agent(
        self, agent_id: str, text: str, prompt_id: str | None = None, origin: Origin = PERSON
    ) -> None:
        """Answer a prompt outside any task."""
        ...

    async def press(self, agent_id: str, keys: Sequence[str]) -> None:
        """Press keys at the agent's terminal, for a person. Raises InvalidRequest, NotReady."""
        ...

    async def attach(self, agent_id: str, *, cols: int, rows: int, read_only: bool) -> Attachment: ...

    async def process_of(self, pid: int) -> str | None:
        """The agent whose program is `pid` or an ancestor of it, by pid and start time; None for none of them."""
        ...

    def granted(self, agent_id: str) -> frozenset[str]:
        """What the agent's profile grants it beyond an agent's rights; nothing for one that is gone."""
        ...

    async def report(self, agent_id: str, told: EventData, task: Task | None = None) -> None:
        """Put into the log what somebody reports of the agent, itself perhaps, and of a task of it."""
        ...

    def token_owner(self, token: str) -> str | None:
        """The agent that was given this SYNAPSE_AGENT_TOKEN."""
        ...

    async def decide(self, agent_id: str, event: str, told: dict[str, Any]) -> dict[str, Any] | None:
        """What the agent's approval policy answers to its program's question `event`; None leaves it to a person."""
        ...

    async def shutdown(self, *, keep_agents: bool) -> None: ...
