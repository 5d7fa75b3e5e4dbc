"""What is told to the screen of a program, and asked of it, by whoever does not have its emulator.

Everything is done in the order in which it was asked for, so that an answer shows all the output that was fed before.
"""

from dataclasses import dataclass
from typing import Literal

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


type Note = KeysTyped | StopAsked | StopOver | TurnOpened | TurnClosed | Skipped


# --- what is asked ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a look is to know that the screen does not show; `now` is monotonic seconds."""

    now: float
    in_turn: bool = False
    """A message was submitted, and its turn is not over."""
    own_prompt: str | None = None
    """The prompt at which that message was typed, where another one that stands now is a question of what runs."""
    given_back: Literal["program", "command"] | None = None
    """As of `Observation`, by the kernel."""
    kernel: Literal["reads", "rests", "works"] | None = None
    """The same."""
    unbegun: str | None = None
    """The message that was submitted, while no channel has told that its turn began."""
    kinds: bool = False
    """`Look.kinds` is wanted."""
    whole: bool = False
    """No look is wanted while the program is in the middle of a frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesWanted:
    """An answer that is to be read off `output`, which begins at `start`: see `printed.from_lines`."""

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
