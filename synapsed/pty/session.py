"""Decides for one program in a terminal: takes reports about the program and returns commands. Pure.

The session takes events (output came, a channel reported, a person typed, the screen was looked at, …) and returns
commands, which the `Driver` performs. It has no I/O and no clock: callers pass times, in monotonic seconds. Looks come
from the stage that draws the screen. `PtyTurn` decides about the present turn, `readiness` if a message may be typed.
"""

import functools
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from synapsed.errors import NotReady
from synapsed.interfaces import Delivery
from synapsed.keepers.heartbeat import SILENT
from synapsed.model.agent import Activity
from synapsed.model.facts import (
    AssistantSaid,
    AssistantSaying,
    BackgroundTold,
    ChannelFact,
    PromptAccepted,
    SessionStarted,
    TurnAnswered,
    TurnEnded,
    TurnFailed,
    TurnInterrupted,
)
from synapsed.model.link import (
    LinkSession,
    LinkTold,
    LinkTurnAccepted,
    LinkTurnNews,
    LinkTurnProgress,
    LinkTurnSaid,
    LinkUndelivered,
)
from synapsed.profiles.profile import Profile
from synapsed.pty import turn_types as turns
from synapsed.pty.keyboard import Emit, Keyboard, Tell, Work
from synapsed.pty.lag import ON_WAY_S, Lag
from synapsed.pty.message_evidence import Misreading
from synapsed.pty.observations import Observations
from synapsed.pty.prompt_learning import PromptLearning
from synapsed.pty.readiness import Moment, Obstacle, RestAfterHooks, obstacle
from synapsed.pty.session_commands import AnswerQuery, AtRest, LookSoon, SavePrompts, SaveScreen, SessionCommand
from synapsed.pty.streaming import Piece, Speech
from synapsed.pty.tool_screen import ToolScreen
from synapsed.pty.turn import PtyTurn
from synapsed.pty.turn_machine import marked
from synapsed.terminal.answer import anchor_of, numbers_of, shows
from synapsed.terminal.composer import ends_at_cursor, holds_back
from synapsed.terminal.delivery import type_message
from synapsed.terminal.line_prompts.evidence import TerminalFacts, Word
from synapsed.terminal.line_prompts.learned import LearnedPrompt
from synapsed.terminal.look import Look
from synapsed.terminal.screen_messages import (
    Ask,
    Drawn,
    InBackground,
    KeysTyped,
    Skipped,
    Start,
    StopAsked,
    StopOver,
    TurnClosed,
    TurnOpened,
)
from synapsed.terminal.turn_signs import marks_in, said_of_turn
from synapsed.terminal.verdict import turning_points

CHECKPOINT_EVERY = 256 * 1024
"""Bytes of output between checkpoints."""

RECENT_FACTS = 256
"""Number of channel facts that are kept for a turn that is continued after a restart; older ones are dropped."""

HANDS_OFF_S = 1.0
"""Seconds after a person's key in which no message is typed: the person's text may not be on the screen yet."""

HALF_TYPED = frozenset(
    {turns.Phase.PASTING, turns.Phase.SETTLING, turns.Phase.SUBMITTING, turns.Phase.SUBMITTED, turns.Phase.OVER}
)
"""Phases in which a person's keys wait, so that the submit key does not submit the person's words. Also OVER: such a
turn is being cleared away, by keys that empty the composer."""

RUNS = frozenset({turns.Phase.SUBMITTED, turns.Phase.WORKING, turns.Phase.READING})
"""Phases in which the program's output may be a question of this turn."""

BEFORE_PASTE = frozenset({turns.Phase.PREPARED, turns.Phase.PASTING, turns.Phase.OVER})
"""Phases in which the message is neither in the composer nor with the program."""

COMPUTES_S = 2.0
"""Seconds for which it counts that the program was found computing: checks are twice a second, or less often."""

MOMENT_S = 0.001
"""Seconds that are added to a due time, so that the time has passed when the look comes."""


class Session:
    """Session of one program. `channels_tell`: the program has a side channel that reports."""

    finishing = False
    """True if the program has ended, or its keeper is gone."""
    silent = False
    """True if the keeper does not answer."""
    unread = False
    """True if the program had not read all its input at the last check."""
    writing = False
    """True while the turn's keys are being written."""
    _text_at = -1
    """End of the output when a person last typed text."""
    _saving = False
    """True while the screen is being saved."""

    def __init__(
        self, profile: Profile, start: Start, *, channels_tell: bool, prompts: tuple[LearnedPrompt, ...] = ()
    ) -> None:
        self._profile = profile
        self.prompts = PromptLearning(profile.composer, prompts)
        self._channels_tell = channels_tell
        self.offset = start.offset
        """End of the output that has come; not all of it may be drawn."""
        self.now = 0.0
        """Time of the last look at the terminal."""
        self.last: Look | None = None
        """The last look."""
        self.lag = Lag()
        self.keyboard = Keyboard(profile, self.lag)
        self.given_back: Literal["program", "command"] | None = None
        """Word for the next `Ask`: `program` or `command` if the terminal is in line mode since the message came."""
        self.kernel: Word | None = None
        """Word for the next `Ask`: the kernel's report on a quiet program without a prompt."""
        self._out: list[SessionCommand] = []
        self.turn: PtyTurn | None = None
        """The present turn; None between turns."""
        self.speech = Speech(profile, self._said)
        self._tools = ToolScreen(profile, lambda fact: self._out.append(Emit(LinkTold(fact))))
        self.observations = Observations(profile, start.asked)
        self.misreading = Misreading(profile.composer, start.misread)
        self._rest = RestAfterHooks(profile)
        self.hands_at = -HANDS_OFF_S
        """Time when a person last pressed a key, or the program read its waiting input."""
        self.person_at: float | None = None
        """Time when a person last pressed a key, as far as this daemon knows."""
        self._computed_at = -COMPUTES_S
        """Time when the program was last found computing, or waiting for a processor."""
        self._computes = False
        """True if the last check found this. It counts however old the check is, since a busy machine delays checks."""
        self._facts: deque[ChannelFact] = deque(maxlen=RECENT_FACTS)
        self._conversation: str | None = None
        self._conversation_at = 0
        """`at_ns` of the fact that named the conversation."""
        self._started = start.started
        """A saved checkpoint says that the program has started: the next daemon does not take it for starting."""
        self._saved_at = start.offset
        """End of the output at the last saved screen."""

    def _drain(self) -> list[SessionCommand]:
        commands, self._out = self._out, []
        return commands

    # --- events ---

    def output(self, offset: int, data: bytes) -> list[SessionCommand]:
        """Takes the program's output `data` at `offset`."""
        self.offset = offset + len(data)
        self.speech.printed(offset, data)
        if self.offset - self._saved_at >= CHECKPOINT_EVERY and not self._saving:
            self._save_screen()
        return self._drain()

    def drawn(self, drawn: Drawn) -> list[SessionCommand]:
        """Notes that more of the output is on the screen."""
        return [*(AnswerQuery(reply.offset, reply.data) for reply in drawn.replies), LookSoon()]

    def missed(self, offset: int) -> list[SessionCommand]:
        """Notes that the output before `offset` is gone."""
        self.offset = offset
        return [Tell(Skipped(offset))]

    def told(self, fact: ChannelFact, now: float) -> list[SessionCommand]:
        if isinstance(fact, AssistantSaying):
            self.speech.told(fact)
        elif isinstance(fact, BackgroundTold):
            self._out.append(Tell(InBackground(fact.names)))
        else:
            self._facts.append(fact)
            if isinstance(fact, PromptAccepted):
                self._rest.worked_on(self.offset)
                self._out.append(Tell(TurnOpened(fact.channel, fact.at_ns)))
            elif isinstance(fact, TurnAnswered):
                self._rest.answered()
                self._out.append(Tell(TurnClosed()))
            elif isinstance(fact, TurnEnded | TurnFailed | TurnInterrupted):
                self._rest.over()
                self._out.append(Tell(TurnClosed()))
            self._follow_conversation(fact)
            self._out.append(Emit(LinkTold(fact)))
            if self.turn is not None:
                self._work(self.turn.told(fact, now))
            if isinstance(fact, AssistantSaid):
                self.speech.said(fact)
        self._out.append(LookSoon())
        return self._drain()

    def _follow_conversation(self, fact: ChannelFact) -> None:
        """Notes that the program is in another conversation. Only a start or a prompt in a conversation shows this;
        other facts that name a conversation may be late reports of the last one."""
        if fact.session is None or fact.session == self._conversation:
            return
        moves = isinstance(fact, SessionStarted | PromptAccepted) and fact.at_ns >= self._conversation_at
        if self._conversation is None or moves:
            self._conversation, self._conversation_at = fact.session, fact.at_ns
            self._out.append(Emit(LinkSession(fact.session, fact.at_ns)))

    def pressed(self, now: float, data: bytes = b"") -> None:
        """Notes that a person pressed the keys `data`. Text is on its way until something is printed (`Lag`)."""
        self.hands_at = self.person_at = now
        if data and data.decode(errors="replace").isprintable():
            self._text_at = self.offset

    def read(self, now: float) -> list[SessionCommand]:
        """Notes that the program has read its waiting input, and is about to show it."""
        self.hands_at = now
        return [Tell(KeysTyped(now)), LookSoon()]

    def _save_screen(self) -> None:
        self._saving = True
        self._out.append(SaveScreen())

    def saving(self, offset: int) -> None:
        """Notes that the screen, drawn up to `offset`, is being saved."""
        self._saving, self._saved_at = True, offset

    def saved(self) -> None:
        """Notes that the saving is done, with or without success."""
        self._saving = False

    @property
    def is_saved(self) -> bool:
        """Returns True if the screen is saved with all output, or being saved so."""
        return self.offset <= self._saved_at

    # --- looks ---

    def ask(self, now: float, *, whole: bool = False) -> Ask:
        """Returns the request for a look at this moment."""
        turn = self.turn if self._runs else None
        return Ask(
            now=now,
            in_turn=turn is not None,
            facts=self._reader(),
            learned=self.prompts.with_offered(self._typed_at),
            given_back=self.given_back,
            kernel=self.kernel,
            unbegun=turn.message if turn is not None and turn.state.turn is None else None,
            kinds=self.speech.wants_screen(now),
            whole=whole,
        )

    def _reader(self) -> TerminalFacts | None:
        facts, turn = self.prompts.facts, self.turn
        if facts is None or turn is None or turn.state.phase in BEFORE_PASTE or turn.state.reader is None:
            return facts
        return facts._replace(foreign=facts.group != turn.state.reader)

    @property
    def _typed_at(self) -> str | None:
        """Returns the learned prompt at which the turn's message was or is being typed, or None."""
        if self.turn is None or not self.turn.state.at_prompt or self.turn.state.phase is turns.Phase.PREPARED:
            return None
        return self.turn.state.prompt

    def wants_facts(self, look: Look, now: float) -> bool:
        """Returns True if the readers of the terminal should be asked for, since the screen has come to rest."""
        return self.prompts.is_due(look) and now - look.changed_at >= self._profile.ready.quiet_ms / 1000

    @property
    def _runs(self) -> bool:
        """Returns True if a message was submitted, and its turn is neither over nor being stopped."""
        return self.turn is not None and self.turn.state.phase in RUNS and not self.turn.state.interrupting

    def believed(self, look: Look) -> Look:
        """Returns the look, corrected: unknown activity if the keeper is silent, and the id of a repeated question."""
        if self.silent:  # the screen may be old
            look = replace(look, verdict=replace(look.verdict, activity=Activity.UNKNOWN, evidence=SILENT))
        return self.observations.asking.named(look)

    def looked(self, look: Look, now: float) -> list[SessionCommand]:
        self.last, self.now = look, now
        if look.composer.state == "draft" and (self.pasted or self.hands_on(now)):
            self.misreading.proven()
        if self.lag.unshown and (look.composer.state == "draft" or (self.turn and self._echoed(self.turn, look))):
            self.lag.shown(now)
        if not self._started and look.verdict.activity is not Activity.STARTING and not self._saving:
            self._started = True
            self._save_screen()
        if self._rest.seen(look):
            self._out.append(AtRest())
        if self.prompts.looked(look):
            self._out += [SavePrompts(), LookSoon()]
        if self.observations.last is None or not (look.steady_at > now or self.keyboard.answering):
            self._tell(look, now)
        return self._drain()

    def judge(self, look: Look, now: float) -> list[SessionCommand]:
        """Judges the turn by a look that was made after a change, or because of the time."""
        turn = self.turn
        if turn is not None and not self.finishing:
            if turn.state.phase is turns.Phase.SETTLING and turn.state.at_prompt and not turn.state.shown_there:
                turn.state.shown_there = self._shows(turn, look)
            self._work(turn.seen(self._seen(turn, look, now)))
            self.speech.seen(look, now)
            self._tools.seen(look, now)
        return self._drain()

    def wake_at(self, look: Look, now: float) -> float | None:
        """Returns the latest time for the next judgement, even without a change; None if time alone changes nothing."""
        times = [look.steady_at, look.unreadable_at]
        times += [self.hands_at + after for after in (HANDS_OFF_S, HANDS_OFF_S + self.lag.seconds, ON_WAY_S)]
        times += [self.speech.due or 0.0, self._tools.due or 0.0]
        if self.turn is not None and self.turn.deadline is not None:
            times.append(max(self.turn.deadline, now + MOMENT_S))
        if look.verdict.activity is not Activity.READY:
            times += turning_points(self._profile, look.changed_at, look.still_since)
            times += turning_points(self._profile, look.calm_since, look.calm_since)
        elif not look.verdict.settled:
            times.append(look.changed_at + self._profile.ready.quiet_ms / 1000)
        coming = [when for when in times if when > now]
        return min(coming) + MOMENT_S if coming else None

    def hands_on(self, now: float) -> bool:
        """Returns True if a person pressed a key just now."""
        return now - self.hands_at < HANDS_OFF_S + self.lag.seconds

    def obstacle(self, look: Look, now: float, *, for_another: bool = False) -> Obstacle | None:
        """Returns the reason why no message can be typed at `look`, or None. `for_another`: it is not the turn's."""
        return obstacle(
            Moment(
                look=look,
                silent=self.silent,
                unread=self.unread,
                hands=self.hands_on(now) or (look.offset <= self._text_at and now - self.hands_at < ON_WAY_S),
                in_turn=for_another and self.turn is not None,
                pasted=for_another and self.pasted,
                misread=self.misreading.stands(look),
            )
        )

    def _tell(self, look: Look, now: float) -> None:
        asked, told = look.verdict.asked, self.observations
        if told.asking.shown(look.offset, asked.prompt.prompt_id if asked is not None else None):
            self._out.append(LookSoon())  # a caller may wait for a look with the question's new id
            if not self._saving:
                self._save_screen()  # the next daemon must know the question by the same id
            self.last = look = told.asking.named(look)
        found = self.obstacle(look, now, for_another=True)
        self._out += told.tell(look, found, in_turn=self.turn is not None)

    # --- the turn ---

    def input_id(self, part: str) -> str:
        """Returns the input id for `part` of the turn's keys; the keeper writes each id once."""
        assert self.turn is not None
        state = self.turn.state
        leg = f".{state.leg}" if state.leg else ""
        again = f".again{state.typings}" if state.typings else ""
        return f"{self.turn.task_id}.{self.turn.attempt}.{part}{leg}{again}"

    def _takes_pastes(self, look: Look) -> bool:
        """Returns True if bracketed paste is on; in line mode a killed program may have left it on."""
        lines = self.prompts.facts is not None and self.prompts.facts.line_mode is True
        return look.screen.modes.bracketed_paste and not lines

    def begin(self, delivery: Delivery, now: float) -> list[SessionCommand]:
        """Begins the turn, or continues it, at the screen of the last look. Raises NotReady while another turn runs."""
        if self.turn is not None:
            raise NotReady("a turn runs already", task=self.turn.task_id)
        look = self.last
        assert look is not None
        state = turns.TurnState.model_validate(delivery.record.link)
        compose = functools.partial(
            type_message,
            self._profile.delivery,
            bracketed=self._takes_pastes(look),
            command=delivery.command,
            prompt=state.prompt or look.composer.prompt,
        )
        denial = marked(delivery.task_id, self._profile.prompts.denial_note)
        turn = PtyTurn(self._profile, delivery, compose, state, channels_tell=self._channels_tell, denial=denial)
        self.turn = turn
        self.speech.begin(turn)
        if self._tools.reads:
            self._tools.begin(turn)
        # If the turn is being stopped, the last daemon has pressed the keys or was about to press them.
        self._out.append(Tell(StopAsked(now) if state.interrupting else StopOver()))
        self._work(turn.begin(now, fresh=delivery.fresh))
        for fact in self._facts:
            self._work(turn.told(fact, now))
        return self._drain()

    @property
    def phase(self) -> turns.Phase | None:
        """Returns the phase of the turn; None between turns."""
        return self.turn.state.phase if self.turn is not None else None

    def typing(self, look: Look) -> bool:
        """Returns True if a message is half typed (about to be pasted, or not taken yet), and no dialog is shown."""
        return self.half_typed and look.verdict.asked is None

    @property
    def half_typed(self) -> bool:
        """Returns the same as `typing` without regard to a dialog, so without a look at the screen."""
        return self.turn is not None and (self.turn.state.phase in HALF_TYPED or self.turn.withdrawing)

    @property
    def pasted(self) -> bool:
        """Returns True if the text in the composer may be the message itself."""
        there = self.turn is not None and (self.writing or self.turn.state.phase is not turns.Phase.PASTING)
        return there and self.half_typed

    def misreads(self) -> bool:
        """Returns True, and saves it, if the pasted message may be elsewhere than in the composer at the last look."""
        assert self.turn is not None
        assert self.last is not None
        found = self.misreading.found(self.last, self.turn.message, self.turn.state.before)
        if found and not self._saving:
            self._save_screen()
        return found

    def has_drawn(self, turn: PtyTurn, look: Look) -> bool:
        """Returns True if anything above the composer is new since the message was submitted, or that is not known."""
        stood = turn.state.stood
        return not (stood and look.composer.row) or bool(Counter(_above(look)) - Counter(stood))

    def prepared(self) -> turns.TurnState:
        """Returns the state of a turn whose message is about to be pasted into the last screen."""
        before = self.misreading.before(self.last) if self.last is not None else None
        return turns.TurnState(phase=turns.Phase.PASTING, before=before)

    def _work(self, commands: Sequence[turns.Command]) -> None:
        if commands:
            self._out.append(Work(tuple(commands)))

    def _seen(self, turn: PtyTurn, look: Look, now: float) -> turns.Seen:
        # While the program works, its chrome (status lines) is not searched for errors or interruptions.
        ends = look.verdict.activity is Activity.READY or turn.state.interrupting
        error, interrupted = said_of_turn(self._profile, look, turn.message, turn.old_marks) if ends else (None, False)
        may_type = turn.state.phase is turns.Phase.PREPARED and self.obstacle(look, now) is None
        return turns.Seen(
            verdict=look.verdict,
            may_type=may_type,
            rows=self.misreading.before(look) if may_type else None,
            above=_above(look) if turn.state.phase is turns.Phase.SETTLING else [],
            composer=look.composer.state,
            offset=look.offset,
            now=now,
            changed_at=look.changed_at,
            error=error,
            interrupted=interrupted,
            echoed=self._echoed(turn, look),
            replaced=turn.state.phase is turns.Phase.SUBMITTED and self._replaced(turn, look),
            text=look.composer.text,
            prompt=look.composer.prompt,
            stopped=look.record is not None and look.record == self._profile.interrupt.status,
            unread=self.unread,
            computes=self._computes or now - self._computed_at < COMPUTES_S,
            lag=self.lag.seconds,
            starting=holds_back(self._profile.delivery, look.screen, look.composer),
            worked_until=look.worked_until,
            person=self._person_was_there(),
            marks=marks_in(self._profile, look.screen.lines)
            if turn.state.phase is turns.Phase.SETTLING
            else turn.state.marks,
        )

    def asked_processor(self, computes: bool, now: float) -> None:
        """Takes the kernel's answer, while a message is half typed: does it compute, or wait for a processor?"""
        self.lag.asked(now, rests=not (computes or self.unread), offset=self.offset)
        self._computes = computes
        self._computed_at = now if computes else self._computed_at

    def asked_kernel(self, *, line_mode: bool | None, reader: int | None) -> None:
        """Takes facts of the terminal during a turn: `line_mode`, and the process group that reads it (`reader`)."""
        if self.turn is None:
            return
        state = self.turn.state
        if self._profile.composer.usual:
            return  # such a program's learned prompt is better evidence
        if line_mode and reader != state.reader:
            self.given_back = "command"
        else:
            self.given_back = "program" if line_mode and state.edited else None

    def _shows(self, turn: PtyTurn, look: Look) -> bool:
        """Returns True if the message is shown where it was typed: this proves that the text before it is a prompt."""
        composer = look.composer
        if composer.state == "draft" and composer.learned and turn.holds(composer.text):
            return True
        shown = self.prompts.confirm(turn.state.prompt, turn.message, look)
        self._out += [SavePrompts()] if shown else []
        return shown

    def takes_enter(self, look: Look) -> bool:
        """Returns True if the submit key may be pressed. At a learned prompt, the text at the cursor must be ours."""
        turn = self.turn
        if turn is None or not turn.state.at_prompt:
            return True
        stands = look.composer.state == "draft" or self._ends_at_cursor(turn, look)
        return stands or turn.ends_blank

    def _echoed(self, turn: PtyTurn, look: Look) -> bool:
        match turn.state.phase:
            case turns.Phase.SETTLING:
                return look.composer.state == "absent" and self._ends_at_cursor(turn, look)
            case turns.Phase.SUBMITTED:
                return _echoes(look, turn.message)
            case turns.Phase.WORKING:
                return turn.state.located or _echoes(look, turn.message)
            case _:
                return False

    def _ends_at_cursor(self, turn: PtyTurn, look: Look) -> bool:
        return ends_at_cursor(look.screen, turn.message, edited=self.prompts.edited)

    def _replaced(self, turn: PtyTurn, look: Look) -> bool:
        now, stood = _above(look), turn.state.stood
        left = sum(row in now for row in stood)
        return bool(stood) and 3 * left <= len(stood) and 2 * len(now) >= look.screen.rows

    def tells_screen(self, event: LinkTurnNews) -> bool:
        """Returns True if `say` needs the text of the screen for this event."""
        ends = not isinstance(event, LinkTurnAccepted | LinkTurnProgress)
        return ends and (self._tools.reads or isinstance(event, LinkUndelivered))

    def say(self, event: LinkTurnNews, screen: str, now: float, *, stays: bool) -> list[SessionCommand]:
        """Reports the progress of the turn; `screen` is the screen's text. A turn that is over is dropped, unless it
        `stays` until its remains are removed from the composer."""
        if self.turn is not None:
            event = self.turn.explained(event, touched=self._person_was_there())
        if not stays and not isinstance(event, LinkTurnAccepted | LinkTurnProgress):
            self._tools.last(screen, now)
            self._drop()
        return [*self._drain(), Emit(replace(event, screen=screen) if isinstance(event, LinkUndelivered) else event)]

    def _person_was_there(self) -> bool:
        """Returns True if a person has pressed a key since just before the turn's message was submitted."""
        begun = self.turn.state.submit_ns / 1e9 if self.turn is not None else 0.0
        return self.person_at is not None and self.person_at >= begun - HANDS_OFF_S

    def drop(self) -> list[SessionCommand]:
        self._drop()
        return self._drain()

    def _drop(self) -> None:
        self.turn = None
        self.given_back, self._computes = None, False
        self.speech.end()
        self._tools.end()
        self._out.append(LookSoon(at_once=True))  # the next message may wait for a look without this turn

    def _said(self, piece: Piece) -> None:
        assert self.turn is not None
        self._out.append(Emit(LinkTurnSaid(self.turn.task_id, piece.text, piece.append)))


def _echoes(look: Look, message: str) -> bool:
    """Returns True if the beginning of `message` is on the screen, in a row other than the composer's."""
    anchor = anchor_of(message)
    return any(shows(line, anchor) for row, line in enumerate(look.screen.lines) if row != look.composer.row)


def _above(look: Look) -> list[int]:
    """Returns the rows above the composer, by `numbers_of`."""
    return numbers_of(look.screen.lines[: look.composer.row or 0])
