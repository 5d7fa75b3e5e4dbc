"""Commands that a session returns and the `Driver` performs."""

from dataclasses import dataclass

from synapsed.pty.keyboard import Emit, Tell, Work


@dataclass(frozen=True, slots=True)
class AnswerQuery:
    """Answers a query of the program to its terminal. The query's output ended at the spool `offset`; so it is answered
    once, even if the output is read again after a restart."""

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class SaveScreen:
    """Saves the screen durably; calls `Session.saving` before, and `Session.saved` after."""


@dataclass(frozen=True, slots=True)
class SavePrompts:
    """Saves the known prompts of the program."""


@dataclass(frozen=True, slots=True)
class Poll:
    """Asks the channels for new reports."""


@dataclass(frozen=True, slots=True)
class LookSoon:
    """Plans a look at the terminal as soon as possible, after a change."""

    at_once: bool = False
    """True if the time of the last look does not matter."""


@dataclass(frozen=True, slots=True)
class AtRest:
    """Reports to the channels that the program rests after its last answer."""


type SessionCommand = Emit | Tell | AnswerQuery | SaveScreen | SavePrompts | Poll | LookSoon | AtRest | Work
