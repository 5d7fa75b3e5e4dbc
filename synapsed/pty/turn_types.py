"""The words of a turn, with any way of its message: its phases, the state that survives the daemon, the facts that its
machine takes, the commands that it gives, and the times that it waits.

`turn_machine` has the common part of all turns, `turn` and `channel_turn` have the rest; a `TurnPerformer` performs the
commands.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from synapsed.model.agent import Activity
from synapsed.model.link import LinkTurnNews
from synapsed.profiles.profile import Profile
from synapsed.terminal.verdict import Verdict


class Phase(StrEnum):
    SENDING = "sending"
    PREPARED = "prepared"
    PASTING = "pasting"
    SETTLING = "settling"
    SUBMITTING = "submitting"
    SUBMITTED = "submitted"
    WORKING = "working"
    READING = "reading"
    OVER = "over"


NEXT: dict[Phase, frozenset[Phase]] = {
    Phase.SENDING: frozenset({Phase.WORKING, Phase.OVER}),
    Phase.PREPARED: frozenset({Phase.PASTING, Phase.WORKING, Phase.OVER}),
    Phase.PASTING: frozenset({Phase.PREPARED, Phase.SETTLING, Phase.OVER}),
    Phase.SETTLING: frozenset({Phase.PREPARED, Phase.SUBMITTING, Phase.WORKING, Phase.OVER}),
    Phase.SUBMITTING: frozenset({Phase.SETTLING, Phase.SUBMITTED, Phase.OVER}),
    Phase.SUBMITTED: frozenset({Phase.PREPARED, Phase.WORKING, Phase.READING, Phase.OVER}),
    Phase.WORKING: frozenset({Phase.SENDING, Phase.PREPARED, Phase.SUBMITTED, Phase.READING, Phase.OVER}),
    Phase.READING: frozenset({Phase.PREPARED, Phase.WORKING, Phase.OVER}),
    Phase.OVER: frozenset(),
}
"""Every legal step; the machine refuses the others."""

SIGNS = frozenset({"status record", "title", "progress", "screen"})
"""Sources of a verdict by which the program itself shows that it works."""

OWN_SOURCES = SIGNS | {"dialog", "composer", "kernel", "quiet"}
"""Sources of a verdict other than side channels, which have names of their own."""

BEFORE_SUBMISSION = frozenset({Phase.PREPARED, Phase.PASTING, Phase.SETTLING, Phase.OVER})
"""Phases in which a side channel's report is of another turn, or of an earlier leg."""


class KeptTurn(BaseModel):
    """The state of a turn that survives the daemon (`TurnRecord.link`)."""

    model_config = ConfigDict(extra="ignore")

    phase: Phase
    submitted: bool
    """True if the program may have the message."""
    taken: bool = False
    """True if the program has reported, over a channel, that it has it."""
    turn: str | None = None
    """The program's own id of it."""
    interrupting: bool = False
    leg: int = 0
    """Number of notes that were given after the message."""
    note: str | None = None
    """Text for the model if the program stops after a refusal; in a later leg, the present text."""


class TurnState(KeptTurn):
    """The same for a turn whose message is typed. Offsets are the spool's; `submit_ns` is CLOCK_MONOTONIC."""

    phase: Phase = Phase.PREPARED
    submitted: bool = False
    submit_ns: int = 0
    submit_offset: int | None = None
    busy_seen: bool = False
    resubmitted: bool = False
    refused: bool = False
    shown: str = ""
    """The composer's row when the submit key was pressed, its digits masked."""
    marks: tuple[int, int] = (0, 0)
    """The marks of errors and interruptions on the screen then: they are of earlier turns."""
    located: bool = False
    """True if the message was seen on the screen since: the text above it is older, and scrolls away before it."""
    left: bool = False
    """True if the composer was seen without the message since: a message in it later was put back, or drawn once
    more."""
    worked_without: bool = False
    """True if the program was seen at work since, with nothing in its composer."""
    typings: int = 0
    """Number of times that the present leg was typed and taken out again."""
    prompt: str = ""
    """Prompt behind which the message was typed."""
    before: list[int] | None = None
    """The rows of the screen into which it was pasted, as `Misreading.before` gives them."""
    stood: list[int] = []
    """The rows above the composer when the submit key was pressed, each as a number."""
    at_prompt: bool = False
    """True if that was a prompt of a program that no profile describes: the message is submitted once it is shown
    there."""
    shown_there: bool = False
    """True if it was shown there."""
    typed_from: int | None = None
    """Offset from which the output is of this turn, if the program takes each of several lines as it is typed."""
    reader: int | None = None
    """The process group at whose prompt that was; None if it is not known, or the program is not line-oriented."""
    edited: bool = False
    """True if it had a line editor up."""


NOT_SUBMITTED: dict[str, Any] = {
    "refused": False,
    "turn": None,
    "busy_seen": False,
    "resubmitted": False,
    "shown": "",
    "stood": [],
}
"""Values of a `TurnState` before its text is typed."""


# --- why a message was not delivered ---------------------------------------------------------------------------------

NOT_TAKEN = "the program did not take the message; it stood in its composer"

NEVER_AT_REST = (
    "the program did not take the message, and was not seen at rest without it: whether it takes it yet is not known, "
    "so it is not sent again"
)

NOT_SHOWN_IN_COMPOSER = "the program did not take the text into its composer"

MISREAD = (
    "what was pasted is not shown where the [composer] of profile '{}' is, and may stand elsewhere on the screen: "
    "nothing is pasted until it is gone (attach shows it; 'synapsectl profiles check FILE' looks at the profile, "
    "'synapsectl profiles new' writes one)"
)

NOT_SHOWN = "the program does not show what is typed where its prompt seemed to be: it was not submitted"

UNREAD = "the program does not read what is typed"

UNKNOWN = (
    "the message left the composer, and the program shows no sign of it: whether it works on it is not known, so it is "
    "not sent again"
)


# --- facts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A judged screen. `composer` is its state's word, `text` its content, `prompt` the text before that; `offset` the
    spool offset it shows; `echoed`: the message is above the composer, or, while it is being typed without one, its end
    is at the cursor; `error` and `interrupted` are the words of a ready program's chrome below the turn's message,
    `marks` as of `TurnState`; `stopped`: its status record is that of a turn that was stopped; `unread`: it has not
    read all its input; `worked_until`: the spool offset at which its status record last went from work to rest; times
    are monotonic seconds."""

    verdict: Verdict
    composer: str
    offset: int
    now: float
    changed_at: float
    error: tuple[str, str] | None = None
    interrupted: bool = False
    echoed: bool = False
    replaced: bool = False
    """True if a screen full of other text is above the composer than when the submit key was pressed: the reaction to
    the message has pushed that away."""
    text: str = ""
    prompt: str = ""
    stopped: bool = False
    unread: bool = False
    computes: bool = False
    """True if it is on a processor, or waits for one: it may be about to show its input."""
    starting: bool = False
    """True if the message stays in its composer until it has started, and it says so."""
    worked_until: int = 0
    person: bool = False
    """True if a person has pressed a key since the message was about to be submitted."""
    marks: tuple[int, int] = (0, 0)
    may_type: bool = False
    """True if nothing prevents a message (`readiness`); asked only for one that is not typed yet."""
    above: list[int] = field(default_factory=list)
    """Rows above the composer, as of `TurnState.stood`; only for a message that is about to be submitted."""
    rows: list[int] | None = None
    """Rows into which it would be pasted then, as of `TurnState.before`."""


@dataclass(frozen=True, slots=True)
class AnswerFound:
    """Result of the search for an answer. `exact` is False if it was read off the screen; `truncated`: its beginning
    had left that by then; `interrupted`: the screen says that the turn was stopped; `refused`: the reason why a hook
    refused the message, in its words."""

    text: str
    exact: bool
    evidence: str
    truncated: bool = False
    missing: int | None = None
    """Number of lines of the beginning that are gone, if they can be counted."""
    interrupted: bool = False
    refused: str | None = None


def works(seen: Seen) -> bool:
    """Returns True if the program is busy by a sign of its own, and not because its composer is out of sight for a
    moment."""
    return seen.verdict.activity is Activity.BUSY and seen.verdict.source not in ("composer", "quiet")


# --- commands --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Save:
    """Makes the record durable, then calls `TurnMachine.saved`."""


@dataclass(frozen=True, slots=True)
class Say:
    """Reports the progress of the turn to the agent. `left`: it is over, and its text may be in the composer, or appear
    there: that is removed before anything else is typed."""

    event: LinkTurnNews
    left: bool = False


@dataclass(frozen=True, slots=True)
class Type:
    """Types `data` under the id `part`, once, then calls `PtyTurn.typed`; `PtyTurn.held` if the screen is not for
    it."""

    part: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Recall:
    """Asks the keeper if `part` was written before the restart, then calls `PtyTurn.recalled`."""

    part: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Clear:
    """Empties the composer if it has the message that this turn typed: it may have been put back."""


@dataclass(frozen=True, slots=True)
class TakeOut:
    """Empties the composer of a message that was not taken, or is about to be shown in it, and waits for the program to
    rest; then calls `PtyTurn.withdrawn`. It ends early if the program takes the message meanwhile."""


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Empties the composer of the text that a turn has left there that is over, and reported so; then the turn is
    gone."""


@dataclass(frozen=True, slots=True)
class FindAnswer:
    """Looks the answer up: in the channels (`since_ns`), else on the screen; then calls `PtyTurn.found`."""

    since_ns: int


@dataclass(frozen=True, slots=True)
class GiveMessage:
    """Gives the program `text` under `key`, then calls `ChannelTurn.submitted` or `unsent`."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class LookUp:
    """Asks the program for the message, then calls `ChannelTurn.found`, or `unsent` if it does not answer. `turn`: the
    turn that it has begun with the message, if that is known."""

    key: str
    turn: str | None = None


@dataclass(frozen=True, slots=True)
class RenewKey:
    """Makes another key, then calls `ChannelTurn.keyed`."""

    leg: int


@dataclass(frozen=True, slots=True)
class StopTurn:
    """Makes the program stop the turn."""

    turn: str


type TypingCommand = Type | Recall | Clear | TakeOut | TakeBack | FindAnswer
type ChannelCommand = GiveMessage | LookUp | RenewKey | StopTurn
type Command = Save | Say | TypingCommand | ChannelCommand


# --- how long a turn on a terminal waits, and for what ----------------------------------------------------------------

WORKED_UNSEEN_S = 1.0
"""Seconds for which a program without side channels that was never seen busy must be ready before its turn is over."""

UNTOLD_UNSEEN_S = 30.0
"""The same if a side channel should have reported the end: a program that is slow to begin looks as one that has
finished."""

EMPTY_UNTOLD_S = 120.0
"""The same if there is no answer either: the program may have put the message off until it has started. This also holds
without side channels if the program was not seen at work."""

UNSEEN_S = 20.0
"""Seconds to wait before an error is reported, if the message left the composer and the program shows nothing, or if it
may not have come to the submit key."""

STARVED_S = 60.0
"""The same while it is on a processor, or waits for one: on a busy machine that may be most of the time."""

UNSHOWN_S = 10.0
"""Seconds within which a program shows the text that was typed at a prompt of which nothing else is known."""

REFUSAL_STOPS_S = 3.0
"""Seconds of shown work after which a refusal did not count: a program that a refusal stops does so at once."""

TYPED_AGAIN_AFTER_S = (0.0, 5.0, 20.0)
"""Seconds for which a message that was not taken, and was taken out of the composer, is kept each time before it is
typed again: the program was prevented by its start-up, or by something that passes. After these it is reported as
undelivered."""

PASTED_AGAIN = 1
"""Number of times that a paste is typed again that was never shown."""

LOOK_AGAIN_S = 0.02
"""Seconds between two looks while something is due but not settled yet."""

SLOW_AGAIN_S = 0.25
"""Seconds between two looks while a slow program on a busy machine is awaited."""


def to_accept(profile: Profile, seen: Seen, state: TurnState, *, since: float, taken: bool) -> float:
    """Returns the seconds from `since` that the program has to show that it took the message. If that has left its
    composer and is nowhere else, only waiting helps, and a program on a busy machine works before it shows it: the next
    message must not come upon it."""
    accept = profile.delivery.accept_ms / 1000
    if seen.computes and not taken and not state.interrupting:
        return max(accept, state.submit_ns / 1e9 + STARVED_S - since)
    waits = state.resubmitted and not taken and seen.composer != "draft" and not state.interrupting
    return max(accept, UNSEEN_S) if waits else accept


def given_back(profile: Profile, *, channels_tell: bool) -> float:
    """Returns the seconds that a message must be in the composer again as a sign that a person stopped its turn: a hook
    of theirs may have refused it, which a side channel reports a little later."""
    return profile.answer.channel_wait_ms / 1000 if channels_tell else 0.0


def at_rest(profile: Profile, *, worked: bool, channels_tell: bool, empty_untold: bool) -> float:
    """Returns the seconds that a screen must be ready before it ends the turn. `worked`: the program was seen at work,
    or need not be; `empty_untold`: there is no report of the turn, and no answer either."""
    if empty_untold:
        return EMPTY_UNTOLD_S
    if channels_tell:
        wait = profile.answer.channel_wait_ms / 1000
        return wait if worked else max(wait, UNTOLD_UNSEEN_S)
    return 0.0 if worked else WORKED_UNSEEN_S
