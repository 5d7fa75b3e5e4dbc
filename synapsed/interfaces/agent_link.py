"""Interfaces of an agent's link (its running program) and of its side channels (reports besides the screen)."""

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
        """Begins to report; `emit` is called in the event loop with the facts, in their order. Facts from before the
        call come first."""

    async def poll(self) -> None:
        """Looks for facts now (after a report that there are some, and at intervals)."""

    async def last_answer(self, since_ns: int, is_ours: Callable[[str], bool]) -> str | None:
        """Returns the exact last assistant message of the turn submitted at `since_ns`, if the channel can look it up;
        `is_ours` returns True for the text of a prompt that was submitted here."""

    async def reply(self, request: str, answer: dict[str, Any]) -> bool:
        """Answers the PermissionAsked with this `request`. Returns True if the program took the answer."""

    async def rests(self) -> None:
        """Called when the program rests: its last TurnAnswered counts as the turn's end."""

    async def settled(self, at_ns: int) -> None:
        """Called when all facts up to `at_ns` are durable: they need not be reported again after a restart."""

    async def close(self) -> None: ...


type Reach = Literal["idle", "busy", "asking", "away"]
"""Prospect of a message that is given over a channel now: the program would take it at once; a turn runs; a turn waits
for a person; the program cannot be reached over the channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The program has the message. `turn` is the program's id of the turn; `joined`: the message became part of a turn
    that a person began before."""

    turn: str
    joined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTurn:
    """State of a message that was given earlier. `over` is its turn's end as the channel has it; None before."""

    turn: str
    over: TurnOver | None = None


class DeliveryWay(Protocol):
    """A way on which a program takes messages.

    A message has a key, under which the program knows it. A caller that gave a message and did not get the result asks
    with `find` before it gives the message again. Facts report the course of the message: PromptAccepted with its key,
    then AssistantSaying, AssistantSaid, and TurnEnded, TurnFailed or TurnInterrupted with the turn's id.
    """

    name: str
    settles_s: float
    """Seconds for which the program may not yet show a message that it was given; 0 also if a message that is given
    again under its key counts as the same message."""

    def reach(self) -> Reach: ...

    @property
    def gone(self) -> str | None:
        """Returns the reason why the channel will not come back while this program runs; None while it may."""

    def key(self, task_id: str, leg: int) -> str:
        """Returns a key for a message of a task's turn; `leg` is its number in the turn, from 0."""

    async def submit(self, key: str, text: str, *, new: bool = False) -> Submitted:
        """Gives the program a message; `new`: its terminal shows no conversation, so that this message begins one, if
        the channel decides that. Raises ChannelAway, whose `sent` is True if the program may have the message;
        MessageRefused."""

    async def find(self, key: str, turn: str | None = None) -> FoundTurn | None:
        """Returns the state of the message with that key, or of `turn`, which began with it; None if the program does
        not know the message. Raises ChannelAway, MessageRefused."""

    async def interrupt(self, turn: str | None) -> bool:
        """Stops the turn (None: the running one). Returns True if the program got the request; if not, the caller
        presses keys. Raises ChannelAway."""


@runtime_checkable
class Delivering(SideChannel, DeliveryWay, Protocol):
    """A side channel over which the program takes messages, whatever its terminal shows."""

    coming: bool
    """True while the channel is being connected and was not refused: on a busy machine the program answers late."""

    def watch(self, changed: Callable[[], None]) -> None:
        """Sets the callback for changes of `reach` or `gone`; it is called in the event loop."""

    async def answer(self, request: str, option: str) -> bool:
        """Answers the PermissionAsked of that `request` with `option`, the key of one of its options; returns False if
        it was answered before. Raises ChannelAway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A turn that is to begin (`fresh`), or to go on after a restart. `record` is its durable part: the result of
    `AgentLink.prepare`, or the last LinkTurnRecord of the link."""

    task_id: str
    text: str
    command: bool = False
    """True: `text` may be a command of the program (a leading `/`), and is typed without changes against that."""
    record: TurnRecord
    fresh: bool = False


class TypedLine(Protocol):
    """Follows the keys that a person types at an attached terminal, and takes the lines addressed to another agent."""

    def passes(self, data: bytes) -> bool:
        """Returns True if these keys may go to the program at once: they cannot end a line for another agent."""

    def passed(self, data: bytes) -> None:
        """Called when the program got these keys."""

    async def write(self, data: bytes) -> None:
        """Takes the bytes that a person typed; those for the program go to `Attachment.type`."""

    async def close(self) -> None: ...


class Attachment(Protocol):
    """A person's terminal on an agent."""

    def follow(self, line: TypedLine) -> None:
        """Passes all typed bytes through `line`. Call it before the first key."""

    async def redraw(self) -> bytes:
        """Returns the bytes that draw the agent's screen on a terminal of this attachment's size."""

    def output(self) -> AsyncIterator[bytes]:
        """Returns the stream of output after the redraw, as `terminal.viewer_filter` lets it through. A viewer too slow
        for the bounded buffer gets a new redraw instead of the missed output."""

    def pass_to(self, take: Callable[[bytes], None], ready: Callable[[], bool]) -> None:
        """Calls `take` with each piece of output at once, while `ready` returns True and no older output waits;
        `output` has the rest."""

    def keep_one_screen(self) -> None:
        """Shows the program's main screen and its alternate one on the same screen of this terminal, and erases nothing
        above it. Call it before the first redraw."""

    def keep_clipboard(self, told: str | None) -> None:
        """Keeps the program from setting this terminal's clipboard, and shows the notice `told` to the person instead,
        once. With None the program may set it. Without this call it may not, and no notice is shown. Call it before the
        first redraw."""

    def type_now(self, data: bytes) -> bool:
        """Types keystrokes without a wait; returns False, and does nothing, if that is impossible: then use `write`."""

    async def write(self, data: bytes) -> None:
        """Types keystrokes of a person. Raises Forbidden on a read-only attachment."""

    async def type(self, data: bytes) -> None:
        """Types keystrokes without passing them through the followed line."""

    async def earlier(self) -> Checkpoint:
        """Returns the screen with the rows above it."""

    async def resize(self, cols: int, rows: int) -> None:
        """Called when the viewer's window changed; the agent's window follows the viewer that typed last."""

    def seen_in(self, outer: OuterTerminal) -> None:
        """Takes the properties of the viewer's terminal. The program gets them in answer to its queries, as long as the
        window follows this viewer."""

    async def composes(self) -> bool:
        """Returns True if the program's composer (its input line) may have text: the text is shown, or a key was
        pressed just now."""

    async def take_line(self, line: str) -> bool:
        """Removes a person's text from the program's composer (its input line), if it is exactly `line`. Returns True
        if the text is gone. Any other text stays as it is."""

    def notice(self, text: str, *, stays: bool) -> None:
        """Shows `text` over the screen of this viewer alone, for a moment, or (`stays`) until a key is pressed; the
        screen beneath comes back unchanged."""

    async def close(self) -> None:
        """Detaches from the agent; `output` ends."""


class ScreenWatch(Protocol):
    """A viewer of an agent's screen that has no terminal on it."""

    async def changed(self) -> bool:
        """Returns True when the screen may have changed since the last call, False when its program is gone."""

    def close(self) -> None: ...


class LinkTerminal(Protocol):
    """The terminal of a running program, or its replacement: its screen, and the people who use it."""

    @property
    def attached(self) -> int:
        """Number of attached terminals."""

    @property
    def writers(self) -> int:
        """Number of attached terminals that may type."""

    @property
    def has_person(self) -> bool:
        """True if a person sits at one of those terminals, as far as the terminal reports."""

    @property
    def hands_at(self) -> float:
        """Time on the monotonic clock at which a person last pressed a key at the terminal, or at which the program
        read such keys, if that was later."""

    @property
    def person_at(self) -> float | None:
        """Time at which a person last pressed a key at the terminal; None if this daemon knows of no such key."""

    @property
    def output(self) -> int:
        """Number of bytes of output that were read, over all launches."""

    async def screen_text(self, limit: int | None = None) -> str:
        """Returns the visible screen (with scrollback if `limit` characters need it)."""

    async def screen_as(self, fmt: ScreenForm) -> Shown: ...

    async def keep_screen(self) -> None:
        """Makes the screen durable, so that it can be shown while no program runs (`Store.checkpoint`)."""

    async def attach(self, *, cols: int, rows: int, read_only: bool, keep_size: bool = False) -> Attachment:
        """Attaches a person's terminal. `keep_size`: while another one is attached, the window takes the size of this
        one only when a key is typed at it."""

    def watch(self) -> ScreenWatch: ...

    async def press(self, keys: Sequence[str]) -> None:
        """Presses keys for a person, by name or as text. Raises InvalidRequest; NotReady while a message is typed."""


class AgentLink(Protocol):
    """A running program: deliver, observe, interrupt, answer, screen. Each uses the best of the profile's channels."""

    @property
    def launch(self) -> LaunchRecord: ...

    @property
    def terminal(self) -> LinkTerminal: ...

    async def open(self, emit: Callable[[LinkEvent], None]) -> None:
        """Connects to a new program, or to an adopted one (of an earlier daemon), and begins to report. `emit` is
        called in the event loop and never blocks."""

    def give_up(self) -> None:
        """Stops waiting for a program that does not answer: `open` raises, if it has not returned yet."""

    def leave_unreached(self) -> None:
        """Leaves a program that was not reached yet to the next daemon: `open` is cancelled soon."""

    async def observe(self) -> LinkObserved:
        """Returns the program's activity at this moment."""

    async def explain(self) -> list[Testimony]:
        """Returns the present report of every channel, strongest first."""

    def prepare(self, record: TurnRecord, *, command: bool = False) -> TurnRecord:
        """Returns the record of a turn that is about to be delivered. It is made durable together with the turn, so
        that the link needs no commit of its own before its first act. `command` as in Delivery."""

    async def deliver(self, delivery: Delivery) -> None:
        """Begins the turn, or goes on with it (a link has one turn at a time). Events report the turn's course."""

    def recorded(self, record: TurnRecord) -> None:
        """Called when the record of LinkTurnRecord is durable."""

    def taken(self, fact: ChannelFact) -> None:
        """Called when the fact of a LinkTold was handled, and is durable if it has to be."""

    def settled(self) -> None:
        """Called when the end of the last turn is durable: the channels' reports about it are not needed any more."""

    async def interrupt(self) -> bool:
        """Stops the running turn, also a person's, by the profile's keys. Returns True if the stop is confirmed."""

    async def stop_background(self) -> bool:
        """Stops all background tasks of a program at rest, by the profile's keys. Returns True if none runs."""

    async def answer(self, text: str, prompt_id: str | None) -> bool:
        """Answers the prompt on the screen. Returns True if the terminal hid the typed text, which must not be stored
        then. Raises NotWaiting, PromptChanged, InvalidChoice."""

    async def reply(self, asked: PermissionAsked, answer: dict[str, Any]) -> bool:
        """Answers a PermissionAsked of a LinkTold, in the program's own format. Returns True if it was taken."""

    async def stop(self, grace: float) -> LinkExited:
        """Ends the program and everything it started: by the profile's exit keys, then SIGTERM, then SIGKILL."""

    async def signal(self, signum: int) -> None: ...

    async def poke(self) -> None:
        """Called when a side channel has new reports."""

    async def close(self) -> None:
        """Disconnects from the program, which goes on running."""
