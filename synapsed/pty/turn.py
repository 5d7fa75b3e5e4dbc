"""Decides one turn on a terminal: if its message was typed and taken, and when and how the turn has ended. Pure.

The state machine takes facts (the judged screen, reports of side channels, keys that were typed, records that are
durable, a deadline) and returns commands, which the `TurnWorker` performs. It has no I/O and no clock.

::

    PREPARED ◂─▸ PASTING ─▸ SETTLING ◂─▸ SUBMITTING ─▸ SUBMITTED ─▸ WORKING ◂─▸ READING ─▸ OVER

Every phase may end in OVER. If the program stops after a person's refusal, the refusal is explained to the model in a
second leg (part) of the same turn: from SUBMITTED, WORKING or READING back to PREPARED, with a note in place of the
message. If the program did not take the text of a leg, and the text was removed from the composer, the turn also goes
back to PREPARED, and the text is typed again, a few times.

Two rules make sure that a message is submitted exactly once. Each irreversible act (the paste, the submit key) is
recorded durably before its keys are written. And the keys of each have an id of their own, which the keeper writes only
once and remembers: if a daemon is killed at any point, the next one asks the keeper which keys were written, and
continues from there.

A third rule makes the end certain: a turn ends only by evidence of this turn. A side channel's report counts if it is
younger than the submission; a ready screen counts if the program was seen to take the message first. If the message is
still in the composer, the screen shows an earlier turn, which a slow program has not finished drawing.
"""

from collections.abc import Callable

from synapsed.interfaces import Delivery
from synapsed.model.agent import Activity
from synapsed.model.facts import ChannelFact, PromptAccepted, TurnEnded
from synapsed.model.link import (
    LinkTurnAccepted,
    LinkTurnEnded,
    LinkTurnFailed,
    LinkTurnInterrupted,
    LinkUndelivered,
)
from synapsed.profiles.profile import Profile
from synapsed.pty import turn_types as turns
from synapsed.pty.lag import ON_WAY, ON_WAY_S, UNKNOWN_S
from synapsed.pty.message_evidence import MessageInComposer, TurnReports, is_line_oriented, masked
from synapsed.pty.turn_machine import TurnMachine
from synapsed.pty.turn_types import (
    Clear,
    Command,
    FindAnswer,
    Phase,
    Recall,
    Save,
    Say,
    Seen,
    TakeOut,
    TurnState,
    Type,
)
from synapsed.terminal.composer import needs_composer
from synapsed.terminal.delivery import Typed
from synapsed.terminal.verdict import STALE_S


class PtyTurn(TurnMachine[TurnState]):
    """The state machine of one turn."""

    def __init__(
        self,
        profile: Profile,
        delivery: Delivery,
        compose: Callable[[str], Typed],
        state: TurnState,
        *,
        channels_tell: bool,
        denial: str | None = None,
    ) -> None:
        """Makes the machine. `compose` makes keystrokes, and may raise; `channels_tell`: a side channel reports."""
        super().__init__(delivery, state, denial)
        self._profile = profile
        self._compose = compose
        self._typed = compose(self.text)
        self._tells = channels_tell and not delivery.command
        self._composed = MessageInComposer(profile, self._typed.text, told=self._tells)
        self._line_oriented = is_line_oriented(profile)
        self._channels_tell = channels_tell
        self._untold = self._tells
        """True while a side channel has not reported the turn's beginning or end, although it should."""
        self._shows = not (channels_tell or delivery.command or self._line_oriented)
        """True if the screen of a full-screen program is the only evidence of the turn."""
        self._ready_without_answer = False
        self._read_to = 0
        """End of the output at the last search for an answer."""
        self._at = 0.0
        """Time when the current phase began."""
        self._ready_since: float | None = None
        self._at_work_since: float | None = None
        """Time since which the program shows work although a refusal should have stopped it."""
        self._pasted_at_offset = 0
        self._reports = TurnReports()
        self.withdrawing = False
        """True while the message, which the program did not take, is being removed from the composer."""
        self._echoed_before = False
        """True if the message was elsewhere on the screen when this began: an earlier message had the same text."""
        self._typed_not_before = 0.0
        self.deadline: float | None = None
        """Time, in monotonic seconds, at which `seen` must be called again at the latest."""

    @property
    def message(self) -> str:
        """Returns the text of the present leg as it is typed for this program."""
        return self._typed.text

    @property
    def ends_blank(self) -> bool:
        """Returns True if the message's last line is blank: at some prompts this ends a block of lines."""
        return not self._typed.text.rpartition("\n")[2].strip()

    @property
    def old_marks(self) -> tuple[int, int]:
        """Returns the marks (of errors and interruptions) that are of earlier turns, for a screen that does not show
        the message. If the message was seen and has scrolled away, the older marks have too: none is left. But the
        program may have removed the message from the screen if the turn is being stopped."""
        scrolled = self.state.located and not self.state.interrupting
        return (0, 0) if scrolled else self.state.marks

    def _go(self, phase: Phase, now: float | None = None) -> None:
        super()._go(phase)
        self._at = now if now is not None else self._at
        self.deadline = None

    def _taken_back(self) -> list[Command]:
        return self._interrupted("interrupted", "not yet submitted", left=True)

    # --- typing the message ---

    def begin(self, now: float, *, fresh: bool = False) -> list[Command]:
        """Starts (`fresh`), or continues after a restart of the daemon; then the caller calls `seen`. The record of a
        fresh turn may say already that the paste is about to be written."""
        self._at = now
        match self.state.phase:
            case Phase.PASTING if fresh:
                return [Type("paste", self._typed.paste)]
            case Phase.PASTING | Phase.SETTLING:
                self.state.phase = Phase.PASTING
                return [Recall("paste", self._typed.paste)]
            case Phase.SUBMITTING:
                return [Recall("submit", self._typed.submit)]
            case Phase.READING:
                self.state.phase = Phase.WORKING
            case Phase.SENDING:  # an earlier daemon gave it over a channel that the profile does not have any more
                return self._over(LinkTurnFailed(self.task_id, "TIMEOUT", turns.UNASKED, "no channel"))
        return []

    def recalled(self, part: str, offset: int | None, now: float) -> list[Command]:
        """Takes the keeper's answer to Recall: the end of the output when `part` was written; None if it was not."""
        if self.over:
            return []
        if offset is not None:
            return self.typed(part, offset, now)
        return self.held(now)

    def saved(self) -> list[Command]:
        if self.state.phase is Phase.PASTING:
            return self.held(self._at) if self.state.interrupting else [Type("paste", self._typed.paste)]
        if self.state.phase is Phase.SUBMITTING:
            return self._taken_back() if self.state.interrupting else [Type("submit", self._typed.submit)]
        return []

    def held(self, now: float) -> list[Command]:
        """Waits again, because keys could not be typed: a person typed, a dialog came up, or input is unread."""
        match self.state.phase:
            case Phase.PASTING if self.state.interrupting:
                return self._interrupted("interrupted", "not yet typed")
            case Phase.PASTING:
                self._go(Phase.PREPARED, now)
            case Phase.SUBMITTING if self.state.interrupting:
                return self._taken_back()
            case Phase.SUBMITTING:
                self.state.submitted = self.state.leg > 0
                self._go(Phase.SETTLING, now)
                self.deadline = now
                return [Save()]
            case Phase.SUBMITTED if now < self.state.submit_ns / 1e9 + turns.UNSEEN_S:
                self._at, self.state.resubmitted = now, False  # the program may not have handled the first key yet
                self.deadline = now + self._profile.delivery.accept_ms / 1000
                return [Save()]
        return []

    def unread(self) -> list[Command]:
        """Handles a program that reads nothing: its terminal takes no more of the keys, which are half written."""
        if self.state.phase is Phase.PASTING:
            return self._taken_back() if self.state.interrupting else self._undelivered(turns.UNREAD)
        return []

    def typed(self, part: str, offset: int, now: float) -> list[Command]:
        """Continues after the keys of `part` are written; the output up to `offset` is older."""
        if part == "paste" and self.state.phase is Phase.PASTING:
            self._go(Phase.SETTLING, now)
            self._pasted_at_offset = offset
            if self._line_oriented and self._typed.one_by_one:
                self.state.typed_from = offset
            if self.state.interrupting:
                return self._taken_back()
            self.deadline = now + self._profile.delivery.settle_ms / 1000
        elif part == "submit" and self.state.phase is Phase.SUBMITTING:
            self._go(Phase.SUBMITTED, now)
            self.state.submit_offset = offset
            self.deadline = now + self._profile.delivery.accept_ms / 1000
            return [Save(), *self._told_early(now)]  # the keeper confirms the key only now
        return []

    # --- looks ---

    def seen(self, seen: Seen) -> list[Command]:
        """Takes a judged screen, after a change or at the deadline."""
        if self.state.phase in (Phase.SUBMITTED, Phase.WORKING):
            self.state.located = self.state.located or seen.echoed
            self._composed.note(seen, self.state)
        if self.withdrawing and not self._began_late(seen):
            return []
        self.withdrawing = False
        match self.state.phase:
            case Phase.PREPARED if seen.may_type and seen.now < self._typed_not_before:
                self.deadline = self._typed_not_before
            case Phase.PREPARED if seen.may_type:
                self._go(Phase.PASTING, seen.now)
                self.state.prompt, self.state.before = seen.prompt, seen.rows
                return [Save()]
            case Phase.PASTING:
                self.state.prompt = self.state.prompt or seen.prompt
            case Phase.SETTLING:
                return self._settling(seen)
            case Phase.SUBMITTED:
                return self._submitted(seen)
            case Phase.WORKING:
                return self._working(seen)
        return []

    def _settling(self, seen: Seen) -> list[Command]:
        spec = self._profile.delivery
        if seen.verdict.activity is Activity.WAITING:
            # A person must answer a dialog first; then the message, which stays in the composer, is shown again.
            self._at = seen.now
            self.deadline = None
            return []
        latest = self._latest(seen)
        if self.state.at_prompt and not self.state.shown_there:
            if seen.now >= (until := self._at + turns.UNSHOWN_S + seen.lag):
                return self._undelivered(turns.NOT_SHOWN)
            self.deadline = min(seen.now + turns.SLOW_AGAIN_S, until)
            return []
        quiet_at = max(self._at, seen.changed_at) + spec.settle_ms / 1000
        unseen = seen.composer == "absent" and not self._profile.composer.needed
        took = (
            seen.composer == "draft" or unseen or (self._line_oriented and seen.echoed)
        ) and seen.offset > self._pasted_at_offset
        if took and (seen.now >= quiet_at or seen.now >= latest):
            twice = self.state.typings > 0 and self._composed.stands_twice(seen.text)
            if seen.composer == "draft" and (twice or self._composed.stands_behind_other(seen.text)):
                return self._undelivered("other text stood before it in the composer")
            return self._submit(seen)
        if seen.now >= latest:
            if self._profile.composer.line is None or self._line_oriented:
                return self._submit(seen)  # a program that does not echo
            if seen.computes and seen.now < self._at + turns.STARVED_S:
                self.deadline = seen.now + turns.SLOW_AGAIN_S
                return []
            if seen.lag:
                return self._undelivered(turns.NOT_SHOWN_IN_COMPOSER)
            return self._undelivered(turns.UNREAD) if seen.unread else self._withdraw(seen)
        self.deadline = min(max(quiet_at, seen.now + turns.LOOK_AGAIN_S), latest)
        return []

    def _latest(self, seen: Seen) -> float:
        """Returns the time until which the pasted text must be shown."""
        wait = self._profile.delivery.settle_max_ms / 1000
        if seen.lag or (self._line_oriented and self._is_silent(seen)):  # the text may be on its way
            wait = max(wait, seen.lag + (turns.UNSHOWN_S if self._line_oriented else ON_WAY_S))
        return self._at + wait

    def _is_silent(self, seen: Seen) -> bool:
        """Returns True if the program, which should show the pasted text, has printed nothing since the paste."""
        return seen.offset <= self._pasted_at_offset and self._profile.composer.line is not None

    def _submit(self, seen: Seen) -> list[Command]:
        self._go(Phase.SUBMITTING, seen.now)
        self.state.submitted = True
        self.state.submit_ns = int(seen.now * 1e9)
        self.state.shown, self.state.stood = masked(seen.text), seen.above
        self.state.marks, self.state.located, self.state.left = seen.marks, False, False
        self.state.taken = self.state.worked_without = False
        self.state.lag = max(seen.lag, UNKNOWN_S if self._is_silent(seen) else 0.0)
        self._composed.submitted(seen.now)
        return [Save()]

    def _submitted(self, seen: Seen) -> list[Command]:
        # A moving screen with the message in the composer is no sign of work: the key may have done another thing.
        only_moves = seen.verdict.source == "quiet" and seen.composer == "draft"
        if (
            seen.verdict.activity is Activity.BUSY
            and not self.state.interrupting
            and self._composed.is_untaken(seen, self.state)
        ):
            self._at = seen.now  # the program works on something earlier
        elif seen.verdict.activity in (Activity.BUSY, Activity.WAITING) and not only_moves:
            return [*self._accept(seen.verdict.evidence, seen.now), *self._working(seen)]
        submitted = self.state.submit_offset
        if submitted is not None and seen.worked_until > submitted and seen.composer != "draft":
            self.state.busy_seen = True  # it worked between two looks
            return [*self._accept("status record: it worked", seen.now), *self._working(seen)]
        answered = submitted is not None and seen.offset > submitted
        if seen.composer == "empty" and answered and self._line_oriented:
            return [*self._accept("screen: the prompt came back", seen.now), *self._working(seen)]
        if seen.unread or seen.starting:
            self._at = seen.now  # the time counts from when the program has read the key, and has started up
        taken = seen.composer != "draft" and (seen.echoed or seen.replaced or self._profile.composer.line is None)
        due = self._at + turns.to_accept(self._profile, seen, self.state, since=self._at, taken=taken)
        if seen.now < due:
            self.deadline = min(due, seen.now + turns.SLOW_AGAIN_S) if seen.computes else due
            return []
        if taken:
            return [*self._accept("screen: the message left the composer", seen.now), *self._working(seen)]
        if self.state.interrupting:
            return [Clear(), *self._interrupted("interrupted", "not taken")]
        if not (self.state.resubmitted or self.state.lag or seen.lag):
            self.state.resubmitted = True
            self._at = seen.now
            self.deadline = seen.now + self._profile.delivery.accept_ms / 1000
            # Only if the message is in the composer: in an empty one, the key may do something else.
            own = seen.composer == "draft" and self.holds(seen.text)
            return [Save(), Type("submit2", self._typed.submit)] if own else [Save()]
        return self._unaccepted(seen)

    def _unaccepted(self, seen: Seen) -> list[Command]:
        on_way = self.state.lag or seen.lag
        if seen.composer == "draft" and not on_way:
            return self._withdraw(seen)
        if self.state.leg > 0:
            return self._undelivered("the program shows no sign that it took the message", left=False)
        # The program may have the message: it must not be sent again.
        why = f"the program has not taken the message: {ON_WAY}" if on_way else turns.UNKNOWN
        return self._over(LinkTurnFailed(self.task_id, "TIMEOUT", why, seen.verdict.evidence))

    def _withdraw(self, seen: Seen) -> list[Command]:
        """Withdraws the message. A slow program may still read the typed text, and the submit key if it was pressed, at
        any time. So no other step is taken or published until the composer is without it and the program rests."""
        self.withdrawing, self.deadline = True, None
        self._echoed_before = seen.echoed
        return [TakeOut()]

    def _began_late(self, seen: Seen) -> bool:
        """Returns True if the program has begun with the message that is being withdrawn."""
        if self.state.phase is Phase.SETTLING or self._composed.is_untaken(seen, self.state):
            return False
        echoed = seen.echoed and not self._echoed_before
        left = self.state.phase is Phase.SUBMITTED and seen.composer != "draft" and echoed
        return left or turns.works(seen) or seen.verdict.activity is Activity.WAITING

    def withdrawn(self, gone: bool, now: float, *, misread: bool = False) -> list[Command]:
        """Takes the result of TakeOut. `gone`: the composer is without the message and the program rests; `misread`:
        the message was never seen in the composer, and may be elsewhere on the screen."""
        if not self.withdrawing:
            return []
        self.withdrawing = False
        if misread:
            return self._undelivered(turns.MISREAD.format(self._profile.name), left=False)
        lost, typings = self.state.phase is Phase.SETTLING, self.state.typings
        again = typings < (turns.PASTED_AGAIN if lost else len(turns.TYPED_AGAIN_AFTER_S))
        if gone and again and needs_composer(self._profile.composer):
            self._typed_not_before = now + turns.TYPED_AGAIN_AFTER_S[typings]
            return self._type(now, leg=self.state.leg, typings=typings + 1)
        if lost:
            return self._undelivered(turns.NOT_SHOWN_IN_COMPOSER, left=not gone)
        if gone or self.state.leg > 0:
            return self._undelivered(turns.NOT_TAKEN, left=False)
        return self._over(LinkTurnFailed(self.task_id, "TIMEOUT", turns.NEVER_AT_REST, "composer"))

    def _undelivered(self, why: str, *, left: bool = True) -> list[Command]:
        return super()._undelivered(why, left=left)

    def _accept(self, evidence: str, now: float) -> list[Command]:
        self._go(Phase.WORKING, now)
        return [Save(), Say(LinkTurnAccepted(self.task_id, evidence))]

    def _working(self, seen: Seen) -> list[Command]:
        if self.state.interrupting and seen.interrupted and self._fresh(seen):
            return self._stopped("screen: interrupted", seen.now)  # without waiting for a slow program to rest
        hidden = seen.composer == "absent" and needs_composer(self._profile.composer)
        if seen.verdict.activity is not Activity.READY or hidden:
            self.state.busy_seen = self.state.busy_seen or turns.works(seen)
            self._ready_since = None
            self.deadline = None
            return self._goes_on(seen)
        if self._ready_since is None:
            self._ready_since = seen.now
        untaken = seen.verdict.settled and self._composed.is_untaken(seen, self.state)
        if untaken and not (self.state.taken or self.state.interrupting or self.state.refused):
            self._go(Phase.SUBMITTED, seen.now)  # the change on the screen was no work on the message
            return self._submitted(seen)
        if (stopped := self._stopped_by_somebody(seen, since=self._ready_since)) is not None:
            return stopped
        lacks_answer = self._ready_without_answer and self._unproven
        due = self._ready_since + turns.at_rest(
            self._profile,
            worked=self._line_oriented or self.state.busy_seen or self.state.refused,
            channels_tell=self._channels_tell,
            empty_untold=lacks_answer,
        )
        drawn = lacks_answer and self._shows and seen.offset > self._read_to  # new output may be the answer
        if (seen.now < due and not drawn) or not seen.verdict.settled:
            self.deadline = max(due, seen.now + turns.LOOK_AGAIN_S)
            return []
        if self.state.refused:
            return self._stopped_by_refusal(seen.verdict.evidence, seen.now)
        if seen.stopped and self.state.busy_seen:
            return self._stopped(seen.verdict.evidence, seen.now)
        if seen.error is not None:
            return self._over(LinkTurnFailed(self.task_id, *seen.error, seen.verdict.evidence))
        self._go(Phase.READING, seen.now)
        self._read_to = seen.offset
        return [FindAnswer(self.state.submit_ns)]

    @property
    def _unproven(self) -> bool:
        """Returns True if a channel should have reported the turn and has not; without channels, if the program was not
        seen at work. Then an empty answer may be one that has not come yet."""
        return self._untold or (self._shows and not self.state.busy_seen)

    def _goes_on(self, seen: Seen) -> list[Command]:
        """Drops a refusal if the program goes on working: a person may have allowed the call at the terminal. A program
        that has put the message back into its composer does not go on; it has been stopped."""
        if self._composed.is_returned(seen, self.state):
            still = self._profile.ready.quiet_ms / 1000 if self.state.interrupting and self.state.left else STALE_S
            self.deadline = seen.changed_at + still
            returned = seen.now >= self.deadline
            return self._stopped("composer: the message was given back", seen.now) if returned else []
        works = seen.verdict.activity is Activity.BUSY and seen.verdict.source in turns.SIGNS
        if not (self.state.refused and works):
            self._at_work_since = None
            return []
        if self._at_work_since is None:
            self._at_work_since = seen.now
        due = self._at_work_since + turns.REFUSAL_STOPS_S
        if seen.now >= due:
            return self.overrule()
        self.deadline = due
        return []

    def _stopped_by_somebody(self, seen: Seen, *, since: float) -> list[Command] | None:
        """Returns the commands for a turn if a screen that is ready `since` then shows or may soon show its stop."""
        if (
            seen.interrupted
            and self._fresh(seen)
            and (self.state.interrupting or not self._composed.is_untaken(seen, self.state))
        ):
            return self._stopped(seen.verdict.evidence, seen.now)
        if self.state.interrupting:
            if seen.verdict.settled and self._fresh(seen) and not seen.unread:
                return self._stopped(seen.verdict.evidence, seen.now)
            self.deadline = seen.now + turns.LOOK_AGAIN_S  # the program may be about to begin with a message it put off
            return []
        if self._composed.is_given_back(seen, self.state):
            self.deadline = since + turns.given_back(self._profile, channels_tell=self._channels_tell)
            stopped = seen.now >= self.deadline
            return self._stopped("composer: the message was given back", seen.now) if stopped else []
        return None

    def holds(self, composer: str) -> bool:
        return self._composed.holds(composer, self.state)

    def stands_behind_other(self, composer: str) -> bool:
        return self._composed.stands_behind_other(composer)

    def _fresh(self, seen: Seen) -> bool:
        """Returns True if the chrome (the status lines) may be of this turn: there is output since the submission."""
        return self.state.submit_offset is None or seen.offset > self.state.submit_offset

    def _stopped_by_person(self, evidence: str) -> list[Command]:
        return [Clear(), *super()._stopped_by_person(evidence)]

    def _say_note(self, now: float) -> list[Command]:
        return self._type(now, leg=1)

    def _type(self, now: float, *, leg: int, typings: int = 0) -> list[Command]:
        """Begins the leg `leg`, or types the present leg again, after its text was removed from the screen."""
        self._go(Phase.PREPARED, now)
        self._ready_since = None
        self._early.clear()
        self.state = self.state.model_copy(update={"leg": leg, "typings": typings, **turns.NOT_SUBMITTED})
        self.state.submitted = leg > 0
        self._typed = self._compose(self.text)
        self._composed = MessageInComposer(self._profile, self._typed.text, told=self._tells)
        return [Save()]

    # --- facts ---

    def told(self, fact: ChannelFact, now: float) -> list[Command]:
        if not self.is_younger(fact):
            return []
        if self.state.phase is Phase.SUBMITTING:
            self._early.append(fact)
            return []
        if not self._reports.is_mine(fact, self._typed, self.state):
            return []
        self._untold = self._untold and not isinstance(fact, PromptAccepted | TurnEnded)
        if not isinstance(fact, PromptAccepted) or self._typed.may_be(fact.prompt):
            self.withdrawing = False
        return self._prompted(fact, now) if isinstance(fact, PromptAccepted) else self._reported(fact, now)

    def is_younger(self, fact: ChannelFact) -> bool:
        return self._reports.is_younger(fact, self.state)

    def _prompted(self, fact: PromptAccepted, now: float) -> list[Command]:
        if not self._reports.is_prompt_of(fact, self._typed, self.state):
            return []
        self._untold = False
        known, self.state.taken = self.state.taken, True
        if self.state.phase in (Phase.WORKING, Phase.READING):
            return [] if known else [Save()]
        again = [] if self.state.phase is Phase.SUBMITTED else [Clear()]  # an earlier typing of the message was taken
        self.state.submitted = True
        return [*again, *self._accept(f"{fact.channel}: prompt accepted", now)]

    def _find_answer(self, now: float) -> list[Command]:
        self._untold = False
        if self.state.phase is Phase.READING:
            return []
        self._go(Phase.READING, now)
        return [FindAnswer(self.state.submit_ns)]

    def at_work(self, now: float) -> list[Command]:
        """Handles a program that is not at its prompt: the text that looks like a prompt was printed."""
        if self.state.phase is Phase.READING:
            self._go(Phase.WORKING, now)
            self.state.busy_seen = True
            self._ready_since = None
        return []

    def found(self, outcome: LinkTurnEnded | LinkTurnInterrupted | LinkUndelivered, now: float) -> list[Command]:
        """Takes the result of the search for the answer: the outcome by the screen, or by a channel."""
        if self.state.phase is not Phase.READING:
            return []
        if isinstance(outcome, LinkTurnInterrupted):
            return self._stopped(outcome.evidence, now)
        if isinstance(outcome, LinkUndelivered):
            return self._undelivered(outcome.reason)
        if not self._unproven or outcome.exact or outcome.answer.strip():
            return self._over(outcome)
        if self._ready_without_answer and now >= (self._ready_since or now) + turns.EMPTY_UNTOLD_S:
            return self._over(LinkTurnFailed(self.task_id, "TIMEOUT", turns.UNKNOWN, outcome.evidence))
        self._ready_without_answer = True
        self._go(Phase.WORKING)
        return []

    # --- stopping ---

    def interrupt(self) -> list[Command]:
        """Stops the turn; its end follows from `seen` or `told`."""
        self.asked_to_stop = True
        if self.state.phase is Phase.PREPARED:
            return self._interrupted("interrupted", "not yet typed")
        if self.state.phase is Phase.PASTING:  # the keys may be on their way: their result ends the turn
            self.state.interrupting = True
            return []
        self.withdrawing = False
        if self.state.phase is Phase.SETTLING:
            return self._taken_back()
        self.state.interrupting = True
        return [Save()]

    @property
    def _runs(self) -> bool:
        return self.state.submitted

    @property
    def _refused(self) -> bool:
        return self.state.refused

    def _set_refused(self, at: float | None) -> None:
        self.state.refused, self._at_work_since = at is not None, None
