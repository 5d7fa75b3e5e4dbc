"""Performs the commands of the turn machine on a terminal: one worker, one command after the other.

So nothing is typed while something else is being typed, and nothing is typed before the record that says so is
durable. `PtyLink` tells the machine what is seen and reported; what the machine then wants comes here.
"""

import asyncio
import functools
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from synapsed import aio
from synapsed.clock import Clock
from synapsed.errors import KeeperLost, NotReady
from synapsed.interfaces import Delivery, SideChannel
from synapsed.keepers.client import KeeperClient, KeeperRefused
from synapsed.model.agent import Activity
from synapsed.model.facts import ChannelFact
from synapsed.model.link import (
    LinkEvent,
    LinkTold,
    LinkTurnAccepted,
    LinkTurnEnded,
    LinkTurnFailed,
    LinkTurnInterrupted,
    LinkTurnProgress,
    LinkTurnRecord,
    LinkTurnSaid,
    LinkUndelivered,
)
from synapsed.profiles import Profile
from synapsed.pty import turn_types as turns
from synapsed.pty.driver import Hands
from synapsed.pty.feed_mark import FeedMark
from synapsed.pty.foreground import Foreground
from synapsed.pty.input_backlog import Unread
from synapsed.pty.keyboard import Keyboard
from synapsed.pty.streaming import Piece, Speech
from synapsed.pty.tool_screen import ToolScreen
from synapsed.pty.turn import PtyTurn
from synapsed.tasks.sender_mark import system_mark
from synapsed.terminal.answer import SCROLLBACK_LINES, from_lines, from_screen, is_cut
from synapsed.terminal.composer import ends_at_cursor, holds_back
from synapsed.terminal.delivery import type_message
from synapsed.terminal.observer import Look, TerminalObserver

__all__ = ["TurnRunner"]

HALF_TYPED = frozenset(
    {turns.Phase.PASTING, turns.Phase.SETTLING, turns.Phase.SUBMITTING, turns.Phase.SUBMITTED, turns.Phase.OVER}
)
"""Until the program took the message: a second submit key must not find a person's words. A turn that is over and still
here is being cleared away: the keys that empty the composer must not find them either."""

RUNS = frozenset({turns.Phase.SUBMITTED, turns.Phase.WORKING, turns.Phase.READING})
"""What the program prints now may be a question of this turn's."""

STALLED_S = 3.0
"""A program that has read nothing of a half-written message for so long is not taking it."""

ANSWER_BYTES_MAX = 8 << 20
"""Output of one turn that is read back for an answer; of more the end is kept."""


class TurnRunner:
    """The one turn of a program, None between turns. `look` judges the terminal now, `look_soon` as soon as may be;
    `may_type` says whether a message may be typed at the moment of a look."""

    def __init__(
        self,
        *,
        profile: Profile,
        clock: Clock,
        observer: TerminalObserver,
        keyboard: Keyboard,
        hands: Hands,
        channels: Sequence[SideChannel],
        keeper: Callable[[], KeeperClient],
        unread: Unread,
        emit: Callable[[LinkEvent], None],
        look: Callable[[], Look],
        look_soon: Callable[[], None],
        may_type: Callable[[Look], bool],
        mark: FeedMark | None = None,
    ) -> None:
        self._profile = profile
        self._clock = clock
        self._observer = observer
        self._keyboard = keyboard
        self._hands = hands
        self._channels = channels
        self._keeper = keeper
        self._unread = unread
        self._foreground = Foreground()
        self._emit = emit
        self._look = look
        self._look_soon = look_soon
        self._may_type = may_type
        self._mark = mark
        """Of reading answers, which has emulators of its own."""
        self._delivery: Delivery | None = None
        self._work: deque[tuple[PtyTurn, turns.Command]] = deque()
        self._work_came = asyncio.Event()
        self._saved: asyncio.Future[None] | None = None
        self._writing = False
        self._stood: list[str] = []
        """What stood above the composer when the submit key was pressed."""
        self.turn: PtyTurn | None = None
        self.speech = Speech(profile, self._said, self._read_output)
        self._tools = ToolScreen(profile, lambda fact: self._emit(LinkTold(fact)))
        self.idle = hands.idle
        """Set while no command waits or is being performed."""
        self.idle.set()

    @property
    def task_id(self) -> str:
        """Of the turn's task."""
        assert self._delivery is not None
        return self._delivery.task_id

    def prepare(self) -> None:
        """A turn is about to begin: its record is written."""
        if not self._profile.composer.at_cursor:
            self._unread.ahead()

    def begin(self, delivery: Delivery, facts: Iterable[ChannelFact]) -> PtyTurn:
        """Begin the turn, or go on with it; `facts` were reported before. Raises NotReady while one runs."""
        if self.turn is not None:
            raise NotReady("a turn runs already", task=self.task_id)
        if delivery.fresh and self._profile.composer.at_cursor:
            self._unread.ahead()  # no sooner: a line editor may have come up while the record was written
        state = turns.TurnState.model_validate(delivery.record.link)
        bracketed = self._observer.screen.snapshot().modes.bracketed_paste
        compose = functools.partial(
            type_message,
            self._profile.delivery,
            bracketed=bracketed,
            command=delivery.command,
            prompt=state.prompt or self._observer.prompt,
        )
        note = self._profile.prompts.denial_note
        denial = system_mark(delivery.task_id) + note if note else None
        turn = PtyTurn(
            self._profile,
            delivery.text,
            compose,
            state,
            channels_tell=bool(self._channels),
            command=delivery.command,
            denial=denial,
        )
        self.turn, self._delivery = turn, delivery
        self.speech.begin(turn)
        self._tools.begin(turn, delivery.task_id)
        now = self._clock.monotonic()
        if state.interrupting:  # by the last daemon, which pressed the keys or was about to
            self._observer.asked_to_stop(now)
        else:
            self._observer.stop_over()
        self.add(turn.begin(now, fresh=delivery.fresh))
        for fact in facts:
            self.add(turn.told(fact, now))
        return turn

    def add(self, commands: Sequence[turns.Command]) -> None:
        """Perform what the machine of the present turn wants."""
        if commands and self.turn is not None:
            turn = self.turn
            self._work.extend((turn, command) for command in commands)
            self.idle.clear()
            self._work_came.set()

    def seen(self, look: Look, now: float) -> None:
        """The terminal was judged."""
        turn = self.turn
        if turn is None:
            return
        self._note_turn(turn)
        # Before, what the chrome says of the turn is not asked.
        ends = look.verdict.activity is Activity.READY or turn.state.interrupting
        error, interrupted = self._observer.chrome(turn.message, turn.old_marks) if ends else (None, False)
        echoed = self._echoed(turn, look)
        seen = turns.Seen(
            verdict=look.verdict,
            may_type=turn.phase is turns.Phase.PREPARED and self._may_type(look),
            composer=look.composer.state,
            offset=look.offset,
            now=now,
            changed_at=look.changed_at,
            error=error,
            interrupted=interrupted,
            echoed=echoed,
            replaced=turn.phase is turns.Phase.SUBMITTED and self._replaced(look),
            text=look.composer.text,
            prompt=look.composer.prompt,
            stopped=self._observer.stopped,
            unread=self._unread.now,
            starting=holds_back(self._profile.delivery, look.screen, look.composer),
            worked_until=self._observer.worked_until,
            marks=self._observer.marks if turn.phase is turns.Phase.SETTLING else turn.state.marks,
        )
        self.add(turn.seen(seen))
        self.speech.seen(look, self._observer.screen.kinds, now)
        self._tools.seen(look, now)

    def _note_turn(self, turn: PtyTurn) -> None:
        runs = turn.phase in RUNS and not turn.state.interrupting
        self._observer.unbegun = turn.message if runs and turn.state.turn is None else None
        if runs != self._observer.in_turn:
            self._observer.in_turn = runs
            if not runs:
                self._observer.own_prompt = None
            self._look_soon()

    def _echoed(self, turn: PtyTurn, look: Look) -> bool:
        match turn.phase:
            case turns.Phase.SETTLING:
                return look.composer.state == "absent" and ends_at_cursor(look.screen, turn.message)
            case turns.Phase.SUBMITTED:
                return self._observer.echoed(turn.message, look.composer)
            case turns.Phase.WORKING:
                return turn.state.located or self._observer.echoed(turn.message, look.composer)
            case _:
                return False

    def _replaced(self, look: Look) -> bool:
        now = _above(look)
        left = sum(row in now for row in self._stood)
        return bool(self._stood) and 3 * left <= len(self._stood) and 2 * len(now) >= look.screen.rows

    @property
    def due(self) -> list[float]:
        """When the terminal is to be judged again at the latest, monotonic seconds."""
        times = [self.speech.due or 0.0, self._tools.due or 0.0]
        if self.turn is not None and self.turn.deadline is not None:
            times.append(max(self.turn.deadline, self._clock.monotonic() + 0.001))
        return times

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
        return (
            self.turn is not None and self.half_typed and (self._writing or self.turn.phase is not turns.Phase.PASTING)
        )

    def recorded(self) -> None:
        """The record is durable."""
        if self._saved is not None and not self._saved.done():
            self._saved.set_result(None)

    async def run(self) -> None:
        """The worker; ends by being cancelled."""
        while True:
            await self._work_came.wait()
            while self._work:
                turn, command = self._work.popleft()
                if turn is not self.turn:
                    continue
                try:
                    more = await self._perform(turn, command)
                except KeeperLost:
                    if self._keeper().lost is not None:
                        continue  # the exit is told by the keeper's end
                    more = [_again(command)]  # it was only silent for a while
                except KeeperRefused as error:
                    if error.reason == "exited":
                        continue  # that is told too, and what was not submitted is given to the next program
                    more = [turns.Undelivered(f"it could not be typed: {error.message}", left=False)]
                self._work.extendleft((turn, command) for command in reversed(more))
            self._work_came.clear()
            self.idle.set()
            self._look_soon()  # the machine may wait for what stands on the screen already: nothing else would tell it

    async def _perform(self, turn: PtyTurn, command: turns.Command) -> Sequence[turns.Command]:
        match command:
            case turns.Save():
                await self._save(turn)
                return turn.saved()
            case turns.Type() if not await self._takes(turn, command.part):
                self._look_soon()
                return turn.held(self._clock.monotonic())
            case turns.Recall() if await self._keeper().recall(self._input_id(turn, command.part)) is None:
                return turn.recalled(command.part, None, self._clock.monotonic())
            case turns.Type() | turns.Recall():  # one that was begun is finished: a long paste goes in several parts
                return await self._type(turn, command.part, command.data)
            case turns.Clear():
                await self._hands.perform(self._keyboard.clear_if(turn.holds))
            case turns.Interrupted(left=True) if not await self._unread.ask():
                await self._hands.perform(self._keyboard.take_back())
                self._conclude(command)
            case turns.Undelivered(left=True) | turns.Interrupted(left=True):
                self._emit(self._outcome(command))  # at once: what is left may take its time to be seen
                return [turns.TakeBack()]
            case turns.TakeBack():
                await self._unread.until_read()
                await self._hands.perform(self._keyboard.take_back())
                self._drop()
            case turns.FindAnswer():
                return await self._answer(turn, command)
            case _:
                self._conclude(command)
        return []

    async def _type(self, turn: PtyTurn, part: str, data: bytes) -> Sequence[turns.Command]:
        """Write it; the machine hears that it is written, or that the program stopped reading half way: the rest is
        written when it goes on."""
        self._observer.typed(self._clock.monotonic())
        self._writing = True
        writing = aio.at_once(self._keeper().write(data, self._input_id(turn, part)))
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())  # perhaps nobody waits for it
        left = -1
        try:
            while not (await asyncio.wait({writing}, timeout=STALLED_S))[0]:
                before, left = left, await self._unread.amount()
                if left == before and (commands := turn.unread()):
                    return commands
            self._look_soon()
            return turn.typed(part, writing.result().at, self._clock.monotonic())
        finally:
            self._writing = False

    async def _takes(self, turn: PtyTurn, part: str) -> bool:
        """Whether the program, as it is at this very moment, takes these keys for what they are meant for: while the
        record was written a dialog may have come up, or a person have typed; and it may not have read what was typed
        before."""
        if part == "paste":
            if await self._unread.asked_ahead():
                return False
            turn.state.reader = self._unread.foreground if self._profile.composer.at_cursor else None
            turn.state.edited = self._unread.line_mode is False
        look = self._look()
        match part:
            case "paste":
                return self._may_type(look) and not turn.state.interrupting
            case "submit":
                self._stood = _above(look)
                return look.verdict.activity is not Activity.WAITING
            case _:
                stands = look.verdict.activity is Activity.READY and look.composer.state == "draft"
                return stands and await self._rests_with_keys_read()

    async def _rests_with_keys_read(self) -> bool:
        """Whether the program has nothing to do, with all that was typed read: one that gets little of a busy machine's
        time reads a key long before it acts on it, and would act on two at once. Raises KeeperLost."""
        if await self._unread.ask():
            return False
        return not await asyncio.to_thread(self._foreground.computes, self._unread.foreground)

    async def ask_again(self) -> None:
        """Ask the kernel, where its last word may not be true any more. Raises KeeperLost."""
        if self._unread.now or self.half_typed:
            await self._unread.ask()
        elif self._observer.given_back is not None:
            await self.works()

    async def works(self) -> bool:
        """Whether the terminal is another's, or its line editor gone, since the message was typed: then the program
        works, and what looks like its prompt was printed. So it does while lines of the message are unread. Raises
        KeeperLost."""
        unread = await self._unread.ask()
        if self.turn is not None:
            state, kernel = self.turn.state, self._unread
            if kernel.line_mode and kernel.foreground != state.reader:
                self._observer.given_back = "command"
            else:
                self._observer.given_back = "program" if kernel.line_mode and state.edited else None
            # What another program has an editor for is its own prompt.
            same = kernel.line_mode or kernel.foreground == state.reader
            asks = self._profile.composer.usual and same and self._observer.in_turn
            self._observer.own_prompt = (state.prompt or None) if asks else None
        self._look_soon()
        return unread or self._look().verdict.activity is not Activity.READY

    def _conclude(self, command: turns.Command) -> None:
        """Tell the supervisor how the turn goes."""
        task_id = self.task_id
        match command:
            case turns.Accepted():
                self._emit(LinkTurnAccepted(task_id, command.evidence))
                return
            case turns.Progressed():
                self._emit(LinkTurnProgress(task_id, command.message_id, command.text))
                return
            case turns.Ended():
                event: LinkEvent = LinkTurnEnded(
                    task_id, command.answer, command.exact, command.evidence, command.truncated
                )
            case turns.Failed():
                event = LinkTurnFailed(task_id, command.code, command.message, command.evidence)
            case turns.Interrupted() | turns.Undelivered():
                event = self._outcome(command)
            case _:
                raise AssertionError(command)
        self._tools.last(self._observer.screen.snapshot(), self._clock.monotonic())
        self._drop()
        self._emit(event)

    def _outcome(self, command: turns.Interrupted | turns.Undelivered) -> LinkEvent:
        if isinstance(command, turns.Interrupted):
            return LinkTurnInterrupted(self.task_id, command.reason, command.evidence)
        return LinkUndelivered(self.task_id, command.reason, self._observer.screen.text(scrollback=False))

    def _drop(self) -> None:
        self.turn = self._delivery = None
        self._observer.given_back = self._observer.own_prompt = self._observer.unbegun = None
        self._stood = []
        self._observer.in_turn = False  # nothing is asked in it any more
        self.speech.end()
        self._tools.end()
        self._look_soon()

    def _input_id(self, turn: PtyTurn, part: str) -> str:
        assert self._delivery is not None
        leg = f".{turn.state.leg}" if turn.state.leg else ""
        return f"{self._delivery.task_id}.{self._delivery.record.attempt}.{part}{leg}"

    async def _save(self, turn: PtyTurn) -> None:
        assert self._delivery is not None
        record = self._delivery.record.model_copy(update={"link": turn.state.model_dump(mode="json")})
        self._saved = asyncio.get_running_loop().create_future()
        self._emit(LinkTurnRecord(record))
        await self._saved

    async def _answer(self, turn: PtyTurn, command: turns.FindAnswer) -> Sequence[turns.Command]:
        if turn.state.reader is not None and await self.works():
            return turn.at_work(self._clock.monotonic())
        answer = await self._find_answer(turn, command)
        if not answer.exact and turn.needs_composer and not self._rests():
            return turn.at_work(self._clock.monotonic())
        return turn.found(answer)

    def _rests(self) -> bool:
        """The program stands at its composer: what is on its screen is an answer, and not half of one below which it
        asks something."""
        verdict = (look := self._look()).verdict
        return verdict.activity is Activity.READY and look.composer.state != "absent"

    async def _find_answer(self, turn: PtyTurn, command: turns.FindAnswer) -> turns.AnswerFound:
        for channel in self._channels:
            text = await channel.last_answer(command.since_ns)
            if text is not None:
                return turns.AnswerFound(text, True, f"{channel.name}: transcript")
        spec = self._profile.answer
        if spec.mode == "blocks":
            shown = self._observer.screen.text(scrollback=True)
            cut = self._observer.screen.snapshot().alternate and is_cut(spec, shown, turn.message)
            return turns.AnswerFound(from_screen(spec, shown, turn.message), False, "screen", truncated=cut)
        end, state = self._observer.offset, turn.state
        begin = state.submit_offset or 0 if state.typed_from is None else state.typed_from
        start = max(begin, end - ANSWER_BYTES_MAX, min(self._drawn_from, end))
        first, output = await self._read_output(start, end - start)
        if self._mark is not None:
            self._mark.at(start, end)
        screen = self._observer.screen.snapshot()
        text = await asyncio.to_thread(
            from_lines,
            spec,
            self._profile.composer,
            output,
            cols=screen.cols,
            rows=screen.rows,
            prompt=state.prompt,
            message=turn.message,
            one_by_one=state.typed_from is not None,
            edits=state.edited,
            guard=self._mark,
        )
        cut = first > begin or text.count("\n") + screen.rows >= SCROLLBACK_LINES
        return turns.AnswerFound(text, False, "screen", truncated=cut)

    def _said(self, piece: Piece) -> None:
        self._emit(LinkTurnSaid(self.task_id, piece.text, piece.append))

    @property
    def _drawn_from(self) -> int:
        """Where output begins that may be given to an emulator; its end if there is no such place."""
        harm = self._mark.harm if self._mark is not None else None
        drawn = max(self._observer.drawn_from, harm.until if harm is not None else 0)
        return int(min(drawn, self._observer.offset))

    async def _read_output(self, start: int, size: int) -> tuple[int, bytes]:
        return await self._keeper().read(start, size)


def _above(look: Look) -> list[str]:
    """The rows above the composer that have words; rules and frames stay where they are."""
    return [line for line in look.screen.lines[: look.composer.row or 0] if any(map(str.isalnum, line))]


def _again(command: turns.Command) -> turns.Command:
    """For a command that the keeper did not answer: what was to be typed may be half written."""
    return turns.Recall(command.part, command.data) if isinstance(command, turns.Type) else command
