"""One program in a terminal, decided purely: what is told of it, and what is done.

The session takes events (output came, a channel reported, a person typed, the screen was looked at, …) and returns
commands; `PtyLink` performs them. It knows no I/O and no clock: times are passed in, monotonic seconds. Within it the
observer knows the screen, `PtyTurn` the message that is being worked on, `readiness` whether one may be typed.
"""

import functools
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from synapsed.errors import NotReady
from synapsed.interfaces import Delivery
from synapsed.keepers.heartbeat import SILENT
from synapsed.model.agent import Activity
from synapsed.model.facts import AssistantSaying, ChannelFact
from synapsed.model.link import (
    LinkAlert,
    LinkEvent,
    LinkObserved,
    LinkSession,
    LinkTold,
    LinkTurnAccepted,
    LinkTurnEnded,
    LinkTurnFailed,
    LinkTurnInterrupted,
    LinkTurnProgress,
    LinkTurnSaid,
    LinkUndelivered,
)
from synapsed.model.records import TurnRecord
from synapsed.profiles import Profile
from synapsed.pty import turn_types as turns
from synapsed.pty.asking import Asking
from synapsed.pty.readiness import UNKNOWN_SCREEN, Moment, Obstacle, obstacle
from synapsed.pty.streaming import Piece, Speech
from synapsed.pty.tool_screen import ToolScreen
from synapsed.pty.turn import PtyTurn
from synapsed.tasks.sender_mark import system_mark
from synapsed.terminal.answer import anchor_of, shows
from synapsed.terminal.chrome import marks_in, said_of_turn
from synapsed.terminal.composer import ends_at_cursor, holds_back
from synapsed.terminal.delivery import type_message
from synapsed.terminal.look import Look
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.verdict import turning_points

CHECKPOINT_EVERY = 256 * 1024
"""Bytes of output between checkpoints."""

RECENT_FACTS = 256
"""Channel facts that are kept for a turn that is taken up again after a restart; older ones are dropped."""

HANDS_OFF_S = 1.0
"""Nothing is typed for a message so soon after a person's key: what they write may not be on the screen yet."""

HALF_TYPED = frozenset(
    {turns.Phase.PASTING, turns.Phase.SETTLING, turns.Phase.SUBMITTING, turns.Phase.SUBMITTED, turns.Phase.OVER}
)
"""Until the program took the message: a second submit key must not find a person's words. A turn that is over and still
here is being cleared away: the keys that empty the composer must not find them either."""

RUNS = frozenset({turns.Phase.SUBMITTED, turns.Phase.WORKING, turns.Phase.READING})
"""What the program prints now may be a question of this turn's."""

MOMENT_S = 0.001
"""How much later than a time that has passed already a look is wanted: time goes on between two of them."""


# --- commands --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Emit:
    """Tell the agent."""

    event: LinkEvent


@dataclass(frozen=True, slots=True)
class AnswerQuery:
    """Answer a query of the program's to its terminal, which ended at the spool `offset`; once, also where its output
    is read again after a restart."""

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class SaveScreen:
    """Make the screen durable; `Session.saving` is called before, and `Session.saved` after."""


@dataclass(frozen=True, slots=True)
class Poll:
    """Ask the channels for news."""


@dataclass(frozen=True, slots=True)
class LookSoon:
    """Something changed: look at the terminal as soon as may be."""


@dataclass(frozen=True, slots=True)
class Work:
    """Perform what the machine of the present turn wants, in order."""

    commands: tuple[turns.Command, ...]


type SessionCommand = Emit | AnswerQuery | SaveScreen | Poll | LookSoon | Work


class Session:
    """`channels_tell`: a side channel of the program's is open."""

    def __init__(self, profile: Profile, observer: TerminalObserver, *, channels_tell: bool) -> None:
        self._profile = profile
        self._channels_tell = channels_tell
        self.observer = observer
        self._out: list[SessionCommand] = []
        self.turn: PtyTurn | None = None
        """The one turn of the program; None between turns."""
        self.delivery: Delivery | None = None
        self.speech = Speech(profile, self._said)
        self._tools = ToolScreen(profile, lambda fact: self._out.append(Emit(LinkTold(fact))))
        self.writing = False
        """Whether keys of the turn are on their way."""
        self._stood: list[str] = []
        """What stood above the composer when the submit key was pressed."""
        self.asking = Asking()
        self.observed: LinkObserved | None = None
        """What was told last."""
        self.touched: str | None = None
        """The prompt on the screen, if a person has been at it: what is selected there is theirs."""
        self.hands_at = -HANDS_OFF_S
        """When a person last pressed a key."""
        self.silent = False
        """Whether the keeper does not answer."""
        self.unread = False
        """Whether the program had not read all that was typed when that was asked last."""
        self._facts: deque[ChannelFact] = deque(maxlen=RECENT_FACTS)
        self._conversation: str | None = None
        self._started = observer.activity is not Activity.STARTING
        """Whether a checkpoint says that the program has started: it is not taken for starting after a restart."""
        self._saved_at = observer.offset
        """Where the output ends of which the screen is durable."""
        self._saving = False

    def _drain(self) -> list[SessionCommand]:
        commands, self._out = self._out, []
        return commands

    # --- what comes in ---

    def output(self, offset: int, data: bytes, now: float, *, continues: bool = False) -> list[SessionCommand]:
        """The program wrote `data` at `offset`; `continues`: see `TerminalObserver.feed`."""
        for reply in self.observer.feed(offset, data, now, continues=continues):
            self._out.append(AnswerQuery(reply.offset, reply.data))
        self.speech.printed(offset, data)
        if self.observer.offset - self._saved_at >= CHECKPOINT_EVERY and not self._saving:
            self._save_screen()
        self._out.append(LookSoon())
        return self._drain()

    def told(self, fact: ChannelFact, now: float) -> list[SessionCommand]:
        """A side channel reported."""
        if isinstance(fact, AssistantSaying):
            self.speech.told(fact)
        else:
            self._facts.append(fact)
            self.observer.told(fact)
            if fact.session is not None and fact.session != self._conversation:
                self._conversation = fact.session
                self._out.append(Emit(LinkSession(fact.session)))
            self._out.append(Emit(LinkTold(fact)))
            if self.turn is not None:
                self._work(self.turn.told(fact, now))
        self._out.append(LookSoon())
        return self._drain()

    def pressed(self, now: float) -> None:
        """A person pressed a key; or the program has read what it had not, and is about to show that."""
        self.hands_at = now

    def touch(self) -> None:
        """A person has been at what is asked."""
        if self.observed is not None and self.observed.prompt is not None:
            self.touched = self.observed.prompt.prompt_id

    def read(self, now: float) -> list[SessionCommand]:
        """What the program had not read is read, and about to be shown."""
        self.observer.typed(now)
        self.pressed(now)
        return [LookSoon()]

    def _save_screen(self) -> None:
        self._saving = True
        self._out.append(SaveScreen())

    def saving(self, offset: int) -> None:
        """The screen is being made durable as of `offset`."""
        self._saving, self._saved_at = True, offset

    def saved(self) -> None:
        """It is, or could not be."""
        self._saving = False

    @property
    def is_saved(self) -> bool:
        """Whether all that was drawn is durable, or about to be."""
        return self.observer.offset <= self._saved_at

    # --- looks ---

    def look(self, now: float) -> Look:
        """The terminal as it is at this moment."""
        look = self.observer.look(now)
        if self.silent:  # the screen may be an old one
            return replace(look, verdict=replace(look.verdict, activity=Activity.UNKNOWN, evidence=SILENT))
        return look

    def looked(self, look: Look, now: float, *, answering: bool) -> list[SessionCommand]:
        """That was a look; `answering`: an answer is being typed in several steps, so that it is half of one."""
        if not self._started and look.verdict.activity is not Activity.STARTING and not self._saving:
            self._started = True
            self._save_screen()
        if self.observed is None or not (look.steady_at > now or answering):
            self._tell(look, now)
        return self._drain()

    def judge(self, look: Look, now: float) -> list[SessionCommand]:
        """That look followed a change, or time that passed: how does it go with the turn?"""
        turn = self.turn
        if turn is not None:
            self._note_turn(turn)
            self._work(turn.seen(self._seen(turn, look, now)))
            self.speech.seen(look, self.observer.screen.kinds, now)
            self._tools.seen(look, now)
        return self._drain()

    def wake_at(self, look: Look, now: float) -> float | None:
        """When the terminal is to be judged again at the latest, though nothing changes."""
        times = [look.steady_at, look.unreadable_at, self.hands_at + HANDS_OFF_S]
        times += [self.speech.due or 0.0, self._tools.due or 0.0]
        if self.turn is not None and self.turn.deadline is not None:
            times.append(max(self.turn.deadline, now + MOMENT_S))
        if look.verdict.activity is not Activity.READY:
            times += turning_points(self._profile, look.changed_at, look.still_since)
        elif not look.verdict.settled:
            times.append(look.changed_at + self._profile.ready.quiet_ms / 1000)
        coming = [when for when in times if when > now]
        return min(coming) + MOMENT_S if coming else None

    def hands_on(self, now: float) -> bool:
        """A person pressed a key just now."""
        return now - self.hands_at < HANDS_OFF_S

    def obstacle(self, look: Look, now: float, *, for_another: bool = False) -> Obstacle | None:
        """Why nothing can be typed for a message at the moment of `look`; `for_another`: than that of the turn."""
        return obstacle(
            Moment(
                look=look,
                silent=self.silent,
                unread=self.unread,
                hands=self.hands_on(now),
                in_turn=for_another and self.turn is not None,
                pasted=for_another and self.pasted,
            )
        )

    def _tell(self, look: Look, now: float) -> None:
        asked = look.verdict.asked
        prompt_id = asked.prompt.prompt_id if asked is not None else None
        self.asking.shown(look.offset, prompt_id)
        found = self.obstacle(look, now, for_another=True)
        observed = LinkObserved(
            activity=look.verdict.activity,
            evidence=look.verdict.evidence,
            prompt=asked.prompt if asked is not None else None,
            can_receive=found is None,
            held=found.held if found is not None else None,
            asking=self.asking.number,
            by_hand=self.touched if self.touched != prompt_id else None,
        )
        self.touched = self.touched if observed.by_hand is None else None
        if observed == self.observed:
            return
        before, self.observed = self.observed, observed
        if self.turn is not None and before is not None and observed.activity is not before.activity:
            self._out.append(Poll())  # what a transcript says of it is not poked for
        self._out.append(Emit(observed))
        unknown = observed.held == UNKNOWN_SCREEN.held
        if unknown is not (before is not None and before.held == UNKNOWN_SCREEN.held):
            self._out.append(Emit(_unknown_screen(observed, begins=unknown)))

    # --- the turn ---

    @property
    def task_id(self) -> str:
        """Of the turn's task."""
        assert self.delivery is not None
        return self.delivery.task_id

    @property
    def record(self) -> TurnRecord:
        """What is to be durable of the turn."""
        assert self.delivery is not None
        assert self.turn is not None
        return self.delivery.record.model_copy(update={"link": self.turn.state.model_dump(mode="json")})

    def input_id(self, part: str) -> str:
        """By which the keeper knows that part of the turn's keys."""
        assert self.delivery is not None
        assert self.turn is not None
        leg = f".{self.turn.state.leg}" if self.turn.state.leg else ""
        return f"{self.delivery.task_id}.{self.delivery.record.attempt}.{part}{leg}"

    def begin(self, delivery: Delivery, now: float) -> list[SessionCommand]:
        """Begin the turn, or go on with it. Raises NotReady while one runs."""
        if self.turn is not None:
            raise NotReady("a turn runs already", task=self.task_id)
        state = turns.TurnState.model_validate(delivery.record.link)
        compose = functools.partial(
            type_message,
            self._profile.delivery,
            bracketed=self.observer.screen.snapshot().modes.bracketed_paste,
            command=delivery.command,
            prompt=state.prompt or self.observer.prompt,
        )
        note = self._profile.prompts.denial_note
        denial = system_mark(delivery.task_id) + note if note else None
        turn = PtyTurn(
            self._profile,
            delivery.text,
            compose,
            state,
            channels_tell=self._channels_tell,
            command=delivery.command,
            denial=denial,
        )
        self.turn, self.delivery = turn, delivery
        self.speech.begin(turn)
        self._tools.begin(turn, delivery.task_id)
        if state.interrupting:  # by the last daemon, which pressed the keys or was about to
            self.observer.asked_to_stop(now)
        else:
            self.observer.stop_over()
        self._work(turn.begin(now, fresh=delivery.fresh))
        for fact in self._facts:
            self._work(turn.told(fact, now))
        return self._drain()

    def typing(self, look: Look) -> bool:
        """Whether a message is half typed: pasted, or about to be, and not taken yet. A dialog in between is a
        person's to answer."""
        return self.half_typed and look.verdict.asked is None

    @property
    def half_typed(self) -> bool:
        """The same but for the dialog, which takes a look at the screen to tell."""
        return self.turn is not None and self.turn.phase in HALF_TYPED

    @property
    def pasted(self) -> bool:
        """What stands in the composer may be the message itself."""
        there = self.turn is not None and (self.writing or self.turn.phase is not turns.Phase.PASTING)
        return there and self.half_typed

    def submitting(self, look: Look) -> None:
        """The submit key is about to be pressed into what `look` shows."""
        self._stood = _above(look)

    def _work(self, commands: Sequence[turns.Command]) -> None:
        if commands:
            self._out.append(Work(tuple(commands)))

    def _seen(self, turn: PtyTurn, look: Look, now: float) -> turns.Seen:
        # Before, what the chrome says of the turn is not asked.
        ends = look.verdict.activity is Activity.READY or turn.state.interrupting
        error, interrupted = said_of_turn(self._profile, look, turn.message, turn.old_marks) if ends else (None, False)
        return turns.Seen(
            verdict=look.verdict,
            may_type=turn.phase is turns.Phase.PREPARED and self.obstacle(look, now) is None,
            composer=look.composer.state,
            offset=look.offset,
            now=now,
            changed_at=look.changed_at,
            error=error,
            interrupted=interrupted,
            echoed=self._echoed(turn, look),
            replaced=turn.phase is turns.Phase.SUBMITTED and self._replaced(look),
            text=look.composer.text,
            prompt=look.composer.prompt,
            stopped=look.record is not None and look.record == self._profile.interrupt.status,
            unread=self.unread,
            starting=holds_back(self._profile.delivery, look.screen, look.composer),
            worked_until=look.worked_until,
            marks=marks_in(self._profile, look.screen.lines)
            if turn.phase is turns.Phase.SETTLING
            else turn.state.marks,
        )

    def _note_turn(self, turn: PtyTurn) -> None:
        runs = turn.phase in RUNS and not turn.state.interrupting
        self.observer.unbegun = turn.message if runs and turn.state.turn is None else None
        if runs != self.observer.in_turn:
            self.observer.in_turn = runs
            if not runs:
                self.observer.own_prompt = None
            self._out.append(LookSoon())

    def _echoed(self, turn: PtyTurn, look: Look) -> bool:
        match turn.phase:
            case turns.Phase.SETTLING:
                return look.composer.state == "absent" and ends_at_cursor(look.screen, turn.message)
            case turns.Phase.SUBMITTED:
                return _echoes(look, turn.message)
            case turns.Phase.WORKING:
                return turn.state.located or _echoes(look, turn.message)
            case _:
                return False

    def _replaced(self, look: Look) -> bool:
        now = _above(look)
        left = sum(row in now for row in self._stood)
        return bool(self._stood) and 3 * left <= len(self._stood) and 2 * len(now) >= look.screen.rows

    def conclude(self, command: turns.Command, now: float) -> list[SessionCommand]:
        """The machine says how its turn goes: tell the agent; one that is over is gone."""
        event = self._event(command)
        if not isinstance(event, LinkTurnAccepted | LinkTurnProgress):
            self._tools.last(self.observer.screen.snapshot(), now)
            self._drop()
        self._out.append(Emit(event))
        return self._drain()

    def give_up(self, command: turns.Command) -> list[SessionCommand]:
        """The turn is over and told so, but something of it is still to be cleared away."""
        return [Emit(self._event(command))]

    def drop(self) -> list[SessionCommand]:
        """The turn is gone."""
        self._drop()
        return self._drain()

    def _event(self, command: turns.Command) -> LinkEvent:
        match command:
            case turns.Accepted():
                return LinkTurnAccepted(self.task_id, command.evidence)
            case turns.Progressed():
                return LinkTurnProgress(self.task_id, command.message_id, command.text)
            case turns.Ended():
                return LinkTurnEnded(self.task_id, command.answer, command.exact, command.evidence, command.truncated)
            case turns.Failed():
                return LinkTurnFailed(self.task_id, command.code, command.message, command.evidence)
            case turns.Interrupted():
                return LinkTurnInterrupted(self.task_id, command.reason, command.evidence)
            case turns.Undelivered():
                return LinkUndelivered(self.task_id, command.reason, self.observer.screen.text(scrollback=False))
        raise AssertionError(command)

    def _drop(self) -> None:
        self.turn = self.delivery = None
        self.observer.given_back = self.observer.own_prompt = self.observer.unbegun = None
        self._stood = []
        self.observer.in_turn = False  # nothing is asked in it any more
        self.speech.end()
        self._tools.end()
        self._out.append(LookSoon())

    def _said(self, piece: Piece) -> None:
        self._out.append(Emit(LinkTurnSaid(self.task_id, piece.text, piece.append)))


def _echoes(look: Look, message: str) -> bool:
    """Whether the beginning of `message` stands on the screen elsewhere than in the composer."""
    anchor = anchor_of(message)
    return any(shows(line, anchor) for row, line in enumerate(look.screen.lines) if row != look.composer.row)


def _above(look: Look) -> list[str]:
    """The rows above the composer that have words; rules and frames stay where they are."""
    return [line for line in look.screen.lines[: look.composer.row or 0] if any(map(str.isalnum, line))]


def _unknown_screen(seen: LinkObserved, *, begins: bool) -> LinkAlert:
    """What nobody here can read is a person's: they are told when it begins, and when it is over."""
    if not begins:
        return LinkAlert("UNKNOWN_SCREEN", "its screen is understood again", "over")
    message = f"its screen is not understood ({seen.evidence}): attach answers it, or 'synapsectl keys'"
    return LinkAlert("UNKNOWN_SCREEN", message, "begins")
