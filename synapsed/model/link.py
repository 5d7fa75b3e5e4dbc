"""Reports of a link, the object by which the daemon talks to an agent's program (`interfaces.AgentLink`)."""

from dataclasses import dataclass, field
from typing import Any, Literal

from synapsed.model.agent import Activity
from synapsed.model.facts import ChannelFact
from synapsed.model.records import TurnRecord
from synapsed.model.task import Prompt


@dataclass(frozen=True, slots=True)
class LinkObserved:
    """Activity of the agent now, and the evidence for it."""

    activity: Activity
    evidence: str
    prompt: Prompt | None
    can_receive: bool
    """True if a message would be delivered at once."""
    held: str | None = None
    """The reason why it would not be (`typing`, `dialog`, …); None if the program is only busy or starting."""
    asking: int = 0
    """Another number if the very same prompt is asked again (a password was wrong)."""
    by_hand: str | None = field(default=None, compare=False)
    """Id of a prompt that has left the screen since a person pressed keys at its terminal."""
    background: tuple[str, ...] = ()
    """Tasks in its background, in its own words."""
    whole: bool = field(default=False, compare=False)
    """True if the program itself asked over a channel: `prompt` is not completed by other reports."""


@dataclass(frozen=True, slots=True)
class LinkTurnRecord:
    """The turn's record changed and must be durable before the link goes on: the supervisor stores it, then calls
    `AgentLink.recorded()`."""

    record: TurnRecord


@dataclass(frozen=True, slots=True)
class LinkTurnAccepted:
    """The program took the message."""

    task_id: str
    evidence: str


@dataclass(frozen=True, slots=True)
class LinkTurnProgress:
    """An assistant message that was not the last."""

    task_id: str
    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class LinkTurnSaid:
    """A piece of an unfinished message, approximate. With `append` false it replaces the former text."""

    task_id: str
    text: str
    append: bool


@dataclass(frozen=True, slots=True)
class LinkTurnEnded:
    task_id: str
    answer: str
    exact: bool
    evidence: str
    truncated: bool = False
    missing: int | None = None
    """Lines of the answer's beginning that are gone; None if they cannot be counted."""


@dataclass(frozen=True, slots=True)
class LinkTurnFailed:
    task_id: str
    code: str
    message: str
    evidence: str


@dataclass(frozen=True, slots=True)
class LinkTurnInterrupted:
    """The turn was stopped. `reason`: `interrupted` (asked through the link), `person` (keys in the terminal),
    `program` (no key is known to have been pressed) or `refused` (a permission was refused and the program stopped)."""

    task_id: str
    reason: str
    evidence: str


@dataclass(frozen=True, slots=True)
class LinkUndelivered:
    """The message is not in the program: nothing was submitted. `screen` is the text on the screen."""

    task_id: str
    reason: str
    screen: str = ""


@dataclass(frozen=True, slots=True)
class LinkSession:
    """The program was in that conversation, which has the program's own id, at `at_ns` (CLOCK_MONOTONIC; 0: now)."""

    conversation: str
    at_ns: int = 0


@dataclass(frozen=True, slots=True)
class LinkTold:
    """Fact that a side channel reported, of any turn. A PermissionAsked with `request` can be answered (`reply`)."""

    fact: ChannelFact


@dataclass(frozen=True, slots=True)
class LinkRefused:
    """The program took a refusal of the tool call that its dialog asked about."""

    asked: str


@dataclass(frozen=True, slots=True)
class LinkAlert:
    """A problem around the program that a person should solve: it `begins`, is `over`, or `happened` and needs no
    action. Codes: DISK_FULL (its output cannot be stored, so that it stands still), OUTPUT_GAP (output was overwritten
    before it was read; `details` has `from` and `to`), KEEPER_SILENT (its keeper does not answer, for example because
    it was stopped: nothing is read and nothing arrives), SCREEN_LOST (its output made the emulator end: it is not drawn
    up to `to`, or not at all if it is `blind`)."""

    code: str
    message: str
    state: Literal["begins", "over", "happened"]
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LinkExited:
    """The program ended; `exit_code` is negative for a signal, None if it is not known (the keeper was killed)."""

    exit_code: int | None
    reason: str


type LinkTurnOutcome = LinkTurnEnded | LinkTurnFailed | LinkTurnInterrupted | LinkUndelivered
type LinkTurnNews = LinkTurnAccepted | LinkTurnProgress | LinkTurnOutcome

LinkEvent = (
    LinkObserved
    | LinkTurnRecord
    | LinkTurnAccepted
    | LinkTurnProgress
    | LinkTurnSaid
    | LinkTurnEnded
    | LinkTurnFailed
    | LinkTurnInterrupted
    | LinkUndelivered
    | LinkSession
    | LinkTold
    | LinkRefused
    | LinkAlert
    | LinkExited
)
