"""Commands of a session on pipes (`AcpSession`), which its link performs."""

from dataclasses import dataclass
from typing import Any

from synapsed.model.facts import ChannelFact
from synapsed.pipes.kept_session import KeptSession
from synapsed.pty.keyboard import Emit


@dataclass(frozen=True, slots=True)
class Write:
    """Gives the program that message, once for each `input_id` (None: each time)."""

    message: dict[str, Any]
    input_id: str | None = None


@dataclass(frozen=True, slots=True)
class ShowText:
    """Shows a piece of text to viewers."""

    text: str


@dataclass(frozen=True, slots=True)
class ShowLine:
    """Shows a line of its own to viewers; `bold`: a message from a person or an agent."""

    text: str
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Saved:
    """Keeps this for the next daemon."""

    kept: KeptSession


@dataclass(frozen=True, slots=True)
class OfTurn:
    """Passes this to the machine of a task's turn."""

    fact: ChannelFact


@dataclass(frozen=True, slots=True)
class NotRefused:
    """Withdraws a reported refusal, because the program was not given it."""


type PipesCommand = Write | Emit | OfTurn | NotRefused | ShowText | ShowLine | Saved
