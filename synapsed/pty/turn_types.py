"""The types of a turn, by whatever way its message is given: its phases, the state that survives the daemon, the facts
that its state machine takes, the commands that it returns, and the times that it waits.

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
from synapsed.pty.lag import ON_WAY_S
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
"""The phases that may follow each phase; the machine raises ValueError for others."""

SIGNS = frozenset({"status record", "title", "progress", "screen"})
"""Sources of a verdict by which the program itself shows that it works."""

OWN_SOURCES = SIGNS | {"dialog", "composer", "kernel", "quiet"}
"""Sources of a verdict other than side channels, which have names of their own."""

BEFORE_SUBMISSION = frozenset({Phase.PREPARED, Phase.PASTING, Phase.SETTLING, Phase.OVER})
"""Phases in which a side channel's report must be about another turn, or about an earlier leg."""


class KeptTurn(BaseModel):
    """The state of a turn that survives the daemon (`TurnRecord.link`)."""

    model_config = ConfigDict(extra="ignore")

    phase: Phase
    submitted: bool
    """True if the program may have the message."""
    taken: bool = False
    """True if the program has reported, over a channel, that it has the message."""
    turn: str | None = None
    """The program's own id of the turn."""
    interrupting: bool = False
    """True if the turn is being stopped, on request."""
    leg: int = 0
    """Number of notes that were given after the message: 0 or 1."""
    note: str | None = None
    """Text for the model if the program stops after a refusal; in the second leg, the leg's text."""


class TurnState(KeptTurn):
    """The same for a turn whose message is typed. Offsets are in the spool; `submit_ns` is CLOCK_MONOTONIC."""

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
    """The marks of errors and of interruptions on the screen at that time: they are of earlier turns."""
    located: bool = False
    """True if the message was seen on the screen since then: text above it is older, and scrolls away first."""
    left: bool = False
    """True if the composer was seen without the message since then: later it was put back, or drawn late."""
    worked_without: bool = False
    """True if the program was seen at work since then, with an empty composer."""
    typings: int = 0
    """Number of times that the present leg was typed and removed again."""
    prompt: str = ""
    """Prompt at which the message was typed."""
    before: list[int] | None = None
    """The rows of the screen before the paste, as `Misreading.before` returns them."""
    stood: list[int] = []
    """The rows above the composer when the submit key was pressed, each as a number."""
    at_prompt: bool = False
    """True if `prompt` is of a program that no profile describes: the message is submitted only when shown there."""
    shown_there: bool = False
    """True if the message was shown there."""
    typed_from: int | None = None
    """Offset from which on the output is of this turn, if the program takes several lines one by one."""
    reader: int | None = None
    """The process group that read the terminal at that prompt; None if unknown, or not line-oriented."""
    edited: bool = False
    """True if a line editor was running then."""
    lag: float = 0.0
    """`Lag.seconds` when the submit key was pressed."""


NOT_SUBMITTED: dict[str, Any] = {
    "refused": False,
    "turn": None,
    "busy_seen": False,
    "resubmitted": False,
    "shown": "",
    "stood": [],
}
"""Values of fields of `TurnState` before the text is typed."""


# --- reasons why a message was not delivered -------------------------------------------------------------------------

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

UNASKED = (
    "the program's server was given the message and cannot be asked what became of it: whether it works on it is not "
    "known, so it is not sent again"
)


# --- facts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A judged screen. Times are monotonic seconds."""

    verdict: Verdict
    composer: str
    """State of the composer."""
    offset: int
    """Spool offset up to which the output is drawn."""
    now: float
    changed_at: float
    error: tuple[str, str] | None = None
    """Error in the chrome (status lines) of a ready program, below the turn's message."""
    interrupted: bool = False
    """True if the chrome says that the turn was interrupted."""
    echoed: bool = False
    """True if the message is above the composer or, while it is typed at a program without one, at the cursor."""
    replaced: bool = False
    """True if the text above the composer is almost all different from when the submit key was pressed, and fills the
    screen: the program's reaction to the message has replaced it."""
    text: str = ""
    """Content of the composer."""
    prompt: str = ""
    """Text before the composer's content."""
    stopped: bool = False
    """True if the status record says that the turn was stopped."""
    unread: bool = False
    """True if the program has not read all its input."""
    computes: bool = False
    """True if the program computes, or waits for a processor: it may be about to show its input."""
    lag: float = 0.0
    """See `Lag.seconds`."""
    starting: bool = False
    """True if the program shows that it is still starting, and keeps the message in its composer until then."""
    worked_until: int = 0
    """Spool offset at which the status record last changed from work to rest."""
    person: bool = False
    """True if a person has pressed a key since the message was about to be submitted."""
    marks: tuple[int, int] = (0, 0)
    """See `TurnState`."""
    may_type: bool = False
    """True if nothing prevents a message (`readiness`); asked only for one that is not typed yet."""
    above: list[int] = field(default_factory=list)
    """Rows above the composer, as of `TurnState.stood`; only for a message that is about to be submitted."""
    rows: list[int] | None = None
    """The rows of the screen if the message may be typed: see `TurnState.before`."""


def works(seen: Seen) -> bool:
    """Returns True if the program is busy by a sign of work, not only a moving screen or a hidden composer."""
    return seen.verdict.activity is Activity.BUSY and seen.verdict.source not in ("composer", "quiet")


# --- commands --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Save:
    """Makes the record durable, then calls `TurnMachine.saved`."""


@dataclass(frozen=True, slots=True)
class Say:
    """Reports the progress of the turn to the agent. `left`: the turn is over, but its text may be in the composer, or
    appear there; the text is removed before other text is typed."""

    event: LinkTurnNews
    left: bool = False


@dataclass(frozen=True, slots=True)
class Type:
    """Types `data` once, under the id `part`, then calls `PtyTurn.typed`. Calls `PtyTurn.held` if the screen does not
    allow these keys now, `PtyTurn.unread` if the program stops reading half way."""

    part: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Recall:
    """Asks the keeper if `part` was written before the restart, then calls `PtyTurn.recalled`."""

    part: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Clear:
    """Empties the composer if it has this turn's message, which the program may have put back."""


@dataclass(frozen=True, slots=True)
class TakeOut:
    """Removes a message from the composer that the program did not take, or has not shown yet, and waits until the
    program rests; then calls `PtyTurn.withdrawn`. It ends early if the program takes the message meanwhile."""


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Removes from the composer the text of a turn that is over and reported; then drops the turn."""


@dataclass(frozen=True, slots=True)
class FindAnswer:
    """Looks for the answer, in the channels (since `since_ns`) or else on the screen; then calls `PtyTurn.found`, or
    `PtyTurn.at_work` if the program is not at its prompt."""

    since_ns: int


@dataclass(frozen=True, slots=True)
class GiveMessage:
    """Gives the program `text` under `key`, then calls `ChannelTurn.submitted`, `unsent` or `refused`."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class LookUp:
    """Asks the program about the message, then calls `ChannelTurn.found`; or `unsent` if the channel does not answer,
    `unshown` if it refuses. `turn`: the id of the turn that the program has begun with the message, if it is known."""

    key: str
    turn: str | None = None


@dataclass(frozen=True, slots=True)
class RenewKey:
    """Makes a new key, then calls `ChannelTurn.keyed`."""

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
"""The same if a side channel should have reported the end: one that is slow to begin looks finished."""

EMPTY_UNTOLD_S = 120.0
"""The same if there is no answer either: the program may have put the message off until it has started. This also holds
without side channels if the program was not seen at work."""

UNSEEN_S = 20.0
"""Seconds to wait before an error is reported, if the message left the composer and the program shows no reaction, or
if the program may not have read the submit key yet."""

STARVED_S = 60.0
"""The same while the program computes, or waits for a processor: on a busy machine it may wait most of the time."""

UNANSWERED_S = 10.0
"""Seconds before the submit key is sent once more to a program that has printed nothing since the first: the key may be
on its way to the program, through a relay that is not known as one (`Lag`)."""

UNSHOWN_S = 10.0
"""Seconds within which a program shows the text that was typed at a prompt that no profile describes."""

REFUSAL_STOPS_S = 3.0
"""Seconds of shown work after which a refusal no longer counts: if a refusal stops a program, it stops at once."""

TYPED_AGAIN_AFTER_S = (0.0, 5.0, 20.0)
"""Seconds to wait, each time, before a message is typed again that the program did not take and that was removed from
the composer: the program may have been starting, or busy for a while. After these the message is reported as
undelivered."""

PASTED_AGAIN = 1
"""Number of times that a paste is typed again if it was never shown."""

LOOK_AGAIN_S = 0.02
"""Seconds between two looks while a result is due but the screen still changes."""

SLOW_AGAIN_S = 0.25
"""Seconds between two looks while the turn waits for a slow program on a busy machine."""


def to_accept(profile: Profile, seen: Seen, state: TurnState, *, since: float, taken: bool) -> float:
    """Returns the seconds from `since` within which the program must show that it took the message. If the message has
    left the composer and is not elsewhere, only waiting helps: a program on a busy machine may work on it before it
    shows this, and the next message must not be typed meanwhile."""
    accept = profile.delivery.accept_ms / 1000
    if lag := max(seen.lag, state.lag):
        stalls = 0.0 if taken or state.interrupting else ON_WAY_S
        return max(accept, state.submit_ns / 1e9 + lag + stalls - since)
    if seen.computes and not taken and not state.interrupting:
        return max(accept, state.submit_ns / 1e9 + STARVED_S - since)
    silent = state.submit_offset is not None and seen.offset <= state.submit_offset
    if silent and not (state.resubmitted or state.interrupting):
        return max(accept, state.submit_ns / 1e9 + UNANSWERED_S - since)
    waits = state.resubmitted and not taken and seen.composer != "draft" and not state.interrupting
    return max(accept, UNSEEN_S) if waits else accept


def given_back(profile: Profile, *, channels_tell: bool) -> float:
    """Returns the seconds for which a message must be in the composer again before this proves that a person stopped
    its turn. A person's hook may have refused it instead, which a side channel reports a little later."""
    return profile.answer.channel_wait_ms / 1000 if channels_tell else 0.0


def at_rest(profile: Profile, *, worked: bool, channels_tell: bool, empty_untold: bool) -> float:
    """Returns the seconds for which a screen must be ready before the turn ends. `worked`: the program was seen at
    work, or need not be seen so; `empty_untold`: there is no report about the turn, and no answer either."""
    if empty_untold:
        return EMPTY_UNTOLD_S
    if channels_tell:
        wait = profile.answer.channel_wait_ms / 1000
        return wait if worked else max(wait, UNTOLD_UNSEEN_S)
    return 0.0 if worked else WORKED_UNSEEN_S
