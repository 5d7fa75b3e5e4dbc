"""Performs the commands of a turn's state machine, one after the other.

So a message is given, or typed, only after the record that says so is durable; no two texts are typed at the same time;
and facts that come meanwhile are handled in their order.
"""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from synapsed import aio
from synapsed.errors import KeeperLost
from synapsed.interfaces import Delivery
from synapsed.keepers.keeper_messages import KeeperRefused
from synapsed.model.agent import Activity
from synapsed.model.link import (
    LinkEvent,
    LinkTurnEnded,
    LinkTurnInterrupted,
    LinkTurnNews,
    LinkTurnRecord,
    LinkUndelivered,
)
from synapsed.model.records import TurnRecord
from synapsed.pty import turn_types as turns
from synapsed.pty.keyboard import Steps
from synapsed.pty.linked_terminal import LinkedTerminal
from synapsed.pty.screen_looks import KernelChecks, Looks
from synapsed.pty.session_commands import SessionCommand
from synapsed.pty.stopped_turn import StoppedMessage
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
"""Seconds without reading after which a program counts as not taking a half-written message."""

ANSWER_BYTES_MAX = 8 << 20
"""Largest number of bytes of a turn's output that are read back for an answer; of more, the last ones."""

COUNTED_AT_ONCE = 1 << 20
"""Bytes of output that are read at a time to count the lines that are not read back."""

KEPT_ROWS = 1000
"""Approximate number of rows that are kept above a screen. A screen with fewer than half of them has lost none."""


class TurnPerformer[T: TurnMachine[Any]](ABC):
    """Performs the commands of the present turn's machine. `run` is one task for all turns, one after the other."""

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
        """Seconds after which `rested` is called again if no commands come; None: it is not called again."""
        return None

    @abstractmethod
    async def perform(self, turn: T, command: turns.Command) -> Sequence[turns.Command]:
        """Performs the command. Returns the turn's next commands, which are performed before all others."""

    @abstractmethod
    def rested(self) -> None:
        """Called when all commands are performed, and again every `waits_s` seconds."""

    def add(self, commands: Sequence[turns.Command]) -> None:
        """Takes the commands of the present turn's machine."""
        if commands and (turn := self.turn) is not None:
            self._work.extend((turn, command) for command in commands)
            self.idle.clear()
            self._came.set()

    def recorded(self) -> None:
        """Notes that the record is durable, or need not become so any more."""
        if self._saved is not None and not self._saved.done():
            self._saved.set_result(None)

    async def run(self) -> None:
        """Runs the worker, until it is cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._came.wait(), self.waits_s)
            while self._work:
                turn, command = self._work.popleft()
                if turn is not self.turn or (isinstance(command, turns.Save) and turn.over):
                    continue  # an OVER turn is not saved: if its report is lost, the next daemon continues before it
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
    """The `Driver`, which does other work that a turn needs."""

    def do(self, commands: Sequence[SessionCommand]) -> None: ...

    async def perform[T](self, steps: Steps[T]) -> T: ...


class TurnWorker(TurnPerformer[PtyTurn]):
    """Performs the turns of a program whose messages are typed."""

    def __init__(self, terminal: LinkedTerminal, looks: Looks, kernel: KernelChecks, *, performer: Performer) -> None:
        super().__init__(lambda event: terminal.program.emit(event))  # noqa: PLW0108 - `emit` is replaced later
        self._profile = terminal.profile
        self._clock = terminal.clock
        self._session = terminal.session
        self._stage = terminal.stage
        self._program = terminal.program
        self._channels = terminal.channels
        self._kept_stop = terminal.kept_stop
        self._looks = looks
        self._unread = looks.unread
        self._kernel = kernel
        self._performer = performer

    @property
    def turn(self) -> PtyTurn | None:
        return self._session.turn

    def rested(self) -> None:
        self._looks.soon()  # the machine may wait for text that is on the screen already: no change would cause a look

    def prepare(self, record: TurnRecord) -> TurnRecord:
        if not self._profile.composer.at_cursor:
            self._unread.ahead()
        return record.model_copy(update={"link": self._session.prepared().model_dump(mode="json")})

    async def deliver(self, delivery: Delivery) -> None:
        """See `AgentLink.deliver`. Raises NotReady while a turn runs."""
        session = self._session
        if session.last is None:
            await self._looks.look()
        commands = session.begin(delivery, self._clock.monotonic())
        if delivery.fresh and self._profile.composer.at_cursor:
            self._unread.ahead()  # not in `prepare`: a line editor may have come up while the record was stored
        self._performer.do(commands)
        if session.turn is not None and session.turn.state.submitted:
            self._program.tasks.spawn(self._catch_up())
        if not delivery.fresh:  # for a fresh message, `_takes` looks just before it is typed
            await self._looks.judge()

    async def _catch_up(self) -> None:
        """Reads back the output of a turn that was running before the daemon's restart."""
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
            return [_again(command)]  # the keeper was only silent for a while
        except KeeperRefused as error:
            if error.reason == "exited":
                return []  # the exit is reported by itself, and an unsubmitted message goes to the next program
            return [turns.Say(LinkUndelivered(turn.task_id, f"it could not be typed: {error.message}"))]

    async def _perform(self, turn: PtyTurn, command: turns.Command) -> Sequence[turns.Command]:
        session = self._session
        match command:
            case turns.Type() if not await self._takes(turn, command.part):
                self._looks.soon()
                return turn.held(self._clock.monotonic())
            case turns.Recall() if await self._program.keeper().recall(session.input_id(command.part)) is None:
                return turn.recalled(command.part, None, self._clock.monotonic())
            case turns.Type() | turns.Recall():  # also a recalled one: a long paste has several parts, perhaps not all
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
        """Empties the composer. Returns True if it is empty and the program rests. Waits for rest before the keys, so
        that they do not stop the program's next work; and after them: it may only then handle the submit key."""

        def taken() -> bool:
            return not turn.withdrawing

        rests = await self._kernel.comes_to_rest(turns.STARVED_S, unless=taken)
        if not rests and await self._unread.ask():
            return False
        keyboard, comes = self._session.keyboard, turn.state.phase is turns.Phase.SETTLING
        emptied = await self._performer.perform(keyboard.take_out(unless=taken, comes=comes))
        rests = emptied and await self._kernel.comes_to_rest(turns.STARVED_S, unless=taken)
        for channel in self._channels:
            await channel.poll()  # its reports must be handled before the message is typed again
        return rests and (await self._looks.look()).composer.state != "absent"

    async def _take_back(self) -> None:
        await self._performer.perform(self._session.keyboard.take_back())
        self._session.misreads()

    async def _say(self, event: LinkTurnNews, *, left: bool) -> Sequence[turns.Command]:
        """Reports the event to the agent, after text that is `left` was removed; before, if that may appear later."""
        session, turn = self._session, self._session.turn
        if isinstance(event, LinkTurnInterrupted) and turn is not None and self._kept_stop is not None:
            await self._kept_stop.save(StoppedMessage.of(turn))  # first: with the report, the turn's record ends
        stays = left and (
            isinstance(event, LinkUndelivered) or session.lag.unshown is not None or await self._unread.ask()
        )
        if left and not stays:
            await self._take_back()
        text = await self._stage.text(scrollback=False) if session.tells_screen(event) else ""
        self._performer.do(session.say(event, text, self._clock.monotonic(), stays=stays))
        return [turns.TakeBack()] if stays else []

    async def _type(self, turn: PtyTurn, part: str, data: bytes) -> Sequence[turns.Command]:
        """Writes the keys, and reports to the machine that they are written; or that the program stopped reading half
        way (then the keeper writes the rest when the program goes on)."""
        self._stage.note(KeysTyped(now := self._clock.monotonic()))
        self._session.lag.typed(now, self._session.offset if part == "paste" else None)
        self._session.writing = True
        writing = aio.at_once(self._program.keeper().write(data, self._session.input_id(part)))
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())  # perhaps no caller waits for it
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
        """Returns True if the keys of `part` have the wanted effect at this moment. While the record was stored, a
        dialog may have come up, a person may have typed, or the program may have put back a stopped message before this
        one; and the program may not have read its earlier input."""
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
                    # The text is no person's, but a terminal's answer to a query of a program that has ended.
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
        if answer.exact:
            return turn.found(answer, self._clock.monotonic())
        look = await self._looks.look()
        if needs_composer(self._profile.composer) and not _rests(look):
            return turn.at_work(self._clock.monotonic())
        # Hooks report an end also for a turn that a person stopped: so the screen is searched for it.
        _, interrupted = said_of_turn(self._profile, look, turn.message, turn.old_marks)
        refused = refused_below(self._profile, look.screen.lines, turn.message)
        if interrupted:
            return turn.found(
                LinkTurnInterrupted(turn.task_id, "person", "screen: interrupted"), self._clock.monotonic()
            )
        outcome = answer if refused is None else LinkUndelivered(turn.task_id, refused)
        return turn.found(outcome, self._clock.monotonic())

    async def _find_answer(self, turn: PtyTurn, command: turns.FindAnswer) -> LinkTurnEnded:
        found, sent = partial(LinkTurnEnded, turn.task_id), squeezed(turn.message)
        for channel in self._channels:
            text = await channel.last_answer(command.since_ns, lambda prompt: sent in squeezed(prompt))
            if text is not None:
                return found(text, True, f"{channel.name}: transcript")
        spec = self._profile.answer
        if spec.mode == "blocks":
            look, shown, seen = await self._shown(turn)
            rests = True
            # The program may not have taken the message yet, or be about to print its whole conversation again.
            if not (seen or (turn.state.busy_seen and look.screen.alternate)):
                rests = await self._kernel.comes_to_rest(turns.UNSEEN_S, unless=lambda: turn.state.interrupting)
                look, shown, seen = await self._shown(turn)
            # A long answer that is given twice looks as before.
            if not (seen or turn.state.busy_seen or (rests and self._session.has_drawn(turn, look))):
                return found("", False, "screen")  # all that stands there is of earlier turns
            kept = not look.screen.alternate and spec.start is None and shown.count("\n") < KEPT_ROWS // 2
            cut = is_cut(spec, shown, turn.message, turn.state.stood, kept=kept)
            text = from_screen(spec, shown, turn.message, self._profile.stream.skip)
            return found(text, False, "screen", truncated=cut)
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
        return found(read.text, False, "screen", truncated=cut, missing=missing)

    async def _shown(self, turn: PtyTurn) -> tuple[Look, str, bool]:
        """Returns the screen, its text with the rows above it, and True if the message is shown there."""
        text = await self._stage.text(scrollback=True)
        shown = position_below(text.split("\n"), turn.message, self._profile.answer.start) is not None
        return await self._looks.look(), text, shown

    async def _lines_between(self, begin: int, end: int) -> int | None:
        """Returns the number of line ends in that output; None if the spool does not have all of it any more."""
        count = 0
        while begin < end:
            at, data = await self._program.keeper().read(begin, min(COUNTED_AT_ONCE, end - begin))
            if at != begin or not data:
                return None
            count, begin = count + data.count(b"\n"), begin + len(data)
        return count


def _rests(look: Look) -> bool:
    """Returns True if the program rests at its composer: the answer is complete, and no question is below it."""
    return look.verdict.activity is Activity.READY and look.composer.state != "absent"


def _again(command: turns.Command) -> turns.Command:
    """Returns the command that repeats `command` when the keeper did not answer: half written keys are recalled."""
    return turns.Recall(command.part, command.data) if isinstance(command, turns.Type) else command
