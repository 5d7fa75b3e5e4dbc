"""The interface of a screen (`Stage`), and the types of its notes, requests and answers, for modules that do not load
the terminal emulator.

A screen handles output, notes and requests in the order in which they come, so that an answer includes all the output
that was fed before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from synapsed.model.outer_terminal import OuterTerminal
from synapsed.model.picture import ScreenForm, Shown
from synapsed.model.records import Checkpoint
from synapsed.terminal.explain import Witness
from synapsed.terminal.line_prompts.evidence import TerminalFacts, Word
from synapsed.terminal.line_prompts.learned import LearnedPrompt
from synapsed.terminal.look import Harm, Look, TerminalReply

# --- notes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeysTyped:
    """Keys went to the program: text that appears now in its composer may come from them."""

    now: float


@dataclass(frozen=True, slots=True)
class StopAsked:
    """Keys to stop the running turn were typed: from now on a screen that stands still is proof."""

    now: float


@dataclass(frozen=True, slots=True)
class StopOver:
    """The turn that was asked to stop has ended, or goes on."""


@dataclass(frozen=True, slots=True)
class TurnOpened:
    """A side channel has reported that the program had taken a prompt."""

    channel: str
    """Name of the channel."""
    at_ns: int
    """Time of the report (CLOCK_MONOTONIC)."""


@dataclass(frozen=True, slots=True)
class TurnClosed:
    """A channel reported that the program's turn is over."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """The output before `offset` is gone."""

    offset: int


@dataclass(frozen=True, slots=True)
class InBackground:
    """A side channel reported the present background tasks of the program."""

    names: tuple[str, ...]


type Note = KeysTyped | StopAsked | StopOver | TurnOpened | TurnClosed | InBackground | Skipped | OuterTerminal


# --- requests --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Facts for a look that the screen does not show; `now` is monotonic seconds."""

    now: float
    in_turn: bool = False
    """A message was submitted, and its turn is not over."""
    facts: TerminalFacts | None = None
    """The terminal's mode and the processes that read it, if the kernel was asked."""
    learned: tuple[LearnedPrompt, ...] = ()
    """The prompts that are known of a program that no profile describes."""
    given_back: Literal["program", "command"] | None = None
    """Field of `Observation`, from the kernel."""
    kernel: Word | None = None
    """Field of `Observation`, too."""
    unbegun: str | None = None
    """The submitted message, until a channel reports that its turn began."""
    kinds: bool = False
    """`Look.kinds` is wanted."""
    whole: bool = False
    """True if no look is wanted while the program is in the middle of a frame."""

    @property
    def known(self) -> tuple[object, ...]:
        """All but the time and the extent of the request: it stays the same over many looks."""
        return self.in_turn, self.facts, self.learned, self.given_back, self.kernel, self.unbegun


class KeptLook:
    """The last look, and its request. Pure."""

    def __init__(self) -> None:
        self._kept: tuple[Look, Ask] | None = None
        self.changes = 0
        """Number of events so far after which a new look may differ."""

    def changed(self) -> None:
        self._kept = None
        self.changes += 1

    def keep(self, look: Look, ask: Ask, changes: int) -> None:
        """Keeps a look, unless something has changed since its request; `changes` is the number at the request."""
        if changes == self.changes:
            self._kept = look, ask

    def answers(self, ask: Ask) -> Look | None:
        """Returns the kept look if it answers `ask`, else None. The look may have more than `ask` requests; but a look
        in the middle of a frame does not answer a request for a whole frame."""
        if self._kept is None:
            return None
        look, asked = self._kept
        timely = asked.now <= ask.now < look.good_until
        as_much = (not look.mid_frame or not ask.whole) and (look.kinds is not None or not ask.kinds)
        return look if timely and as_much and asked.known == ask.known else None


@dataclass(frozen=True, slots=True)
class LinesRead:
    """An answer that was read; `missing` is the number of lines that its beginning lacks."""

    text: str
    missing: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesWanted:
    """An answer that is to be read off `output`, which begins at `start`: see `printed.read_lines`."""

    start: int
    output: bytes
    prompt: str
    message: str
    one_by_one: bool
    edits: bool


@dataclass(frozen=True, slots=True)
class Redraw:
    """Bytes that bring a terminal to what the screen shows."""

    drawn: bytes
    """Sent first."""
    pending: bytes
    """Sent next: an unfinished sequence of the output."""
    offset: int
    """Spool offset from which the output is sent after that."""

    def rest(self, offset: int, data: bytes) -> bytes:
        """Returns the part of the output `data` at `offset` that comes after `drawn` and `pending`."""
        return data[max(0, self.offset - offset) :]


# --- answers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Drawn:
    """Output is drawn up to `offset`; `replies` answer the program's queries in it."""

    offset: int
    replies: Sequence[TerminalReply] = ()


@dataclass(frozen=True, slots=True)
class Harmed:
    """Output ended the emulator: some of it is skipped from now on."""

    harm: Harm


@dataclass(frozen=True, slots=True)
class Incomplete:
    """Output could not be read again when the screen was drawn once more: its text is missing."""


type StageEvent = Drawn | Harmed | Incomplete


@dataclass(frozen=True, slots=True)
class Start:
    """Known facts of a screen before anything is drawn."""

    offset: int
    """Offset at which the output begins that the screen will get."""
    started: bool = False
    """The screen was saved after the program had started."""
    harm: Harm | None = None
    """Output of this launch that is skipped."""
    size: tuple[int, int] | None = None
    """Columns and rows with which the screen was saved."""
    asked: Any = None
    """State of questions that the former daemon saved with the screen (`Asking.kept`)."""
    misread: Any = None
    """The same for pasted text that is missing in the composer (`Misreading.left`)."""


class Stage(Protocol):
    """The screen of one launch of a program. No call blocks: output is drawn and requests are answered in their order.
    Once the stage is closed no request is answered."""

    start: Start

    @property
    def drawn_from(self) -> float:
        """Offset from which on output may be given to an emulator, for the screen and for answers; 0: skip nothing."""

    def open(self, told: Callable[[StageEvent], None]) -> None:
        """Starts the stage; `told` is called with its events, in the event loop and in order."""

    def feed(self, offset: int, data: bytes, now: float, *, continues: bool = False) -> None:
        """Takes output of the program at `offset`; `continues`: it belongs to the same piece as the output before."""

    def pass_over(self, offset: int) -> None:
        """Drops output that ends before `offset`, and is not drawn yet: no caller waits for it."""

    def note(self, note: Note) -> None: ...

    def resize(self, cols: int, rows: int, at: int | None = None) -> None:
        """Sets the size of the window from output `at` on; None: from now on."""

    async def look(self, ask: Ask) -> Look | None:
        """Returns a look; None in the middle of a frame if a whole one is wanted."""

    async def explain(self, ask: Ask, *, as_drawn: bool = False) -> list[Witness]:
        """Returns the evidence behind the last look's verdict, strongest channel first."""

    async def checkpoint(self) -> Checkpoint:
        """Returns the screen as redraw bytes, at the offset of its last whole sequence."""

    async def redraw(self, notice: Sequence[str] = (), *, alone: bool = False) -> Redraw:
        """Returns the screen for a terminal of its size, `notice` over its last rows; `alone`: without the main screen
        beneath an alternate one, and on that terminal's present screen."""

    async def pane(self, cols: int, rows: int, notice: Sequence[str] = ()) -> bytes:
        """Returns the bytes that show the screen in a terminal of another size, with a notice over its last rows."""

    async def text(self, *, scrollback: bool, as_drawn: bool = False) -> str:
        """Returns the text of `Screen.text`."""

    async def shown(self, fmt: ScreenForm, *, as_drawn: bool = False) -> Shown: ...

    async def read_lines(self, wanted: LinesWanted) -> LinesRead:
        """Returns the answer that an emulator of its own reads, as wide and as tall as the screen."""

    async def close(self) -> None: ...
