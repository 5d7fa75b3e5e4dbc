"""The I/O of one program's terminal: what its session wants is done here, and what comes of that is told to it.

Looks: whatever changes only says so, and they follow at most once per `EVALUATE_EVERY_S`, also when time alone changes
a verdict. A look is asked for and comes when all output before it is drawn.

The turn: one worker performs what its machine wants, one command after the other. So nothing is typed while something
else is being typed, and nothing is typed before the record that says so is durable.

Procedures: what the generators of `keyboard` yield is done step by step.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import structlog

from synapsed import aio
from synapsed.clock import Clock
from synapsed.errors import KeeperLost, NotReady
from synapsed.interfaces import SideChannel, Store
from synapsed.keepers.client import KeeperRefused
from synapsed.keepers.kept_program import KeptProgram
from synapsed.model.agent import Activity
from synapsed.model.link import (
    LinkTurnNews,
    LinkTurnRecord,
    LinkUndelivered,
)
from synapsed.profiles import Profile
from synapsed.pty import turn_types as turns
from synapsed.pty.foreground import Foreground
from synapsed.pty.input_backlog import Unread
from synapsed.pty.keyboard import (
    Emit,
    LookNow,
    Pause,
    Press,
    Resize,
    SendSignal,
    Step,
    Steps,
    StopPressed,
    Tell,
    UntilRead,
    UntilRecorded,
    WaitFor,
    WaitForExit,
    Work,
)
from synapsed.pty.session import AnswerQuery, LookSoon, Poll, SaveScreen, Session, SessionCommand
from synapsed.pty.streaming import TOLD_MAX
from synapsed.pty.turn import PtyTurn
from synapsed.terminal.answer import SCROLLBACK_LINES, from_screen, is_cut
from synapsed.terminal.composer import needs_composer
from synapsed.terminal.look import Look
from synapsed.terminal.stage import KeysTyped, LinesWanted, Stage, StopAsked

EVALUATE_EVERY_S = 0.015
"""The screen is judged at most so often: a look costs about a millisecond, a program draws in bursts."""

STALLED_S = 3.0
"""A program that has read nothing of a half-written message for so long is not taking it."""

ANSWER_BYTES_MAX = 8 << 20
"""Output of one turn that is read back for an answer; of more the end is kept."""

log = structlog.get_logger(__name__)


class Driver:
    """`looked` is called with every look, `resized` when the window has another size."""

    def __init__(
        self,
        agent_id: str,
        profile: Profile,
        *,
        clock: Clock,
        session: Session,
        stage: Stage,
        program: KeptProgram,
        channels: Sequence[SideChannel],
        store: Store,
        looked: Callable[[Look], None] = lambda _look: None,
        resized: Callable[[int, int], None] = lambda _cols, _rows: None,
    ) -> None:
        self._agent_id = agent_id
        self._profile = profile
        self._clock = clock
        self._session = session
        self._stage = stage
        self._program = program
        self._keeper = program.keeper
        self._channels = channels
        self._store = store
        self._looked = looked
        self._resized = resized
        self.tasks = program.tasks
        self.unread = Unread(program.keeper, self._read)
        self._foreground = Foreground()
        self._work: deque[tuple[PtyTurn, turns.Command]] = deque()
        self._work_came = asyncio.Event()
        self._saved: asyncio.Future[None] | None = None
        self.idle = asyncio.Event()
        """Set while the turn wants nothing done."""
        self.idle.set()
        self._timer: asyncio.TimerHandle | None = None
        self._open = self._closed = False
        self._judging = self._again = False
        self._waiting: list[tuple[Callable[[Look], bool], asyncio.Future[None]]] = []
        self._looked_at = 0.0

    def spawn(self, work: Any) -> asyncio.Task[Any]:
        return self.tasks.spawn(work)

    # --- what the session wants ---

    def do(self, commands: Sequence[SessionCommand]) -> None:
        for command in commands:
            match command:
                case Emit(event):
                    self._program.emit(event)
                case Tell(note):
                    self._stage.note(note)
                case Work(wanted):
                    self._add(wanted)
                case LookSoon(at_once):
                    self.soon(at_once=at_once)
                case AnswerQuery(offset, data):
                    self.spawn(self._answer_query(f"query.{offset}", data))
                case SaveScreen():
                    self.spawn(self.save_screen())
                case Poll():
                    self.spawn(self.poll())

    async def _answer_query(self, input_id: str, data: bytes) -> None:
        with contextlib.suppress(KeeperRefused, KeeperLost):
            await self._keeper().write(data, input_id)

    async def save_screen(self) -> None:
        try:
            checkpoint = await self._stage.checkpoint()
            self._session.saving(checkpoint.offset)
            await self._store.save_checkpoint(self._agent_id, checkpoint)
        finally:
            self._session.saved()

    async def poll(self) -> None:
        for channel in self._channels:
            await channel.poll()

    def _read(self) -> None:
        """What the program had not read is read, and about to be shown."""
        self.do(self._session.read(self._clock.monotonic()))

    # --- looks ---

    async def begin(self) -> None:
        """From now on changes are followed by looks; the first is now."""
        self._open = True
        await self.judge()

    def end(self) -> None:
        """Nothing is looked at any more unless it is asked for."""
        self._closed = True
        self._cancel()

    def soon(self, *, at_once: bool = False) -> None:
        """Something changed."""
        if self._judging:
            self._again = True
        elif self._open and not self._closed:
            now = self._clock.monotonic()
            self._wake_at(now if at_once else max(self._looked_at + EVALUATE_EVERY_S, now))

    async def judge(self) -> None:
        """Look now, unless the program is drawing: then as soon as it has drawn."""
        self._cancel()
        if self._judging or self._closed:
            self._again = True
            return
        self._judging, self._again = True, False
        try:
            when = await self._judge(self._clock.monotonic())
        finally:
            self._judging = False
        if self._again:
            self.soon()
        if when is not None and not self._closed:
            self._wake_at(when)

    async def _judge(self, now: float) -> float | None:
        """When it is to be judged again at the latest."""
        turn, phase = self._session.turn, self._session.phase
        look = await self._look(whole=True)
        if look is None:
            return now + EVALUATE_EVERY_S
        if self._session.turn is not turn or self._session.phase is not phase:
            self._again = True  # it does not show yet what came of the turn's last step
            return None
        if not self._program.exited.done():
            self.do(self._session.judge(look, now))
        return self._session.wake_at(look, now)

    async def look(self) -> Look:
        """The terminal as it is at this moment."""
        look = await self._look()
        assert look is not None, "one in the middle of a frame is wanted too"
        return look

    async def _look(self, *, whole: bool = False) -> Look | None:
        self._looked_at = now = self._clock.monotonic()
        self._session.silent, self._session.unread = self._program.silent, self.unread.now
        shown = await self._stage.look(self._session.ask(now, whole=whole))
        if shown is None:
            return None
        look = self._session.believed(shown)
        self._looked(look)
        self.do(self._session.looked(look, now))
        for wanted, future in list(self._waiting):
            if not future.done() and wanted(look):
                future.set_result(None)
        return look

    async def until(self, wanted: Callable[[Look], bool], timeout: float) -> bool:
        """Whether a look that satisfies `wanted` comes within `timeout` seconds, and before the program ends."""
        if wanted(await self.look()):
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (wanted, future)
        self._waiting.append(entry)
        try:
            either: set[asyncio.Future[Any]] = {future, self._program.exited}
            await asyncio.wait(either, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiting.remove(entry)
        return future.done() or wanted(await self.look())

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake_at(self, when: float) -> None:
        """Look at `when`, or earlier if that is planned."""
        loop = asyncio.get_running_loop()
        at = loop.time() + max(0.0, when - self._clock.monotonic())
        if self._timer is not None and self._timer.when() <= at:
            return
        self._cancel()
        self._timer = loop.call_at(at, self._due)

    def _due(self) -> None:
        self._timer = None
        self.tasks.spawn(self.judge(), eager=True)

    # --- procedures ---

    async def perform[T](self, steps: Steps[T]) -> T:
        """What the procedure returns. Raises what it raises, and KeeperLost, KeeperRefused."""
        go_on: Callable[[], Step] = partial(steps.send, None)
        try:
            while True:
                try:
                    step = go_on()
                except StopIteration as done:
                    result: T = done.value
                    return result
                try:
                    go_on = partial(steps.send, await self._step(step))
                except KeeperLost as error:
                    go_on = partial(steps.throw, error)  # what was done may have ended the program
        finally:
            steps.close()  # one that is not at its end puts in order what it has begun

    def undertake(self, steps: Steps[object]) -> None:
        """Perform a procedure that nobody waits for."""
        self.spawn(self._undertake(steps))

    async def _undertake(self, steps: Steps[object]) -> None:
        with contextlib.suppress(KeeperLost, KeeperRefused):
            await self.perform(steps)

    async def _step(self, step: Step) -> Any:
        match step:
            case Press(data):
                self._stage.note(KeysTyped(self._clock.monotonic()))
                return (await self._keeper().write(data)).hidden
            case LookNow():
                return await self.look()
            case SendSignal(number):
                return await self._keeper().signal(number)
            case StopPressed():
                self._stage.note(StopAsked(self._clock.monotonic()))
            case Resize(cols, rows):
                keeper = self._keeper()
                # First: what the program draws for the new size may be here before the keeper's answer is.
                self._resized(cols, rows)
                await keeper.resize(cols, rows)
            case Emit() | Tell() | Work():
                self.do([step])
            case _:
                return await self._wait(step)
        return None

    async def _wait(self, step: WaitFor | WaitForExit | Pause | UntilRead | UntilRecorded) -> bool | None:
        match step:
            case WaitFor(wanted, within):
                return await self.until(wanted, within)
            case WaitForExit(within):
                await asyncio.wait({self._program.exited}, timeout=within)
                return self._program.exited.done()
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case UntilRead(within):
                return await self._is_read(within)
            case UntilRecorded(within):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.idle.wait(), within)
        return None

    async def _is_read(self, within: float | None) -> bool:
        if within is None:
            await self.unread.until_read()
            return True
        try:
            await self.unread.read_within(within)
        except NotReady:
            return False
        return True

    # --- the turn ---

    def _add(self, commands: Sequence[turns.Command]) -> None:
        """Perform what the machine of the present turn wants."""
        if commands and self._session.turn is not None:
            turn = self._session.turn
            self._work.extend((turn, command) for command in commands)
            self.idle.clear()
            self._work_came.set()

    async def catch_up(self) -> None:
        """Read the output of a turn that was under way before."""
        session = self._session
        turn, start, upto = session.turn, session.speech.missed_from, session.offset
        if start is not None:
            with contextlib.suppress(KeeperLost, KeeperRefused):
                output = await self._keeper().read(start, min(upto - start, TOLD_MAX))
                if session.turn is turn:
                    session.speech.printed(*output)

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
                if turn is not self._session.turn:
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
                    why = f"it could not be typed: {error.message}"
                    more = [turns.Say(LinkUndelivered(turn.task_id, why))]
                self._work.extendleft((turn, command) for command in reversed(more))
            self._work_came.clear()
            self.idle.set()
            self.soon()  # the machine may wait for what stands on the screen already: nothing else would tell it

    async def _perform(self, turn: PtyTurn, command: turns.Command) -> Sequence[turns.Command]:
        session = self._session
        match command:
            case turns.Save():
                self._saved = asyncio.get_running_loop().create_future()
                self._program.emit(LinkTurnRecord(session.record))
                await self._saved
                return turn.saved()
            case turns.Type() if not await self._takes(turn, command.part):
                self.soon()
                return turn.held(self._clock.monotonic())
            case turns.Recall() if await self._keeper().recall(session.input_id(command.part)) is None:
                return turn.recalled(command.part, None, self._clock.monotonic())
            case turns.Type() | turns.Recall():  # one that was begun is finished: a long paste goes in several parts
                return await self._type(turn, command.part, command.data)
            case turns.Clear():
                await self.perform(session.keyboard.clear_if(turn.holds))
            case turns.Say(event, left):
                return await self._say(event, left=left)
            case turns.TakeBack():
                await self.unread.until_read()
                await self.perform(session.keyboard.take_back())
                self.do(session.drop())
            case turns.FindAnswer():
                return await self._answer(turn, command)
        return []

    async def _say(self, event: LinkTurnNews, *, left: bool) -> Sequence[turns.Command]:
        """Tell the agent; at once, where what is `left` may take its time to be seen."""
        session = self._session
        stays = left and (isinstance(event, LinkUndelivered) or await self.unread.ask())
        if left and not stays:
            await self.perform(session.keyboard.take_back())
        text = await self._stage.text(scrollback=False) if session.tells_screen(event) else ""
        self.do(session.say(event, text, self._clock.monotonic(), stays=stays))
        return [turns.TakeBack()] if stays else []

    async def _type(self, turn: PtyTurn, part: str, data: bytes) -> Sequence[turns.Command]:
        """Write it; the machine hears that it is written, or that the program stopped reading half way: the rest is
        written when it goes on."""
        self._stage.note(KeysTyped(self._clock.monotonic()))
        self._session.writing = True
        writing = aio.at_once(self._keeper().write(data, self._session.input_id(part)))
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())  # perhaps nobody waits for it
        left = -1
        try:
            while not (await asyncio.wait({writing}, timeout=STALLED_S))[0]:
                before, left = left, await self.unread.amount()
                if left == before and (commands := turn.unread()):
                    return commands
            self.soon()
            return turn.typed(part, writing.result().at, self._clock.monotonic())
        finally:
            self._session.writing = False

    async def _takes(self, turn: PtyTurn, part: str) -> bool:
        """Whether the program, as it is at this very moment, takes these keys for what they are meant for: while the
        record was written a dialog may have come up, or a person have typed; and it may not have read what was typed
        before."""
        if part == "paste":
            if await self.unread.asked_ahead():
                return False
            turn.state.reader = self.unread.foreground if self._profile.composer.at_cursor else None
            turn.state.edited = self.unread.line_mode is False
        look = await self.look()
        match part:
            case "paste":
                turn.state.prompt = turn.state.prompt or look.composer.prompt
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
        if await self.unread.ask():
            return False
        return not await asyncio.to_thread(self._foreground.computes, self.unread.foreground)

    @property
    def asks_again(self) -> bool:
        """Whether the kernel's last word may not be true any more."""
        return self.unread.now or self._session.half_typed or self._session.given_back is not None

    async def ask_again(self) -> None:
        """Ask the kernel where that is so. Raises KeeperLost."""
        if self.unread.now or self._session.half_typed:
            await self.unread.ask()
        elif self._session.given_back is not None:
            await self.works()

    async def works(self) -> bool:
        """Whether the terminal is another's, or its line editor gone, since the message was typed: then the program
        works, and what looks like its prompt was printed. So it does while lines of the message are unread. Raises
        KeeperLost."""
        unread = await self.unread.ask()
        self._session.asked_kernel(line_mode=self.unread.line_mode, reader=self.unread.foreground)
        self.soon()
        return unread or (await self.look()).verdict.activity is not Activity.READY

    async def _answer(self, turn: PtyTurn, command: turns.FindAnswer) -> Sequence[turns.Command]:
        if turn.state.reader is not None and await self.works():
            return turn.at_work(self._clock.monotonic())
        answer = await self._find_answer(turn, command)
        if not answer.exact and needs_composer(self._profile.composer) and not await self._rests():
            return turn.at_work(self._clock.monotonic())
        return turn.found(answer)

    async def _rests(self) -> bool:
        """The program stands at its composer: what is on its screen is an answer, and not half of one below which it
        asks something."""
        verdict = (look := await self.look()).verdict
        return verdict.activity is Activity.READY and look.composer.state != "absent"

    async def _find_answer(self, turn: PtyTurn, command: turns.FindAnswer) -> turns.AnswerFound:
        for channel in self._channels:
            text = await channel.last_answer(command.since_ns)
            if text is not None:
                return turns.AnswerFound(text, True, f"{channel.name}: transcript")
        spec, screen = self._profile.answer, (self._session.last or await self.look()).screen
        if spec.mode == "blocks":
            shown = await self._stage.text(scrollback=True)
            cut = screen.alternate and is_cut(spec, shown, turn.message)
            return turns.AnswerFound(from_screen(spec, shown, turn.message), False, "screen", truncated=cut)
        end, state = self._session.offset, turn.state
        begin = state.submit_offset or 0 if state.typed_from is None else state.typed_from
        start = int(max(begin, end - ANSWER_BYTES_MAX, min(self._stage.drawn_from, end)))
        first, output = await self._keeper().read(start, end - start)
        wanted = LinesWanted(
            start=start,
            output=output,
            prompt=state.prompt,
            message=turn.message,
            one_by_one=state.typed_from is not None,
            edits=state.edited,
        )
        text = await self._stage.read_lines(wanted)
        cut = first > begin or text.count("\n") + screen.rows >= SCROLLBACK_LINES
        return turns.AnswerFound(text, False, "screen", truncated=cut)


def _again(command: turns.Command) -> turns.Command:
    """For a command that the keeper did not answer: what was to be typed may be half written."""
    return turns.Recall(command.part, command.data) if isinstance(command, turns.Type) else command
