"""Base class of the state machines of turns, for every way to give the message. It decides how a turn ends, and how it
is stopped. If the program stops because a call was refused, the turn may get a second leg: a note that explains the
refusal to the model. Pure: it has no I/O and no clock.

A machine takes facts and returns the commands to perform, in order.
"""

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import replace

from synapsed.interfaces import Delivery
from synapsed.model.facts import AssistantSaid, ChannelFact, TurnEnded, TurnFailed, TurnInterrupted
from synapsed.model.link import (
    LinkTurnEnded,
    LinkTurnFailed,
    LinkTurnInterrupted,
    LinkTurnNews,
    LinkTurnOutcome,
    LinkTurnProgress,
    LinkUndelivered,
)
from synapsed.model.records import TurnRecord
from synapsed.pty.turn_types import NEXT, Command, KeptTurn, Phase, Save, Say
from synapsed.tasks.prompt_text import system_mark

EARLY_MAX = 256
"""Largest number of facts, the latest ones, that are kept until it is known to which turn they belong."""


def marked(task_id: str, note: str | None) -> str | None:
    """Returns a profile's note with synapsed's mark before it, as the model gets it; None if there is no note."""
    return system_mark(task_id) + note if note else None


class TurnMachine[Kept: KeptTurn](ABC):
    """The state machine of one turn."""

    def __init__(self, delivery: Delivery, state: Kept, denial: str | None) -> None:
        """Makes the machine. `denial` is the note that explains to the model that a rule has refused a call."""
        self.task_id = delivery.task_id
        self.attempt = delivery.record.attempt
        self.state = state
        self.asked_to_stop = state.interrupting
        """True if a stop was requested through synapsed, even if the program did not confirm it in time."""
        self._delivery = delivery
        self._denial = denial
        self._early: deque[ChannelFact] = deque(maxlen=EARLY_MAX)
        """Facts that came before it is known that the program has the present leg."""

    @property
    def record(self) -> TurnRecord:
        """Returns the turn's record with the present state, to be stored."""
        return self._delivery.record.model_copy(update={"link": self.state.model_dump(mode="json")})

    @property
    def phase(self) -> Phase:
        return self.state.phase

    @property
    def over(self) -> bool:
        return self.state.phase is Phase.OVER

    @property
    def text(self) -> str:
        return self._delivery.text if self.state.leg == 0 or self.state.note is None else self.state.note

    def saved(self) -> list[Command]:
        """Continues after the record is durable."""
        return []

    # --- its course ---

    def _go(self, phase: Phase) -> None:
        if phase not in NEXT[self.state.phase]:
            raise ValueError(f"a turn does not go from {self.state.phase} to {phase}")
        self.state.phase = phase

    def _over(self, event: LinkTurnOutcome, *, left: bool = False) -> list[Command]:
        self._go(Phase.OVER)
        return [Say(event, left)]

    def _interrupted(self, reason: str, evidence: str, *, left: bool = False) -> list[Command]:
        return self._over(LinkTurnInterrupted(self.task_id, reason, evidence), left=left)

    def _undelivered(self, why: str, *, left: bool = False) -> list[Command]:
        if self.state.leg > 0:  # the message itself was delivered: the refusal ends the turn
            return self._interrupted("refused", why, left=left)
        return self._over(LinkUndelivered(self.task_id, why), left=left)

    @abstractmethod
    def told(self, fact: ChannelFact, now: float) -> list[Command]:
        """Takes a fact that a channel reports."""

    def _told_early(self, now: float) -> list[Command]:
        """Takes the early facts again."""
        early = [*self._early]
        self._early.clear()
        return [command for fact in early for command in self.told(fact, now)]

    def _reported(self, fact: ChannelFact, now: float) -> list[Command]:
        """Takes a fact that a channel reports about this turn."""
        match fact:
            case AssistantSaid():
                return [Say(LinkTurnProgress(self.task_id, fact.message_id, fact.text))]
            case TurnEnded():
                return self._ended(fact, f"{fact.channel}: turn ended", now)
            case TurnFailed():
                return self._failed(fact, f"{fact.channel}: turn failed")
            case TurnInterrupted():
                return self._stopped(f"{fact.channel}: turn interrupted", now, denied=fact.refused)
        return []

    def _ended(self, fact: TurnEnded, evidence: str, now: float) -> list[Command]:
        if self.state.interrupting:
            return self._interrupted("interrupted", evidence)
        if fact.answer is None:
            return self._find_answer(now)
        if self._refused and not fact.answer.strip():
            return self._stopped_by_refusal(evidence, now)
        return self._over(LinkTurnEnded(self.task_id, fact.answer, True, evidence, fact.truncated))

    def _failed(self, fact: TurnFailed, evidence: str) -> list[Command]:
        if self.state.interrupting:
            return self._interrupted("interrupted", evidence)
        if fact.code == "UNDELIVERED":
            return self._undelivered(fact.message)
        return self._over(LinkTurnFailed(self.task_id, fact.code, fact.message, evidence))

    def _stopped(self, evidence: str, now: float, *, denied: bool = False) -> list[Command]:
        """Ends a turn that the program has stopped. `denied`: it stopped because a rule refused a call."""
        if self.state.interrupting:
            return self._interrupted("interrupted", evidence)
        if denied and self.state.note is None:
            self.state.note = self._denial
        if denied or self._refused:
            return self._stopped_by_refusal(evidence, now)
        return self._stopped_by_person(evidence)

    def _stopped_by_person(self, evidence: str) -> list[Command]:
        return self._interrupted("person", evidence)

    def _stopped_by_refusal(self, evidence: str, now: float) -> list[Command]:
        """Explains the refusal to the model in a second leg, if there is a note for it; else ends the turn."""
        if self.state.note is None or self.state.leg > 0:
            return self._interrupted("refused", evidence)
        return self._say_note(now)

    @abstractmethod
    def _find_answer(self, now: float) -> list[Command]:
        """Looks for the answer of a turn that has ended."""

    @abstractmethod
    def _say_note(self, now: float) -> list[Command]:
        """Begins the second leg."""

    def explained(self, event: LinkTurnNews, *, touched: bool) -> LinkTurnNews:
        """Returns the event; if it reports a stop, with the one who has stopped the turn as far as that is known.
        `touched`: a person has pressed a key at the program since it was given the message."""
        if not isinstance(event, LinkTurnInterrupted) or event.reason == "refused":
            return event
        if event.reason == "interrupted" and self.asked_to_stop:
            return event
        if event.reason == "person" and not touched:
            return replace(event, reason="interrupted" if self.asked_to_stop else "program")
        return replace(event, reason="person")

    # --- refusals ---

    def refuse(self, note: str | None, now: float) -> list[Command]:
        """Notes that a person chose an option of a dialog after which the program stops the turn by itself; `note` will
        explain this to the model."""
        if not self._runs:
            return []
        self._set_refused(now)
        if self.state.leg == 0:
            self.state.note = note
        return [Save()]

    def overrule(self) -> list[Command]:
        """Drops the refusal, because the program did not take it, a later answer was different, or the program went on
        working."""
        if not self._refused or self.over:
            return []
        self._set_refused(None)
        if self.state.leg == 0:
            self.state.note = None
        return [Save()]

    def go_on(self) -> list[Command]:
        """Drops the request to stop: the program did not stop, and its next answer is the turn's answer."""
        if self.over or not self.state.interrupting:
            return []
        self.state.interrupting = False
        return [Save()]

    @property
    @abstractmethod
    def _runs(self) -> bool:
        """Returns True if the program may work on the turn, so that a refusal may stop it."""

    @property
    @abstractmethod
    def _refused(self) -> bool:
        """Returns True if a person has refused a call, after which the program stops the turn."""

    @abstractmethod
    def _set_refused(self, at: float | None) -> None: ...
