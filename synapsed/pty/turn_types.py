"""The words of a turn, whichever way its message goes: its phases, what of it survives the daemon, the facts that its
machine takes, the commands that it gives, and how long it waits for what.

`turn_machine` has what is the same of every turn, `turn` and `channel_turn` have the rest; a `TurnPerformer` performs
the commands.
"""

from dataclasses import dataclass
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
"""Sources of a verdict but for side channels, which have names of their own."""

BEFORE_SUBMISSION = frozenset({Phase.PREPARED, Phase.PASTING, Phase.SETTLING, Phase.OVER})
"""What a side channel reports then is of another turn, or of an earlier leg."""


class KeptTurn(BaseModel):
    """The state of a turn that survives the daemon (`TurnRecord.link`)."""

    model_config = ConfigDict(extra="ignore")

    phase: Phase
    submitted: bool
    """The program may have the message."""
    taken: bool = False
    """The program has told, over a channel, that it has it."""
    turn: str | None = None
    """The program's own id of it."""
    interrupting: bool = False
    leg: int = 0
    """Number of notes that were given after the message."""
    note: str | None = None
    """What is said if the program stops after a refusal; in a later leg, what is being said."""


class TurnState(KeptTurn):
    """The same of one whose message is typed. Offsets are the spool's; `submit_ns` is CLOCK_MONOTONIC."""

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
    """The message was seen on the screen since: what stands above it is older, and scrolls away before it."""
    left: bool = False
    """The composer was seen without the message since: what is in it later was given back, or drawn once more."""
    worked_without: bool = False
    """The program was seen at work since, with nothing in its composer."""
    typings: int = 0
    """How many times the present leg was typed and taken out again."""
    prompt: str = ""
    """What the message was typed behind."""
    before: list[int] | None = None
    """The rows of the screen into which it was pasted, as `Misreading.before` gives them."""
    at_prompt: bool = False
    """That was a prompt of a program that no profile describes: the message is submitted where it is shown there."""
    shown_there: bool = False
    """It was."""
    typed_from: int | None = None
    """The output from there on is of this turn, where the program takes each of several lines as it is typed."""
    reader: int | None = None
    """The process group at whose prompt that was; None where it is not known, or the program is not line-oriented."""
    edited: bool = False
    """It had a line editor up."""


NOT_SUBMITTED: dict[str, Any] = {
    "refused": False,
    "turn": None,
    "busy_seen": False,
    "resubmitted": False,
    "shown": "",
}
"""Of a `TurnState` before its text is typed."""


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
    """The screen was judged. `composer` is its state's word, `text` what it holds, `prompt` what stands before that;
    `offset` the spool offset it shows; `echoed`: the message stands above the composer, or, while it is being typed
    without one, its end at the cursor; `error` and `interrupted` are what the chrome of a program that is ready says
    below the turn's message, `marks` as of `TurnState`; `stopped`: its status record is that of a turn that was
    stopped; `unread`: it has not read all that was typed; `worked_until`: the spool offset at which its status record
    last went from work to rest; times are monotonic seconds."""

    verdict: Verdict
    composer: str
    offset: int
    now: float
    changed_at: float
    error: tuple[str, str] | None = None
    interrupted: bool = False
    echoed: bool = False
    replaced: bool = False
    """A screen full of other text stands above the composer than when the submit key was pressed: what came of the
    message has pushed it away."""
    text: str = ""
    prompt: str = ""
    stopped: bool = False
    unread: bool = False
    computes: bool = False
    """It is on a processor, or waits for one: what it was given it may be about to show."""
    starting: bool = False
    """The message stands in its composer until it has started, and it says so."""
    worked_until: int = 0
    person: bool = False
    """A person has pressed a key since the message was about to be submitted."""
    marks: tuple[int, int] = (0, 0)
    may_type: bool = False
    """Nothing stands in the way of a message (`readiness`); asked only for one that is not typed yet."""
    rows: list[int] | None = None
    """What it would be pasted into then, as of `TurnState.before`."""


@dataclass(frozen=True, slots=True)
class AnswerFound:
    """What the answer's search gave. `exact` is False where it was read off the screen; `truncated`: its beginning had
    left that by then; `interrupted`: the screen says that the turn was stopped; `refused`: why a hook refused the
    message, as it says."""

    text: str
    exact: bool
    evidence: str
    truncated: bool = False
    missing: int | None = None
    """Lines of the beginning that are gone, where that can be counted."""
    interrupted: bool = False
    refused: str | None = None


def works(seen: Seen) -> bool:
    """The program is busy by a sign of its own, and not because its composer is out of sight for a moment."""
    return seen.verdict.activity is Activity.BUSY and seen.verdict.source not in ("composer", "quiet")


# --- commands --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Save:
    """Make the record durable, then call `TurnMachine.saved`."""


@dataclass(frozen=True, slots=True)
class Say:
    """Tell the agent how the turn goes. `left`: it is over, and its text may stand in the composer, or come to: that is
    removed before anything else is typed."""

    event: LinkTurnNews
    left: bool = False


@dataclass(frozen=True, slots=True)
class Type:
    """Type `data` under the id `part`, once, then call `PtyTurn.typed`; `PtyTurn.held` if the screen is not for it."""

    part: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Recall:
    """Ask the keeper whether `part` was written before the restart, then call `PtyTurn.recalled`."""

    part: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Clear:
    """Empty the composer if what stands there is the message that this turn typed: it may have been given back."""


@dataclass(frozen=True, slots=True)
class TakeOut:
    """Empty the composer of a message that was not taken, or is about to be shown in it, and see the program at rest;
    then call `PtyTurn.withdrawn`. It ends early where the program takes the message meanwhile."""


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Empty the composer of what a turn that is over, and told, has left there; then the turn is gone."""


@dataclass(frozen=True, slots=True)
class FindAnswer:
    """Look the answer up: in the channels (`since_ns`), else on the screen; then call `PtyTurn.found`."""

    since_ns: int


@dataclass(frozen=True, slots=True)
class GiveMessage:
    """Give the program `text` under `key`, then call `ChannelTurn.submitted` or `unsent`."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class LookUp:
    """Ask the program for the message, then call `ChannelTurn.found`, or `unsent` where it does not answer. `turn`: the
    one that it has begun with it, where that is known."""

    key: str
    turn: str | None = None


@dataclass(frozen=True, slots=True)
class RenewKey:
    """Make another key, then call `ChannelTurn.keyed`."""

    leg: int


@dataclass(frozen=True, slots=True)
class StopTurn:
    """Have the program stop the turn."""

    turn: str


type TypingCommand = Type | Recall | Clear | TakeOut | TakeBack | FindAnswer
type ChannelCommand = GiveMessage | LookUp | RenewKey | StopTurn
type Command = Save | Say | TypingCommand | ChannelCommand


# --- how long a turn on a terminal waits, and for what ----------------------------------------------------------------

WORKED_UNSEEN_S = 1.0
"""A program without side channels that was never seen busy must be ready for so long before its turn is over."""

UNTOLD_UNSEEN_S = 30.0
"""The same where a side channel should have told the end: a program that is slow to begin looks as one that is done."""

EMPTY_UNTOLD_S = 120.0
"""The same where there is no answer either: the program may have put the message off until it has started. So it is
without side channels where the program was not seen at work."""

UNSEEN_S = 20.0
"""Where the message left the composer and the program shows nothing, or where it may not have come to the submit key,
it is waited for so long before that is told."""

STARVED_S = 60.0
"""The same while it is on a processor, or waits for one: on a busy machine that may be most of the time."""

UNSHOWN_S = 10.0
"""How long a program may take to show what was typed at a prompt of which nothing else is known."""

REFUSAL_STOPS_S = 3.0
"""A program that a refusal stops does so at once: one that shows for so long that it works was not refused."""

TYPED_AGAIN_AFTER_S = (0.0, 5.0, 20.0)
"""How long a message that was not taken, and was taken out of the composer, is kept each time before it is typed again:
what kept the program from it was its start-up, or passes. After these it is told to be undelivered."""

PASTED_AGAIN = 1
"""So often a paste is typed again that was never shown."""

LOOK_AGAIN_S = 0.02
"""While something is due but not settled yet."""

SLOW_AGAIN_S = 0.25
"""While a program that gets little of a busy machine's time is waited for."""


def to_accept(profile: Profile, seen: Seen, state: TurnState, *, since: float, taken: bool) -> float:
    """Seconds from `since` that the program has to show that it took the message. Where that has left its composer and
    stands nowhere else, nothing can be done but wait, and a program that gets little of a busy machine's time works
    before it shows it: the next message must not come upon it."""
    accept = profile.delivery.accept_ms / 1000
    if seen.computes and not taken and not state.interrupting:
        return max(accept, state.submit_ns / 1e9 + STARVED_S - since)
    waits = state.resubmitted and not taken and seen.composer != "draft" and not state.interrupting
    return max(accept, UNSEEN_S) if waits else accept


def given_back(profile: Profile, *, channels_tell: bool) -> float:
    """How long a message must stand in the composer again before that says that a person stopped its turn, seconds: a
    hook of theirs may have refused it, which a side channel tells a little later."""
    return profile.answer.channel_wait_ms / 1000 if channels_tell else 0.0


def at_rest(profile: Profile, *, worked: bool, channels_tell: bool, empty_untold: bool) -> float:
    """How long a ready screen must stand before it ends the turn, seconds. `worked`: the program was seen at work, or
    need not be; `empty_untold`: nothing has told of the turn, and there is no answer either."""
    if empty_untold:
        return EMPTY_UNTOLD_S
    if channels_tell:
        wait = profile.answer.channel_wait_ms / 1000
        return wait if worked else max(wait, UNTOLD_UNSEEN_S)
    return 0.0 if worked else WORKED_UNSEEN_S
