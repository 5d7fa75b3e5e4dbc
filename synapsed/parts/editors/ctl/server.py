"""ACP (Agent Client Protocol) server for one editor. The main thread handles everything; blocking calls run in worker
threads and put their results into its queue.

The queue has room for `FACTS_MAX` facts (a message of the editor, the result of a call, an event of a stream): a faster
sender waits, the editor's pipe and the daemon's streams included. At most `JOBS_MAX` calls to the daemon run at once,
the others wait.
"""

import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from synapsectl.client import agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import CtlError
from synapsed import __version__
from synapsed.parts.editors.ctl import opening, shapes, wire
from synapsed.parts.editors.ctl import session as core
from synapsed.parts.editors.ctl.content import message_of
from synapsed.parts.editors.ctl.daemon_calls import Reach, Stream, single, whole
from synapsed.parts.editors.ctl.opening import Opened, ServedAgents
from synapsed.parts.editors.ctl.session import EditorSession, failure_of
from synapsed.parts.editors.ctl.shapes import RequestRefused

VERSION: Final = 1
"""Version of the protocol; an editor that speaks another one gets this, and decides."""

SIGN_IN: Final[dict[str, Any]] = {
    "id": "terminal",
    "name": "Sign in at the agent's terminal",
    "description": "Opens the terminal of the agent's own program, where it asks for its account; ctrl-] leaves it.",
    "type": "terminal",
    "args": ["--sign-in"],
    "env": {},
}
"""Offer for an editor that opens terminals: it starts its command for us once more, with `args`."""

FACTS_MAX: Final = 64
JOBS_MAX: Final = 64
WAITING_MAX: Final = 256
SESSIONS_MAX: Final = 64
CHUNK: Final = 64 * 1024

type Then = Callable[[Any, Exception | None], None]


class _EditorMessage(NamedTuple):
    """A message from the editor."""

    message: wire.Message


class _CallEnded(NamedTuple):
    """A call in a worker thread has ended: `then` gets its return value or its error."""

    then: Then
    value: Any
    error: Exception | None


class _StreamEvent(NamedTuple):
    """An event or a notice of a stream of the daemon; `then` handles it in the main thread."""

    then: Callable[[], None]


class _EditorGone(NamedTuple):
    """The editor has closed its side."""


type _Fact = _EditorMessage | _CallEnded | _StreamEvent | _EditorGone


class _Live:
    """A session of the editor: the pure state machine (`session`), and what is open for it."""

    def __init__(self, opened: Opened) -> None:
        self.session = EditorSession(opened.session_id, name=opened.agent["name"], cwd=opened.agent["cwd"])
        self.reach: Reach = opened.reach
        self.agent, self.here = opened.agent, opened.here
        self.events: Stream | None = None
        """Stream of the agent's events."""
        self.watched: dict[str, Stream] = {}
        """Streams of tasks, by the task's id."""
        self.requests: dict[str, str] = {}
        """Ids of open requests to the editor, by their prompt."""
        self.asks_in: dict[str, str | None] = {}
        """Task of each prompt."""

    def close(self) -> None:
        for stream in [*self.watched.values(), *([self.events] if self.events else [])]:
            stream.close()


class AcpServer:
    """Serves one editor. `received` is the descriptor to read, `sent` the one to write."""

    def __init__(self, ctx: CommandContext, wanted: ServedAgents, *, received: int, sent: int) -> None:
        self._ctx = ctx
        self._wanted = wanted
        self._received = received
        self._sent = sent
        self._facts: queue.Queue[_Fact] = queue.Queue(FACTS_MAX)
        self._live: dict[str, _Live] = {}
        self._requests: dict[str, tuple[_Live, str]] = {}
        """Session and prompt of each open request to the editor."""
        self._jobs = 0
        self._waiting: deque[tuple[Callable[[], Any], Then]] = deque()
        """Calls that wait because `JOBS_MAX` are running: at most one for each prompt and open turn of the sessions,
        and `WAITING_MAX` for requests."""
        self._number = 0
        self._greeted = False

    def run(self) -> None:
        """Serves until the editor closes its side. Its tasks go on without it."""
        threading.Thread(target=self._read, name="acp editor", daemon=True).start()
        while True:
            match self._facts.get():
                case _EditorMessage(message):
                    self._handle_message(message)
                case _CallEnded(then, value, error):
                    self._jobs -= 1
                    self._next()
                    then(value, error)
                case _StreamEvent(then):
                    then()
                case _EditorGone():
                    return

    # --- the editor ---------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        lines = wire.LineCutter()
        try:
            while chunk := os.read(self._received, CHUNK):
                for line in lines.feed(chunk):
                    self._facts.put(_EditorMessage(wire.read(line)))
        except OSError:
            pass  # the editor is gone
        self._facts.put(_EditorGone())

    def _write(self, message: dict[str, Any]) -> None:
        """Writes a message. Raises BrokenPipeError if the editor is gone."""
        line = memoryview(wire.encode(message))
        while line:
            line = line[os.write(self._sent, line) :]

    def _handle_message(self, message: wire.Message) -> None:
        match message:
            case wire.Wrong(reply):
                self._write(reply)
            case wire.RpcRequest(id_, method, params):
                self._request(id_, method, params)
            case wire.RpcNotification(method, params):
                self._notified(method, params)
            case wire.RpcResponse(id_, result, error):
                live, prompt = self._requests.pop(str(id_), (None, ""))
                if live is not None:
                    live.requests.pop(prompt, None)
                    self._perform(live, live.session.chosen(prompt, None if error else shapes.outcome(result)))

    def _request(self, id_: wire.Id, method: str, params: dict[str, Any]) -> None:
        handle = _METHODS.get(method)
        if handle is None:
            there_is_none = f"there is no method {wire.shown(method)}"
            self._write(wire.failure(id_, wire.METHOD_NOT_FOUND, there_is_none, {"method": wire.shown(method)}))
        elif not self._greeted and method != "initialize":
            self._write(wire.failure(id_, wire.INVALID_REQUEST, "initialize comes first"))
        else:
            try:
                handle(self, id_, params)
            except RequestRefused as refusal:
                self._refuse(id_, refusal)

    def _refuse(self, id_: wire.Id, error: Exception) -> None:
        if isinstance(error, RequestRefused):
            self._write(wire.failure(id_, error.code, str(error), error.data))
        elif isinstance(error, CtlError):
            self._write(wire.failure(id_, *failure_of(error)))
        else:
            raise error

    def _notified(self, method: str, params: dict[str, Any]) -> None:
        """Handles a notification; one that is not understood is ignored, because it has no answer."""
        if method == "session/cancel":
            live = self._live.get(str(params.get("sessionId")))
            if live is not None:
                self._perform(live, live.session.cancel())
        elif method == "$/cancel_request" and params.get("requestId") is not None:
            for live in self._live.values():
                if live.session.has(params["requestId"]):
                    self._perform(live, live.session.cancel(params["requestId"]))

    # --- its requests -------------------------------------------------------------------------------------------------

    def _initialize(self, id_: wire.Id, params: dict[str, Any]) -> None:
        shapes.protocol(params)
        self._greeted = True
        able = {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": False, "sse": False},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
        }
        info = {"name": "synapsed", "title": "synapsed", "version": __version__}
        methods = [SIGN_IN] if shapes.opens_terminals(params) else []
        answer = {"protocolVersion": VERSION, "agentCapabilities": able, "agentInfo": info, "authMethods": methods}
        self._write(wire.result(id_, answer))

    def _new(self, id_: wire.Id, params: dict[str, Any]) -> None:
        cwd = shapes.folder(params)
        self._open(id_, lambda: opening.open_new(self._ctx, self._wanted, cwd), tell_id=True)

    def _load(self, id_: wire.Id, params: dict[str, Any]) -> None:
        session = shapes.text(params, "sessionId")
        self._open(id_, lambda: opening.open_known(self._ctx, self._wanted, session, replay=True), tell_id=False)

    def _resume(self, id_: wire.Id, params: dict[str, Any]) -> None:
        session = shapes.text(params, "sessionId")
        self._open(id_, lambda: opening.open_known(self._ctx, self._wanted, session, replay=False), tell_id=False)

    def _open(self, id_: wire.Id, find: Callable[[], Opened], *, tell_id: bool) -> None:
        def then(opened: Any, error: Exception | None) -> None:
            if error is not None:
                self._refuse(id_, error)
                return
            if not self._begin(opened):
                self._refuse(
                    id_, RequestRefused(wire.INVALID_REQUEST, f"there are {SESSIONS_MAX} sessions: close some")
                )
                return
            for update in opened.replay:
                self._update(opened.session_id, update)
            self._write(wire.result(id_, {"sessionId": opened.session_id} if tell_id else {}))

        self._start(find, then, asked=True)

    def _list(self, id_: wire.Id, params: dict[str, Any]) -> None:
        cwd = shapes.folder(params) if params.get("cwd") is not None else None
        cursor = shapes.optional_text(params, "cursor")

        def then(found: Any, error: Exception | None) -> None:
            if error is not None:
                self._refuse(id_, error)
            else:
                self._write(wire.result(id_, found))

        self._start(lambda: opening.listed(self._ctx, self._wanted, cwd, cursor), then, asked=True)

    def _close(self, id_: wire.Id, params: dict[str, Any]) -> None:
        live = self._known(params)
        self._perform(live, live.session.closed())
        self._live.pop(live.session.session_id).close()
        self._write(wire.result(id_, {}))

    def _prompt(self, id_: wire.Id, params: dict[str, Any]) -> None:
        live = self._known(params)
        parts, command = message_of(shapes.blocks(params), live.session.with_words)
        if live.session.full:
            raise RequestRefused(wire.INVALID_REQUEST, f"{core.PROMPTS_MAX} prompts are under way: wait for one to end")
        message = os.urandom(16).hex()
        body = {"message": {"role": "user", "parts": parts, "message_id": message}, "command": command}
        self._perform(live, live.session.prompt(id_, message, body))

    def _known(self, params: dict[str, Any]) -> _Live:
        session = shapes.text(params, "sessionId")
        live = self._live.get(session)
        if live is None:
            raise RequestRefused(
                wire.NOT_FOUND,
                f"there is no session {wire.shown(session)} here: session/new or session/load begin one",
                {"path": "sessionId"},
            )
        return live

    # --- sessions -----------------------------------------------------------------------------------------------------

    def _begin(self, opened: Opened) -> bool:
        """Opens the session and follows its agent; returns False if there are too many sessions. A session that is open
        already is continued."""
        if (known := self._live.get(opened.session_id)) is not None:
            self._perform(known, known.session.opened_again())
            return True
        if len(self._live) >= SESSIONS_MAX:
            return False
        live = self._live[opened.session_id] = _Live(opened)
        reach, session = opened.reach, live.session

        def take(_name: str, data: dict[str, Any], _cursor: int) -> None:
            for event in single(data):
                self._put_event(live, partial(session.event, whole(reach.client, event)))

        def on_state(state: str, error: CtlError | None) -> None:
            if state == "back":
                self._put_event(live, session.resume)
            elif error is not None and state != "busy":
                self._put_event(live, partial(session.away, error))

        path = agent_path(reach.address, "events")
        live.events = Stream(reach.client, path, opened.cursor, take=take, on_state=on_state)
        live.events.start()
        self._perform(live, session.begin(opened.shown, opened.agent.get("task"), opened.cursor))
        return True

    def _put_event(self, live: _Live, decide: Callable[[], Iterable[core.Command]]) -> None:
        """Puts a stream's event into the queue; the main thread calls `decide` and performs the commands that it
        returns."""
        self._facts.put(_StreamEvent(lambda: self._perform(live, decide())))

    def _update(self, session_id: str, update: dict[str, Any]) -> None:
        self._write(wire.notice("session/update", {"sessionId": session_id, "update": update}))

    def _perform(self, live: _Live, commands: Iterable[core.Command]) -> None:
        """Performs the commands that the session has returned, in their order."""
        for command in commands:
            match command:
                case core.Update(update):
                    self._update(live.session.session_id, update)
                case core.Reply(id_, result):
                    self._write(wire.result(id_, result))
                case core.Fail(id_, code, message, data):
                    self._write(wire.failure(id_, code, message, data))
                case core.AskEditor(prompt_id, params):
                    self._ask(live, prompt_id, params)
                case core.Withdraw(prompt_id):
                    self._withdraw(live, prompt_id)
                case core.FollowTask(task):
                    self._watch(live, task)
                case core.LeaveTask(task):
                    if (stream := live.watched.pop(task, None)) is not None:
                        stream.close()
                case _:
                    self._call(live, command)

    def _call(self, live: _Live, command: core.Command) -> None:
        """Performs a command that needs a call to the daemon."""
        reach, session = live.reach, live.session

        def after(decide: Callable[[Any, Exception | None], Iterable[core.Command]]) -> Then:
            return lambda value, error: self._perform(live, decide(value, error))

        match command:
            case core.Send(message_id, body):
                self._start(lambda: reach.send(body), after(partial(_sent_or_refused, session, message_id)))
            case core.Cancel(task):
                # If the program did not stop, its task goes on to its own end, and so does the prompt.
                self._start(lambda: reach.cancel(task), after(lambda *_: ()))
            case core.ReadTask(task):
                self._start(lambda: reach.task(task), after(partial(_task_read, session, task)))
            case core.ReadCommands():
                found = partial(reach.commands, live.agent, here=live.here)
                self._start(found, after(lambda commands, error: () if error else session.commands(commands)))
            case core.AskWhat():
                self._start(reach.waits_for, after(partial(self._question, live)))
            case core.GiveAnswer(prompt_id, key):
                asked_in = live.asks_in.get(prompt_id)
                self._start(lambda: reach.answer(asked_in, prompt_id, key), after(lambda *_: session.answered()))

    def _question(self, live: _Live, found: Any, error: Exception | None) -> Iterable[core.Command]:
        """Handles the answer to AskWhat: the question that the agent waits with. After an error the question that was
        known before stays."""
        if error is not None:
            return live.session.cannot_tell()
        asks, limit = found
        if asks is not None:
            live.asks_in = {asks["prompt_id"]: asks["task"]}
        return live.session.asks(asks, limit)

    def _watch(self, live: _Live, task: str) -> None:
        if task in live.watched:
            return
        session = live.session

        def take(name: str, data: dict[str, Any], cursor: int) -> None:
            self._put_event(live, partial(session.piece, task, cursor, data if name == "artifact" else None))

        def on_state(state: str, _error: CtlError | None) -> None:
            if state != "back":
                self._put_event(live, partial(session.unwatched, task))

        path = agent_path(live.reach.address, f"tasks/{task}/subscribe")
        stream = live.watched[task] = Stream(live.reach.client, path, 0, take=take, on_state=on_state)
        stream.start()

    def _ask(self, live: _Live, prompt_id: str, params: dict[str, Any]) -> None:
        self._number += 1
        id_ = f"ask-{self._number}"
        live.requests[prompt_id] = id_
        self._requests[id_] = (live, prompt_id)
        self._write(wire.call(id_, "session/request_permission", params))

    def _withdraw(self, live: _Live, prompt_id: str) -> None:
        id_ = live.requests.pop(prompt_id, None)
        if id_ is not None:
            del self._requests[id_]
            self._write(wire.notice("$/cancel_request", {"requestId": id_}))

    # --- what has to wait ---------------------------------------------------------------------------------------------

    def _start(self, work: Callable[[], Any], then: Then, *, asked: bool = False) -> None:
        """Runs `work` in a worker thread, then `then` in the main thread. If `JOBS_MAX` calls are running, `work`
        waits. A request of the editor (`asked`) is refused if too many wait already."""
        if asked and len(self._waiting) >= WAITING_MAX:
            raise RequestRefused(
                wire.INTERNAL_ERROR, "too many requests at once: wait for some to be answered", {"code": "BUSY"}
            )
        self._waiting.append((work, then))
        self._next()

    def _next(self) -> None:
        while self._waiting and self._jobs < JOBS_MAX:
            self._jobs += 1
            threading.Thread(target=self._job, args=self._waiting.popleft(), name="acp call", daemon=True).start()

    def _job(self, work: Callable[[], Any], then: Then) -> None:
        value, error = None, None
        try:
            value = work()
        except (RequestRefused, CtlError) as refused:
            error = refused
        except Exception as unforeseen:  # noqa: BLE001 - it is reported, and the other sessions go on
            sys.excepthook(type(unforeseen), unforeseen, unforeseen.__traceback__)
            error = CtlError(f"an error of synapsectl's own ({type(unforeseen).__name__}): its stderr says more")
        self._facts.put(_CallEnded(then, value, error))


def _task_read(session: EditorSession, task: str, found: Any, error: Exception | None) -> Iterable[core.Command]:
    return session.unknown(task, error) if isinstance(error, CtlError) else session.read(found)


def _sent_or_refused(
    session: EditorSession, message_id: str, task: Any, error: Exception | None
) -> Iterable[core.Command]:
    """Handles the result of a send: the task, or the error."""
    return session.refused(message_id, error) if isinstance(error, CtlError) else session.accepted(message_id, task)


_METHODS: Final[dict[str, Callable[[AcpServer, wire.Id, dict[str, Any]], None]]] = {
    "initialize": AcpServer._initialize,  # noqa: SLF001 - the table of this very class
    "session/new": AcpServer._new,  # noqa: SLF001
    "session/load": AcpServer._load,  # noqa: SLF001
    "session/resume": AcpServer._resume,  # noqa: SLF001
    "session/list": AcpServer._list,  # noqa: SLF001
    "session/close": AcpServer._close,  # noqa: SLF001
    "session/prompt": AcpServer._prompt,  # noqa: SLF001
}
