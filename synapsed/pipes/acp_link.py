"""The link (the daemon's object for one running program) to a program without a terminal: the I/O around its session
(`AcpSession`), which decides.

The keeper has the program's pipes. Input is written there once for each id, and the output is read from where the
launch began. The parts of the output that interest a person are drawn on a screen, as a terminal's output is: so
attached terminals, screens and pictures work as for any other agent.
"""

import asyncio
import contextlib
import math
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from synapsed.errors import ChannelAway, KeeperLost, MessageRefused, NotReady, NotTaken, StoreError, SynapsedError
from synapsed.interfaces import Delivery, FoundTurn, LinkTerminal, Reach, Submitted
from synapsed.keepers.heartbeat import SILENT
from synapsed.keepers.keeper_messages import KeeperEvent, KeeperRefused, Output, OutputGap, WriteResult
from synapsed.keepers.kept_program import gap_alert
from synapsed.model.agent import Activity, Testimony
from synapsed.model.facts import ChannelFact, PermissionAsked
from synapsed.model.link import LinkEvent, LinkExited, LinkObserved, LinkRefused
from synapsed.model.outer_terminal import OuterTerminal
from synapsed.model.picture import ScreenForm, Shown
from synapsed.model.records import TurnRecord
from synapsed.pipes.acp_opening import AcpStage, SessionOpening
from synapsed.pipes.acp_reports import CHANNEL
from synapsed.pipes.acp_session import PERSON, AcpSession
from synapsed.pipes.commands import NotRefused, OfTurn, PipesCommand, Saved, ShowLine, ShowText, Write
from synapsed.pipes.kept_session import keep, recall
from synapsed.pipes.rpc import LineReader, encode
from synapsed.pipes.transcript import TranscriptSpool, TranscriptView
from synapsed.pty.channel_delivery import ChannelDelivery
from synapsed.pty.channel_turn import TurnRules
from synapsed.pty.keyboard import Emit
from synapsed.pty.linked_terminal import ProgramLink
from synapsed.pty.readiness import SILENT_KEEPER
from synapsed.pty.stopping import CONFIRM_S, WayStopping, tell_to_stop
from synapsed.pty.viewers import Viewers, are_reports
from synapsed.terminal.delivery import type_message
from synapsed.terminal.keynames import encode as encode_keys
from synapsed.terminal.screen_messages import StageEvent

READ_BACK = 16 * 1024 * 1024
"""Largest number of bytes of a launch's output that a daemon reads again when it adopts the program."""

LAST_WORDS_S = 5.0
"""Seconds for reporting the end of a turn, if the turn ended just before its program did."""

STDERR_MAX = 4096
"""Largest number of bytes shown of one piece of the program's standard error."""

SAVE_S = 10.0
"""Seconds for saving the screen."""

BEGINS_S = 60.0
"""Seconds in which a program must begin with a turn that is to be stopped: on a busy machine some read nothing for many
seconds after the first message of a launch. Ending such a program would lose its conversation."""

TAKES_S = 5.0
"""Seconds that a client with an answer waits for the confirmation that the keeper has written it."""

PREPARED_S = 60.0
"""Seconds for which a person's line is refused because a message of a task was announced and comes first."""

ON_PIPES = TurnRules(sending_s=math.inf, refusal_stops_s=math.inf, notes_refusals=False, answer_stands=True)
"""Rules of the turns: a silent keeper gives a message when it goes on, and the program gets refusals itself."""

log = structlog.get_logger(__name__)


class AcpLink(ProgramLink):
    """`interfaces.AgentLink` for a program that speaks ACP on pipes."""

    def __init__(
        self,
        *,
        folder: Path,
        cwd: str,
        conversation: str | None,
        opening: SessionOpening,
        transcript: TranscriptSpool,
        size: tuple[int, int],
        **program: Any,
    ) -> None:
        super().__init__(**program)
        self._folder = folder
        self._spool = transcript
        self._size = size
        self._told_to = transcript.told_to(self.launch.launch_id)
        self._session = AcpSession(
            self._profile,
            cwd=cwd,
            conversation=conversation,
            kept=recall(folder, self.launch.launch_id),
            told_to=self._told_to,
            opening=opening,
        )
        self._transcript = TranscriptView()
        self._lines = LineReader()
        self._live = False
        self._output = self._read_from = self.launch.spool_start
        """The latter is the offset from which on no output of the launch is missing."""
        self._hands_at = 0.0
        self._persons = 0
        self._writing: dict[str, asyncio.Task[str | None]] = {}
        """Tasks that write an input, by the inputs' ids."""
        self._prepared_at: float | None = None
        """Time at which a message was announced (`prepare`) that was not given yet."""
        pipes = _Pipes(self._give, self._tell_to_stop)
        self._turns = ChannelDelivery(
            self._agent_id,
            self._profile,
            pipes,
            clock=self._clock,
            emit=self._tell,
            over=self._observe,
            person_at=lambda: self.person_at,
            screen=self.screen_text,
            rules=ON_PIPES,
        )
        self._stopping = WayStopping(self._turns, pipes, begun=lambda: self._session.has_begun, taking_s=BEGINS_S)
        self._gives_up = False
        self._has_it = False
        """True if the record of the turn says that the program has its message."""
        self._told: LinkObserved | None = None
        self._rests = asyncio.Event()
        """Set while no prompt is open."""
        self._viewers = Viewers(self._stage, self, self, now=self._clock.monotonic, outer=OuterTerminal())

    # --- life ---

    @property
    def terminal(self) -> LinkTerminal:
        return self

    @property
    def hands_at(self) -> float:
        return self._hands_at

    @property
    def person_at(self) -> float | None:
        return self._hands_at or None

    @property
    def output(self) -> int:
        return self._output

    async def open(self, emit: Callable[[LinkEvent], None]) -> None:
        self._program.emit = emit
        self._stage.open(self._on_screen)
        self._stage.resize(*self._size)
        begin, data = self._spool.earlier()
        if data:
            self._stage.feed(begin, data, self._clock.monotonic())
        client = await self._program.reach(self._on_event)
        self._viewers.resize(*self._size)
        start = max(self.launch.spool_start, client.hello.spool_start, client.hello.spool_end - READ_BACK)
        if start > self.launch.spool_start:
            self._lines = LineReader(begins=True)
            self._session.missed()
        self._output = self._read_from = start
        self._rounds.join(self)
        with contextlib.suppress(KeeperRefused):  # first: else the answer would come after all output of stdout
            await self._program.subscribe(None, channel="stderr")
        await self._program.subscribe(start)
        self._program.has(start)
        await self._program.catch_up()
        unsure = list(self._session.unsure)
        known = await self._program.has_inputs(name for _, names in unsure for name in names)
        for request, names in unsure:
            if not known.isdisjoint(names):
                self._perform(self._session.was_answered(request))
        self._live = True
        self._program.tasks.spawn(self._turns.run())
        self._perform(self._session.take_up())
        self._perform(self._session.begin())

    async def close(self) -> None:
        await super().close()
        self._spool.close()

    # --- events ---

    def _on_event(self, event: KeeperEvent) -> None:
        match event:
            case Output(channel="stderr"):
                self._show(self._transcript.line(event.data[-STDERR_MAX:].decode("utf-8", "replace")))
            case Output():
                self._on_output(event)
            case OutputGap(channel="stderr"):
                pass
            case OutputGap():
                self._lines.skip()
                self._read_from = event.end
                self._session.missed()
                self._program.alert(gap_alert(event))
            case _:
                self._program.told(event)

    def _on_output(self, output: Output) -> None:
        self._output = output.end
        now_ns = time.monotonic_ns()
        for line in self._lines.feed(output.offset, output.data):
            self._perform(self._session.read(line, now_ns))
            if line.end > self._told_to:
                self._told_to = line.end
                self._spool.note(line.end, self.launch.launch_id)
        self._program.has(output.end)

    def _on_screen(self, event: StageEvent) -> None:
        """Ignores the screen's events: synapsed draws the screen itself, so no question is read off it."""

    def silenced(self, *, silent: bool) -> None:
        self._told = self._observed()
        self._program.emit(self._told)

    def _observed(self) -> LinkObserved:
        if self._program.silent:
            return LinkObserved(Activity.UNKNOWN, SILENT, None, can_receive=False, held=SILENT_KEEPER.held)
        return self._session.observation(in_turn=self._turns.turn is not None)

    def _observe(self) -> None:
        """Reports the program's activity, if it has changed."""
        if self._live and not self._program.finishing and (now := self._observed()) != self._told:
            self._told = now
            self._program.emit(now)

    def visit(self) -> None:
        if self._live:
            self._perform(self._session.waited(self._clock.monotonic()))

    # --- the session's commands ---

    def _perform(self, commands: Sequence[PipesCommand]) -> None:
        for command in commands:
            if isinstance(command, ShowText):
                self._show(self._transcript.said(command.text))
            elif isinstance(command, ShowLine):
                self._show(self._transcript.line(command.text, bold=command.bold))
            else:
                self._do(command)
        told = self._told
        self._observe()
        if self._session.turn is not None:
            self._rests.clear()
            return
        self._rests.set()
        if (commands or told is not self._told) and self._session.stage is AcpStage.READY:
            self._show(self._transcript.rest())

    def _do(self, command: Write | Emit | OfTurn | NotRefused | Saved) -> None:
        match command:
            case Write(_, input_id):
                writing = self._program.tasks.spawn(self._write(command))
                if input_id is not None:
                    self._writing[input_id] = writing
                    writing.add_done_callback(lambda _: self._writing.pop(input_id, None))
            case Emit(event):
                self._tell(event)
            case OfTurn(fact):
                self._turns.told(fact)
            case NotRefused():
                self._turns.refuse(refuses=False)
            case Saved(kept):
                keep(self._folder, self.launch.launch_id, kept)

    def _tell(self, event: LinkEvent) -> None:
        if isinstance(event, LinkRefused):
            self._turns.refuse(refuses=True)
        self._program.emit(event)

    async def _write(self, command: Write) -> str | None:
        """Writes the message; returns the reason if the keeper did not take it, None if it did."""
        try:
            written = await self._program.keeper().write(encode(command.message), command.input_id)
        except KeeperRefused as error:
            log.warning("not written", agent_id=self._agent_id, what=command.input_id, reason=error.reason)
            if error.reason != "exited" and command.input_id is not None:
                self._perform(self._session.unwritten(command.input_id))
            return error.message
        except KeeperLost as error:
            return error.message  # the loss is also reported by itself
        if command.input_id is not None:
            self._note_given(command.input_id, written)
        return None

    async def _refusal_of(self, commands: Sequence[PipesCommand]) -> str | None:
        """Returns the reason why the keeper did not take one of these writes; None if it took them, or has not replied
        in TAKES_S: then it takes them later."""
        names = [command.input_id for command in commands if isinstance(command, Write)]
        writing = {self._writing[name] for name in names if name in self._writing}
        if writing:
            await asyncio.wait(writing, timeout=TAKES_S)
        return next((why for each in writing if each.done() and (why := each.result()) is not None), None)

    async def _give(self, key: str) -> None:
        """Gives the program the message of a task's turn; the program gets it once, even if this is called again.
        Raises ChannelAway, MessageRefused."""
        message = self._session.prompt(key)
        try:
            keeper = self._program.keeper()
            if message is None or self._has_it:  # written long ago: the keeper may have forgotten the id by now
                written = await keeper.recall(key)
            else:
                written = await keeper.write(encode(message), key)
        except KeeperLost as error:
            raise ChannelAway(error.message, sent=True) from None
        except KeeperRefused as error:
            if error.reason == "exited":  # the program's end is reported by itself
                raise ChannelAway(error.message, sent=True) from None
            self._perform(self._session.unwritten(key))
            raise MessageRefused(f"it could not be written: {error.message}") from None
        self._note_given(key, written)

    def _note_given(self, key: str, written: WriteResult | None) -> None:
        at = written.offset if written is not None else None
        whole = at is not None and at >= self._read_from
        self._perform(self._session.given(key, time.monotonic_ns(), at=at, whole=whole))

    def _show(self, data: bytes) -> None:
        if not data:
            return
        at = self._spool.append(data)
        self._stage.feed(at, data, self._clock.monotonic())
        self._viewers.push(at, data)

    # --- the end ---

    def finishing(self) -> None:
        """Ends the wait for a person's turn, so that the end of the program is reported at once."""
        self._rests.set()

    async def last_words(self) -> None:
        """Reports the end of the task's turn before the end of the program."""
        if self._gives_up:
            self._perform(self._session.given_up(time.monotonic_ns()))
        await self._turns.last_words(LAST_WORDS_S)
        self._turns.drop()
        self._viewers.end()

    # --- the turn ---

    def prepare(self, record: TurnRecord, *, command: bool = False) -> TurnRecord:
        """Returns the turn's record, which says that the program may have the message from now on: the message is given
        once, and by no other launch."""
        self._prepared_at = self._clock.monotonic()
        return self._turns.record(record)

    async def deliver(self, delivery: Delivery) -> None:
        if self._session.turn is not None and self._turns.turn is None:  # a person's turn, which began earlier
            await self._rests.wait()
        self._prepared_at = None
        if self._session.turn is not None or self._turns.turn is not None:
            raise NotReady("a turn runs already")
        link = {**self._turns.record(delivery.record).link, **of_before(delivery.record.link)}
        was = delivery.record.link
        self._has_it = not delivery.fresh and (was.get("taken") is True or was.get("submit_offset") is not None)
        text = delivery.text
        if not delivery.command:  # a prompt that looks like one of the program's commands must be taken as text
            text = type_message(self._profile.delivery, text, bracketed=True).text
        stopped = link["interrupting"] or link["refused_at"] is not None
        self._perform(self._session.deliver(link["key"], text, fresh=delivery.fresh, stopped=stopped))
        self._turns.begin(replace(delivery, record=delivery.record.model_copy(update={"link": link}), text=text))

    @property
    def _is_prepared(self) -> bool:
        return self._prepared_at is not None and self._clock.monotonic() - self._prepared_at < PREPARED_S

    def recorded(self, record: TurnRecord) -> None:
        self._turns.recorded()

    def taken(self, fact: ChannelFact) -> None:
        """Keeps no record of the fact: `told_to` is the offset up to which facts were reported."""

    def settled(self) -> None:
        """Does nothing, for the same reason as `taken`."""

    async def observe(self) -> LinkObserved:
        return self._observed()

    async def interrupt(self) -> bool:
        """Stops the turn. A program that does not end its turn is killed; then its restart policy applies."""
        self._session.asked_to_stop()
        if self._turns.turn is not None:
            ends = await self._stopping.stop(goes_on=False)
        elif (persons := self._session.turn) is not None:
            ends = await tell_to_stop(
                self._tell_to_stop,
                runs=lambda: self._session.turn is persons and not self._program.finishing,
                over=self._rests,
                begun=lambda: self._session.has_begun,
                taking_s=BEGINS_S,
                within=CONFIRM_S,
            )
        else:
            self._tell_to_stop()
            return False  # work without a prompt has no end that is reported
        if not ends and not self._program.finishing:
            log.warning("its turn does not end: the program is ended", agent_id=self._agent_id)
            self._gives_up = True
            with contextlib.suppress(KeeperRefused):  # it ended in this moment
                await self._program.signal(signal.SIGKILL)
            await asyncio.shield(self._program.exited)
        return True

    def _tell_to_stop(self) -> None:
        self._perform(self._session.interrupt(self._clock.monotonic()))

    async def answer(self, text: str, prompt_id: str | None) -> bool:
        self._perform(commands := self._session.answer(text, prompt_id))
        if (why := await self._refusal_of(commands)) is not None:
            raise NotTaken(f"its program did not take the answer: {why}", prompt_id=prompt_id)
        return False

    async def reply(self, asked: PermissionAsked, answer: dict[str, Any]) -> bool:
        commands = self._session.decide(asked.request or "", str(answer.get("kind")))
        if commands is None:
            return False
        self._perform(commands)
        return await self._refusal_of(commands) is None

    async def stop(self, grace: float) -> LinkExited:
        return await self._program.stop(grace, leave=lambda: self._program.keeper().close_input())

    async def poke(self) -> None:
        """Does nothing: the program's pipes report everything."""

    async def explain(self) -> list[Testimony]:
        now = self._observed()
        return [Testimony(channel="acp", says=now.evidence.removeprefix("acp: "), since=None, decides=True)]

    # --- the screen ---

    async def screen_text(self, limit: int | None = None) -> str:
        text = await self._stage.text(scrollback=limit is not None)
        return text if limit is None else text[-limit:]

    async def screen_as(self, fmt: ScreenForm) -> Shown:
        return await self._stage.shown(fmt)

    async def keep_screen(self) -> None:
        with contextlib.suppress(StoreError, TimeoutError):
            checkpoint = await asyncio.wait_for(self._stage.checkpoint(), SAVE_S)
            await self._store.save_checkpoint(self._agent_id, checkpoint)

    async def resize(self, cols: int, rows: int) -> None:
        self._stage.resize(cols, rows)
        self._viewers.resize(cols, rows)

    async def composes(self) -> bool:
        return bool(self._transcript.draft)

    async def take_line(self, line: str) -> bool:
        if self._transcript.draft.strip() != line.strip():
            return False
        self._show(self._transcript.erased())
        return True

    def type_now(self, data: bytes) -> bool:
        return False

    def follows(self, size: tuple[int, int] | None) -> None:
        """Takes that size; for None the window's size stays."""
        if size is not None:
            self._stage.resize(*size)
            self._viewers.resize(*size)

    def seen_in(self, outer: OuterTerminal) -> None:
        self._stage.note(outer)

    async def type(self, data: bytes) -> None:
        """Takes a person's keys at an attached terminal. An error in the person's line is shown there."""
        if are_reports(data):
            return
        self._hands_at = self._clock.monotonic()
        shown, asked = self._transcript.keys(data)
        self._show(shown)
        for line in asked:
            if line == "\x03":
                self._session.asked_to_stop()
                turn = self._turns.turn
                if turn is not None:
                    self._program.tasks.spawn(self._stopping.stop(by_person=True))
                else:
                    self._tell_to_stop()
                continue
            if self._session.waiting is None and self._is_prepared:
                self._perform([ShowLine("another message comes first: send yours when its turn is over")])
                continue
            self._persons += 1
            try:
                self._perform(self._session.typed(f"{PERSON}{time.time_ns()}.{self._persons}", line))
            except SynapsedError as error:
                self._perform([ShowLine(error.message)])

    async def press(self, keys: Sequence[str]) -> None:
        if self._program.exited.done():
            raise NotReady("the program has ended")
        for data in encode_keys(keys, application_cursor=False):
            await self.type(data)


def of_before(link: dict[str, Any]) -> dict[str, Any]:
    """Returns the turn's record in the present form; an earlier version used other field names."""
    if "prompt" not in link:
        return link
    refused_at = 0.0 if link.get("refused") else None
    return {"key": link["prompt"], "interrupting": bool(link.get("interrupting")), "refused_at": refused_at}


class _Pipes:
    """Implements `interfaces.DeliveryWay`, a way by which messages reach a program: here by its pipes. A message's key
    is the id of the request that gives it: the keeper writes a request once, however often it is asked to, and the
    program's answer is found in its output by the same id. So the program need not be asked about a turn."""

    name = CHANNEL
    settles_s = 0.0
    gone: str | None = None

    def __init__(self, give: Callable[[str], Awaitable[None]], stop: Callable[[], None]) -> None:
        self._give = give
        self._stop = stop

    def reach(self) -> Reach:
        """Returns "away". Needed only if the keeper did not take a message; its program's end is then reported soon."""
        return "away"

    def key(self, task_id: str, leg: int) -> str:
        return f"{task_id}.{time.monotonic_ns()}"

    async def submit(self, key: str, text: str, *, new: bool = False) -> Submitted:
        await self._give(key)
        return Submitted(turn=key)

    async def find(self, key: str, turn: str | None = None) -> FoundTurn:
        """Gives the message: only the keeper knows if the program has it already, and then does not write it again."""
        await self._give(key)
        return FoundTurn(turn=key)

    async def interrupt(self, turn: str | None) -> bool:
        self._stop()
        return True
