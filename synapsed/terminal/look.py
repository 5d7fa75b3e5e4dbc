"""The result of a look (one reading of a terminal), and other reports of its observer (`observer`): values."""

import math
from dataclasses import dataclass

from synapsed.terminal.composer import ComposerState
from synapsed.terminal.snapshot import ScreenSnapshot
from synapsed.terminal.verdict import Verdict

GONE_S = 0.5
"""Seconds to wait before a dialog that has disappeared counts as gone: programs often clear the screen and draw the
same dialog again."""


@dataclass(frozen=True, slots=True)
class TerminalReply:
    """An answer to a terminal query that ended at spool `offset`."""

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The terminal at one moment. Times are monotonic seconds, from the caller's clock."""

    verdict: Verdict
    composer: ComposerState
    screen: ScreenSnapshot
    offset: int
    """Spool offset up to which the output was drawn."""
    changed_at: float
    """Time of the last change of the text, the progress or the status record."""
    steady_at: float = 0.0
    """Time from which the prompt on the screen counts as completely drawn, or a prompt that has disappeared as gone; 0:
    at once."""
    still_since: float = 0.0
    """Time of the last change of the screen or the title, or of the request to stop the turn."""
    unreadable_at: float = 0.0
    """Time at which a screen that is not understood is reported, if it stays so; 0 for never."""
    calm_since: float = 0.0
    """The time of `still_since`, if numbers that count and the text below the composer do not count as changes."""
    background: tuple[str, ...] = ()
    """Background tasks that the program reports."""
    record: str | None = None
    """The root of the program's status records."""
    worked_until: int = 0
    """Spool offset at which that record last went from work to rest."""
    turn_open: bool = False
    """True if a side channel has reported a turn's beginning, and not its end."""
    stopping: bool = False
    """The turn was asked to stop."""
    lost: bool = False
    """The screen is not understood, or not yet."""
    good_until: float = 0.0
    """Time up to which another look would be the same if nothing else changes."""
    mid_frame: bool = False
    """True if the program was drawing: the screen has only a part of the frame."""
    kinds: str | None = None
    """Style of each character of the screen's text (`Screen.kinds`), on request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Harm:
    """Output that crashed or blocked the terminal emulator, which is started again without it."""

    skip_to: int
    """Spool offset at which the drawing begins again; output before it is skipped."""
    blind: bool = False
    """True after too many crashes: nothing is drawn any more until the program ends."""

    @property
    def until(self) -> float:
        return math.inf if self.blind else self.skip_to

    @property
    def message(self) -> str:
        if self.blind:
            return "its output ended the terminal emulator over and over: it goes on without a screen"
        return "its output ended the terminal emulator: its screen begins behind that, what was on it before is lost"
