"""One turn over a channel that delivers (`interfaces.Delivering`): from the message to its answer, decided purely.

The machine takes facts (what was made durable, what came of a submission, what the channel tells) and returns commands;
`ChannelDelivery` performs them. It knows no I/O and no clock.

::

    SENDING ◂─▸ WORKING ─▸ OVER

Either phase may end in OVER. A refusal after which the program stops is told to the model in a second leg of the same
turn: from WORKING back to SENDING, with a note in place of the message.

A message is given once. The record says that it is SENDING, and under which key, before the first byte goes out. Of a
message that was SENDING when the connection or the daemon ended, the program is asked by that key: only one that it
does not have is given again, and only while it rests. What the terminal could do is not done any more then: a message
that may have arrived is never typed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

from synapsed.interfaces import FoundTurn, Reach, Submitted
from synapsed.model.facts import AssistantSaid, ChannelFact, PromptAccepted, TurnEnded, TurnFailed, TurnInterrupted
from synapsed.model.link import (
    LinkTurnAccepted,
    LinkTurnEnded,
    LinkTurnFailed,
    LinkTurnInterrupted,
    LinkTurnNews,
    LinkTurnOutcome,
    LinkTurnProgress,
    LinkUndelivered,
)

BY: Literal["channel"] = "channel"
"""`by` of a record of such a turn; those of turns at the terminal have none."""

SENDING_S = 60.0
"""How long a message that was not heard of may stay SENDING while the channel is away."""

REFUSAL_STOPS_S = 30.0
"""A program that a refusal stops says so at once, unless a busy machine keeps it from reading the key: one that says
nothing at all for so long was not refused."""

KEY_KEEPS_S = 30.0
"""A message that the program does not have is given again under the same key for so long after that was made. Later a
turn of others may have been since, and some programs order messages by their keys."""

EARLY_MAX = 256
"""Facts that come before it is known whose they are, the last ones."""

UNKNOWN = (
    "the program's server was given the message and cannot be asked what became of it: whether it works on it is not "
    "known, so it is not sent again"
)


class ChannelPhase(StrEnum):
    SENDING = "sending"
    WORKING = "working"
    OVER = "over"


NEXT: dict[ChannelPhase, frozenset[ChannelPhase]] = {
    ChannelPhase.SENDING: frozenset({ChannelPhase.WORKING, ChannelPhase.OVER}),
    ChannelPhase.WORKING: frozenset({ChannelPhase.SENDING, ChannelPhase.OVER}),
    ChannelPhase.OVER: frozenset(),
}
"""Every legal step; the machine refuses the others."""


class ChannelTurnState(BaseModel):
    """What survives the daemon (`TurnRecord.link`). `minted_at` is the wall clock's, Unix seconds."""

    model_config = ConfigDict(extra="ignore")

    by: Literal["channel"] = BY
    channel: str
    phase: ChannelPhase = ChannelPhase.SENDING
    key: str
    minted_at: float
    submitted: bool = True
    """The program may have the message: it is never typed."""
    taken: bool = False
    """The program has said that it has it."""
    turn: str | None = None
    leg: int = 0
    note: str | None = None
    """What is said in the second leg."""
    interrupting: bool = False
    refused_at: float | None = None
    """When a person chose an option on the terminal after which the program stops the turn by itself; the wall clock's,
    Unix seconds."""


# --- commands --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SaveRecord:
    """Make the record durable."""


@dataclass(frozen=True, slots=True)
class GiveMessage:
    """Give the program `text` under `key`, then call `ChannelTurn.submitted` or `unsent`."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class LookUp:
    """Ask the program for the message, then call `ChannelTurn.found`, or `unsent` where it does not answer."""

    key: str


@dataclass(frozen=True, slots=True)
class RenewKey:
    """Make another key, then call `ChannelTurn.keyed`."""

    leg: int


@dataclass(frozen=True, slots=True)
class StopTurn:
    """Have the program stop the turn."""

    turn: str


@dataclass(frozen=True, slots=True)
class TellNews:
    """Tell the agent how the turn goes."""

    event: LinkTurnNews


type ChannelCommand = SaveRecord | GiveMessage | LookUp | RenewKey | StopTurn | TellNews


class ChannelTurn:
    """The machine of one turn. Every method returns the commands to perform, in order. Times (`now`) are the wall
    clock's, which the record outlives."""

    def __init__(self, task_id: str, text: str, state: ChannelTurnState, *, denial: str | None = None) -> None:
        """`denial` tells the model that the program stopped since a rule refused a call."""
        self.task_id = task_id
        self.state = state
        self._message = text
        self._denial = denial
        self._early: list[ChannelFact] = []
        self._waiting: Literal["found", "submitted"] | None = None
        """What the machine waits to hear; None: for facts."""
        self._away_since: float | None = None

    @property
    def phase(self) -> ChannelPhase:
        return self.state.phase

    @property
    def over(self) -> bool:
        return self.state.phase is ChannelPhase.OVER

    @property
    def text(self) -> str:
        """What the present leg says."""
        return self._message if self.state.leg == 0 or self.state.note is None else self.state.note

    @property
    def evidence(self) -> str:
        return f"{self.state.channel}: "

    def _go(self, phase: ChannelPhase) -> None:
        if phase not in NEXT[self.state.phase]:
            raise ValueError(f"a turn does not go from {self.state.phase} to {phase}")
        self.state.phase = phase

    def _over(self, event: LinkTurnOutcome) -> list[ChannelCommand]:
        self._go(ChannelPhase.OVER)
        return [TellNews(event)]

    # --- the way in ---

    def begin(self, *, fresh: bool) -> list[ChannelCommand]:
        """Start (`fresh`), or go on after a restart of the daemon."""
        if fresh and self.phase is ChannelPhase.SENDING:
            return self._submit()
        return self._find()

    def _submit(self) -> list[ChannelCommand]:
        self._waiting = "submitted"
        return [GiveMessage(self.state.key, self.text)]

    def _find(self) -> list[ChannelCommand]:
        self._waiting = "found"
        return [LookUp(self.state.key)]

    def submitted(self, how: Submitted) -> list[ChannelCommand]:
        """The program took the message."""
        if self.phase is not ChannelPhase.SENDING:
            return []  # a fact was faster
        what = "joined a turn of the person's" if how.joined else "turn begun"
        return self._accept(how.turn, what)

    def _accept(self, turn: str, what: str) -> list[ChannelCommand]:
        self._waiting = self._away_since = None
        self._go(ChannelPhase.WORKING)
        self.state.turn, self.state.taken = turn, True
        commands: list[ChannelCommand] = [SaveRecord(), TellNews(LinkTurnAccepted(self.task_id, self.evidence + what))]
        if self.state.interrupting:
            commands.append(StopTurn(turn))
        early, self._early = self._early, []
        for fact in early:
            commands += self.told(fact)
        return commands

    def unsent(self, why: str, *, sent: bool, now: float) -> list[ChannelCommand]:
        """The channel did not answer; `sent`: what was asked may have arrived. `reached` goes on."""
        if self.phase is not ChannelPhase.SENDING:
            self._waiting = None
            return []
        waited_for, self._waiting = self._waiting, None
        if self._away_since is None:
            self._away_since = now
        never = waited_for == "submitted" and not sent and not self.state.taken
        if never and self.state.interrupting:
            return self._over(LinkTurnInterrupted(self.task_id, "interrupted", f"not yet sent: {why}"))
        return self.waited(now)

    def refused(self, why: str) -> list[ChannelCommand]:
        """The program does not take the message."""
        if self.phase is not ChannelPhase.SENDING:
            return []
        return self._over(LinkUndelivered(self.task_id, why))

    def reached(self, reach: Reach) -> list[ChannelCommand]:
        """The channel says what it says now, perhaps after it was away."""
        if reach == "away" or self._waiting is not None or self.over:
            return []
        return self._find() if self.phase is ChannelPhase.SENDING or self._away_since is not None else []

    def lost(self, now: float) -> list[ChannelCommand]:
        """The connection is gone; what happens meanwhile is asked for when it is back."""
        if self._away_since is None and not self.over:
            self._away_since = now
        return []

    def waited(self, now: float) -> list[ChannelCommand]:
        """Time passed."""
        refused = self.state.refused_at
        if refused is not None and now - refused >= REFUSAL_STOPS_S and self.phase is ChannelPhase.WORKING:
            return self.overrule()
        away = self._away_since
        if self.phase is not ChannelPhase.SENDING or away is None or now - away < SENDING_S:
            return []
        return self._over(LinkTurnFailed(self.task_id, "TIMEOUT", UNKNOWN, self.evidence + "no answer"))

    def found(self, found: FoundTurn | None, reach: Reach, now: float) -> list[ChannelCommand]:
        """What the program knows of the message."""
        self._waiting = self._away_since = None
        if self.over:
            return []
        if found is None:
            return self._not_found(reach, now)
        commands = self._accept(found.turn, "it has the message") if self.phase is ChannelPhase.SENDING else []
        return [*commands, *self._ended_as(found)]

    def _not_found(self, reach: Reach, now: float) -> list[ChannelCommand]:
        if self.phase is ChannelPhase.WORKING:  # it had it: its conversation is another one by now
            return self._over(
                LinkTurnFailed(self.task_id, "INTERRUPTED", "the program has the message no more", self.evidence)
            )
        if self.state.interrupting:
            return self._over(LinkTurnInterrupted(self.task_id, "interrupted", "not yet sent"))
        if reach != "idle":
            return []  # `reached` comes again
        if now - self.state.minted_at > KEY_KEEPS_S:
            return [RenewKey(self.state.leg)]
        return self._submit()

    def keyed(self, key: str, now: float) -> list[ChannelCommand]:
        """There is another key."""
        self.state.key, self.state.minted_at = key, now
        return [SaveRecord(), *self._submit()]

    def _ended_as(self, found: FoundTurn) -> Sequence[ChannelCommand]:
        if self.over:
            return []  # a fact that had come before said so
        match found.state:
            case "completed":
                return self._ended(found.answer, "found completed")
            case "failed":
                return self._failed(found.code, found.message)
            case "interrupted":
                return self._stopped("found interrupted", denied=False)
        return [StopTurn(found.turn)] if self.state.interrupting else []

    # --- what is reported ---

    def told(self, fact: ChannelFact) -> list[ChannelCommand]:
        """The channel reported something."""
        if fact.channel != self.state.channel or self.over:
            return []
        if isinstance(fact, PromptAccepted):
            known = fact.key == self.state.key and fact.turn is not None and self.phase is ChannelPhase.SENDING
            return self._accept(fact.turn or "", "prompt accepted") if known else []
        if self.phase is ChannelPhase.SENDING:
            self._early = [*self._early[-EARLY_MAX:], fact]
            return []
        return self._of_turn(fact) if fact.turn == self.state.turn else []

    def _of_turn(self, fact: ChannelFact) -> list[ChannelCommand]:
        match fact:
            case AssistantSaid():
                return [TellNews(LinkTurnProgress(self.task_id, fact.message_id, fact.text))]
            case TurnEnded() if fact.answer is None:
                return self._find()
            case TurnEnded():
                return self._ended(fact.answer or "", "turn ended")
            case TurnFailed():
                return self._failed(fact.code, fact.message)
            case TurnInterrupted():
                return self._stopped("turn interrupted", denied=fact.refused)
        return []

    def _ended(self, answer: str, what: str) -> list[ChannelCommand]:
        if self.state.interrupting:
            return self._interrupted("interrupted", what)
        return self._over(LinkTurnEnded(self.task_id, answer, True, self.evidence + what))

    def _failed(self, code: str, message: str) -> list[ChannelCommand]:
        if self.state.interrupting:
            return self._interrupted("interrupted", "turn failed")
        if code == "UNDELIVERED":
            return self._over(LinkUndelivered(self.task_id, message))
        return self._over(LinkTurnFailed(self.task_id, code, message, self.evidence + "turn failed"))

    def _stopped(self, what: str, *, denied: bool) -> list[ChannelCommand]:
        if self.state.interrupting:
            return self._interrupted("interrupted", what)
        refused = self.state.refused_at is not None
        if not denied and not refused:
            return self._interrupted("person", what)
        note = self._denial if denied else self.state.note
        if self.state.leg > 0 or note is None:
            return self._interrupted("refused", what)
        self._go(ChannelPhase.SENDING)
        self.state.leg, self.state.note, self.state.turn, self.state.refused_at = 1, note, None, None
        return [RenewKey(self.state.leg)]

    def _interrupted(self, reason: str, what: str) -> list[ChannelCommand]:
        return self._over(LinkTurnInterrupted(self.task_id, reason, self.evidence + what))

    def gone(self, why: str) -> list[ChannelCommand]:
        """The program's server has ended, and with it what it worked on."""
        if self.over:
            return []
        return self._over(LinkTurnFailed(self.task_id, "AGENT_EXITED", why, self.evidence + "gone"))

    # --- what is asked ---

    def interrupt(self) -> list[ChannelCommand]:
        """Somebody stops the turn, or waits for its stop; what follows is told by facts."""
        if self.over:
            return []
        first, self.state.interrupting = not self.state.interrupting, True
        stop: list[ChannelCommand] = [StopTurn(self.state.turn)] if self.state.turn is not None else []
        return [SaveRecord(), *stop] if first else stop

    def refuse(self, note: str | None, now: float) -> list[ChannelCommand]:
        """A person chooses an option on the terminal after which the program stops the turn by itself; `note` then
        tells the model."""
        if self.phase is not ChannelPhase.WORKING:
            return []
        self.state.refused_at = now
        if self.state.leg == 0:
            self.state.note = note
        return [SaveRecord()]

    def overrule(self) -> list[ChannelCommand]:
        """The refusal does not count: the program did not take it, a later answer was another one, or the program goes
        on."""
        if self.state.refused_at is None or self.over:
            return []
        self.state.refused_at = None
        if self.state.leg == 0:
            self.state.note = None
        return [SaveRecord()]

    def go_on(self) -> list[ChannelCommand]:
        """The program was not stopped."""
        if self.over or not self.state.interrupting:
            return []
        self.state.interrupting = False
        return [SaveRecord()]
