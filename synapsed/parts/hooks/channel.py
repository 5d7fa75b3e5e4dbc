"""Follows one program's hooks: the program runs the hook client at its events, their payloads become facts, and
transcripts add what is missing.

Reports are ordered by their clock. A report of the end of a turn that is not open, or whose end was reported already,
is late and left out (an interrupt, or the transcript, may be faster than a hook).

If a program does not name its turns, this module names them after the time of their acceptance. It works on one at a
time: when it takes another prompt, the turn before is over, even without a report (after a refused permission there is
none).

An answer that a hook reports (`answered`) is not the turn's end: a hook of the person's own, which the program runs
beside this one, may send the model back to work. It is the end when the program rests, when its transcript says so, or
when it takes another prompt; the next answer of the same turn replaces it.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import structlog

from synapsed.aio import TaskSet
from synapsed.channels import Adapter, Channel, FactKind, LaunchContext, at_path, clean, tool_fact, tool_line, used
from synapsed.clock import PastDates, SystemClock
from synapsed.model.facts import (
    BACKGROUND_MAX,
    BACKGROUND_NAME,
    AssistantSaid,
    AssistantSaying,
    BackgroundTold,
    ChannelFact,
    PermissionAsked,
    PromptAccepted,
    SessionStarted,
    TurnAnswered,
    TurnEnded,
    TurnFailed,
    TurnInterrupted,
    TurnUsed,
)
from synapsed.parts.hooks import transcripts
from synapsed.parts.hooks.maildir import TAKEN_MAX, Maildir, Report
from synapsed.parts.hooks.message_pieces import MessagePieces
from synapsed.parts.hooks.transcripts import TurnKey, TurnRead

USED_STEP_SECONDS = (0.25, 4.0)
"""First and longest pause between two reads of the transcript for a turn's usage, after its end was reported; each
pause is twice the one before."""
USED_WAIT_SECONDS = 60.0
"""Seconds to wait for this usage: a program on a busy machine may write it late."""
TRANSCRIPT_STEP_SECONDS = 0.02
"""Seconds between two reads of a transcript that does not have the turn's end yet."""
HOOK_GRACE_SECONDS = 1.0
"""Seconds for which a turn's end in the transcript is held back for the hook, which comes a little later with more
facts."""
MILLISECOND_S = 0.001
"""Seconds that may be missing from a transcript's dates: they are cut to milliseconds."""
MESSAGE_MAX = 2000
"""Characters of an error's text."""
OF_TURNS = frozenset({"accepted", "answered", "ended", "failed", "interrupted"})
"""Reports of a turn's beginning or end: a report that is older than the open turn belongs to an earlier turn, whose
hook was slow."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Turn:
    """The turn that was accepted last, and the name in its facts. `told` are the ids of its messages that were
    reported."""

    at_ns: int
    key: TurnKey
    session: str | None
    name: str
    told: frozenset[str] = frozenset()
    sent_back: int = 0
    """Number of times that the person's own hooks have sent the model back to work, with a prompt of their own."""


class HookChannel:
    """One agent's hooks. After a restart the facts of the last two turns are reported again, except those before
    `settled`, about which the events are stored: a reported end may not have been recorded when the daemon was
    killed."""

    def __init__(self, *, name: str, channel: Channel, context: LaunchContext) -> None:
        self.name = name
        self._channel = channel
        self._context = context
        self._dates = PastDates(SystemClock())
        passing = frozenset(event for event, kind in channel.events.items() if kind == "saying")
        self._maildir = Maildir(context.hooks, passing=passing, since_ns=context.began_ns)
        self._pieces = MessagePieces()
        self._emit: Callable[[ChannelFact], None] | None = None
        self._lock = asyncio.Lock()
        self._transcript: Path | None = None
        self._seen: tuple[int, int] | None = None
        self._turn: _Turn | None = None
        """None while no turn is open, as far as hooks know."""
        self._answered: tuple[Report, _Common] | None = None
        """The model's last message in that turn, which may be its end."""
        self._closed: TurnKey | None = None
        """The last turn whose end was reported."""
        self._counting = TaskSet()
        self._owed: dict[int, int | None] = {}
        """Ended turns whose usage is not settled, by the time of their acceptance; the value is the time of the fact
        that reported it, None before that."""
        self._accepted_ns = 0
        self._settled_ns = 0

    async def open(self, emit: Callable[[ChannelFact], None]) -> None:
        """Begins with all earlier reports, also those that were taken but never settled."""
        self._emit = emit
        await asyncio.to_thread(self._recover)
        await self.poll()

    async def poll(self) -> None:
        """Reports the new entries of the maildir, and of the transcript of the open turn."""
        self._dates.note()
        async with self._lock:
            while self._emit is not None:
                reports = await asyncio.to_thread(self._take)
                for report in reports:
                    try:
                        await self._tell(report)
                    except Exception:  # noqa: BLE001  # of another shape: those behind it are told
                        _log.exception("a hook's report is not understood", agent=self._context.agent_id)
                if reports:
                    await asyncio.to_thread(self._settle, self._durable_ns)
                if len(reports) < TAKEN_MAX:
                    break
            if self._turn is not None:
                await self._look(self._turn)

    async def last_answer(self, since_ns: int, is_ours: Callable[[str], bool]) -> str | None:
        """Returns the last assistant message of the turn submitted at `since_ns`, from the transcript."""
        turn = self._turn
        key = TurnKey(since=self._dates.of(since_ns / 1e9))
        if turn is not None and turn.at_ns >= since_ns:
            key = turn.key
        read = await asyncio.to_thread(self._read, key)
        return read.answer if read is not None and read.outcome in ("ended", "open") else None

    async def rests(self) -> None:
        answered = self._answered
        await self.poll()
        async with self._lock:
            if self._answered is answered:  # else the program has gone on meanwhile
                await self._end_answered()

    async def reply(self, request: str, answer: dict[str, Any]) -> bool:
        """Returns False: a hook is answered while it runs, not later."""
        return False

    async def settled(self, at_ns: int) -> None:
        """Notes that the facts up to `at_ns` are durable and need not be reported again. The usage of a turn is
        reported after its end: the turn's reports are kept until its usage is durable too, so that the next daemon
        counts it."""
        async with self._lock:
            self._owed = {turn: told for turn, told in self._owed.items() if told is None or told > at_ns}
            self._settled_ns = max(self._settled_ns, at_ns)
            await asyncio.to_thread(self._settle, self._durable_ns)

    async def close(self) -> None:
        """Ends the reports."""
        self._emit = None
        await self._counting.cancel()

    # --- the disk, in a thread ---------------------------------------------------------------------------------------

    def _recover(self) -> None:
        try:
            self._maildir.recover()
        except OSError as error:
            _log.warning("hooks cannot be recovered", agent=self._context.agent_id, error=str(error))

    def _take(self) -> list[Report]:
        try:
            return self._maildir.take()
        except OSError as error:  # a fault of the disk must not stop the agent: the screen is still read
            _log.warning("hooks cannot be read", agent=self._context.agent_id, error=str(error))
            return []

    def _settle(self, at_ns: int) -> None:
        try:
            self._maildir.settle(at_ns)
        except OSError as error:
            _log.warning("hooks cannot be settled", agent=self._context.agent_id, error=str(error))

    def _read(self, key: TurnKey) -> TurnRead | None:
        spec = self._channel.transcript
        if spec is None:
            return None
        try:
            path = self._transcript or transcripts.locate(spec, self._context.home, self._context.conversation)
            return None if path is None else transcripts.read_turn(path, spec, key)
        except (OSError, ValueError) as error:  # it is no path, for example
            _log.debug("transcript cannot be read", agent=self._context.agent_id, error=str(error))
            return None

    def _changed(self) -> bool:
        """Returns True if the transcript was written since the last call."""
        if self._transcript is None:
            return False
        try:
            stat = self._transcript.stat()
        except (OSError, ValueError):
            return False
        seen, self._seen = self._seen, (stat.st_size, stat.st_mtime_ns)
        return seen != self._seen

    @property
    def _durable_ns(self) -> int:
        """Time up to which facts need not be reported again."""
        return min([self._settled_ns, *(turn - 1 for turn in self._owed)])

    # --- facts -------------------------------------------------------------------------------------------------------

    def _say(self, fact: ChannelFact) -> None:
        if self._emit is not None:
            self._emit(fact)

    async def _tell(self, report: Report) -> None:
        kind = self._channel.events.get(report.event)
        payload, fields = report.payload, self._channel.fields
        if (path := _string(payload, fields.transcript)) is not None:
            self._transcript = Path(path)
        common = _Common(self.name, report.at_ns, _string(payload, fields.session), _string(payload, fields.turn))
        self._tell_tool(report, common)
        self._tell_background(report, common)
        if kind is None:
            return
        if kind == "saying":
            self._tell_saying(report, common)
            return
        if kind in OF_TURNS and self._turn is not None and report.at_ns < self._turn.at_ns:
            _log.debug("late news of an earlier turn", agent=self._context.agent_id, event_name=report.event)
            return
        if kind == "answered":
            await self._answer(report, common)
            return
        if kind in ("ended", "failed", "interrupted"):
            await self._tell_end(kind, report, common)
            return
        if kind == "accepted":
            common = await self._accept(report, common)
        self._say(self._plain_fact(kind, report, common))

    def _tell_tool(self, report: Report, common: "_Common") -> None:
        line = tool_line(self._channel.tools, report.event, report.payload)
        if line is not None:
            turn = common.turn or (self._turn.name if self._turn is not None else None)
            at_ns, session = report.at_ns, common.session
            self._say(tool_fact(line, report.payload, channel=self.name, at_ns=at_ns, session=session, turn=turn))

    def _tell_background(self, report: Report, common: "_Common") -> None:
        fields = self._channel.fields
        told = at_path(report.payload, fields.background) if fields.background is not None else None
        if isinstance(told, list):
            named = (_string(one, fields.background_name) for one in told[:BACKGROUND_MAX] if isinstance(one, dict))
            names = tuple(" ".join((name or "").split())[:BACKGROUND_NAME] or "task" for name in named)
            self._say(common.fact(BackgroundTold, names=names))

    def _tell_saying(self, report: Report, common: "_Common") -> None:
        """Reports a piece of a message, but only of the open turn."""
        turn, payload, fields = self._turn, report.payload, self._channel.fields
        message, piece = _string(payload, fields.message_id), _string(payload, fields.piece)
        number = at_path(payload, fields.number) if fields.number is not None else None
        if turn is None or _names(turn.key, common.turn, None) is False or not message or not piece:
            return
        if isinstance(number, int) and (ready := self._pieces.take(message, number, piece)):
            self._say(replace(common, turn=turn.name).fact(AssistantSaying, message_id=message, piece=ready))

    async def _accept(self, report: Report, common: "_Common") -> "_Common":
        """Returns `common` with the turn's name."""
        if self._answered is not None and (turn := await self._sent_back(common)) is not None:
            self._turn, self._answered = turn, None
            return replace(common, turn=turn.name)
        await self._end_answered()
        self._settled_ns = max(self._settled_ns, self._accepted_ns - 1)
        self._accepted_ns = report.at_ns
        prompt = _string(report.payload, self._channel.fields.prompt)
        key = TurnKey(since=report.wall, turn=common.turn, prompt=prompt)
        turn = self._turn
        if turn is not None and (same := _names(turn.key, common.turn, prompt)) is not True:
            if same is False and common.turn is None:
                await self._give_up(turn)
            turn = None
        if turn is None:  # else the open turn was steered, or reported again
            turn = _Turn(report.at_ns, key, common.session, common.turn or f"{self.name}.{report.at_ns}")
        self._turn = turn
        return replace(common, turn=turn.name)

    async def _sent_back(self, common: "_Common") -> _Turn | None:
        """Returns the open turn if the program continues it after an answer, with a prompt of a hook in place of the
        person's. None if the prompt is that of another turn."""
        turn, spec = self._turn, self._channel.transcript
        if turn is None:
            return None
        if (same := _names(turn.key, common.turn, None)) is not None:
            return turn if same else None
        if spec is None or not spec.sent_back:
            return None
        read = await asyncio.to_thread(self._read, turn.key)
        return replace(turn, sent_back=turn.sent_back + 1) if read and read.sent_back > turn.sent_back else None

    async def _answer(self, report: Report, common: "_Common") -> None:
        if self._answered is not None and self._answered[1].turn != common.turn:
            await self._end_answered()
        if not self._is_late(common.turn, _string(report.payload, self._channel.fields.prompt)):
            self._answered = report, common
            turn = self._turn
            self._say((common if turn is None else replace(common, turn=turn.name)).fact(TurnAnswered))

    async def _end_answered(self) -> None:
        """Ends the turn with the last reported answer, if there is one."""
        if (answered := self._answered) is not None:
            await self._tell_end("ended", *answered)

    async def _give_up(self, turn: _Turn) -> None:
        """Ends a turn because the program has begun another: the transcript says that the first ended, failed, or was
        stopped. The exact time of that end is unknown; the reported one is before the other turn was submitted, so that
        it cannot count as the other's end."""
        read = await self._read_end(turn.key, hurried=True)
        common = _Common(self.name, turn.at_ns, turn.session, turn.name)
        if read is not None:
            self._tell_progress(turn, read)
        self._close()
        ended = read is not None and (read.outcome != "open" or read.answer is not None)
        self._say(self._end_fact(read, None, turn.key.prompt, common) if ended else common.fact(TurnInterrupted))

    def _plain_fact(self, kind: FactKind, report: Report, common: "_Common") -> ChannelFact:
        payload, fields = report.payload, self._channel.fields
        match kind:
            case "session":
                return common.fact(SessionStarted)
            case "accepted":
                return common.fact(PromptAccepted, prompt=_string(payload, fields.prompt))
            case "said":
                text = _string(payload, fields.answer) or ""
                return common.fact(AssistantSaid, message_id=_string(payload, fields.message_id) or "", text=text)
            case _:
                tool, given = _string(payload, fields.tool) or "", _table(payload, fields.tool_input)
                return common.fact(PermissionAsked, tool=tool, input=given, event=report.event, told=payload)

    async def _tell_end(self, kind: FactKind, report: Report, common: "_Common") -> None:
        prompt = _string(report.payload, self._channel.fields.prompt)
        turn = self._turn
        if self._is_late(common.turn, prompt):
            _log.debug("late news of an earlier turn", agent=self._context.agent_id, event_name=report.event)
            return
        self._close()
        if turn is not None:
            common = replace(common, turn=turn.name)
        if kind == "failed":
            text = self._error(report.payload)
            self._say(common.fact(TurnFailed, code=self._code(report.payload), message=text))
        elif kind == "interrupted":
            self._say(common.fact(TurnInterrupted))
        else:
            answer = _string(report.payload, self._channel.fields.answer)
            key = turn.key if turn is not None else None
            read = await self._read_end(key, hurried=answer is not None)
            if read is not None and turn is not None:
                self._tell_progress(turn, read)
            self._say(self._end_fact(read, answer, prompt, common))

    def _is_late(self, turn: str | None, prompt: str | None) -> bool:
        """Returns True if an end that names `turn` and `prompt` is that of a turn whose end was reported, or which was
        given up."""
        if self._turn is not None:
            return _names(self._turn.key, turn, prompt) is False
        return self._closed is not None and _names(self._closed, turn, prompt) is True

    def _close(self) -> None:
        self._answered = None
        if self._turn is not None:
            self._closed = self._turn.key
            if self._channel.transcript is not None and self._channel.transcript.usage is not None:
                self._owed[self._turn.at_ns] = None
                self._counting.spawn(self._count(self._turn), name=f"{self._context.agent_id} usage")
        self._turn = None

    async def _count(self, turn: _Turn) -> None:
        """Reports the usage of the turn once the transcript has all of it, which may be after the report of the end."""
        spec = self._channel.transcript
        assert spec is not None
        assert spec.usage is not None
        deadline = time.monotonic() + USED_WAIT_SECONDS
        step, longest = USED_STEP_SECONDS
        while True:
            read = await asyncio.to_thread(self._read, turn.key)
            whole = read is not None and (read.outcome != "open" or (not spec.ended and read.answer is not None))
            if whole or time.monotonic() >= deadline:
                break
            await asyncio.sleep(step)
            step = min(step * 2, longest)
        found = used(read.uses, spec.usage) if read is not None else None
        if found is None:
            async with self._lock:
                self._owed.pop(turn.at_ns, None)
                await asyncio.to_thread(self._settle, self._durable_ns)
            return
        common = _Common(self.name, time.monotonic_ns(), turn.session, turn.name)
        self._owed[turn.at_ns] = common.at_ns
        self._say(common.fact(TurnUsed, **found))

    def _end_fact(
        self, read: TurnRead | None, answer: str | None, prompt: str | None, common: "_Common"
    ) -> ChannelFact:
        if answer is None and read is not None:
            if read.outcome == "interrupted":
                return common.fact(TurnInterrupted)
            if read.outcome in ("failed", "refused"):
                text = read.text or ""
                code = "UNDELIVERED" if read.outcome == "refused" else self._code_of(text)
                return common.fact(TurnFailed, code=code, message=text[:MESSAGE_MAX])
            answer = read.answer
        return common.fact(TurnEnded, answer=answer, prompt=prompt)

    async def _read_end(self, key: TurnKey | None, *, hurried: bool) -> TurnRead | None:
        """Returns the turn, with its end if that comes within the profile's wait; at once if the hook said
        everything."""
        spec = self._channel.transcript
        if key is None or spec is None:
            return None
        deadline = time.monotonic() + (0 if hurried else spec.wait_ms / 1000)
        while True:
            read = await asyncio.to_thread(self._read, key)
            if read is not None and (read.outcome != "open" or read.answer is not None):
                return read
            if time.monotonic() >= deadline:
                return read
            await asyncio.sleep(TRANSCRIPT_STEP_SECONDS)

    async def _look(self, turn: _Turn) -> None:
        """Reads the end of a turn from the transcript if no hook has reported it: some programs run no hook at
        interrupts and errors."""
        spec = self._channel.transcript
        if spec is None or not await asyncio.to_thread(self._changed):
            return
        read = await asyncio.to_thread(self._read, turn.key)
        if read is None or self._turn is not turn:
            return
        self._tell_progress(turn, read)
        if read.outcome == "open":
            return
        # A date far in the future was written before the clock was set back.
        if read.outcome == "ended" and self._answered is not None:
            await self._end_answered()
            return
        if read.outcome == "ended" and abs(time.time() - read.at) < HOOK_GRACE_SECONDS:
            self._seen = None  # look again at the next sweep, even if nothing is written until then
            return
        self._close()
        common = _Common(self.name, self._within(turn, read.at), turn.session, turn.name)
        self._say(self._end_fact(read, None, turn.key.prompt, common))

    def _tell_progress(self, turn: _Turn, read: TurnRead) -> None:
        """Reports the turn's messages that are not its answer, each once."""
        fresh = [said for said in read.progress if said.id not in turn.told]
        for said in fresh:
            self._say(
                AssistantSaid(
                    channel=self.name,
                    at_ns=self._within(turn, said.at),
                    session=turn.session,
                    turn=turn.name,
                    message_id=said.id,
                    text=said.text,
                )
            )
        if fresh and self._turn is turn:
            self._turn = replace(turn, told=turn.told | {said.id for said in fresh})

    def _within(self, turn: _Turn, date: float) -> int:
        """Returns the time of a record that a transcript dates `date`: after the turn's acceptance and not after now,
        even if the clock was set."""
        return max(turn.at_ns + 1, round(self._dates.instant(date + MILLISECOND_S) * 1e9))

    def _error(self, payload: dict[str, Any]) -> str:
        """Returns the last of the payload's error texts: programs put a code word first and the sentence after it."""
        texts = [text for path in self._channel.fields.error if (text := _string(payload, path))]
        return texts[-1][:MESSAGE_MAX] if texts else ""

    def _code(self, payload: dict[str, Any]) -> str:
        texts = [text for path in self._channel.fields.error if (text := _string(payload, path))]
        return self._code_of("\n".join(texts))

    def _code_of(self, text: str) -> str:
        return self._channel.error_code(text)


@dataclass(frozen=True, slots=True)
class _Common:
    """Fields that all facts of one report share."""

    channel: str
    at_ns: int
    session: str | None
    turn: str | None

    def fact[Fact: ChannelFact](self, kind: type[Fact], **own: Any) -> Fact:
        return kind(channel=self.channel, at_ns=self.at_ns, session=self.session, turn=self.turn, **own)


def _names(key: TurnKey, turn: str | None, prompt: str | None) -> bool | None:
    """Returns True if `turn` and `prompt` are those of `key`; None if there is nothing to compare."""
    if turn is not None and key.turn is not None:
        return turn == key.turn
    if prompt is not None and key.prompt is not None:
        return prompt == key.prompt
    return None


def _string(payload: dict[str, Any], path: str | None) -> str | None:
    value = at_path(payload, path) if path is not None else None
    return clean(value) if isinstance(value, str) else None


def _table(payload: dict[str, Any], path: str) -> dict[str, Any]:
    value = at_path(payload, path)
    return value if isinstance(value, dict) else {}


ADAPTERS = {"hooks": Adapter(HookChannel)}
"""The adapter by its name in profiles."""
