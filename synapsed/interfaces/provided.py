"""Protocols that parts implement for the kernel and for each other.

They are about the inboxes of this host and of others, the agents of other hosts, browsers that one part registers and
another one notifies, screens as documents, blocks of answers, events of agents' work, rules about the actions of
agents, reasons why their messages wait, and the settings that persons made for their programs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from synapsed.aio import Timer
from synapsed.interfaces.agent_link import Attachment, TypedLine
from synapsed.model.agent import Activity, AgentView
from synapsed.model.attention import AttentionItem, HostSaid
from synapsed.model.events import EventData, NewEvent
from synapsed.model.facts import ChannelFact
from synapsed.model.link import LinkEvent
from synapsed.model.picture import Picture
from synapsed.model.records import AgentRecord
from synapsed.model.released_names import RefusingRules
from synapsed.model.task import Artifact, BlockKinds, Prompt, Task

type DrawnForm = Literal["html", "svg", "png"]
type Drawn = tuple[str, str | bytes]
"""Media type and content of a document."""


class ScreenDrawing(Protocol):
    def draw(self, shown: Picture, form: DrawnForm) -> Drawn:
        """Draws the screen. Blocks: call it in a thread. Raises NotReady if a library is missing."""


class AnswerReader(Protocol):
    """Reads one answer of an agent after the other."""

    async def read(self, text: str, *, whole: bool) -> Sequence[Artifact]:
        """Returns the artifacts in `text`, the beginning of an answer, that stay the same whatever text follows;
        `whole`: `text` is the whole answer, so all artifacts are returned."""


class AnswerReading(Protocol):
    def reader(self, kinds: BlockKinds) -> AnswerReader:
        """Returns a reader for an agent."""


class WorkOwner(Protocol):
    """An agent, as the reporter of its work (`WorkTeller`) knows it."""

    @property
    def id(self) -> str: ...

    @property
    def since(self) -> float:
        """Monotonic time since which this daemon has the agent."""

    @property
    def current(self) -> Task | None:
        """The task that the agent works on; None without one."""

    async def tell(self, events: Sequence[NewEvent]) -> None:
        """Makes the events durable, however long that takes; returns then, or when the agent's actor ends."""


class WorkTeller(Protocol):
    """Reports one agent's work as events. All methods are called in the agent's actor, which does one thing after the
    other, and the next thing waits for them: a channel's report is settled once the events about it are durable."""

    async def restore(self) -> None:
        """Reads the events of an earlier daemon, before any other call. Raises StoreError."""

    async def told(self, fact: ChannelFact) -> None:
        """Called when a channel reported `fact`."""

    async def turn(self, event: LinkEvent) -> None:
        """Called when the link reported the result of a task's turn."""

    async def denied(self, tool: str, texts: Sequence[str], reason: str) -> None:
        """Called when a rule denied the call of `tool` that has `texts` in its input."""

    async def refused(self, shown: str) -> None:
        """Called when the dialog with the text `shown` was answered with a refusal."""

    async def program_over(self, how: str) -> None:
        """Called when the program is gone, and its calls with it."""

    async def works(self) -> None:
        """Called when the program was seen at work: the call that it asked about was allowed."""

    def about(self, prompt: Prompt | None) -> Prompt | None:
        """Returns the prompt, with the command or the edit that its dialog is about, if that is known."""


class WorkTelling(Protocol):
    def teller(self, owner: WorkOwner) -> WorkTeller:
        """Returns a reporter for an agent."""


class RuleOwner(Protocol):
    """An agent, as its `Decider`, which decides by rules, knows it. `config` is its present configuration."""

    @property
    def record(self) -> AgentRecord: ...

    @property
    def config(self) -> Any: ...

    def denied(self, tool: str, texts: Sequence[str], reason: str) -> None:
        """Reports that the call of `tool` that has `texts` in its input is refused to the program."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A decision: the dialog is answered with `text`, by `rule`."""

    text: str
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """There is no decision yet: the dialog may end by itself, or a person has to answer it after a while."""


class Decider(Protocol):
    """Decides about one agent."""

    async def decide(self, spec: Any, told: dict[str, Any], task_id: str | None) -> dict[str, Any] | None:
        """Returns the answer to the program's question, in the program's own format. `spec` describes the question
        (`DecisionSpec` of its profile). None leaves the question to a person."""

    def judge(self, prompt: Prompt | None) -> Answer | Wait | None:
        """Returns the decision about the dialog on the screen; None: a person answers it."""

    def answered(self, prompt: Prompt) -> None:
        """Notes that the dialog is over: if the same dialog comes again, it is about another call."""


class Deciding(Protocol):
    def decider(self, owner: RuleOwner) -> Decider:
        """Returns a decider for an agent."""

    def refusing(self, config: Any) -> Collection[RefusingRules]:
        """Returns those of the agent's rules that may refuse a call. If its program would not obey
        them, the agent is not started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """The reason why an agent's messages wait."""

    word: str
    """The value of `AgentView.held`."""
    reason: str
    """The same in words for people."""
    evidence: str = ""
    """Evidence for the activity `limited`, which the agent has while its program rests; empty: it keeps its own."""
    until: float | None = None
    """End of the hold (Unix seconds)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskHeld:
    """The turn ended for a reason that the task's message did not cause. With a `code` the task fails with that code;
    without one the task waits, and its program is asked to go on when the hold is over."""

    reason: str
    code: str = ""
    details: dict[str, Any] = field(default_factory=dict)


class HoldOwner(Protocol):
    """An agent, as the holder of its messages knows it. `config` is its present configuration; `profile` is that for
    the program's running version."""

    @property
    def record(self) -> AgentRecord: ...

    @property
    def profile(self) -> Any: ...

    @property
    def config(self) -> Any: ...

    @property
    def activity(self) -> Activity:
        """Returns the program's present activity; UNKNOWN if it was not observed yet."""

    async def keep_hold(self, kept: dict[str, Any] | None, *told: EventData) -> None:
        """Makes `kept` durable, in one commit with the events: it is then the `record.limit`. Raises StoreError."""

    async def recheck(self) -> None:
        """Checks again if a message can be given to the program."""


class HoldActor(Protocol):
    """The actor of an agent, which does its work in order, one thing after the other."""

    def post(self, work: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Gives `work` to the actor, without waiting for it."""

    def post_later(self, delay: float, work: Callable[..., Awaitable[object]], *args: Any) -> Timer:
        """Posts `work` in `delay` seconds, unless the timer is cancelled."""

    def spawn(self, operation: Coroutine[Any, Any, None]) -> object:
        """Runs a long operation beside the actor."""


class MessageHolder(Protocol):
    """Holds back the messages of one agent. Everything but `hold` and `leave` is called in the agent's actor."""

    def hold(self) -> Hold | None:
        """Returns the reason why the agent's messages wait; None if they do not. It is called before each message, and
        for each view of the agent, and never blocks."""

    def answer(self, prompt: Prompt) -> str | None:
        """Returns the answer to a dialog in a task's turn; None leaves it to others."""

    async def turn_over(self, event: LinkEvent, *, stopped: bool) -> TaskHeld | None:
        """Returns the consequence for the task whose turn is over; None: the usual one of the event. `stopped`: the
        turn is being stopped on request. If a hold begins with it, the hold is durable. Raises StoreError."""

    async def lift(self, why: str) -> None:
        """Ends the hold, because a turn ended well, or a person does not want to wait. Raises StoreError."""

    def watch(self) -> None:
        """Notes that the program runs: from now on the holder watches for the end of the hold."""

    def leave(self) -> None:
        """Notes that the agent is removed."""


class Holding(Protocol):
    def holder(self, owner: HoldOwner, actor: HoldActor) -> MessageHolder:
        """Returns a holder for an agent, with the hold that an earlier daemon stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSettings:
    """Consequences of the person's own settings of the program for a launch."""

    notes: tuple[str, ...] = ()
    """The consequences in words for people."""
    withheld: tuple[tuple[str, ...], ...] = ()
    """Arguments of the profile that are left out, because the person has set something else."""
    documents: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """The person's documents, by the name of the launch's file that each is merged into."""
    loses: frozenset[RefusingRules] = frozenset()
    """The parts of an approval policy that cannot be enforced."""
    lost_by: tuple[str, ...] = ()
    """The reasons why they cannot be, in words for people."""
    keys: str = ""
    """The keys to which the person gave another action, in words."""
    instructions: str = ""
    """The person's own instructions for the model, which come before ours."""


class SettingsReading(Protocol):
    def read(
        self, spec: Any, *, env: Mapping[str, str], cwd: str, args: Sequence[str], replaced: Collection[str]
    ) -> tuple[tuple[str, ...], PersonSettings]:
        """Returns the person's own arguments, without a document that goes into a file of ours, and the consequences of
        the person's settings for a launch in which other channels take the place of those in `replaced`. `spec` is the
        profile's (`SettingsSpec`). Reads some small files, and never raises."""


class LineRouting(Protocol):
    def line(self, attachment: Attachment, agent_id: str, only: frozenset[str] | None) -> TypedLine | None:
        """Returns the reader of lines that are typed at the agent's terminal; None if all lines are for the program.
        `only`: names of the agents to which lines may go; None: to all."""


class WaitingHere:
    """The inbox of this host; this class is an empty one, for a daemon without a part that has one."""

    def items(self) -> list[AttentionItem]:
        """Returns the items, oldest first."""
        return []

    @property
    def moved(self) -> asyncio.Event:
        """Returns an event that is set at the next change of the inbox. Each change has an event of its own, so take
        the event before you read `items`."""
        return asyncio.Event()


class WaitingSource(Protocol):
    """The inboxes of other hosts."""

    async def inboxes(self) -> tuple[list[AttentionItem], list[HostSaid]]:
        """Returns the items on other hosts that wait for a person, and the state of each host."""


class AgentSource(Protocol):
    """The agents of other hosts."""

    async def agents(self) -> list[AgentView]:
        """Returns the agents of hosts that can be reached, under their addresses on this host."""

    async def teams(self) -> dict[str, list[str]]:
        """Returns the members of the teams of those hosts, as addresses."""


class PushPlace(BaseModel):
    """Address at which a browser is notified (RFC 8030), and the keys for messages that only it can read (RFC 8291)."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    endpoint: str = Field(max_length=2048)
    p256dh: str = Field(max_length=128)
    auth: str = Field(max_length=64)
    page: str = Field(default="", max_length=320)
    """Origin of the page that asked for notices."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A browser that gets notices; `id` is that of its page's grant. `answers`: it may answer questions of agents."""

    id: str
    name: str
    place: PushPlace
    answers: bool


class Subscriptions(Protocol):
    key: Callable[[], Awaitable[str | None]]
    """Returns the public key with which a page subscribes, as browsers want it; the part that sends notices sets it.
    None: no notices are sent."""
    on_subscribed: Callable[[], None]
    """Called when a subscription was turned on or off, or its grant has ended."""

    def subscribed(self) -> list[Subscriber]: ...

    async def subscribe(self, grant_id: str, push: PushPlace | None) -> None:
        """Sends notices to `push` from now on; None: sends no more. Raises UnknownDevice, StoreError."""

    async def unsubscribe(self, grant_id: str, dead: PushPlace) -> None:
        """Ends the notices to the address `dead`, unless the page has a newer one. Raises UnknownDevice, StoreError."""
