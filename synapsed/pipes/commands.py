"""Commands that a session on pipes (`AcpSession`) returns, and its link performs."""

from dataclasses import dataclass
from typing import Any

from synapsed.model.facts import ChannelFact
from synapsed.pipes.kept_session import KeptSession
from synapsed.pty.keyboard import Emit


@dataclass(frozen=True, slots=True)
class Write:
    """Writes the message to the program, once for each `input_id`; None: each time."""

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
    """Saves the state for the next daemon."""

    kept: KeptSession


@dataclass(frozen=True, slots=True)
class OfTurn:
    """Passes the fact to the state machine of the task's turn."""

    fact: ChannelFact


@dataclass(frozen=True, slots=True)
class NotRefused:
    """Withdraws a reported refusal, because the program did not get it."""


type PipesCommand = Write | Emit | OfTurn | NotRefused | ShowText | ShowLine | Saved
