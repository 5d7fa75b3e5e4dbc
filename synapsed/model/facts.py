"""Facts that a side channel reports of an agent, each with its channel: the program's hooks, its transcripts, its own
server.

`at_ns` is the machine's monotonic clock (CLOCK_MONOTONIC, nanoseconds) when the program reported it. That clock is the
same in every process until the next boot, so that facts before a submission can be separated from facts after it.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

SCREEN = "screen"
"""The channel of facts that were read off the screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelFact:
    channel: str
    at_ns: int
    session: str | None = None
    """The program's own conversation id."""
    turn: str | None = None
    """The program's own turn or prompt id, if it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStarted(ChannelFact):
    """The program reported the id of its conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptAccepted(ChannelFact):
    """The program took a prompt."""

    prompt: str | None = None
    """Its text as the program understood it, if known."""
    key: str | None = None
    """Key under which synapsed gave the message over the channel (`Delivering.key`); None for a message that came in
    another way."""
    own: bool | None = None
    """False if the channel knows that synapsed did not give the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantSaid(ChannelFact):
    """An assistant message that did not end the turn, or a piece of one."""

    message_id: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantSaying(ChannelFact):
    """The next piece of an unfinished message; pieces come in order from its beginning."""

    message_id: str = ""
    piece: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAnswered(ChannelFact):
    """The model has finished, unless one of the program's hooks sends it back to work. When the program rests
    (`SideChannel.rests`) TurnEnded follows."""


BACKGROUND_MAX = 100
"""Number of background tasks of a program that are reported, and that can be stopped."""

BACKGROUND_NAME = 200
"""Largest number of characters of such a task's name, which may be a whole command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundTold(ChannelFact):
    """All that runs in the program's background now, in its words, on one line each."""

    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded(ChannelFact):
    """The turn is over; `answer` is the last assistant message exactly, None if this channel does not know it;
    `truncated`: some of it may be missing."""

    answer: str | None = None
    prompt: str | None = None
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed(ChannelFact):
    """The program gave up on the turn; `code` is one of docs/http-api.md. UNDELIVERED: a hook of the person's has
    refused the prompt, with that `message`."""

    code: str = "MODEL_ERROR"
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInterrupted(ChannelFact):
    """The program says that the turn was stopped: by a person, or (`refused`) by itself, since an answer that refused
    one of several calls refused the others, too."""

    refused: bool = False


type TurnOver = TurnEnded | TurnFailed | TurnInterrupted
"""End of a turn, of any kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One way to answer a PermissionAsked over its channel; `aliases` are other words for it."""

    key: str
    label: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionAsked(ChannelFact):
    """The program asks for a permission."""

    tool: str = ""
    input: dict[str, Any] = field(default_factory=dict)
    request: str | None = None
    """Set if the channel can answer it (`SideChannel.reply`)."""
    event: str = ""
    """The program's own name of the question."""
    told: dict[str, Any] = field(default_factory=dict)
    """The whole content of its report."""
    question: str = ""
    """The whole question, if there are options."""
    options: tuple[Choice, ...] = ()
    """The person's answers that can be given over the channel (`Delivering.answer`); empty if none can."""
    command: str | None = None
    diff: str | None = None
    """The whole command or edit that a `question` is about."""
    again: bool = False
    """True if the question is older than this link to the program: it is left to a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionOver(ChannelFact):
    """The PermissionAsked with this `request` was answered, by any means, or withdrawn."""

    request: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBegan(ChannelFact):
    """The program is about to run a tool, or to ask if it may. `call` is its own id of that call, if it has one."""

    call: str | None = None
    tool: str = ""
    input: dict[str, Any] = field(default_factory=dict)
    exact: bool = True
    """False: read off the screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOver(ChannelFact):
    """A tool call ended; `error` says why it failed, None if it did not fail."""

    call: str | None = None
    tool: str = ""
    input: dict[str, Any] = field(default_factory=dict)
    output: dict[str, Any] | None = None
    error: str | None = None
    denied: bool = False
    duration_ms: int | None = None
    """Duration that the program measured."""
    exact: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCall:
    """A tool call as the screen shows it. One that has ended and has no `tool` is the last one before it that ran."""

    status: Literal["started", "completed", "failed"]
    tool: str = ""
    input: dict[str, str] = field(default_factory=dict)
    output: str | None = None
    error: str | None = None
    denied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsShown(ChannelFact):
    """The tool calls on the screen in the turn of that task, from top to bottom."""

    calls: tuple[ShownCall, ...] = ()
    leg: int = 0
    """Number (from 0) of the message in this turn that they follow; a second message is a note after a refused call."""
    whole: bool = False
    """True if no call of the leg has scrolled off the screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnUsed(ChannelFact):
    """Usage of a turn over all its requests; `input_tokens` are those that did not come from a cache."""

    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTold(ChannelFact):
    """The plan as it is now: pairs of a step's text and `pending`, `in_progress` or `completed`."""

    steps: tuple[tuple[str, Literal["pending", "in_progress", "completed"]], ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffTold(ChannelFact):
    """The changes of the turn in files so far, in the unified format."""

    diff: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitWindow:
    """One of the windows of time in which an account's usage is limited."""

    name: str
    used: float
    """Percent."""
    minutes: int | None = None
    resets_at: float | None = None
    """Unix seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsTold(ChannelFact):
    """The used share of the account's limits."""

    windows: tuple[LimitWindow, ...] = ()
    plan: str | None = None
