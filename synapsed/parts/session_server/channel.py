"""Follows a program's own HTTP server, which has sessions of messages, and a stream of server-sent events about them.

The stream says when to look; the messages have the state: a turn is a user's message, and its answer is the last
assistant message with that `parentID`. After a lost connection the messages show what was missed.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import structlog

from synapsed.aio import TaskSet
from synapsed.channels import (
    Channel,
    ErrorCode,
    LaunchContext,
    about_of,
    at_path,
    clean,
    options_of,
    question_of,
    tool_fact,
    tool_line,
    used,
)
from synapsed.clock import PastDates, SystemClock
from synapsed.model.about import About
from synapsed.model.facts import (
    AssistantSaid,
    AssistantSaying,
    ChannelFact,
    PermissionAsked,
    PromptAccepted,
    SessionStarted,
    TurnEnded,
    TurnFailed,
    TurnInterrupted,
    TurnUsed,
)
from synapsed.parts.session_server.messages import (
    AHEAD_MS,
    Message,
    RepeatedAnswers,
    completed_ms,
    created_ms,
    how_it_ended,
    id_of,
    is_ahead,
    newest,
    number,
    objects,
    objects_in,
    parent_of,
    parsed,
    replies_to,
    role_of,
    text_of,
    up_to_answer,
    updated,
    why_no_answer,
    word,
)
from synapsed.shared.files import write_whole
from synapsed.shared.regex import regex
from synapsed.shared.sse_parser import SseParser

HELLO_SECONDS = 1.0
"""Seconds until another try: a connection made while the program starts may never be answered."""
SILENCE_SECONDS = 30.0
"""Seconds without an event after which the connection is dropped. The server sends a heartbeat every 10 s."""
REQUEST_SECONDS = 10.0
RETRY_SECONDS = 0.5
PLUGIN_SECONDS = 0.5
"""Seconds in which a plugin may continue a turn that is over; the program does not announce that."""
BEGIN_SECONDS = 10.0
"""Seconds in which the program begins to work on a prompt that it has."""
EVENT_MAX_BYTES = 32 << 20
ANSWER_MAX_BYTES = 64 << 20
MESSAGES_FIRST = 20
"""Number of messages that are requested first; if the turn has more, all are requested."""
TURNS_OPEN_MAX = 50
TEXTS_MAX = 1000
MESSAGE_MAX = 2000
"""Characters of an error's text."""
COMPACTION = "compaction"
"""Type of the part with which the program begins to shorten a conversation that is too long for the model."""
ABORTED = "MessageAbortedError"
"""The server's name for a turn that a person stopped."""

_REQUEST_ID = regex(r"[\w-]{1,100}")
_TROUBLE = (aiohttp.ClientError, OSError, ValueError)
_log = structlog.get_logger(__name__)


class SessionServerChannel:
    """Follows one agent's server, found on `context.port`. Of the past it reads only the known conversation."""

    _puzzled = ""
    """The last logged message about content from the server that is not understood."""
    _grown: str | None = None
    """The part whose piece was reported last."""
    _repeats, _repeated = RepeatedAnswers(), False

    def __init__(self, *, name: str, channel: Channel, context: LaunchContext) -> None:
        self.name = name
        self._channel = channel
        self._context = context
        self._dates = PastDates(SystemClock())
        self._emit: Callable[[ChannelFact], None] | None = None
        self._client: aiohttp.ClientSession | None = None
        self._task: asyncio.Task[None] | None = None
        self._retry = asyncio.Event()
        self._looks = TaskSet(self._look_failed)
        self._stream: aiohttp.ClientResponse | None = None
        self._session: str | None = None
        """Id of the program's conversation, which the program has made. It is saved in a file for the next daemon."""
        self._given: tuple[str, str] | None = None
        """The last message given (a synapsed one, if those can be recognised), and its session; saved in that file."""
        self._remembered = ""
        self._writing = threading.Lock()  # two threads may write: the last state must be written last
        self._children: set[str] = set()
        """Sessions of subagents, whose turns are not this agent's."""
        self._open: dict[str, str] = {}
        """Turns that were accepted and may not be over: maps the id of the user's message to its session."""
        self._waiting: dict[str, str] = {}
        """The user's messages whose text has not come yet, each with its session."""
        self._compacting: str | None = None
        """The turn in which the program is shortening the conversation."""
        self._plugged = True
        """True if the program may have plugins, which send prompts too."""
        self._rested: tuple[str, str] | None = None
        """The idle session and its last turn, while a plugin may continue that turn."""
        self._continued: dict[str, list[str]] = {}
        """The user's messages that the program made by itself, by the turn that they continue."""
        self._known: dict[str, None] = {}
        """The user's messages that were reported: the program sends their records again later."""
        self._texts: dict[str, dict[str, str]] = {}
        """Text parts by assistant message."""
        self._growing: tuple[str, str] | None = None
        """The text part that is being written, by message and part."""
        self._said: set[str] = set()
        self._error: dict[str, Any] = {}
        """The turn's error, which is reported before its message has it."""

    @property
    def _base(self) -> str:
        return f"http://127.0.0.1:{self._context.port}"

    async def open(self, emit: Callable[[ChannelFact], None]) -> None:
        """Begins to follow the server; returns before the server is up."""
        self._emit = emit
        self._session = await asyncio.to_thread(self._recall)
        self._client = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS))
        self._task = asyncio.create_task(self._run(), name=f"{self._context.agent_id} {self.name}")

    async def poll(self) -> None:
        """Connects now, if the next try waits."""
        self._dates.note()
        self._retry.set()

    def _ns_at(self, wall_ms: int) -> int:
        """Converts a time from the program (Unix milliseconds, cut off, so the end of the millisecond counts) to the
        monotonic clock; 0 becomes now."""
        return round(self._dates.instant((wall_ms + 1) / 1000) * 1e9) if wall_ms else time.monotonic_ns()

    async def last_answer(self, since_ns: int, is_ours: Callable[[str], bool]) -> str | None:
        """Returns the answer to the last prompt since `since_ns`, or to synapsed's own prompt if that can be
        recognised. A date later than now was written before the clock was set back."""
        if (session := self._session) is None:
            return None
        since_ms, now_ms = (int(self._dates.of(at) * 1000) for at in (since_ns / 1e9, time.monotonic()))
        try:
            messages = await self._messages(session, None)
        except _TROUBLE as error:
            _log.debug("no answer to be had", agent=self._context.agent_id, error=str(error))
            return None
        users = [m for m in messages if role_of(m) == "user" and since_ms <= created_ms(m) <= now_ms + AHEAD_MS]
        ours = [m for m in users if is_ours(text_of(m))]
        if not ours and len(users) != 1:
            return None
        users = ours or users
        replies = replies_to(messages, id_of(users[-1]))
        return text_of(replies[-1]) if replies and how_it_ended(replies[-1]) == "answered" else None

    async def reply(self, request: str, answer: dict[str, Any]) -> bool:
        if self._client is None or not _REQUEST_ID.fullmatch(request):
            return False
        try:
            async with self._client.post(f"{self._base}/permission/{request}/reply", json=answer) as response:
                return response.ok
        except _TROUBLE as error:
            _log.warning("a decision was not taken", agent=self._context.agent_id, error=str(error))
            return False

    async def rests(self) -> None:
        """Does nothing: nothing is reported before the program rests."""

    async def settled(self, at_ns: int) -> None:
        """Does nothing: the program keeps its messages itself."""

    async def close(self) -> None:
        self._emit = None
        await self._looks.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._client is not None:
            await self._client.close()

    # --- the disk, in a thread ---------------------------------------------------------------------------------------

    @property
    def _file(self) -> Path:
        return self._context.launch_dir / f"{self.name}.session"

    def _recall(self) -> str | None:
        with suppress(OSError, ValueError):
            session, *given = self._file.read_text(encoding="ascii").split()
            if len(given) == 2:
                self._given = (given[0], given[1])
            return session
        return None

    def _kept(self) -> str:
        return " ".join((self._session or "", *(self._given or ())))

    def _remember(self) -> None:
        with self._writing, suppress(OSError, ValueError):
            self._remembered = kept = self._kept()
            write_whole(self._file, kept.encode("ascii"), durable=False)

    # --- the connection ----------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            try:
                await self._listen()
            except _TROUBLE as error:
                _log.debug("event stream ended", agent=self._context.agent_id, error=str(error))
            except Exception as error:  # noqa: BLE001  # of another shape: the next connection may work
                self._not_understood(error)
            self._retry.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._retry.wait(), RETRY_SECONDS)

    def _not_understood(self, error: Exception) -> None:
        """Logs the reason for the end of a connection, once if it is repeated: the server may give it again at once."""
        if (told := f"{type(error).__name__}: {error}") != self._puzzled:
            self._puzzled = told
            _log.error("its server says what is not understood", agent=self._context.agent_id, exc_info=error)

    async def _listen(self) -> None:
        assert self._client is not None
        limit = aiohttp.ClientTimeout(total=None, sock_connect=HELLO_SECONDS, sock_read=SILENCE_SECONDS)
        request = self._client.get(f"{self._base}/event", timeout=limit)
        self._stream = response = await asyncio.wait_for(request, HELLO_SECONDS)
        async with response:
            response.raise_for_status()
            stream = SseParser(EVENT_MAX_BYTES)
            caught_up = False
            async for data in response.content.iter_any():
                async for event in objects_in(stream.feed(data)):
                    if not caught_up:  # connected: from here on no event is missed
                        caught_up = True
                        await self._catch_up()
                    await self._hear(event)

    async def _get(self, path: str, **params: str) -> Any:
        assert self._client is not None
        async with self._client.get(f"{self._base}{path}", params=params) as response:
            response.raise_for_status()
            return await parsed(await self._body(response))

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        """Returns the whole body, in however many pieces it comes. Raises ValueError for one that is too long."""
        body = bytearray()
        async for data in response.content.iter_any():
            body += data
            if len(body) > ANSWER_MAX_BYTES:
                raise ValueError(f"{response.url.path}: more than {ANSWER_MAX_BYTES} bytes")
        return bytes(body)

    async def _messages(self, session: str, user: str | None) -> list[Message]:
        """Returns the session's messages, oldest first: with `user`, at least from that message on."""
        answer = await self._get(f"/session/{session}/message", limit=str(MESSAGES_FIRST))
        if user is None or not any(id_of(message) == user for message in objects(answer)):
            answer = await self._get(f"/session/{session}/message")
        return objects(answer)

    def _chosen(self, found: dict[str, dict[str, Any]]) -> str | None:
        """Returns the session that the person's own arguments choose: the one they name, else the last; else None."""
        args = self._context.chosen_by
        own = {id_: session for id_, session in found.items() if id_ not in self._children}
        named = next((id_ for id_ in own if any(id_ in arg for arg in args)), None)
        return named or (max(own, key=lambda id_: updated(own[id_])) if args and own else None)

    async def _catch_up(self) -> None:
        """Reports what happened in the known conversation while there was no connection."""
        self._rested, self._plugged = None, await self._has_plugins()
        found = {str(s.get("id")): s for s in objects(await self._get("/session"))}
        self._children |= {id_ for id_, s in found.items() if s.get("parentID")}
        session = self._session or self._chosen(found) or self._context.conversation
        if session not in found:
            return
        ours, self._session = self._session is not None, session
        messages = await self._messages(session, None)
        users, given = [m for m in messages if role_of(m) == "user"], self._given[0] if self._given else None
        for user in (user for user in newest(messages, given) if id_of(user) not in self._known):
            self._accept(session, id_of(user), text_of(user), created_ms(user))
        if users and ours:  # in a conversation that is taken over the tools ran earlier
            for part in (p for one in replies_to(messages, id_of(users[-1])) for p in objects(one.get("parts"))):
                self._hear_tool("message.part.updated", {"part": part}, session)
        status = at_path(await self._get("/session/status"), session)
        if self._open and at_path(status, "type") in (None, "idle"):
            await self._end_turns(session, told=False)
            if self._open:
                self._looks.spawn(self._look_again(session), name=f"{self._context.agent_id} look")

    async def _has_plugins(self) -> bool:
        """Returns True if the program may have plugins; also if it does not answer that."""
        try:
            return bool(at_path(await self._get("/config"), "plugin"))
        except _TROUBLE:
            return True

    async def _idle(self, session: str) -> None:
        if self._plugged and (turn := self._last_open(session)) is not None:
            self._rested = rested = (session, turn)
            self._looks.spawn(self._rest(rested), name=f"{self._context.agent_id} rest")
        else:
            await self._end_turns(session)

    async def _rest(self, rested: tuple[str, str]) -> None:
        """Ends the session's turns unless a plugin continues the last one."""
        await asyncio.sleep(PLUGIN_SECONDS)
        # The answer comes after what a plugin has begun, however slow that is.
        status = at_path(await self._get("/session/status"), rested[0])
        if self._rested is rested and at_path(status, "type") in (None, "idle"):
            self._rested = None
            await self._end_turns(rested[0])

    async def _look_again(self, session: str) -> None:
        """Ends turns that had no reply when they were found, and have not begun since."""
        found = [user for user, of in self._open.items() if of == session]
        await asyncio.sleep(BEGIN_SECONDS)
        status = at_path(await self._get("/session/status"), session)
        if at_path(status, "type") in (None, "idle") and all(user in self._open for user in found):
            await self._end_turns(session)

    def _look_failed(self, error: BaseException) -> None:
        """Ends the connection: what a look was to find, the next connection finds."""
        if isinstance(error, Exception) and not isinstance(error, _TROUBLE):
            self._not_understood(error)
        if self._stream is not None:
            self._stream.close()

    # --- events ------------------------------------------------------------------------------------------------------

    async def _hear(self, event: Mapping[str, Any]) -> None:
        given = event.get("properties")
        if not isinstance(given, dict):
            return
        session = word(given, "sessionID") or word(given, "info.sessionID") or word(given, "part.sessionID") or ""
        if word(given, "info.parentID") and word(given, "info.id") == session:
            self._children.add(session)
        if event.get("type") == "permission.asked":  # the agent's person also answers a subagent's
            self._hear_permission(given)
        self._hear_tool(str(event.get("type")), given, session)
        if session in self._children:
            return
        match event.get("type"):
            case "message.updated" | "message.part.updated" | "message.part.delta" as kind:
                self._hear_text(kind, given, session)
            case "session.error":
                error = given.get("error")
                self._error = error if isinstance(error, dict) else {}
            case "session.compacted":
                self._compacting, self._error = None, {}
            case "session.idle":
                await self._idle(session)
        if self._session is not None and self._remembered != self._kept():
            await asyncio.to_thread(self._remember)

    def _hear_tool(self, event: str, given: Mapping[str, Any], session: str) -> None:
        """Handles a report of a tool; a subagent's tools count as the agent's."""
        if (line := tool_line(self._channel.tools, event, given)) is None:
            return
        at_ns = self._ns_at(number(at_path(given, line.at_ms)) if line.at_ms is not None else 0)
        turn = self._last_open(session)
        self._say(tool_fact(line, given, channel=self.name, at_ns=at_ns, session=self._session, turn=turn))

    def _last_open(self, session: str) -> str | None:
        return next((user for user, of in reversed(self._open.items()) if of == session), None)

    def _hear_text(self, kind: str, given: Mapping[str, Any], session: str) -> None:
        match kind:
            case "message.updated":
                self._hear_message(given, session)
            case "message.part.updated":
                self._hear_part(given)
            case _:
                self._hear_piece(given, session)

    def _hear_permission(self, given: dict[str, Any], *, again: bool = False) -> None:
        metadata = given.get("metadata")
        spec = self._channel.decisions.get("permission.asked")
        offers = self._channel.delivers and spec is not None
        about = about_of(spec, given) if offers and spec is not None else About()
        self._say(
            PermissionAsked(
                channel=self.name,
                at_ns=time.monotonic_ns(),
                turn=next(reversed(self._open), None),
                tool=word(given, "permission") or "",
                input=metadata if isinstance(metadata, dict) else {},
                request=word(given, "id"),
                event="permission.asked",
                told=given,
                question=question_of(spec, given) if offers and spec is not None else "",
                options=options_of(spec, given) if offers and spec is not None else (),
                command=about.command,
                diff=about.diff,
                again=again,
            )
        )

    def _hear_message(self, given: Mapping[str, Any], session: str) -> None:
        message = {"info": given.get("info")}
        id_, role = id_of(message), role_of(message)
        if role == "user" and id_ not in self._known:
            self._waiting[id_] = session
        elif role == "assistant" and how_it_ended(message) == "goes on":
            text = "\n\n".join(self._texts.pop(id_, {}).values())
            self._progress(id_, text, completed_ms(message), session, parent_of(message))
        elif role == "assistant" and self._last_open(session) is not None:
            before, self._repeats = self._repeats, self._repeats.after(message)
            if self._repeats.found and self._repeats != before:
                self._looks.spawn(self._stop_repeating(session), name=f"{self._context.agent_id} repeats")

    async def _stop_repeating(self, session: str) -> None:
        """Stops a turn in which the program asks its model the same again and again; by itself it never ends."""
        assert self._client is not None
        if self._repeats.are_in(await self._messages(session, self._repeats.parent)):
            self._repeated = True
            async with self._client.post(f"{self._base}/session/{session}/abort", json={}) as response:
                response.raise_for_status()

    def _hear_part(self, given: Mapping[str, Any]) -> None:
        part = given.get("part")
        if not isinstance(part, dict):
            return
        message = str(part.get("messageID"))
        if part.get("type") == COMPACTION and message in self._waiting:
            self._compacting = next(reversed(self._open), None)
        if part.get("type") != "text" or not isinstance(part.get("text"), str):
            return
        going_on = self._compacting or self._goes_on(message)
        if going_on is not None and message in self._waiting:
            # A message that the program, or a plugin, then writes in the person's name continues the same turn.
            del self._waiting[message]
            self._known[message] = None
            self._rested = None
            self._continued.setdefault(going_on, []).append(message)
        elif (session := self._waiting.pop(message, None)) is not None:
            self._accept(session, message, clean(part["text"]), number(given.get("time")))
        elif message in self._known:
            return
        elif not part["text"]:
            self._growing = (message, str(part.get("id")))
        else:
            if len(self._texts) >= TEXTS_MAX:
                self._texts.clear()
            self._texts.setdefault(message, {})[str(part.get("id"))] = clean(part["text"])

    def _goes_on(self, message: str) -> str | None:
        """Returns the turn that a plugin continues with `message`; None if it continues no turn."""
        if self._rested is None or self._waiting.get(message) != self._rested[0] or self._is_own(message):
            return None
        return self._rested[1]

    def _hear_piece(self, given: Mapping[str, Any], session: str) -> None:
        """Handles a piece of a part whose beginning was received too; other parts (reasoning) grow in the same way."""
        message, part = str(given.get("messageID")), str(given.get("partID"))
        piece = given.get("delta")
        if (message, part) != self._growing or given.get("field") != "text" or not isinstance(piece, str):
            return
        between = "\n\n" if self._texts.get(message) and self._grown != part else ""
        self._grown = part
        self._say(
            AssistantSaying(
                channel=self.name,
                at_ns=time.monotonic_ns(),
                session=session,
                turn=self._last_open(session),
                message_id=message,
                piece=between + clean(piece),
            )
        )

    def _accept(self, session: str, id_: str, text: str, created_ms: int) -> None:
        self._error = {}
        self._repeats, self._repeated = RepeatedAnswers(), False
        self._known[id_] = None
        self._open[id_] = session
        for kept in (self._known, self._open):
            while len(kept) > TURNS_OPEN_MAX:
                del kept[next(iter(kept))]
        if session != self._session:
            self._session = session
            self._say(SessionStarted(channel=self.name, at_ns=self._ns_at(created_ms), session=session))
        own = self._is_own(id_)
        if own is None:
            self._given = (id_, session)
        self._say(
            PromptAccepted(
                channel=self.name,
                at_ns=self._ns_at(created_ms),
                session=session,
                turn=id_,
                prompt=text,
                key=id_ if own else None,
                own=own,
            )
        )

    def _is_own(self, message: str) -> bool | None:
        """Returns True if synapsed gave the program that message; None if that cannot be known."""
        return None

    async def _end_turns(self, session: str, *, told: bool = True) -> None:
        """Ends the session's open turns, because the session is idle. If the idle state was found but not reported
        (`told`), a turn without a reply may be about to begin: it stays open, and is looked at again later."""
        for user in [user for user, of in self._open.items() if of == session]:
            messages = await self._messages(session, user)
            if not told and not replies_to(messages, user):
                continue
            if self._open.pop(user, None) is None:
                continue  # another look has ended it meanwhile
            replies = replies_to(messages, user, *self._continued.pop(user, ()))
            if self._repeated:
                replies, self._error = up_to_answer(replies), {}
            for reply in replies[:-1]:
                self._progress(id_of(reply), text_of(reply), completed_ms(reply), session, user)
            line = self._channel.usage
            if line is not None and (found := used(replies, line)) is not None:
                now = time.monotonic_ns()
                self._say(TurnUsed(channel=self.name, at_ns=now, session=session, turn=user, **found))
            ahead = is_ahead(messages, self._dates.of(time.monotonic()) * 1000)
            self._end_turn(session, user, replies, silent=why_no_answer(repeated=self._repeated, ahead=ahead))
        self._texts.clear()

    def _end_turn(self, session: str, user: str, replies: list[Message], *, silent: str) -> None:
        last = replies[-1] if replies else {}
        at_ns = self._ns_at(completed_ms(last)) if completed_ms(last) else time.monotonic_ns()
        error = at_path(last, "info.error") or self._error
        if how_it_ended(last) == "answered" and not error:
            self._say(TurnEnded(channel=self.name, at_ns=at_ns, session=session, turn=user, answer=text_of(last)))
        elif (failure := self._failure(error)) is not None or not (replies or error):
            code, text = failure or ("MODEL_ERROR", silent)
            self._say(TurnFailed(channel=self.name, at_ns=at_ns, session=session, turn=user, code=code, message=text))
        else:
            refused = not error and self._was_refused(last)
            self._say(TurnInterrupted(channel=self.name, at_ns=at_ns, session=session, turn=user, refused=refused))

    def _failure(self, error: Any) -> tuple[ErrorCode, str] | None:
        """Returns code and words of the program's `error`; None without an error, and for an error that means that the
        turn was stopped on request."""
        if not error or word(error, "name") == ABORTED:
            return None
        name, message = word(error, "name") or "", word(error, "data.message") or ""
        code = self._channel.error_code(f"{name}\n{at_path(error, 'data.statusCode')}\n{message}")
        return code, (message or name)[:MESSAGE_MAX]

    def _was_refused(self, message: Message) -> bool:
        """Returns True if a decision of synapsed refused a call in the message."""
        patterns = [spec.deny_error for spec in self._channel.decisions.values() if spec.deny_error is not None]
        errors = [word(part, "state.error") or "" for part in objects(message.get("parts"))]
        return any(pattern.search(error) for pattern in patterns for error in errors)

    def _progress(self, id_: str, text: str, at_ms: int, session: str, turn: str | None) -> None:
        if not text or id_ in self._said:
            return
        if len(self._said) >= TEXTS_MAX:
            self._said.clear()
        self._said.add(id_)
        self._say(
            AssistantSaid(
                channel=self.name, at_ns=self._ns_at(at_ms), session=session, turn=turn, message_id=id_, text=text
            )
        )

    def _say(self, fact: ChannelFact) -> None:
        if self._emit is not None:
            self._emit(fact)
