"""Performs the commands of the turn machine on a terminal: one worker, one command after the other.

So nothing is typed while something else is being typed, and nothing is typed before the record that says so is
durable. `PtyLink` tells the machine what is seen and reported; what the machine then wants comes here.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence

from synapsed import aio
from synapsed.clock import Clock
from synapsed.errors import KeeperLost
from synapsed.interfaces import SideChannel
from synapsed.keepers.client import KeeperClient, KeeperRefused
from synapsed.model.agent import Activity
from synapsed.model.link import LinkTurnRecord
from synapsed.profiles import Profile
from synapsed.pty import turn_types as turns
from synapsed.pty.driver import Hands
from synapsed.pty.feed_mark import FeedMark
from synapsed.pty.foreground import Foreground
from synapsed.pty.input_backlog import Unread
from synapsed.pty.keyboard import Keyboard
from synapsed.pty.session import Emit, Session, SessionCommand
from synapsed.pty.streaming import TOLD_MAX
from synapsed.pty.turn import PtyTurn
from synapsed.terminal.answer import SCROLLBACK_LINES, from_screen, is_cut
from synapsed.terminal.look import Look
from synapsed.terminal.printed import from_lines

STALLED_S = 3.0
"""A program that has read nothing of a half-written message for so long is not taking it."""

ANSWER_BYTES_MAX = 8 << 20
"""Output of one turn that is read back for an answer; of more the end is kept."""


class TurnRunner:
    """Performs what the machine of the session's turn wants. `do` performs the session's own commands; `look` judges
    the terminal now, `look_soon` as soon as may be."""

    def __init__(
        self,
        *,
        profile: Profile,
        clock: Clock,
        session: Session,
        keyboard: Keyboard,
        hands: Hands,
        channels: Sequence[SideChannel],
        keeper: Callable[[], KeeperClient],
        unread: Unread,
        do: Callable[[Sequence[SessionCommand]], None],
        look: Callable[[], Look],
        look_soon: Callable[[], None],
        mark: FeedMark | None = None,
    ) -> None:
        self._profile = profile
        self._clock = clock
        self._session = session
        self._observer = session.observer
        self._keyboard = keyboard
        self._hands = hands
        self._channels = channels
        self._keeper = keeper
        self._unread = unread
        self._foreground = Foreground()
        self._do = do
        self._look = look
        self._look_soon = look_soon
        self._mark = mark
        """Of reading answers, which has emulators of its own."""
        self._work: deque[tuple[PtyTurn, turns.Command]] = deque()
        self._work_came = asyncio.Event()
        self._saved: asyncio.Future[None] | None = None
        self.idle = hands.idle
        """Set while no command waits or is being performed."""
        self.idle.set()

    @property
    def turn(self) -> PtyTurn | None:
        return self._session.turn

    @property
    def task_id(self) -> str:
        """Of the turn's task."""
        return self._session.task_id

    def add(self, commands: Sequence[turns.Command]) -> None:
        """Perform what the machine of the present turn wants."""
        if commands and self.turn is not None:
            turn = self.turn
            self._work.extend((turn, command) for command in commands)
            self.idle.clear()
            self._work_came.set()

    def prepare(self) -> None:
        """A turn is about to begin: its record is written."""
        if not self._profile.composer.at_cursor:
            self._unread.ahead()

    def begun(self) -> None:
        """A fresh turn has begun."""
        if self._profile.composer.at_cursor:
            self._unread.ahead()  # no sooner: a line editor may have come up while the record was written

    async def catch_up(self) -> None:
        """Read the output of a turn that was under way before."""
        turn, start, upto = self.turn, self._session.speech.missed_from, self._observer.offset
        if start is not None:
            with contextlib.suppress(KeeperLost, KeeperRefused):
                output = await self._keeper().read(start, min(upto - start, TOLD_MAX))
                if self.turn is turn:
                    self._session.speech.printed(*output)

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
                await self._save()
                return turn.saved()
            case turns.Type() if not await self._takes(turn, command.part):
                self._look_soon()
                return turn.held(self._clock.monotonic())
            case turns.Recall() if await self._keeper().recall(self._session.input_id(command.part)) is None:
                return turn.recalled(command.part, None, self._clock.monotonic())
            case turns.Type() | turns.Recall():  # one that was begun is finished: a long paste goes in several parts
                return await self._type(turn, command.part, command.data)
            case turns.Clear():
                await self._hands.perform(self._keyboard.clear_if(turn.holds))
            case turns.Interrupted(left=True) if not await self._unread.ask():
                await self._hands.perform(self._keyboard.take_back())
                self._do(self._session.conclude(command, self._clock.monotonic()))
            case turns.Undelivered(left=True) | turns.Interrupted(left=True):
                self._do(self._session.give_up(command))  # at once: what is left may take its time to be seen
                return [turns.TakeBack()]
            case turns.TakeBack():
                await self._unread.until_read()
                await self._hands.perform(self._keyboard.take_back())
                self._do(self._session.drop())
            case turns.FindAnswer():
                return await self._answer(turn, command)
            case _:
                self._do(self._session.conclude(command, self._clock.monotonic()))
        return []

    async def _type(self, turn: PtyTurn, part: str, data: bytes) -> Sequence[turns.Command]:
        """Write it; the machine hears that it is written, or that the program stopped reading half way: the rest is
        written when it goes on."""
        self._observer.typed(self._clock.monotonic())
        self._session.writing = True
        writing = aio.at_once(self._keeper().write(data, self._session.input_id(part)))
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
            self._session.writing = False

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
                return self._session.obstacle(look, self._clock.monotonic()) is None and not turn.state.interrupting
            case "submit":
                self._session.submitting(look)
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
        if self._unread.now or self._session.half_typed:
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

    async def _save(self) -> None:
        self._saved = asyncio.get_running_loop().create_future()
        self._do([Emit(LinkTurnRecord(self._session.record))])
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

    @property
    def _drawn_from(self) -> int:
        """Where output begins that may be given to an emulator; its end if there is no such place."""
        harm = self._mark.harm if self._mark is not None else None
        drawn = max(self._observer.drawn_from, harm.until if harm is not None else 0)
        return int(min(drawn, self._observer.offset))

    async def _read_output(self, start: int, size: int) -> tuple[int, bytes]:
        return await self._keeper().read(start, size)


def _again(command: turns.Command) -> turns.Command:
    """For a command that the keeper did not answer: what was to be typed may be half written."""
    return turns.Recall(command.part, command.data) if isinstance(command, turns.Type) else command
