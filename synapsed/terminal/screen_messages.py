"""Types of what is told to a screen, and asked of it, by modules that do not have its emulator.

Everything is done in the order in which it was asked for, so that an answer shows all the output that was fed before.
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

# --- what is told ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeysTyped:
    """Keys went to the program: what appears now in its composer may be what they have brought."""

    now: float


@dataclass(frozen=True, slots=True)
class StopAsked:
    """What stops the running turn was typed: from now on a screen that stands still is proof."""

    now: float


@dataclass(frozen=True, slots=True)
class StopOver:
    """The turn that was asked to stop has ended, or goes on."""


@dataclass(frozen=True, slots=True)
class TurnOpened:
    """`channel` reported at `at_ns` (CLOCK_MONOTONIC) that the program had taken a prompt."""

    channel: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class TurnClosed:
    """A channel reported that the program's turn is over."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """The output before `offset` is gone."""

    offset: int


@dataclass(frozen=True, slots=True)
class InBackground:
    """A side channel told what the program runs in its background now."""

    names: tuple[str, ...]


type Note = KeysTyped | StopAsked | StopOver | TurnOpened | TurnClosed | InBackground | Skipped | OuterTerminal


# --- what is asked ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a look is to know that the screen does not show; `now` is monotonic seconds."""

    now: float
    in_turn: bool = False
    """A message was submitted, and its turn is not over."""
    facts: TerminalFacts | None = None
    """Who reads the terminal, where that is asked."""
    learned: tuple[LearnedPrompt, ...] = ()
    """The prompts that are known of a program that no profile describes."""
    given_back: Literal["program", "command"] | None = None
    """As of `Observation`, by the kernel."""
    kernel: Word | None = None
    """The same."""
    unbegun: str | None = None
    """The message that was submitted, while no channel has told that its turn began."""
    kinds: bool = False
    """`Look.kinds` is wanted."""
    whole: bool = False
    """No look is wanted while the program is in the middle of a frame."""

    @property
    def known(self) -> tuple[object, ...]:
        """All but when it is asked, and how much is wanted: it stays the same over many looks."""
        return self.in_turn, self.facts, self.learned, self.given_back, self.kernel, self.unbegun


@dataclass(frozen=True, slots=True)
class LinesRead:
    """An answer that was read; so many lines of its beginning are `missing`."""

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
    """The bytes that bring a terminal to what the screen shows: `drawn`, then `pending`, which is an unfinished
    sequence of the output, then the output from `offset` on."""

    drawn: bytes
    pending: bytes
    offset: int

    def rest(self, offset: int, data: bytes) -> bytes:
        """What of the output `data` at `offset` comes after it."""
        return data[max(0, self.offset - offset) :]


# --- what comes back -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Drawn:
    """Output is drawn up to `offset`; `replies` answer what the program asked in it."""

    offset: int
    replies: Sequence[TerminalReply] = ()


@dataclass(frozen=True, slots=True)
class Harmed:
    """Output ended the emulator: some of it is passed over from now on."""

    harm: Harm


@dataclass(frozen=True, slots=True)
class Incomplete:
    """Output could not be read back when the screen was drawn once more: what it showed is missing."""


type StageEvent = Drawn | Harmed | Incomplete


@dataclass(frozen=True, slots=True)
class Start:
    """What is known of a screen before anything is drawn."""

    offset: int
    """Where the output begins that it is to be fed."""
    started: bool = False
    """It was kept after the program had started."""
    harm: Harm | None = None
    """Output of this launch that is passed over."""
    size: tuple[int, int] | None = None
    """Columns and rows with which it was kept."""
    asked: Any = None
    """What the daemon before has kept with it of what was asked (`Asking.kept`)."""
    misread: Any = None
    """The same of what was pasted, and is not in the composer (`Misreading.left`)."""


class Stage(Protocol):
    """The screen of one launch of a program. Nothing of it blocks: what is told is drawn when its turn comes, what is
    asked is answered then. Once it is closed nothing is answered any more."""

    start: Start

    @property
    def drawn_from(self) -> float:
        """The offset from which on output may be given to an emulator, for the screen and for answers; 0 if nothing is
        passed over."""
        ...

    def open(self, told: Callable[[StageEvent], None]) -> None:
        """`told` is called in the event loop, in order."""
        ...

    def feed(self, offset: int, data: bytes, now: float, *, continues: bool = False) -> None:
        """The program wrote `data` at `offset`; `continues`: with what was fed last it is one piece."""
        ...

    def pass_over(self, offset: int) -> None:
        """Output that ends before `offset`, and is not drawn yet, is not drawn any more: nobody waits for it."""
        ...

    def note(self, note: Note) -> None: ...

    def resize(self, cols: int, rows: int, at: int | None = None) -> None:
        """The window has that size from output `at` on; None: from here on."""
        ...

    async def look(self, ask: Ask) -> Look | None:
        """None in the middle of a frame, where a whole one is wanted."""
        ...

    async def explain(self, ask: Ask, *, as_drawn: bool = False) -> list[Witness]:
        """The evidence behind the last look's verdict, strongest channel first."""
        ...

    async def checkpoint(self) -> Checkpoint:
        """The screen as redraw bytes, at the offset of its last whole sequence."""
        ...

    async def redraw(self, notice: Sequence[str] = (), *, alone: bool = False) -> Redraw:
        """The screen for a terminal of its size, `notice` over its last rows; `alone`: without the main one beneath
        an alternate screen, and on whichever that terminal is."""
        ...

    async def pane(self, cols: int, rows: int, notice: Sequence[str] = ()) -> bytes:
        """The bytes that show the screen in a terminal of another size, with rows of a notice over its last ones."""
        ...

    async def text(self, *, scrollback: bool, as_drawn: bool = False) -> str:
        """As of `Screen.text`."""
        ...

    async def shown(self, fmt: ScreenForm, *, as_drawn: bool = False) -> Shown: ...

    async def read_lines(self, wanted: LinesWanted) -> LinesRead:
        """The answer that an emulator of its own reads, as wide and as tall as the screen."""
        ...

    async def close(self) -> None: ...
