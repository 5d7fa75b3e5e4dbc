"""What a look at a terminal tells, and what else its observer says (`observer`): values, without the emulator."""

import math
from dataclasses import dataclass

from synapsed.terminal.composer import ComposerState
from synapsed.terminal.snapshot import ScreenSnapshot
from synapsed.terminal.verdict import Verdict

GONE_S = 0.5
"""A program clears its screen and draws a dialog again: that it is gone, with nothing in its place, is told after so
long."""


@dataclass(frozen=True, slots=True)
class TerminalReply:
    """An answer to a terminal query that ended at spool `offset`."""

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The terminal at one moment. Times are those that were passed in, monotonic seconds. `steady_at` is when the
    prompt on the screen counts as wholly drawn, or one that was there as gone; 0 for what counts at once."""

    verdict: Verdict
    composer: ComposerState
    screen: ScreenSnapshot
    offset: int
    changed_at: float
    steady_at: float = 0.0
    still_since: float = 0.0
    """When the screen or the title last changed, or the turn was asked to stop."""
    unreadable_at: float = 0.0
    """When a screen that is not understood is told of, if it stays so; 0 for never."""
    calm_since: float = 0.0
    """The same, but for numbers that count and what stands below the composer."""
    background: tuple[str, ...] = ()
    """What the program says to run in its background."""
    record: str | None = None
    """The root of the program's status records."""
    worked_until: int = 0
    """Spool offset at which that last went from work to rest."""
    turn_open: bool = False
    """A side channel has told that a turn began, and not that it is over."""
    stopping: bool = False
    """The turn was asked to stop."""
    lost: bool = False
    """The screen is not understood, or not yet."""
    good_until: float = 0.0
    """While nothing else changes, another look would say the same so long."""
    mid_frame: bool = False
    """The program was drawing: what is on the screen is half of it."""
    kinds: str | None = None
    """How each character of the screen's text is drawn (`Screen.kinds`), where that was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Harm:
    """What is known of output that ended the emulator: none of it before `skip_to` is drawn, and nothing at all where
    the launch goes on without a screen (`blind`)."""

    skip_to: int
    blind: bool = False

    @property
    def until(self) -> float:
        return math.inf if self.blind else self.skip_to

    @property
    def message(self) -> str:
        if self.blind:
            return "its output ended the terminal emulator over and over: it goes on without a screen"
        return "its output ended the terminal emulator: its screen begins behind that, what was on it before is lost"
