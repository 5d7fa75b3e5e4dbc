"""What a session on pipes wants to have done (`AcpSession`), which its link does."""

from dataclasses import dataclass
from typing import Any

from synapsed.model.facts import ChannelFact
from synapsed.pipes.kept_session import KeptSession
from synapsed.pty.keyboard import Emit


@dataclass(frozen=True, slots=True)
class Write:
    """Give the program that message, once for each `input_id` (None: whenever it is said)."""

    message: dict[str, Any]
    input_id: str | None = None


@dataclass(frozen=True, slots=True)
class ShowText:
    """A piece of text, for whoever looks."""

    text: str


@dataclass(frozen=True, slots=True)
class ShowLine:
    """A line of its own, for whoever looks; `bold`: somebody's message."""

    text: str
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Saved:
    """The next daemon is to know that."""

    kept: KeptSession


@dataclass(frozen=True, slots=True)
class OfTurn:
    """Tell the machine of a task's turn."""

    fact: ChannelFact


@dataclass(frozen=True, slots=True)
class NotRefused:
    """The program was not given the refusal that was told of: it stands no more."""


type PipesCommand = Write | Emit | OfTurn | NotRefused | ShowText | ShowLine | Saved
