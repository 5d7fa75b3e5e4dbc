"""Commands of a session, which the `Driver` performs."""

from dataclasses import dataclass

from synapsed.pty.keyboard import Emit, Tell, Work


@dataclass(frozen=True, slots=True)
class AnswerQuery:
    """Answers a query of the program's to its terminal, which ended at the spool `offset`; once, also if its output is
    read again after a restart."""

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class SaveScreen:
    """Makes the screen durable; `Session.saving` is called before, and `Session.saved` after."""


@dataclass(frozen=True, slots=True)
class SavePrompts:
    """Saves the known prompts of the program."""


@dataclass(frozen=True, slots=True)
class Poll:
    """Asks the channels for news."""


@dataclass(frozen=True, slots=True)
class LookSoon:
    """Plans a look at the terminal as soon as possible, after a change."""

    at_once: bool = False
    """True: regardless of the time of the last look."""


@dataclass(frozen=True, slots=True)
class AtRest:
    """Reports to the channels that the program rests after its last answer."""


type SessionCommand = Emit | Tell | AnswerQuery | SaveScreen | SavePrompts | Poll | LookSoon | AtRest | Work
