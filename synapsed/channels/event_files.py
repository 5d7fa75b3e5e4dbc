"""A program that writes what happens into one file and takes messages out of another, JSON lines in both.

The file of commands is the ledger: a message is given by one line, with its key, appended once. What is in it was
given, whatever became of whoever wrote it. The file of events tells of turns that have no ids of their own: one begins
with a text of a person's and ends with a message that calls no tool. A turn that is stopped is not told of; the
terminal shows it.
"""

import asyncio
import contextlib
import json
import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from synapsed.channels.channel_questions import about_of, options_of, question_of, reply_of
from synapsed.channels.launch_additions import LaunchContext
from synapsed.channels.transcripts import at_path, clean, used
from synapsed.errors import ChannelAway
from synapsed.interfaces import FoundTurn, Reach, Submitted
from synapsed.model.facts import (
    AssistantSaid,
    AssistantSaying,
    ChannelFact,
    PermissionAsked,
    PermissionOver,
    PromptAccepted,
    SessionStarted,
    ToolBegan,
    ToolOver,
    TurnEnded,
    TurnFailed,
    TurnInterrupted,
    TurnUsed,
)
from synapsed.profiles.channel_spec import Channel
from synapsed.shared.files import open_regular, write_whole

BUSY_S, IDLE_S = 0.05, 0.5
"""How often the file of events is looked at while a turn runs, and while none does."""
READ_MAX = 1 << 20
"""Bytes that are read at once."""
LINE_MAX = 32 << 20
"""Bytes of one event; a longer one is passed over."""
SHOWN_S = 5.0
"""How long a program may take to show on its terminal that a turn has begun."""
KNOWN_MAX = 200
COMMANDS_MAX = 256 << 20
"""Bytes of the file of commands; a larger one is not read for what was given."""
ASK = "can_use_tool"

_log = structlog.get_logger(__name__)

type _Json = dict[str, Any]


class EventFilesChannel:
    """`interfaces.Delivering`, on `context.events_file` and `context.commands_file`."""

    reads_commands = True
    coming = False

    def __init__(self, *, name: str, channel: Channel, context: LaunchContext) -> None:
        self.name = name
        self._channel = channel
        self._context = context
        self._emit: Callable[[ChannelFact], None] | None = None
        self._changed: Callable[[], None] = lambda: None
        self._told_reach: Reach = "away"
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._caught_up = asyncio.Event()
        self._offset = 0
        self._rest = b""
        """The beginning of a line whose end is not written yet."""
        self._boundary = (0, 0)
        """Where the last turn ended in the file of events, and how many messages had been taken by then."""
        self._given: deque[tuple[str, str]] = deque()
        """Keys and texts of messages that were given and not taken yet."""
        self._taken = 0
        self._session: str | None = None
        self._turn: str | None = None
        self._since = 0.0
        """When it began, monotonic."""
        self._message = ""
        """Id of the message that is being said."""
        self._calls: dict[str, tuple[str, _Json]] = {}
        """Names and input of the open tool calls, by id."""
        self._last: _Json = {}
        self._records: list[_Json] = []
        self._asked: dict[str, _Json] = {}
        self._results: dict[str, FoundTurn] = {}

    # --- SideChannel ---

    async def open(self, emit: Callable[[ChannelFact], None]) -> None:
        self._emit = emit
        self._boundary = await asyncio.to_thread(self._recall)
        self._offset, self._taken = self._boundary
        self._given.extend((await asyncio.to_thread(self._commands))[self._taken :])
        self._task = asyncio.create_task(self._run(), name=f"{self._context.agent_id} {self.name}")

    async def poll(self) -> None:
        self._wake.set()

    async def last_answer(self, since_ns: int, is_ours: Callable[[str], bool]) -> str | None:
        return None  # each end has its answer

    async def reply(self, request: str, answer: dict[str, Any]) -> bool:
        if request not in self._asked:
            return False
        await self._append({**answer, "request_id": request})
        return True

    async def rests(self) -> None:
        """Nothing is told before the program rests."""

    async def settled(self, at_ns: int) -> None:
        await asyncio.to_thread(self._remember, self._boundary)

    async def close(self) -> None:
        self._emit = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # --- Delivering ---

    @property
    def gone(self) -> str | None:
        return None

    def watch(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def reach(self) -> Reach:
        if self._session is None:
            return "away"
        if self._asked:
            return "asking"
        return "busy" if self._turn is not None or self._given else "idle"

    def key(self, task_id: str, leg: int) -> str:
        return f"synapsed:{task_id}.{leg}"

    async def submit(self, key: str, text: str, *, new: bool = False) -> Submitted:
        self._given.append((key, text))
        try:
            await self._append({"type": "submit", "text": text, "id": key})
        except OSError as error:
            self._given.remove((key, text))
            raise ChannelAway(f"its file of commands cannot be written: {error}", sent=True) from None
        self._wake.set()
        return Submitted(turn=key)

    async def find(self, key: str) -> FoundTurn | None:
        await self._caught_up.wait()
        if not any(given == key for given, _ in await asyncio.to_thread(self._commands)):
            return None
        return self._results.get(key, FoundTurn(turn=key, state="running"))

    async def interrupt(self, turn: str | None) -> bool:
        return False  # it has no command for that

    def rested(self, *, stopped: bool) -> None:
        """A turn that began just now may not be on the terminal yet, and a message that was given not be taken."""
        if self._turn is not None and (stopped or time.monotonic() - self._since >= SHOWN_S):
            self._over("interrupted")
            self._tell()

    async def answer(self, request: str, option: str) -> bool:
        asked, spec = self._asked.get(request), self._channel.decisions.get(ASK)
        reply = reply_of(spec, asked, option) if asked is not None and spec is not None else None
        if reply is None:
            return False
        try:
            await self._append({**reply, "request_id": request})
        except OSError as error:
            raise ChannelAway(f"its file of commands cannot be written: {error}", sent=True) from None
        self._close(request)
        return True

    # --- the files, in a thread ---

    @property
    def _file(self) -> Path:
        return self._context.launch_dir / f"{self.name}.read"

    def _recall(self) -> tuple[int, int]:
        with contextlib.suppress(OSError, ValueError, TypeError):
            offset, taken = json.loads(self._file.read_bytes())
            return int(offset), int(taken)
        return 0, 0

    def _remember(self, boundary: tuple[int, int]) -> None:
        with contextlib.suppress(OSError):
            write_whole(self._file, json.dumps(boundary).encode(), durable=False)

    def _commands(self) -> list[tuple[str, str]]:
        """Keys and texts of all messages that were given, in order."""
        try:
            if self._context.commands_file.stat().st_size > COMMANDS_MAX:
                return []
            with open_regular(self._context.commands_file) as file:
                lines = file.read(COMMANDS_MAX).split(b"\n")[:-1]
        except OSError:
            return []
        found = (_object(line) for line in lines)
        return [(str(each.get("id")), str(each.get("text"))) for each in found if each.get("type") == "submit"]

    async def _append(self, command: _Json) -> None:
        await asyncio.to_thread(self._write, json.dumps(command, ensure_ascii=False).encode() + b"\n")

    def _write(self, line: bytes) -> None:
        """Append it whole. A line that was cut off by a full disk is ended first: the program passes it over."""
        fd = os.open(self._context.commands_file, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        try:
            size = os.fstat(fd).st_size
            cut = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            if os.write(fd, (b"\n" if cut else b"") + line) < len(line):
                os.ftruncate(fd, size)
                raise OSError("only a part of it could be written")
        finally:
            os.close(fd)

    def _read(self) -> bytes:
        with contextlib.suppress(OSError), open_regular(self._context.events_file) as file:
            file.seek(self._offset + len(self._rest))
            return file.read(READ_MAX)
        return b""

    def _grown(self) -> bool:
        with contextlib.suppress(OSError):
            return self._context.events_file.stat().st_size > self._offset + len(self._rest)
        return False

    async def _run(self) -> None:
        while True:
            while self._grown():
                self._take(await asyncio.to_thread(self._read))
            self._caught_up.set()
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), BUSY_S if self.reach() in ("busy", "asking") else IDLE_S)

    def _take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._offset += len(line) + 1
            self._hear(_object(line) if len(line) <= LINE_MAX else {})
        if len(self._rest) > LINE_MAX:
            self._offset += len(self._rest)
            self._rest = b""
        self._tell()

    # --- events ---

    def _hear(self, event: _Json) -> None:
        match event.get("type"):
            case "system" if event.get("subtype") == "session_start":
                self._begin_session(event)
            case "user":
                self._hear_user(event)
            case "stream_event":
                self._hear_stream(event)
            case "assistant":
                self._hear_message(event)
            case "control_request":
                self._hear_request(event)
            case "control_response":
                self._close(str(at_path(event, "response.request_id")))

    def _begin_session(self, event: _Json) -> None:
        session = event.get("session_id")
        self._session = session if isinstance(session, str) else ""
        self._say(SessionStarted(**self._common()))

    def _hear_user(self, event: _Json) -> None:
        content = [part for part in _listed(at_path(event, "message.content")) if isinstance(part, dict)]
        for part in content:
            if part.get("type") == "tool_result":
                self._hear_result(part)
        texts = [str(part.get("text")) for part in content if part.get("type") == "text"]
        if not texts:
            return
        if self._session is None:  # its beginning was read by an earlier daemon
            self._begin_session(event)
        text = clean("\n".join(texts))
        own = bool(self._given) and _dense(self._given[0][1]) == _dense(text)
        key = self._given.popleft()[0] if own else None
        self._taken += own
        self._since = time.monotonic()
        self._turn, self._last, self._records = key or str(event.get("uuid")), {}, []
        self._say(PromptAccepted(**self._common(), prompt=text, key=key, own=own))

    def _hear_stream(self, event: _Json) -> None:
        kind, piece = at_path(event, "event.type"), at_path(event, "event.delta.text")
        if kind == "message_start":
            self._message = str(at_path(event, "event.message.id"))
        elif kind == "content_block_delta" and isinstance(piece, str):
            self._say(AssistantSaying(**self._common(), message_id=self._message, piece=clean(piece)))
        elif kind == "message_stop" and self._turn is not None and self._last and not _calls(self._last):
            self._over("completed")

    def _hear_message(self, event: _Json) -> None:
        self._last = event
        self._records.append(event)
        text = _text(event)
        calls = _calls(event)
        if calls and text:
            self._say(AssistantSaid(**self._common(), message_id=str(at_path(event, "message.id")), text=text))
        for call in calls:
            id_, name = str(call.get("id")), str(call.get("name"))
            given = call.get("input") if isinstance(call.get("input"), dict) else {}
            self._calls[id_] = (name, given or {})
            self._say(ToolBegan(**self._common(), call=id_, tool=name, input=given or {}))
            while len(self._calls) > KNOWN_MAX:
                del self._calls[next(iter(self._calls))]

    def _hear_result(self, part: _Json) -> None:
        id_ = str(part.get("tool_use_id"))
        name, given = self._calls.pop(id_, ("", {}))
        output, failed = part.get("content"), part.get("is_error") is True
        words = clean(output) if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        self._say(
            ToolOver(
                **self._common(),
                call=id_,
                tool=name,
                input=given,
                output=None if failed else {"text": words},
                error=(words or "the program does not say why") if failed else None,
            )
        )

    def _hear_request(self, event: _Json) -> None:
        request, spec = str(event.get("request_id")), self._channel.decisions.get(ASK)
        if at_path(event, "request.subtype") != ASK or spec is None or request in self._asked:
            return
        self._asked[request] = event
        told = about_of(spec, event)
        self._say(
            PermissionAsked(
                **self._common(),
                tool=str(at_path(event, "request.tool_name") or ""),
                request=request,
                event=ASK,
                told=event,
                question=question_of(spec, event),
                options=options_of(spec, event),
                command=told.command,
                diff=told.diff,
                again=not self._caught_up.is_set(),
            )
        )

    def _close(self, request: str) -> None:
        if self._asked.pop(request, None) is not None:
            self._say(PermissionOver(channel=self.name, at_ns=time.monotonic_ns(), request=request))

    def _over(self, state: str) -> None:
        turn, common, answer = self._turn or "", self._common(), _text(self._last)
        for request in list(self._asked):
            self._close(request)
        self._turn = None
        if (line := self._channel.usage) is not None and (found := used(self._records, line)) is not None:
            self._say(TurnUsed(**common, **found))
        failed = self._failure(answer)
        if state == "interrupted":
            self._say(TurnInterrupted(**common))
            result = FoundTurn(turn=turn, state="interrupted")
        elif failed is not None:
            code = self._channel.error_code(failed)
            self._say(TurnFailed(**common, code=code, message=failed))
            result = FoundTurn(turn=turn, state="failed", code=code, message=failed)
        else:
            self._say(TurnEnded(**common, answer=answer))
            result = FoundTurn(turn=turn, state="completed", answer=answer)
        self._results[turn] = result
        while len(self._results) > KNOWN_MAX:
            del self._results[next(iter(self._results))]
        self._boundary = (self._offset, self._taken)

    def _failure(self, answer: str) -> str | None:
        """The words of an answer that is the program's own for a failure: no model has said them."""
        pattern = self._channel.failed_answer
        tokens = at_path(self._last, "message.usage.output_tokens")
        match = pattern.fullmatch(answer) if pattern is not None and not tokens else None
        return match["text"] if match is not None else None

    def _common(self) -> dict[str, Any]:
        return {
            "channel": self.name,
            "at_ns": time.monotonic_ns(),
            "session": self._session or None,
            "turn": self._turn,
        }

    def _say(self, fact: ChannelFact) -> None:
        if self._emit is not None:
            self._emit(fact)

    def _tell(self) -> None:
        if (reach := self.reach()) != self._told_reach:
            self._told_reach = reach
            self._changed()


def _object(line: bytes) -> _Json:
    with contextlib.suppress(ValueError, RecursionError):
        if isinstance(found := json.loads(line), dict):
            return found
    return {}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _calls(event: _Json) -> list[_Json]:
    parts = _listed(at_path(event, "message.content"))
    return [part for part in parts if isinstance(part, dict) and part.get("type") == "tool_use"]


def _text(event: _Json) -> str:
    parts = [part for part in _listed(at_path(event, "message.content")) if isinstance(part, dict)]
    texts = [part["text"] for part in parts if part.get("type") == "text" and isinstance(part.get("text"), str)]
    return clean("".join(texts))


def _dense(text: str) -> str:
    return "".join(text.split())
