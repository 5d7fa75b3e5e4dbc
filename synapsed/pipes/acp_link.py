"""The link to a program without a terminal: the shell around its session, which decides.

The keeper has the program's pipes: what is written goes there under an id, once, and what the program writes is read
from where the launch began. What a person would want to see of it is drawn on a screen as a terminal's output is, so
that attached terminals, looks and pictures are those of any agent.
"""

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import structlog

from synapsed.errors import KeeperLost, NotReady, StoreError, SynapsedError
from synapsed.interfaces import Delivery, LinkTerminal
from synapsed.keepers.heartbeat import SILENT
from synapsed.keepers.keeper_messages import KeeperEvent, KeeperRefused, Output, OutputGap
from synapsed.keepers.kept_program import gap_alert
from synapsed.model.agent import Activity, Testimony
from synapsed.model.facts import ChannelFact, PermissionAsked
from synapsed.model.link import LinkEvent, LinkExited, LinkObserved, LinkRefused, LinkTurnRecord
from synapsed.model.outer_terminal import OuterTerminal
from synapsed.model.picture import ScreenForm, Shown
from synapsed.model.records import TurnRecord
from synapsed.pipes.acp_session import (
    PERSON,
    AcpSession,
    AcpStage,
    SessionOpening,
)
from synapsed.pipes.commands import PipesCommand, Saved, ShowLine, ShowText, Write
from synapsed.pipes.rpc import LineReader, encode
from synapsed.pipes.transcript import TranscriptSpool, TranscriptView
from synapsed.pty.keyboard import Emit
from synapsed.pty.linked_terminal import ProgramLink
from synapsed.pty.readiness import SILENT_KEEPER
from synapsed.pty.viewers import Viewers, are_reports
from synapsed.shared.files import write_whole
from synapsed.terminal.delivery import type_message
from synapsed.terminal.keynames import encode as encode_keys
from synapsed.terminal.screen_messages import StageEvent

STATE_FILE = "acp.json"
"""In the agent's directory: the session that was opened in a launch."""

READ_BACK = 16 * 1024 * 1024
"""Bytes of a launch's output that are read again at most when a daemon takes it up."""

CONFIRM_STOP_S = 10.0
"""How long a program has to end its turn after it was asked to; then it is ended itself."""

STDERR_MAX = 4096
"""Bytes of one piece of its standard error that are shown."""

SAVE_S = 10.0

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
        """`program`: as of `ProgramLink`."""
        super().__init__(**program)
        self._folder = folder
        self._spool = transcript
        self._size = size
        self._told_to = transcript.told_to(self.launch.launch_id)
        known, known_at = self._known()
        self._session = AcpSession(
            self._profile,
            cwd=cwd,
            conversation=conversation,
            known=known,
            known_at=known_at,
            told_to=self._told_to,
            opening=opening,
        )
        self._transcript = TranscriptView()
        self._lines = LineReader()
        self._live = False
        self._output = self._read_from = self.launch.spool_start
        """Nothing of the launch's output is missing from there on."""
        self._hands_at = 0.0
        self._persons = 0
        self._record: TurnRecord | None = None
        self._turn_over = asyncio.Event()
        self._turn_over.set()
        self._viewers = Viewers(self._stage, self, self, now=self._clock.monotonic, outer=OuterTerminal())

    def _known(self) -> tuple[str | None, int]:
        """The session that an earlier daemon opened in this launch, and where in the program's output it was ready."""
        try:
            kept = json.loads((self._folder / STATE_FILE).read_bytes())
        except (OSError, ValueError):
            return None, 0
        if not isinstance(kept, dict) or kept.get("launch") != self.launch.launch_id:
            return None, 0
        session, at = kept.get("session"), kept.get("at")
        return session if isinstance(session, str) else None, at if isinstance(at, int) else 0

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
        with contextlib.suppress(KeeperRefused):  # first: its answer would stand behind all that output
            await self._program.subscribe(None, channel="stderr")
        await self._program.subscribe(start)
        self._program.has(start)
        await self._program.catch_up()
        for request in self._session.open_requests:
            if await client.recall(request.input_id) is not None:
                self._perform(self._session.was_answered(request.input_id))
        self._live = True
        self._session.observed = None
        self._perform(self._session.begin())

    async def close(self) -> None:
        await super().close()
        self._spool.close()

    # --- what comes in ---

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
            if (
                self._record is not None
                and line.message is not None
                and line.message.get("id") == _prompt_id(self._record)
            ):
                self._delivered(_prompt_id(self._record), output.offset)  # the answer may come before the keeper's word
            self._perform(self._session.read(line, now_ns))
            if line.end > self._told_to:
                self._told_to = line.end
                self._spool.note(line.end, self.launch.launch_id)
        self._program.has(output.end)

    def _on_screen(self, event: StageEvent) -> None:
        """What is drawn is ours: nothing is asked in it, and nothing has to be answered."""

    def silenced(self, *, silent: bool) -> None:
        self._program.emit(self._observed())

    def _observed(self) -> LinkObserved:
        if self._program.silent:
            return LinkObserved(Activity.UNKNOWN, SILENT, None, can_receive=False, held=SILENT_KEEPER.held)
        return self._session.observation()

    def visit(self) -> None:
        if self._live:
            self._perform(self._session.waited(self._clock.monotonic()))

    # --- what is to be done ---

    def _perform(self, commands: Iterable[PipesCommand]) -> None:
        shown = False
        for command in commands:
            match command:
                case Write():
                    self._program.tasks.spawn(self._write(command))
                case Emit(event):
                    self._tell(event)
                case ShowText(text):
                    self._show(self._transcript.said(text))
                case ShowLine(text, bold):
                    self._show(self._transcript.line(text, bold=bold))
                case Saved(session, at):
                    self._save(session, at)
            shown = True
        if self._session.turn is None:
            self._turn_over.set()
            if shown and self._session.stage is AcpStage.READY:
                self._show(self._transcript.rest())
        else:
            self._turn_over.clear()

    def _tell(self, event: LinkEvent) -> None:
        if isinstance(event, LinkRefused):
            self._note("refused")
        if self._live or not isinstance(event, LinkObserved):
            self._program.emit(event)

    async def _write(self, command: Write) -> None:
        try:
            written = await self._program.keeper().write(encode(command.message), command.input_id)
        except KeeperRefused as error:
            log.warning("not written", agent_id=self._agent_id, what=command.input_id, reason=error.reason)
        except KeeperLost:
            pass  # that is told otherwise
        else:
            if command.message.get("method") == "session/prompt" and command.input_id is not None:
                self._delivered(command.input_id, written.offset, at=written.offset)

    def _delivered(self, prompt_id: str, offset: int, *, at: int = 0) -> None:
        """The program has the prompt: its turn began at `offset` of its output or before, not before `at`."""
        record = self._record
        if record is not None and record.link.get("prompt") == prompt_id and "submit_offset" not in record.link:
            self._record = record.model_copy(update={"link": {**record.link, "submit_offset": offset}})
            self._program.emit(LinkTurnRecord(self._record))
        self._perform(self._session.accepted(prompt_id, time.monotonic_ns(), at=at))

    def _show(self, data: bytes) -> None:
        if not data:
            return
        at = self._spool.append(data)
        self._stage.feed(at, data, self._clock.monotonic())
        self._viewers.push(at, data)

    def _save(self, session: str, at: int) -> None:
        content = json.dumps({"launch": self.launch.launch_id, "session": session, "at": at}).encode()
        try:
            write_whole(self._folder / STATE_FILE, content, durable=False)
        except OSError as error:
            log.warning("the session is not kept", agent_id=self._agent_id, error=str(error))

    # --- the end ---

    def finishing(self) -> None:
        """Its end is told at once."""

    async def last_words(self) -> None:
        self._viewers.end()

    # --- the turn ---

    def prepare(self, record: TurnRecord, *, command: bool = False) -> TurnRecord:
        """From here on the program may have the message: it is given it once, and by no other launch."""
        return record.model_copy(update={"link": {"prompt": _prompt_id(record), "submitted": True}})

    async def deliver(self, delivery: Delivery) -> None:
        self._record = record = self.prepare(delivery.record) if delivery.fresh else delivery.record
        now_ns = time.monotonic_ns()
        prompt_id = _prompt_id(record)
        text = delivery.text
        if not delivery.command:  # its programs read commands, too
            text = type_message(self._profile.delivery, text, bracketed=True).text
        submitted = record.link.get("submit_offset")
        whole = isinstance(submitted, int) and submitted >= self._read_from
        stopping, refused = bool(record.link.get("interrupting")), bool(record.link.get("refused"))
        self._perform(
            self._session.deliver(
                delivery.task_id,
                prompt_id,
                text,
                fresh=delivery.fresh,
                now_ns=now_ns,
                stopping=stopping,
                refused=refused,
                whole=whole,
            )
        )
        if stopping and self._session.turn is not None:
            self._program.tasks.spawn(self.interrupt())  # the last daemon was about to

    def _note(self, what: str) -> None:
        """What the next daemon has to know of the turn that runs, if it is a task's."""
        turn, record = self._session.turn, self._record
        if turn is not None and record is not None and turn.task == record.task_id:
            self._record = record.model_copy(update={"link": {**record.link, what: True}})
            self._program.emit(LinkTurnRecord(self._record))

    def recorded(self, record: TurnRecord) -> None:
        """Nothing waits for that: the keeper writes a prompt once, whatever is on record."""

    def taken(self, fact: ChannelFact) -> None:
        """Nothing keeps it: what was told stands in `told_to`."""

    def settled(self) -> None:
        """The same."""

    async def observe(self) -> LinkObserved:
        return self._observed()

    async def interrupt(self) -> bool:
        """A program that does not end its turn is ended; its restart policy applies."""
        if self._session.turn is None:
            self._perform(self._session.interrupt())  # what it does by itself has no end that could be waited for
            return False
        self._note("interrupting")
        self._perform(self._session.interrupt())
        try:
            await asyncio.wait_for(self._turn_over.wait(), CONFIRM_STOP_S)
        except TimeoutError:
            log.warning("its turn does not end: the program is ended", agent_id=self._agent_id)
            self._perform(self._session.given_up(time.monotonic_ns()))
            await self._program.keeper().signal(signal.SIGKILL)
            await asyncio.shield(self._program.exited)
        return True

    async def answer(self, text: str, prompt_id: str | None) -> bool:
        self._perform(self._session.answer(text, prompt_id))
        return False

    async def reply(self, asked: PermissionAsked, answer: dict[str, Any]) -> bool:
        commands = self._session.decide(asked.request or "", str(answer.get("kind")))
        if commands is None:
            return False
        self._perform(commands)
        return True

    async def stop(self, grace: float) -> LinkExited:
        return await self._program.stop(grace, leave=self._leave)

    async def _leave(self) -> None:
        with contextlib.suppress(KeeperRefused):
            await self._program.keeper().close_input()

    async def poke(self) -> None:
        """Nothing is poked for: everything comes on its pipes."""

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

    def nobody_types(self) -> None:
        """Its window stays as it is."""

    def seen_in(self, outer: OuterTerminal) -> None:
        self._stage.note(outer)

    async def type(self, data: bytes) -> None:
        """A person's keys at an attached terminal. Raises InvalidChoice, PromptChanged."""
        if are_reports(data):
            return
        self._hands_at = self._clock.monotonic()
        shown, asked = self._transcript.keys(data)
        self._show(shown)
        for line in asked:
            if line == "\x03":
                self._perform(self._session.interrupt())
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


def _prompt_id(record: TurnRecord) -> str:
    """By which the program answers the prompt, and the keeper knows that it was written."""
    return f"{record.task_id}.{record.attempt}"
