"""What the supervisor asks of an agent's link and of its side channels."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from synapsed.model.agent import Testimony
from synapsed.model.facts import ChannelFact, PermissionAsked, TurnOver
from synapsed.model.link import LinkEvent, LinkExited, LinkObserved
from synapsed.model.outer_terminal import OuterTerminal
from synapsed.model.picture import ScreenForm, Shown
from synapsed.model.records import Checkpoint, LaunchRecord, TurnRecord


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

    async def last_answer(self, since_ns: int, is_ours: Callable[[str], bool]) -> str | None:
        """The exact last assistant message of the turn submitted at `since_ns`, where the channel can look it up;
        `is_ours` says whether a prompt that the program tells of is what was submitted."""
        ...

    async def reply(self, request: str, answer: dict[str, Any]) -> bool:
        """Answer the PermissionAsked that has this `request`; whether the program took it."""
        ...

    async def rests(self) -> None:
        """The program rests: what it answered last (TurnAnswered) is the turn's end."""
        ...

    async def settled(self, at_ns: int) -> None:
        """What was told up to `at_ns` is durable: it need not be told again after a restart."""
        ...

    async def close(self) -> None: ...


type Reach = Literal["idle", "busy", "asking", "away"]
"""What a channel says of a message that would be given to its program now: it would be taken at once; a turn runs; that
turn waits for a person; the program cannot be reached this way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The program has the message. `turn` is its own id of the turn; `joined`: of a turn that ran before, a person's,
    which goes on with the message in it."""

    turn: str
    joined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTurn:
    """State of a message that the program was given before. `over` is the end of its turn, as the channel tells
    one; None while it runs."""

    turn: str
    over: TurnOver | None = None


class DeliveryWay(Protocol):
    """A way on which a program takes messages.

    A message has a key, under which the program knows it. Whoever gave one and did not hear what came of it asks with
    `find` before it is given again. Its course is told by facts: PromptAccepted with that key, then AssistantSaying,
    AssistantSaid, and TurnEnded, TurnFailed or TurnInterrupted with the turn's id.
    """

    name: str
    settles_s: float
    """How long a message that the program was given may stand nowhere; 0 also where one that is given again under its
    key is the same one."""

    def reach(self) -> Reach: ...

    @property
    def gone(self) -> str | None:
        """Why the channel will not come back while this program runs, None while it may."""
        ...

    def key(self, task_id: str, leg: int) -> str:
        """A key for the message that is given as number `leg` (from 0) of a task's turn."""
        ...

    async def submit(self, key: str, text: str, *, new: bool = False) -> Submitted:
        """Give the program a message; `new`: its terminal shows no conversation, so that this is the first of one,
        where the channel has a say in that. Raises ChannelAway, whose `sent` says whether it may have it;
        MessageRefused."""
        ...

    async def find(self, key: str, turn: str | None = None) -> FoundTurn | None:
        """The message of that key, or the turn that was begun with it, None if the program does not show it. Raises
        ChannelAway, MessageRefused."""
        ...

    async def interrupt(self, turn: str | None) -> bool:
        """Stop the turn (None: whichever runs); whether the program was told to: where there is no way, keys do it.
        Raises ChannelAway."""
        ...


@runtime_checkable
class Delivering(SideChannel, DeliveryWay, Protocol):
    """A side channel over which the program takes messages, whatever stands on its terminal."""

    coming: bool
    """It is being connected to, and has not been refused: a busy machine's program takes its time to answer."""

    def watch(self, changed: Callable[[], None]) -> None:
        """`changed` is called in the event loop when `reach` or `gone` say something else."""
        ...

    async def answer(self, request: str, option: str) -> bool:
        """Answer the PermissionAsked of that `request` with the key of one of its options; False where it is answered
        already. Raises ChannelAway."""
        ...


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


class TypedLine(Protocol):
    """Follows what a person types at an attached terminal, and takes the lines that are for somebody else."""

    def passes(self, data: bytes) -> bool:
        """Returns True if these keys may go to the program at once: they cannot end a line for somebody else."""
        ...

    def passed(self, data: bytes) -> None:
        """The program was given these keys."""
        ...

    async def write(self, data: bytes) -> None:
        """A person typed that; what of it is for the program is given to `Attachment.type`."""
        ...

    async def close(self) -> None: ...


class Attachment(Protocol):
    """A person's terminal on an agent."""

    def follow(self, line: TypedLine) -> None:
        """From now on, before the first key: what is typed goes by `line`."""
        ...

    async def redraw(self) -> bytes:
        """What brings a terminal of this attachment's size to the agent's screen."""
        ...

    def output(self) -> AsyncIterator[bytes]:
        """The stream from the redraw on, as `terminal.viewer_filter` lets it through. A viewer too slow for the bounded
        buffer gets a fresh redraw instead of what it missed."""
        ...

    def pass_to(self, take: Callable[[bytes], None], ready: Callable[[], bool]) -> None:
        """From now on `take` is given output the moment it comes, while it is `ready` and nothing older waits; all the
        rest `output` has."""
        ...

    def keep_one_screen(self) -> None:
        """From now on, before the first redraw: this terminal shows the program's main screen and its alternate one on
        the same screen, and nothing is erased above it."""
        ...

    def keep_clipboard(self, told: str | None) -> None:
        """From now on, before the first redraw: where the program would set this terminal's clipboard its person is
        `told` so, once; None: it may set that. (Else it may not, and nobody is told.)"""
        ...

    def type_now(self, data: bytes) -> bool:
        """Type keystrokes without waiting for anything; False where that cannot be, and nothing was done: `write` them
        then."""
        ...

    async def write(self, data: bytes) -> None:
        """Keystrokes of a person; refused (Forbidden) on a read-only attachment."""
        ...

    async def type(self, data: bytes) -> None:
        """The same, past the line that is followed."""
        ...

    async def earlier(self) -> Checkpoint:
        """The screen with the rows above it."""
        ...

    async def resize(self, cols: int, rows: int) -> None:
        """The viewer's window changed; the agent's follows the viewer that typed last."""
        ...

    def seen_in(self, outer: OuterTerminal) -> None:
        """What the viewer's terminal has said of itself: the program is told it when it asks, as long as the window
        follows this viewer."""
        ...

    async def composes(self) -> bool:
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


class ScreenWatch(Protocol):
    """Somebody who looks at an agent's screen without a terminal on it."""

    async def changed(self) -> bool:
        """Returns when the screen may have changed since this was asked last; False: its program is gone."""
        ...

    def close(self) -> None: ...


class LinkTerminal(Protocol):
    """The terminal of a running program, or what stands in its place: what it shows, and who is at it."""

    @property
    def attached(self) -> int:
        """How many terminals are attached."""
        ...

    @property
    def writers(self) -> int:
        """How many of them may type."""
        ...

    @property
    def has_person(self) -> bool:
        """True if a person sits at one of those, as far as their terminal tells."""
        ...

    @property
    def hands_at(self) -> float:
        """When a person last pressed a key there, or what was typed was read late, on the monotonic clock."""
        ...

    @property
    def person_at(self) -> float | None:
        """When a person last pressed a key there, as far as this daemon knows."""
        ...

    @property
    def output(self) -> int:
        """How many bytes of output were read, over all launches."""
        ...

    async def screen_text(self, limit: int | None = None) -> str:
        """The visible screen (with scrollback when `limit` characters want it)."""
        ...

    async def screen_as(self, fmt: ScreenForm) -> Shown: ...

    async def keep_screen(self) -> None:
        """Make what is on the screen durable: it can then be shown while no program runs (`Store.checkpoint`)."""
        ...

    async def attach(self, *, cols: int, rows: int, read_only: bool) -> Attachment: ...

    def watch(self) -> ScreenWatch: ...

    async def press(self, keys: Sequence[str]) -> None:
        """Press keys for a person, by their names or as text. Raises InvalidRequest; NotReady while a message is being
        typed."""
        ...


class AgentLink(Protocol):
    """A running program, seen through its capabilities; each is served by the best of the profile's channels."""

    @property
    def launch(self) -> LaunchRecord: ...

    @property
    def terminal(self) -> LinkTerminal: ...

    async def open(self, emit: Callable[[LinkEvent], None]) -> None:
        """Connect (to a fresh or an adopted program) and begin to report. `emit` is called in the event loop and
        never blocks."""
        ...

    def give_up(self) -> None:
        """Do not wait any longer for what does not answer: `open` raises, if it has not returned yet."""
        ...

    def leave_unreached(self) -> None:
        """Leave a program that was not reached yet to the next daemon: `open` is cancelled, soon."""
        ...

    async def observe(self) -> LinkObserved:
        """What it does at this moment."""
        ...

    async def explain(self) -> list[Testimony]:
        """What every channel says now, strongest first."""
        ...

    def prepare(self, record: TurnRecord, *, command: bool = False) -> TurnRecord:
        """The record of a turn that is about to be delivered, as it is made durable together with the turn: what the
        link writes ahead of its first act needs no commit of its own. `command` as in Delivery."""
        ...

    async def deliver(self, delivery: Delivery) -> None:
        """Begin the one turn, or go on with it; its course is told by events."""
        ...

    def recorded(self, record: TurnRecord) -> None:
        """The record of LinkTurnRecord is durable."""
        ...

    def taken(self, fact: ChannelFact) -> None:
        """What a LinkTold told is dealt with, and durable where it has to be."""
        ...

    def settled(self) -> None:
        """The end of the last turn is durable: its channels' reports are not needed any more."""
        ...

    async def interrupt(self) -> bool:
        """Stop whatever turn runs, a person's too, by the profile's keys; True when that is confirmed."""
        ...

    async def stop_background(self) -> bool:
        """Stop all that runs in the background of a program at rest, by the profile's keys; True when nothing does any
        more."""
        ...

    async def answer(self, text: str, prompt_id: str | None) -> bool:
        """Answer the prompt on the screen; whether its terminal hid what was typed, so that it is kept nowhere.
        Raises NotWaiting, PromptChanged, InvalidChoice."""
        ...

    async def reply(self, asked: PermissionAsked, answer: dict[str, Any]) -> bool:
        """Answer what a LinkTold told in the program's own words; whether it took that."""
        ...

    async def stop(self, grace: float) -> LinkExited:
        """End the program and everything it started: the profile's exit keys, TERM, KILL."""
        ...

    async def signal(self, signum: int) -> None: ...

    async def poke(self) -> None:
        """A side channel has news."""
        ...

    async def close(self) -> None:
        """Let go of the program, which lives on."""
        ...
