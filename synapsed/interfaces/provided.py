"""Protocols that parts implement for the kernel and for each other: the inbox here and those of other hosts; the agents
of these; browsers that one part registers and another one notifies; screens as documents; blocks of answers; events of
agents' work; rules about what agents may do; reasons why their messages wait; and the settings that persons made for
their programs.
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
        ...


class AnswerReader(Protocol):
    """Reads one answer of an agent after the other."""

    async def read(self, text: str, *, whole: bool) -> Sequence[Artifact]:
        """Returns the artifacts in `text`, the beginning of an answer, that stay the same whatever follows it; `whole`:
        all of them, as it is known to its end."""
        ...


class AnswerReading(Protocol):
    def reader(self, kinds: BlockKinds) -> AnswerReader:
        """Returns one for an agent."""
        ...


class WorkOwner(Protocol):
    """An agent, as who tells of its work knows it."""

    @property
    def id(self) -> str: ...

    @property
    def since(self) -> float:
        """Monotonic time since when this daemon has it."""
        ...

    @property
    def current(self) -> Task | None:
        """The task being worked on."""
        ...

    async def tell(self, events: Sequence[NewEvent]) -> None:
        """Returns once they are durable, however long that takes, or the agent's actor ends."""
        ...


class WorkTeller(Protocol):
    """Tells of one agent's work. All is called in the agent's actor, and the next thing waits for it: a report is
    settled once what it told is durable."""

    async def restore(self) -> None:
        """Takes up what an earlier daemon told, before anything else. Raises StoreError."""
        ...

    async def told(self, fact: ChannelFact) -> None:
        """A channel reported something."""
        ...

    async def turn(self, event: LinkEvent) -> None:
        """The link says what became of a task's turn."""
        ...

    async def denied(self, tool: str, texts: Sequence[str], reason: str) -> None:
        """A rule denied the call of `tool` that has `texts` in its input."""
        ...

    async def refused(self, shown: str) -> None:
        """The dialog that has `shown` was answered with a refusal."""
        ...

    async def program_over(self, how: str) -> None:
        """The program is gone, and its calls with it."""
        ...

    async def works(self) -> None:
        """The program was seen at work: what it asked about was allowed."""
        ...

    def about(self, prompt: Prompt | None) -> Prompt | None:
        """Returns the prompt, with the command or the edit that its dialog is about, where that is known."""
        ...


class WorkTelling(Protocol):
    def teller(self, owner: WorkOwner) -> WorkTeller:
        """Returns one for an agent."""
        ...


class RuleOwner(Protocol):
    """An agent, as who decides about it by rules knows it. `config` is its configuration as it is now."""

    @property
    def record(self) -> AgentRecord: ...

    @property
    def config(self) -> Any: ...

    def denied(self, tool: str, texts: Sequence[str], reason: str) -> None:
        """The program is refused the call of `tool` that has `texts` in its input."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """The dialog is answered with `text`, by `rule`."""

    text: str
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """The decision is on its way: the dialog may go by itself, or is a person's after a while."""


class Decider(Protocol):
    """Decides about one agent."""

    async def decide(self, spec: Any, told: dict[str, Any], task_id: str | None) -> dict[str, Any] | None:
        """Returns the answer to the program's question, whose form `spec` says (`DecisionSpec` of its profile), in the
        program's words; None leaves it to a person."""
        ...

    def judge(self, prompt: Prompt | None) -> Answer | Wait | None:
        """Returns what is to be done about the dialog on the screen; None: a person answers it."""
        ...

    def answered(self, prompt: Prompt) -> None:
        """That dialog is over: the same one, if it comes again, is another call's."""
        ...


class Deciding(Protocol):
    def decider(self, owner: RuleOwner) -> Decider:
        """Returns one for an agent."""
        ...

    def refusing(self, config: Any) -> Collection[RefusingRules]:
        """Returns which of the agent's rules may refuse a call. Where its program would not keep to
        them it is not started."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """The reason why an agent's messages wait. `word` stands in `held`, `reason` says the same to people. With
    `evidence` the agent counts as `limited` while its program rests; `until` is the end of that (Unix seconds)."""

    word: str
    reason: str
    evidence: str = ""
    until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskHeld:
    """The turn ended for a reason that the task's message did not cause. With a `code` the task fails with it; without
    one it waits, and its program is asked to go on when the hold is over."""

    reason: str
    code: str = ""
    details: dict[str, Any] = field(default_factory=dict)


class HoldOwner(Protocol):
    """An agent, as the holder of its messages knows it. `config` is its configuration as it is now; `profile`: for the
    version that runs."""

    @property
    def record(self) -> AgentRecord: ...

    @property
    def profile(self) -> Any: ...

    @property
    def config(self) -> Any: ...

    @property
    def activity(self) -> Activity:
        """Returns the program's present activity, UNKNOWN if it has not been looked at."""
        ...

    async def keep_hold(self, kept: dict[str, Any] | None, *told: EventData) -> None:
        """Makes `kept` durable, in one commit with the events: it is `record.limit` from then on. Raises StoreError."""
        ...

    async def recheck(self) -> None:
        """Looks again whether a message can be given."""
        ...


class HoldActor(Protocol):
    """The actor of an agent; what it does is done in order."""

    def post(self, work: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Has `work` done in the actor without waiting."""
        ...

    def post_later(self, delay: float, work: Callable[..., Awaitable[object]], *args: Any) -> Timer:
        """Posts `work` in `delay` seconds, unless the timer is cancelled."""
        ...

    def spawn(self, operation: Coroutine[Any, Any, None]) -> object:
        """Runs a long operation beside the actor."""
        ...


class MessageHolder(Protocol):
    """Holds back the messages of one agent. Everything but `hold` and `leave` is called in the agent's actor."""

    def hold(self) -> Hold | None:
        """Returns the reason why its messages wait; None if they do not. It is asked before each message, and for each
        view of the agent: it waits for nothing."""
        ...

    def answer(self, prompt: Prompt) -> str | None:
        """Returns the answer to a dialog in a task's turn; None leaves it to others."""
        ...

    async def turn_over(self, event: LinkEvent, *, stopped: bool) -> TaskHeld | None:
        """Returns the consequence for the task whose turn is over; None: what the event says. `stopped`: it is being
        stopped on request. A hold that begins by it is durable. Raises StoreError."""
        ...

    async def lift(self, why: str) -> None:
        """Ends the hold: a turn ended well, or a person does not wait. Raises StoreError."""
        ...

    def watch(self) -> None:
        """Notes that the program runs: the end of the hold is looked for from now on."""
        ...

    def leave(self) -> None:
        """Notes that the agent is removed."""
        ...


class Holding(Protocol):
    def holder(self, owner: HoldOwner, actor: HoldActor) -> MessageHolder:
        """Returns one for an agent, with the hold that an earlier daemon kept."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSettings:
    """Consequences of the person's own settings of the program for a launch."""

    notes: tuple[str, ...] = ()
    """The consequences in words for people."""
    withheld: tuple[tuple[str, ...], ...] = ()
    """Arguments of the profile's that are not given, as the person has said otherwise."""
    documents: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """The person's, by the name of the launch's file that each is merged into."""
    loses: frozenset[RefusingRules] = frozenset()
    """The parts of an approval policy that cannot be enforced."""
    keys: str = ""
    """The keys that do something else, in words."""
    instructions: str = ""
    """Their own for the model, which stand before ours."""


class SettingsReading(Protocol):
    def read(
        self, spec: Any, *, env: Mapping[str, str], cwd: str, args: Sequence[str], replaced: Collection[str]
    ) -> tuple[tuple[str, ...], PersonSettings]:
        """Returns the person's own arguments, without a document that goes into a file of ours, and what their settings
        ask of a launch where channels are `replaced` by others. `spec`: the profile's (`SettingsSpec`). Reads some
        small files, and never raises."""
        ...


class LineRouting(Protocol):
    def line(self, attachment: Attachment, agent_id: str, only: frozenset[str] | None) -> TypedLine | None:
        """Returns the reader of lines that are typed at the agent's terminal; None if all are the program's. `only`:
        names of the only agents that may be written to; None: all."""
        ...


class WaitingHere:
    """The inbox of this host: empty, where no part keeps one."""

    def items(self) -> list[AttentionItem]:
        """Returns the items, oldest first."""
        return []

    @property
    def moved(self) -> asyncio.Event:
        """Returns an event that is set at the next change of the inbox. The next change has a new event, so take it
        before you read `items`."""
        return asyncio.Event()


class WaitingSource(Protocol):
    """The inboxes of other hosts."""

    async def inboxes(self) -> tuple[list[AttentionItem], list[HostSaid]]:
        """Returns the items that wait for a person there, and the state of each host."""
        ...


class AgentSource(Protocol):
    """The agents of other hosts."""

    async def agents(self) -> list[AgentView]:
        """Returns the agents of hosts that can be reached, under their addresses here."""
        ...

    async def teams(self) -> dict[str, list[str]]:
        """Returns the members of teams there, as addresses."""
        ...


class PushPlace(BaseModel):
    """Address at which a browser is notified (RFC 8030), and the keys for messages that only it can read (RFC 8291)."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    endpoint: str = Field(max_length=2048)
    p256dh: str = Field(max_length=128)
    auth: str = Field(max_length=64)
    page: str = Field(default="", max_length=320)
    """Origin of the page that asked for it."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """`id` is the id of the grant of its page. `answers`: it may answer questions of agents."""

    id: str
    name: str
    place: PushPlace
    answers: bool


class Subscriptions(Protocol):
    key: str | None
    """The public key with which a page subscribes, as browsers want it; the part that sends notices sets it. None: no
    notices are sent."""
    on_subscribed: Callable[[], None]
    """Called when one was turned on or off, or its grant has ended."""

    def subscribed(self) -> list[Subscriber]: ...

    async def subscribe(self, grant_id: str, push: PushPlace | None) -> None:
        """Sends notices there from now on; None: nowhere. Raises UnknownDevice, StoreError."""
        ...

    async def unsubscribe(self, grant_id: str, dead: PushPlace) -> None:
        """Ends the notices to that address, unless the page has given a newer one. Raises UnknownDevice, StoreError."""
        ...
