"""Commands of a session, which the `Driver` performs."""

from dataclasses import dataclass

from synapsed.pty.keyboard import Emit, Tell, Work


@dataclass(frozen=True, slots=True)
class AnswerQuery:
    """Answer a query of the program's to its terminal, which ended at the spool `offset`; once, also where its output
    is read again after a restart."""

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class SaveScreen:
    """Make the screen durable; `Session.saving` is called before, and `Session.saved` after."""


@dataclass(frozen=True, slots=True)
class SavePrompts:
    """Keep what is known of the program's prompts."""


@dataclass(frozen=True, slots=True)
class Poll:
    """Ask the channels for news."""


@dataclass(frozen=True, slots=True)
class LookSoon:
    """Something changed: look at the terminal as soon as may be."""

    at_once: bool = False
    """However short the last look is ago."""


@dataclass(frozen=True, slots=True)
class AtRest:
    """Tell the channels that the program rests after what it answered last."""


type SessionCommand = Emit | Tell | AnswerQuery | SaveScreen | SavePrompts | Poll | LookSoon | AtRest | Work
