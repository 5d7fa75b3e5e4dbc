"""Client of a program's own server (such as `codex app-server`): JSON-RPC in WebSocket messages on a private Unix
socket. The server has threads (conversations) of turns (a message, and the work on it). The program's terminal is a
client of the same server, which runs beside it (`companion`).

One thread is this agent's: the one that the terminal shows. The server reports new threads to all clients, and the
events of a thread to those that have resumed it. Missed events are read from the thread's list of turns.

The server sends its questions to all of its clients, and the first answer counts. This module leaves questions and
methods that it does not know to the terminal.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import structlog

from synapsed import __version__
from synapsed.channels import Adapter, Channel, LaunchContext, at_path
from synapsed.clock import PastDates, SystemClock
from synapsed.errors import ChannelAway, MessageRefused
from synapsed.interfaces import FoundTurn, Reach, Submitted
from synapsed.model.facts import ChannelFact, LimitsTold, SessionStarted, TurnEnded, TurnFailed, TurnInterrupted
from synapsed.parts.app_server.companion_log import keep_small
from synapsed.parts.app_server.connection import REQUEST_S, AppConnection
from synapsed.parts.app_server.items import answer_in, answered, code_of, key_of, limits_in, user_key, words_of
from synapsed.parts.app_server.questions import ASKED_AGAIN_S, AppQuestions
from synapsed.parts.app_server.turns import RUNS, AppTurns
from synapsed.shared.files import write_whole

RETRY_S = 0.2
LOOK_S, LOOK_GROWS, LOOK_MAX_S = 0.1, 1.2, 2.0
"""Seconds until the next look for the thread that the terminal shows, while it shows none: each pause is longer than
the one before by the factor, up to the last value. So the delay is at most a fifth of the time that passed until the
thread appeared."""
GONE_S = 3.0
"""Seconds after which a server that was connected, and now refuses connections, counts as ended."""
MESSAGE_MAX = 64 << 20
"""Most bytes of a message from the server."""
SETTLES_S = 15.0
"""Seconds to wait until a message that was sent is in the server's list of turns: on a busy machine the server lists a
turn some seconds after it began, and its message some seconds after that."""
STALE_S = 0.5
"""Seconds for which the server's list of turns may show a turn that has just ended as interrupted."""
WAITS = "waitingOnApproval"
"""Flag of a thread that has asked for an approval; a client that resumes it gets the question as well."""
SUBSCRIBE_TRIES = 50
"""Number of tries: a thread can be resumed when its first turn has been written, a moment after it began."""
TURNS_READ = 20
"""Number of a thread's last turns in one request."""
TURNS_MAX = 200
"""Most turns that are remembered, and searched for a message."""
SETTLE_AFTER_S = (0.1, 0.3, 1.0, 3.0)
"""Seconds after a thread became idle, and then between the reads of its list of turns, to find ends of turns that were
not reported; a slow server writes them late."""
SETTLE_LOOKS = 40
"""Number of further reads, at the last interval, while the server still lists such a turn as running."""

_log = structlog.get_logger(__name__)

type _Json = dict[str, Any]


class AppServerChannel:
    """Implements `interfaces.Delivering`, on `context.server_socket`."""

    coming = False
    settles_s = SETTLES_S

    def __init__(self, *, name: str, channel: Channel, context: LaunchContext) -> None:
        self.name = name
        self._channel = channel
        self._context = context
        self._dates = PastDates(SystemClock())
        self._emit: Callable[[ChannelFact], None] | None = None
        self._changed: Callable[[], None] = lambda: None
        self._reported_reach: tuple[Reach, str | None] = ("away", None)
        self._task: asyncio.Task[None] | None = None
        self._subscribing: asyncio.Task[None] | None = None
        self._settling: asyncio.Task[None] | None = None
        self._cutting: asyncio.Task[None] | None = None
        self._retry = asyncio.Event()
        self._server: AppConnection | None = None
        self._greeted = False
        """True once the thread's state was read over this connection."""
        self._request_came = asyncio.Event()
        self._thread: str | None = None
        self._writing = threading.Lock()
        """Lock for the file: two OS threads may write at once, and the latest state must be written last."""
        self._subscribed = False
        self._busy = False
        self._running: frozenset[str] | None = None
        """Turns that were running when the list of turns was last read; None if that is not known."""
        self._threads: set[str] = set()
        """The program's threads that were reported; its internal ones are there for a short time only."""
        self._turns = AppTurns(name, channel, self._say)
        self._questions = AppQuestions(name, channel, self._say)
        self._was_there = False
        self._refused_since: float | None = None
        self._gone: str | None = None
        self._puzzled: str | None = None
        """The last logged message about an answer that was not understood."""

    # --- SideChannel ---

    async def open(self, emit: Callable[[ChannelFact], None]) -> None:
        """Begins; returns before the server is up."""
        self._emit = emit
        self._thread = self._turns.thread = await asyncio.to_thread(self._recall)
        self._was_there = self._thread is not None
        self._task = asyncio.create_task(self._run(), name=f"{self._context.agent_id} {self.name}")
        self._cutting = asyncio.create_task(keep_small(self._context.companion_log))

    async def poll(self) -> None:
        self._dates.note()
        self._retry.set()

    async def last_answer(self, since_ns: int, is_ours: Callable[[str], bool]) -> str | None:
        """Returns the answer to the last message that was sent since then. A start time in the future is ignored: the
        clock was set back since."""
        if self._thread is None or self.reach() == "away":
            return None
        since, now = self._dates.of(since_ns / 1e9), self._dates.of(time.monotonic())
        try:
            turns = await self._read_turns(1)
        except (ChannelAway, MessageRefused):
            return None
        started = at_path(turns[0], "startedAt") if turns else None
        if not isinstance(started, int | float) or not since - 1 < started <= now + 1:
            return None
        if turns[0].get("status") != "completed":
            return None
        return answer_in(turns[0])

    async def reply(self, request: str, answer: dict[str, Any]) -> bool:
        """Gives the approval policy's decision to the server."""
        with suppress(ChannelAway):
            return await self._respond(request, answer)
        return False

    async def rests(self) -> None:
        """Called when the program has come to rest. Does nothing: this channel reports the end of a turn itself."""

    async def settled(self, at_ns: int) -> None:
        """Called when all facts so far are stored. Does nothing: after a restart, missed facts are read from the
        server."""

    async def close(self) -> None:
        self._emit = None
        for task in (self._task, self._subscribing, self._settling, self._cutting):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])

    # --- Delivering ---

    @property
    def gone(self) -> str | None:
        return self._gone

    def watch(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def reach(self) -> Reach:
        if not self._greeted or self._thread is None:
            return "away"
        if self._questions.are_open:
            return "asking"
        return "busy" if self._busy else "idle"

    def key(self, task_id: str, leg: int) -> str:
        return key_of(task_id, leg)

    async def submit(self, key: str, text: str, *, new: bool = False) -> Submitted:
        thread, known = self._thread, {*self._turns.open, *self._turns.over}
        if thread is None:
            raise ChannelAway("its server has no thread yet", sent=False)
        given = [{"type": "text", "text": text}]
        result = await self._call("turn/start", threadId=thread, input=given, clientUserMessageId=key)
        turn = words_of(result, "turn.id")
        if turn is None:
            raise ChannelAway("its server began a turn without an id", sent=True)
        self._turns.began(turn)
        if turn in self._turns.open:
            self._busy = True  # until the thread is reported as active, the list shows the turn as interrupted
        if not self._subscribed:
            self._subscribe()
        return Submitted(turn=turn, joined=turn in known)

    async def find(self, key: str, turn: str | None = None) -> FoundTurn | None:
        """Finds the turn of a message. A turn is listed before its message is in it, and begins before it is listed."""
        if self._thread is None or self._server is None:
            raise ChannelAway("its server is not connected", sent=False)
        read = await self._read_ended(TURNS_MAX, until=(key, turn))
        found = next((each for each in read if user_key(each, key)), None)
        found = found or next((each for each in read if turn is not None and each.get("id") == turn), None)
        return None if found is None else self._became(found, key, newest=found is read[0])

    def _became(self, turn: _Json, key: str, *, newest: bool) -> FoundTurn:
        id_, status = str(turn.get("id")), turn.get("status")
        common: dict[str, Any] = {"channel": self.name, "at_ns": time.monotonic_ns(), "turn": id_}
        if (answer := answered(turn, key)) is not None or status == "completed":
            after = key if user_key(turn, key) else None
            answer = answer_in(turn, after=after) if answer is None else answer
            return FoundTurn(turn=id_, over=TurnEnded(**common, answer=answer))
        if status == "failed":
            code, message = code_of(self._channel, turn.get("error"))
            return FoundTurn(turn=id_, over=TurnFailed(**common, code=code, message=message))
        # The list may show a turn as interrupted that has not ended, and its thread as idle before the turn has begun.
        runs = id_ not in self._turns.over and (status == RUNS or (newest and self._busy))
        return FoundTurn(turn=id_, over=None if runs else TurnInterrupted(**common))

    async def interrupt(self, turn: str | None) -> bool:
        turn = turn or next(reversed(self._turns.open), None)
        if self._thread is None or turn is None:
            return False
        try:
            await self._call("turn/interrupt", threadId=self._thread, turnId=turn)
        except MessageRefused:
            return False  # the turn is over
        return True

    async def answer(self, request: str, option: str) -> bool:
        reply = self._questions.reply(request, option)
        return reply is not None and await self._respond(request, reply)

    async def _respond(self, request: str, reply: Mapping[str, Any]) -> bool:
        if (response := self._questions.response(request, reply)) is None:
            return False
        await self._connected.send(response)
        self._questions.close(request)
        return True

    # --- the disk, in a thread ---

    @property
    def _file(self) -> Path:
        return self._context.launch_dir / f"{self.name}.thread"

    def _recall(self) -> str | None:
        with suppress(OSError, ValueError):
            return self._file.read_text(encoding="ascii").strip() or None
        return None

    def _refuse(self) -> None:
        """Records that this program file is started without its server from now on."""
        with suppress(OSError):
            write_whole(self._context.refused_file, self._context.program.encode(), durable=False)

    def _remember(self) -> None:
        with self._writing, suppress(OSError, ValueError):
            write_whole(self._file, (self._thread or "").encode("ascii"), durable=False)

    # --- the connection ---

    async def _run(self) -> None:
        while True:
            self.coming = True
            try:
                await self._listen()
            except (aiohttp.ClientError, OSError, ChannelAway, MessageRefused) as error:
                self._lost(error)
            except Exception as error:  # noqa: BLE001  # of another shape: the next connection may work
                if (text := f"{type(error).__name__}: {error}") != self._puzzled:
                    self._puzzled = text
                    _log.exception("its server says what is not understood", agent=self._context.agent_id)
                self._lost(error)
            self.coming = False
            self._retry.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._retry.wait(), RETRY_S)

    def _lost(self, error: BaseException) -> None:
        _log.debug("no app server", agent=self._context.agent_id, error=f"{type(error).__name__}: {error}")
        refused = isinstance(error, aiohttp.ClientConnectorError)
        now = time.monotonic()
        self._refused_since = (self._refused_since or now) if refused else None
        if refused and self._was_there and self._refused_since is not None and now - self._refused_since >= GONE_S:
            self._gone = "its server has ended"
        self._tell()

    async def _listen(self) -> None:
        connector = aiohttp.UnixConnector(str(self._context.server_socket))
        limit = aiohttp.ClientTimeout(total=None, sock_connect=REQUEST_S)
        async with (
            aiohttp.ClientSession(connector=connector, timeout=limit) as client,
            client.ws_connect("ws://localhost/", max_msg_size=MESSAGE_MAX, autoping=True) as socket,
        ):
            self._refused_since = None
            server = AppConnection(socket)
            reading = asyncio.create_task(server.read(self._hear))
            looking = None
            try:
                await self._greet(server)
                if self._thread is None:
                    looking = asyncio.create_task(self._look_for_thread(server))
                await reading
            except ChannelAway:
                if reading.done():
                    reading.result()  # its error, if there is one, is why no answer came
                raise
            finally:
                reading.cancel()
                if looking is not None:
                    looking.cancel()
                server.drop()
                self._server, self._subscribed, self._greeted = None, False, False
                self._tell()

    async def _greet(self, server: AppConnection) -> None:
        self._questions.connected()
        who = {"name": "synapsed", "title": "synapsed", "version": __version__}
        try:
            await server.call("initialize", {"clientInfo": who, "capabilities": {"experimentalApi": True}})
        except MessageRefused as error:
            _log.warning("its server is not used", agent=self._context.agent_id, error=error.message)
            await asyncio.to_thread(self._refuse)
            raise
        await server.send({"method": "initialized"})
        await self._choose(server)
        self._server, self._was_there = server, True
        if self._thread is not None:
            with suppress(MessageRefused):
                await self._resume()
        self._greeted = True
        self._tell()

    async def _look_for_thread(self, server: AppConnection) -> None:
        """Looks for the thread that the terminal continues after a restart: the server does not report that thread."""
        pauses = looks_for_thread()
        while self._thread is None:
            await asyncio.sleep(next(pauses))
            with suppress(ChannelAway, MessageRefused):
                await self._choose(server)
        if not self._subscribed:
            self._subscribe()

    async def _choose(self, server: AppConnection) -> None:
        """Follows the thread that the terminal shows: the one known so far, unless a newer one has begun."""
        answer = await server.call("thread/loaded/list", {})
        loaded = [str(id_) for id_ in _list(answer.get("data")) if isinstance(id_, str)]
        found: list[tuple[float, str, Any]] = []
        for id_ in loaded[-TURNS_MAX:]:
            with suppress(MessageRefused):
                thread = (await server.call("thread/read", {"threadId": id_})).get("thread")
                if isinstance(thread, dict) and not thread.get("ephemeral"):
                    created = thread.get("createdAt")
                    found.append((created if isinstance(created, int | float) else 0, id_, thread.get("status")))
        self._threads |= {id_ for _, id_, _ in found}
        known = next((each for each in found if each[1] == self._thread), None)
        newest = max(found, key=lambda each: (each[0], each[1]), default=None)
        best = known if known is not None and newest is not None and known[0] >= newest[0] else newest
        if best is not None:
            self._busy = at_path(best[2], "type") == "active"
            self._follow(best[1])

    async def _call(self, method: str, **params: Any) -> _Json:
        return await self._connected.call(method, params)

    @property
    def _connected(self) -> AppConnection:
        """Returns the connection. Raises ChannelAway."""
        if self._server is None:
            raise ChannelAway("its server is not connected", sent=False)
        return self._server

    # --- the thread ---

    def _follow(self, thread: str) -> None:
        """Follows this thread from now on, as the agent's."""
        if thread == self._thread and self._subscribed:
            return
        changed = thread != self._thread
        self._thread = self._turns.thread = thread
        if changed:
            self._subscribed = False
            self._questions.forget()
            asyncio.get_running_loop().run_in_executor(None, self._remember)
            self._say(SessionStarted(channel=self.name, at_ns=time.monotonic_ns(), session=thread))
        self._tell()

    def _subscribe(self) -> None:
        if self._subscribing is None or self._subscribing.done():
            self._subscribing = asyncio.create_task(self._subscribed_soon())

    async def _subscribed_soon(self) -> None:
        for number in range(SUBSCRIBE_TRIES):
            try:
                await self._resume()
            except MessageRefused:
                await asyncio.sleep(min(0.02 * (number + 1), 0.5))
            except ChannelAway:
                return
            else:
                if self._subscribed:  # else the terminal shows another thread by now
                    return

    async def _resume(self) -> None:
        """Subscribes to the thread's events, and reads the missed ones. Raises MessageRefused for a thread that has had
        no turn yet."""
        thread = self._thread
        result = await self._call("thread/resume", threadId=thread, excludeTurns=True)
        if thread != self._thread:
            return
        self._subscribed = True
        await self._catch_up()
        if WAITS in _list(at_path(result, "thread.status.activeFlags")) and not self._questions.are_open:
            self._request_came.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._request_came.wait(), ASKED_AGAIN_S)
        self._tell()

    async def _catch_up(self) -> None:
        """Reports the parts of the last turns that were not reported."""
        read = await self._read_ended(2 if self._turns.over else 1)  # ended turns are not reported again
        for turn in reversed(read):
            ended = turn.get("status") in ("completed", "failed")
            self._turns.read(turn, runs=turn.get("status") == RUNS or (turn is read[0] and self._busy and not ended))
        self._running = frozenset(str(turn.get("id")) for turn in read if turn.get("status") == RUNS)

    async def _read_ended(self, count: int, *, until: tuple[str, str | None] | None = None) -> list[_Json]:
        """Reads turns like `_read_turns`, once the last turn says how it ended."""
        read = await self._read_turns(count, until=until)
        last = read[0] if read and not self._busy else {}
        if last.get("status") == "interrupted" and last.get("id") not in self._turns.over:
            await asyncio.sleep(STALE_S)
            read = await self._read_turns(count, until=until)
        return read

    async def _read_turns(self, count: int, *, until: tuple[str, str | None] | None = None) -> list[_Json]:
        """Returns the last `count` turns with all their items, the newest first; with `until`, only those up to the
        page that has the turn with that message, or that id."""
        read: list[_Json] = []
        cursor = None
        while len(read) < count:
            page = await self._call(
                "thread/turns/list",
                threadId=self._thread,
                limit=min(count - len(read), TURNS_READ),
                itemsView="full",
                cursor=cursor,
            )
            turns = [turn for turn in _list(page.get("data")) if isinstance(turn, dict)]
            read += turns
            cursor = page.get("nextCursor")
            if not turns or cursor is None or any(_is_wanted(turn, until) for turn in turns):
                break
        return read

    # --- messages from the server ---

    def _hear(self, message: _Json) -> None:
        method, params = message.get("method"), message.get("params")
        if not isinstance(method, str):
            if self._thread is not None and words_of(message, "result.thread.id") == self._thread:
                self._hear_state(at_path(message, "result.thread.status"))
            return
        params = params if isinstance(params, dict) else {}
        thread = params.get("threadId")
        if method == "thread/started":
            self._hear_thread(params)
        elif method == "account/rateLimits/updated":
            if (windows := limits_in(params)) is not None:
                plan = words_of(params, "rateLimits.planType")
                self._say(LimitsTold(channel=self.name, at_ns=time.monotonic_ns(), windows=windows, plan=plan))
        elif thread != self._thread:
            if method == "turn/started" and thread in self._threads:  # a person went back to it in the terminal
                self._follow(str(thread))
                self._subscribe()
        elif "id" in message:
            self._questions.hear(message["id"], method, params, thread=thread)
            if self._questions.are_open:
                self._request_came.set()
        else:
            self._hear_in_thread(method, params)
        self._tell()

    def _hear_state(self, status: Any) -> None:
        """Takes the thread's state in its order among the messages, and not when the caller continues."""
        self._busy, flags = at_path(status, "type") == "active", at_path(status, "activeFlags")
        if not self._greeted and not (self._busy and (flags is None or WAITS in _list(flags))):
            self._questions.close_all()  # answered while there was no connection

    def _hear_thread(self, params: _Json) -> None:
        thread = params.get("thread")
        id_ = words_of(thread, "id")
        if id_ is None or not isinstance(thread, dict) or thread.get("ephemeral") or thread.get("parentThreadId"):
            return
        self._threads.add(id_)
        self._busy = at_path(thread, "status.type") == "active"
        self._follow(id_)

    def _hear_in_thread(self, method: str, params: _Json) -> None:
        turn = words_of(params, "turnId") or words_of(params, "turn.id") or ""
        match method:
            case "thread/status/changed":
                self._busy = at_path(params, "status.type") == "active"
            case "turn/started":
                self._busy = True
            case "item/started":
                self._questions.began(params.get("item"))
            case "serverRequest/resolved":
                self._questions.close(str(params.get("requestId")))
            case "turn/completed":
                self._busy = False
                self._questions.close_turn(turn)
        self._turns.hear(method, params, turn)

    def _say(self, fact: ChannelFact) -> None:
        if self._emit is not None:
            self._emit(fact)

    @property
    def _contradicts(self) -> bool:
        """Returns True if the turns that are open here contradict the thread's state: an idle thread has no open turn,
        and a busy one has one. The end of a turn that began before the thread was resumed may not have come."""
        return self._subscribed and bool(self._turns.open) is not self._busy

    def _settle(self) -> None:
        if self._contradicts and (self._settling is None or self._settling.done()):
            self._settling = asyncio.create_task(self._settled_soon())

    async def _settled_soon(self) -> None:
        for number, wait in enumerate([*SETTLE_AFTER_S, *SETTLE_AFTER_S[-1:] * SETTLE_LOOKS], start=1):
            await asyncio.sleep(wait)
            if not self._contradicts:
                return
            self._running = None
            with suppress(ChannelAway, MessageRefused):
                await (self._call("thread/read", threadId=self._thread) if self._busy else self._catch_up())
            if number >= len(SETTLE_AFTER_S):
                self._end_what_does_not_run()
                if self._busy or not self._turns.open:
                    break
        self._tell()

    def _end_what_does_not_run(self) -> None:
        """Ends open turns as stopped if the thread is idle and the list of turns does not show them as running."""
        for turn in list(self._turns.open) if self._contradicts and not self._busy else []:
            if self._running is not None and turn not in self._running:
                self._turns.end({"turn": {"status": "interrupted"}}, turn)

    def _tell(self) -> None:
        self._settle()
        if (now := (self.reach(), self._gone)) != self._reported_reach:
            self._reported_reach = now
            self._changed()


def looks_for_thread() -> Iterator[float]:
    """Yields the seconds before each look for the thread that the terminal shows."""
    pause = LOOK_S
    while True:
        yield pause
        pause = min(LOOK_GROWS * pause, LOOK_MAX_S)


def _is_wanted(turn: _Json, wanted: tuple[str, str | None] | None) -> bool:
    """Returns True if the turn has the message with that key, or has that id."""
    return wanted is not None and (user_key(turn, wanted[0]) or turn.get("id") == wanted[1])


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


ADAPTERS = {"app-server": Adapter(AppServerChannel, AppServerChannel, is_there=lambda context: context.companion)}
"""The adapters by their names in profiles."""
