"""Performs the commands of a turn's machine, one after the other.

So nothing is given, or typed, before the record that says so is durable, nor typed while something else is being typed;
and facts that come meanwhile are handled in their order.
"""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from synapsed import aio
from synapsed.errors import KeeperLost
from synapsed.keepers.keeper_messages import KeeperRefused
from synapsed.model.agent import Activity
from synapsed.model.link import LinkEvent, LinkTurnNews, LinkTurnRecord, LinkUndelivered
from synapsed.pty import turn_types as turns
from synapsed.pty.keyboard import Steps
from synapsed.pty.linked_terminal import LinkedTerminal
from synapsed.pty.screen_looks import KernelChecks, Looks
from synapsed.pty.session_commands import SessionCommand
from synapsed.pty.streaming import TOLD_MAX
from synapsed.pty.turn import PtyTurn
from synapsed.pty.turn_machine import TurnMachine
from synapsed.terminal.answer import from_screen, is_cut, position_below
from synapsed.terminal.composer import needs_composer
from synapsed.terminal.delivery import squeezed
from synapsed.terminal.look import Look
from synapsed.terminal.queries import are_answers
from synapsed.terminal.screen_messages import KeysTyped, LinesWanted
from synapsed.terminal.turn_signs import refused_below, said_of_turn

STALLED_S = 3.0
"""Seconds without reading after which a program is not taking a half-written message."""

ANSWER_BYTES_MAX = 8 << 20
"""Bytes of output of one turn that are read back for an answer; the last ones, if there are more."""

COUNTED_AT_ONCE = 1 << 20
"""Bytes of output that are looked through at once for lines that are not read back."""

KEPT_ROWS = 1000
"""Number of rows above an agent's screen that are kept, about: one that shows fewer than half of them has lost none."""


class TurnPerformer[T: TurnMachine[Any]](ABC):
    """Performs the commands of the present turn's machine. `run` is one task, for one turn after the other."""

    def __init__(self, emit: Callable[[LinkEvent], None]) -> None:
        self._emit = emit
        self._work: deque[tuple[T, turns.Command]] = deque()
        self._came = asyncio.Event()
        self._saved: asyncio.Future[None] | None = None
        self.idle = asyncio.Event()
        """Set while the turn has no open command."""
        self.idle.set()

    @property
    @abstractmethod
    def turn(self) -> T | None:
        """Returns the present turn."""

    @property
    def waits_s(self) -> float | None:
        """Seconds between the calls of `rested` without commands; None: it is not called."""
        return None

    @abstractmethod
    async def perform(self, turn: T, command: turns.Command) -> Sequence[turns.Command]:
        """Performs it; returns the next commands that the turn wants before anything else."""

    @abstractmethod
    def rested(self) -> None:
        """Called when all commands are performed, or time has passed since then."""

    def add(self, commands: Sequence[turns.Command]) -> None:
        """Takes the commands of the present turn's machine."""
        if commands and (turn := self.turn) is not None:
            self._work.extend((turn, command) for command in commands)
            self.idle.clear()
            self._came.set()

    def recorded(self) -> None:
        """Notes that the record is durable, or need not be any more."""
        if self._saved is not None and not self._saved.done():
            self._saved.set_result(None)

    async def run(self) -> None:
        """Runs the worker; ends by being cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._came.wait(), self.waits_s)
            while self._work:
                turn, command = self._work.popleft()
                if turn is not self.turn or (isinstance(command, turns.Save) and turn.over):
                    continue  # its reported end is not on record: the next daemon goes on from before it
                more = await self._save(turn) if isinstance(command, turns.Save) else await self.perform(turn, command)
                self._work.extendleft((turn, each) for each in reversed(more))
            self._came.clear()
            self.idle.set()
            self.rested()

    async def _save(self, turn: T) -> Sequence[turns.Command]:
        self._saved = asyncio.get_running_loop().create_future()
        self._emit(LinkTurnRecord(turn.record))
        await self._saved
        return turn.saved()


class Performer(Protocol):
    """Other work on the way, done by the `Driver`."""

    def do(self, commands: Sequence[SessionCommand]) -> None: ...

    async def perform[T](self, steps: Steps[T]) -> T: ...


class TurnWorker(TurnPerformer[PtyTurn]):
    """Performs the turns of a program whose messages are typed."""

    def __init__(self, terminal: LinkedTerminal, looks: Looks, kernel: KernelChecks, *, performer: Performer) -> None:
        super().__init__(lambda event: terminal.program.emit(event))  # noqa: PLW0108 - it is another when the link is open
        self._profile = terminal.profile
        self._clock = terminal.clock
        self._session = terminal.session
        self._stage = terminal.stage
        self._program = terminal.program
        self._channels = terminal.channels
        self._looks = looks
        self._unread = looks.unread
        self._kernel = kernel
        self._performer = performer

    @property
    def turn(self) -> PtyTurn | None:
        return self._session.turn

    def rested(self) -> None:
        self._looks.soon()  # the machine may wait for what stands on the screen already: nothing else would tell it

    async def catch_up(self) -> None:
        """Reads the output of a turn that was under way before."""
        session = self._session
        turn, start, upto = session.turn, session.speech.missed_from, session.offset
        if start is not None:
            with contextlib.suppress(KeeperLost, KeeperRefused):
                output = await self._program.keeper().read(start, min(upto - start, TOLD_MAX))
                if session.turn is turn:
                    session.speech.printed(*output)

    async def perform(self, turn: PtyTurn, command: turns.Command) -> Sequence[turns.Command]:
        try:
            return await self._perform(turn, command)
        except KeeperLost:
            if self._program.keeper().lost is not None:
                return []  # the keeper's end reports the exit
            return [_again(command)]  # it was only silent for a while
        except KeeperRefused as error:
            if error.reason == "exited":
                return []  # that is reported too, and an unsubmitted message goes to the next program
            return [turns.Say(LinkUndelivered(turn.task_id, f"it could not be typed: {error.message}"))]

    async def _perform(self, turn: PtyTurn, command: turns.Command) -> Sequence[turns.Command]:
        session = self._session
        match command:
            case turns.Type() if not await self._takes(turn, command.part):
                self._looks.soon()
                return turn.held(self._clock.monotonic())
            case turns.Recall() if await self._program.keeper().recall(session.input_id(command.part)) is None:
                return turn.recalled(command.part, None, self._clock.monotonic())
            case turns.Type() | turns.Recall():  # one that was begun is finished: a long paste goes in several parts
                return await self._type(turn, command.part, command.data)
            case turns.Clear():
                await self._performer.perform(session.keyboard.clear_if(turn.holds))
            case turns.TakeOut():
                gone = await self._withdraw(turn)
                misread = gone and turn.state.phase is turns.Phase.SETTLING and session.misreads()
                return turn.withdrawn(gone, self._clock.monotonic(), misread=misread)
            case turns.Say(event, left):
                return await self._say(event, left=left)
            case turns.TakeBack():
                await self._unread.until_read()
                await self._take_back()
                self._performer.do(session.drop())
            case turns.FindAnswer():
                return await self._answer(turn, command)
        return []

    async def _withdraw(self, turn: PtyTurn) -> bool:
        """Returns True if the composer is empty, and the program at rest: it waits for rest before the keys that empty
        it, so that they do not stop its next work, and after them, as it may have come to the submit key at last."""

        def taken() -> bool:
            return not turn.withdrawing

        rests = await self._kernel.comes_to_rest(turns.STARVED_S, unless=taken)
        if not rests and await self._unread.ask():
            return False
        keyboard, comes = self._session.keyboard, turn.state.phase is turns.Phase.SETTLING
        emptied = await self._performer.perform(keyboard.take_out(unless=taken, comes=comes))
        rests = emptied and await self._kernel.comes_to_rest(turns.STARVED_S, unless=taken)
        for channel in self._channels:
            await channel.poll()  # its reports are handled before more is typed
        return rests and (await self._looks.look()).composer.state != "absent"

    async def _take_back(self) -> None:
        await self._performer.perform(self._session.keyboard.take_back())
        self._session.misreads()

    async def _say(self, event: LinkTurnNews, *, left: bool) -> Sequence[turns.Command]:
        """Reports to the agent; at once, if the text that is `left` may take its time to be seen."""
        session = self._session
        stays = left and (isinstance(event, LinkUndelivered) or await self._unread.ask())
        if left and not stays:
            await self._take_back()
        text = await self._stage.text(scrollback=False) if session.tells_screen(event) else ""
        self._performer.do(session.say(event, text, self._clock.monotonic(), stays=stays))
        return [turns.TakeBack()] if stays else []

    async def _type(self, turn: PtyTurn, part: str, data: bytes) -> Sequence[turns.Command]:
        """Writes it; the machine learns that it is written, or that the program stopped reading half way: the rest is
        written when it goes on."""
        self._stage.note(KeysTyped(self._clock.monotonic()))
        self._session.writing = True
        writing = aio.at_once(self._program.keeper().write(data, self._session.input_id(part)))
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())  # it may have no waiter
        left = -1
        try:
            while not (await asyncio.wait({writing}, timeout=STALLED_S))[0]:
                before, left = left, await self._unread.amount()
                if left == before and (commands := turn.unread()):
                    return commands
            self._looks.soon()
            return turn.typed(part, writing.result().at, self._clock.monotonic())
        finally:
            self._session.writing = False

    async def _takes(self, turn: PtyTurn, part: str) -> bool:
        """Returns True if the program, as it is at this very moment, takes these keys for their purpose: while the
        record was written a dialog may have come up, a person have typed, or a message that was stopped have come back
        before this one; and it may not have read its earlier input."""
        learns = self._profile.composer.usual
        if learns and await self._looks.facts.ask() and part == "paste":
            return False
        if part == "paste":
            if not learns and await self._unread.asked_ahead():
                return False
            turn.state.reader = self._unread.foreground if self._profile.composer.at_cursor else None
            turn.state.edited = self._unread.line_mode is False
        look = await self._looks.look()
        match part:
            case "paste":
                if look.composer.state == "draft" and are_answers(look.composer.text):
                    # Not a person's: a program asked its terminal, and was gone.
                    await self._performer.perform(self._session.keyboard.clear())
                    look = await self._looks.look()
                    if look.composer.state == "draft":
                        return False
                turn.state.prompt = turn.state.prompt or look.composer.prompt
                turn.state.at_prompt = learns and look.composer.state == "empty"
                return self._session.obstacle(look, self._clock.monotonic()) is None and not turn.state.interrupting
            case "submit":
                mixed = look.composer.state == "draft" and turn.stands_behind_other(look.composer.text)
                gone = look.composer.state == "empty" and needs_composer(self._profile.composer)
                takes = look.verdict.activity is not Activity.WAITING and self._session.takes_enter(look)
                return takes and not mixed and not gone
            case _:
                own = look.composer.state == "draft" and turn.holds(look.composer.text)
                stands = look.verdict.activity is Activity.READY and own
                return stands and await self._kernel.has_acted(turn.state.submit_ns)

    async def _answer(self, turn: PtyTurn, command: turns.FindAnswer) -> Sequence[turns.Command]:
        if turn.state.reader is not None and await self._kernel.works():
            return turn.at_work(self._clock.monotonic())
        answer = await self._find_answer(turn, command)
        if not answer.exact:
            look = await self._looks.look()
            if needs_composer(self._profile.composer) and not _rests(look):
                return turn.at_work(self._clock.monotonic())
            # Hooks tell of an end after a person stopped the turn, too.
            _, interrupted = said_of_turn(self._profile, look, turn.message, turn.old_marks)
            refused = refused_below(self._profile, look.screen.lines, turn.message)
            answer = replace(answer, interrupted=interrupted, refused=refused)
        return turn.found(answer, self._clock.monotonic())

    async def _find_answer(self, turn: PtyTurn, command: turns.FindAnswer) -> turns.AnswerFound:
        sent = squeezed(turn.message)
        for channel in self._channels:
            text = await channel.last_answer(command.since_ns, lambda prompt: sent in squeezed(prompt))
            if text is not None:
                return turns.AnswerFound(text, True, f"{channel.name}: transcript")
        spec, look = self._profile.answer, self._session.last or await self._looks.look()
        screen = look.screen
        if spec.mode == "blocks":
            shown = await self._stage.text(scrollback=True)
            message_row = position_below(shown.split("\n"), turn.message, spec.start)
            if message_row is None and not self._session.has_drawn(turn, look):
                return turns.AnswerFound("", False, "screen")  # all that stands there is of earlier turns
            full = screen.alternate or spec.start is not None or shown.count("\n") >= KEPT_ROWS // 2
            cut = full and is_cut(spec, shown, turn.message)
            return turns.AnswerFound(from_screen(spec, shown, turn.message), False, "screen", truncated=cut)
        end, state = self._session.offset, turn.state
        begin = state.submit_offset or 0 if state.typed_from is None else state.typed_from
        start = int(max(begin, end - ANSWER_BYTES_MAX, min(self._stage.drawn_from, end)))
        first, output = await self._program.keeper().read(start, end - start)
        wanted = LinesWanted(
            start=start,
            output=output,
            prompt=state.prompt,
            message=turn.message,
            one_by_one=state.typed_from is not None,
            edits=state.edited,
        )
        read = await self._stage.read_lines(wanted)
        before = await self._lines_between(begin, first)
        cut = first > begin or read.missing > 0
        missing = before + read.missing if cut and before is not None else None
        return turns.AnswerFound(read.text, False, "screen", truncated=cut, missing=missing)

    async def _lines_between(self, begin: int, end: int) -> int | None:
        """Returns the number of lines that ended in that output; None if it is not there any more."""
        count = 0
        while begin < end:
            at, data = await self._program.keeper().read(begin, min(COUNTED_AT_ONCE, end - begin))
            if at != begin or not data:
                return None
            count, begin = count + data.count(b"\n"), begin + len(data)
        return count


def _rests(look: Look) -> bool:
    """Returns True if the program is at its composer: its screen shows an answer, and not half of one below which it
    asks something."""
    return look.verdict.activity is Activity.READY and look.composer.state != "absent"


def _again(command: turns.Command) -> turns.Command:
    """Returns the command for a command that the keeper did not answer: the keys may be half written."""
    return turns.Recall(command.part, command.data) if isinstance(command, turns.Type) else command
