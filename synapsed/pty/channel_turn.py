"""Decides one turn on a way by which the program itself takes messages (`interfaces.DeliveryWay`), from the message to
its answer. Pure.

The state machine takes facts (the result of a submission or of a question, the channel's reports) and returns commands,
which `ChannelDelivery` performs. It has no I/O and no clock.

::

    SENDING ◂─▸ WORKING ─▸ OVER

Either phase may end in OVER. If a program stops after a person's refusal, the refusal is explained to its model in a
second leg (part) of the same turn: from WORKING back to SENDING, with a note in place of the message.

A message is given once. Before the first byte is sent, the record says that the turn is SENDING, and under which key.
If the connection or the daemon ends in that phase, the program is asked about the key. The message is given again only
if the program does not have it, would show it by now if it had it, and rests. It is not typed at the terminal instead:
a message that may have arrived is never typed.
"""

import math
from dataclasses import dataclass
from typing import Literal

from synapsed.interfaces import Delivery, FoundTurn, Reach, Submitted
from synapsed.model.facts import ChannelFact, PromptAccepted, TurnEnded, TurnFailed, TurnInterrupted
from synapsed.model.link import LinkTurnAccepted, LinkTurnEnded, LinkTurnFailed
from synapsed.pty.turn_machine import TurnMachine
from synapsed.pty.turn_types import (
    UNASKED,
    Command,
    GiveMessage,
    KeptTurn,
    LookUp,
    Phase,
    RenewKey,
    Save,
    Say,
    StopTurn,
)

BY: Literal["channel"] = "channel"
"""Value of `by` in the record of such a turn; records of turns at the terminal have no `by`."""

SENDING_S = 60.0
"""Seconds for which a message without a confirmation may stay SENDING while the channel is away."""

REFUSAL_STOPS_S = 30.0
"""Seconds within which a program reports that a refusal has stopped its turn; only a busy machine delays the report. If
none comes, the refusal no longer counts."""

KEY_KEEPS_S = 30.0
"""Seconds for which a message that the program does not have is given again under the same key. Later it gets a new
key: another turn may have come meanwhile, and some programs order messages by their keys."""

LOOK_S = 1.0
"""Seconds until a program that does not show a message is asked again; later the intervals grow."""

LOST_S = 120.0
"""Seconds for which a working program is asked about a turn that it has begun but does not show."""

LOST = (
    "the program has begun a turn for the message, and shows neither of them any more: whether its model has it is not "
    "known, so it is not sent again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRules:
    """The differences between turns on several ways; the defaults are for a channel. A time may be infinite."""

    sending_s: float = SENDING_S
    refusal_stops_s: float = REFUSAL_STOPS_S
    """Infinite: a refusal counts until the turn ends, whatever the program does next."""
    notes_refusals: bool = True
    """False if the program gets a refusal itself, so that its model knows of it without a note."""
    answer_stands: bool = False
    """True if the text of a turn that was asked to stop is its answer."""


class ChannelTurnState(KeptTurn):
    """The state of a turn that survives the daemon. `minted_at`: time at which the key was made, in Unix seconds."""

    by: Literal["channel"] = BY
    channel: str
    phase: Phase = Phase.SENDING
    key: str
    minted_at: float
    submitted: bool = True
    """True in every state: a message of such a turn is never typed."""
    joining: bool = False
    """True while the message has joined another turn, but is no part of it yet: words there do not answer it."""
    refused_at: float | None = None
    """Time, in Unix seconds, at which a person chose an option on the terminal by which the program stops the turn."""


class ChannelTurn(TurnMachine[ChannelTurnState]):
    """The state machine of one turn. Times (`now`) are Unix seconds, because the record outlives this daemon."""

    def __init__(
        self,
        delivery: Delivery,
        state: ChannelTurnState,
        *,
        denial: str | None = None,
        settles_s: float = 0.0,
        rules: TurnRules | None = None,
    ) -> None:
        """`settles_s`: see `interfaces.DeliveryWay`; `denial`: the note for the model after a refusal."""
        super().__init__(delivery, state, denial)
        self._rules = rules or TurnRules()
        self._settles_s = settles_s
        self._lost_since: float | None = None
        """Time since which the program does not show the message or its turn; None if it shows it."""
        self._look_at: float | None = None
        """Time at which the program is asked again."""
        self._waiting: Literal["found", "submitted"] | None = None
        """The result that the machine waits for; None while it waits for facts."""
        self._away_since: float | None = None

    @property
    def evidence(self) -> str:
        return f"{self.state.channel}: "

    # --- giving the message ---

    def begin(self, *, fresh: bool) -> list[Command]:
        """Starts the turn (`fresh`), or continues it after a restart of the daemon."""
        return self._submit() if fresh and self.phase is Phase.SENDING else self._find()

    def _submit(self) -> list[Command]:
        self._waiting = "submitted"
        return [GiveMessage(self.state.key, self.text)]

    def _find(self) -> list[Command]:
        self._waiting, self._look_at = "found", None
        return [LookUp(self.state.key, self.state.turn if not self.state.joining else None)]

    def submitted(self, how: Submitted, now: float) -> list[Command]:
        """Notes that the program took the message."""
        if self.phase is not Phase.SENDING:
            return []  # a fact has reported it already
        what = "joined a turn of the person's" if how.joined else "turn begun"
        return self._accept(how.turn, what, now, joining=how.joined)

    def _accept(self, turn: str, what: str, now: float, *, joining: bool = False) -> list[Command]:
        self._waiting = self._away_since = None
        self._go(Phase.WORKING)
        self.state.turn, self.state.taken, self.state.joining = turn, True, joining
        commands: list[Command] = [Save(), Say(LinkTurnAccepted(self.task_id, self.evidence + what))]
        if self.state.interrupting:
            commands.append(StopTurn(turn))
        return [*commands, *self._told_early(now)]

    def unsent(self, why: str, *, sent: bool, now: float) -> list[Command]:
        """Handles a channel that did not answer; `sent`: the request may have arrived. Later `reached` or `waited`
        continues the turn."""
        if self.phase is not Phase.SENDING:
            self._waiting = None
            if not self.over:
                self.lost(now)
                self._look_at = now + LOOK_S
            return []
        waited_for, self._waiting = self._waiting, None
        if self._away_since is None:
            self._away_since = now
        never = waited_for == "submitted" and not sent and not self.state.taken
        if never and self.state.interrupting:
            return self._interrupted("interrupted", f"not yet sent: {why}")
        if waited_for == "found":
            self._look_at = now + LOOK_S  # the way may be reached all the same: then nothing else asks again
        return self.waited(now)

    def refused(self, why: str) -> list[Command]:
        """Handles a program that has refused the message, for the reason `why`."""
        return self._undelivered(why) if self.phase is Phase.SENDING else []

    def reached(self, reach: Reach) -> list[Command]:
        """Handles the present reach of the channel, perhaps after it was away."""
        if reach == "away" or self._waiting is not None or self.over:
            return []
        return self._find() if self.phase is Phase.SENDING or self._away_since is not None else []

    def lost(self, now: float) -> list[Command]:
        """Handles a lost connection. When it is back, the program is asked about the turn."""
        if self._away_since is None and not self.over:
            self._away_since = now
        self._lost_since = self._look_at = None  # the program cannot be asked meanwhile
        return []

    def waited(self, now: float) -> list[Command]:
        """Handles the passing of time."""
        if self._look_at is not None and now >= self._look_at and self._waiting is None and not self.over:
            return self._find()
        refused = self.state.refused_at
        if refused is not None and now - refused >= self._rules.refusal_stops_s and self.phase is Phase.WORKING:
            return self.overrule()
        away = self._away_since
        if self.phase is not Phase.SENDING or away is None or now - away < self._rules.sending_s:
            return []
        return self._over(LinkTurnFailed(self.task_id, "TIMEOUT", UNASKED, self.evidence + "no answer"))

    def found(self, found: FoundTurn | None, reach: Reach, now: float) -> list[Command]:
        """Handles the program's answer to `LookUp`: `found`, or None if it does not have the message."""
        self._waiting = self._away_since = None
        if self.over:
            return []
        if found is None:
            return self._not_found(reach, now)
        self._lost_since = self._look_at = None
        sending = self.phase is Phase.SENDING
        commands = self._accept(found.turn, "it has the message", now) if sending else self._joined(found.turn)
        return [*commands, *self._became(found, now)]

    def _joined(self, turn: str) -> list[Command]:
        """Notes that the message is now part of that turn."""
        if not self.state.joining:
            return []
        self.state.turn, self.state.joining = turn, False
        return [Save()]

    def _became(self, found: FoundTurn, now: float) -> list[Command]:
        if self.over:
            return []  # an earlier fact, held back in `_early`, has ended it
        if found.over is not None:
            return self._reported(found.over, now)
        return [StopTurn(found.turn)] if self.state.interrupting else []

    def unshown(self, why: str, now: float) -> list[Command]:
        """Handles a program that could not be asked if it has the message, for the reason `why`."""
        self._waiting = None
        if self.over or self._looks_later(now, self._settles_s):
            return []
        return self.refused(why)

    def _looks_later(self, now: float, within: float) -> bool:
        """Returns True if the program is asked again later, for `within` seconds after it did not show the message for
        the first time: a program shows a message only when its turn is under way. The time does not count from the key:
        an earlier daemon may have given the message long after it made the key."""
        self._lost_since = since = now if self._lost_since is None else self._lost_since
        if now >= since + within:
            return False
        self._look_at = now + max(LOOK_S, (now - since) / 2)
        return True

    def _not_found(self, reach: Reach, now: float) -> list[Command]:
        works = self.phase is Phase.WORKING and reach in ("busy", "asking")
        if self._settles_s > 0 and self._looks_later(now, LOST_S if works else self._settles_s):
            return []
        if self.phase is Phase.WORKING:
            return self._over(LinkTurnFailed(self.task_id, "INTERRUPTED", LOST, self.evidence + "not shown"))
        if self.state.interrupting:
            return self._interrupted("interrupted", "not yet sent")
        if reach != "idle":
            return []  # `reached` is called again when the program rests
        if now - self.state.minted_at > KEY_KEEPS_S:
            return [RenewKey(self.state.leg)]
        return self._submit()

    def keyed(self, key: str, now: float) -> list[Command]:
        """Handles a new key: gives the message under it."""
        self.state.key, self.state.minted_at = key, now
        return [Save(), *self._submit()]

    # --- facts ---

    def told(self, fact: ChannelFact, now: float) -> list[Command]:
        if fact.channel != self.state.channel or self.over:
            return []
        if isinstance(fact, PromptAccepted):
            if fact.key != self.state.key or fact.turn is None:
                return []
            if self.phase is not Phase.SENDING:
                return self._joined(fact.turn)
            self._early.clear()  # they belong to a turn that the message has joined, or to another one
            return self._accept(fact.turn, "prompt accepted", now)
        if self.phase is Phase.SENDING:
            if self.state.interrupting and isinstance(fact, TurnInterrupted) and fact.turn == self.state.key:
                return self._reported(fact, now)  # it was given up, but the program may have it
            self._early.append(fact)
            return []
        if fact.turn != self.state.turn:
            return []
        if self.state.joining and not (self.state.interrupting or isinstance(fact, TurnInterrupted)):
            return self._find() if isinstance(fact, TurnEnded | TurnFailed) else []
        return self._reported(fact, now)

    def is_its(self, fact: ChannelFact) -> bool:
        """Returns True if the fact reports the work on this turn's message."""
        return self.phase is Phase.WORKING and fact.turn == self.state.turn and not self.state.joining

    def _ended(self, fact: TurnEnded, evidence: str, now: float) -> list[Command]:
        if fact.answer and self._rules.answer_stands:
            return self._over(LinkTurnEnded(self.task_id, fact.answer, True, evidence, fact.truncated))
        return super()._ended(fact, evidence, now)

    def _find_answer(self, now: float) -> list[Command]:
        return self._find()

    def _say_note(self, now: float) -> list[Command]:
        self._go(Phase.SENDING)
        self.state.leg, self.state.turn, self.state.refused_at = 1, None, None
        return [RenewKey(self.state.leg)]

    def gone(self, why: str) -> list[Command]:
        """Handles the end of the program's server, which ends its work too."""
        if self.over:
            return []
        return self._over(LinkTurnFailed(self.task_id, "AGENT_EXITED", why, self.evidence + "gone"))

    # --- refusals ---

    def refuse(self, note: str | None, now: float) -> list[Command]:
        return super().refuse(note if self._rules.notes_refusals else None, now)

    def works_on(self) -> list[Command]:
        """Handles a program that goes on with the turn: a refusal has not stopped it, unless it may do so later."""
        return self.overrule() if math.isfinite(self._rules.refusal_stops_s) else []

    # --- stopping ---

    def interrupt(self, *, by_person: bool = False) -> list[Command]:
        """Stops the turn, or notes that it is to be stopped when it begins. The outcome comes as facts. `by_person`: a
        key at the program's terminal asks for it."""
        if self.over:
            return []
        self.asked_to_stop = self.asked_to_stop or not by_person
        first, self.state.interrupting = not self.state.interrupting, True
        stop: list[Command] = [StopTurn(self.state.turn)] if self.state.turn is not None else []
        return [Save(), *stop] if first else stop

    @property
    def _runs(self) -> bool:
        return self.phase is Phase.WORKING

    @property
    def _refused(self) -> bool:
        return self.state.refused_at is not None

    def _set_refused(self, at: float | None) -> None:
        self.state.refused_at = at
