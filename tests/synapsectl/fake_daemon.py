"""A daemon to test the person's tool against: the control routes of the API over a Unix socket, scripted.

It shares its shapes with the real one by building every answer from `synapsed.model`. It runs in a thread of its own,
so that the tool may be called in the test's thread or as a process.
"""

import asyncio
import base64
import json
import socket
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from synapsed.aio import stop_listening
from synapsed.api.framed_terminal import FramedConnection
from synapsed.errors import HTTP_STATUS, InvalidRequest, NotInFleet, NotReady, SynapsedError, TaskNotFound, UnknownAgent
from synapsed.model.agent import Activity, AgentDetail, AgentView, ProcessState, agent_id
from synapsed.model.task import Artifact, Message, Prompt, PromptOption, Task, TaskError, TaskState, TextPart
from synapsed.shared import attach_frames as wire
from tests.support.patience import PATIENCE_S

WHEN = "2026-01-02T03:04:05.000Z"
DEADLINE = PATIENCE_S
"""Seconds for anything a test waits for."""

Script = Callable[["FakeDaemon", Task], None]


@dataclass
class Terminal:
    """One attached terminal as the daemon sees it."""

    query: dict[str, str]
    connection: FramedConnection
    received: bytearray = field(default_factory=bytearray)
    messages: list[dict[str, Any]] = field(default_factory=list)


def agent(name: str, *, kind: str | None = None, port: int = 8190, **changes: Any) -> AgentDetail:
    """An agent as the daemon shows it."""
    kind = kind or name
    facts: dict[str, Any] = {
        "name": name,
        "id": agent_id(kind, port, name),
        "type": kind,
        "port": port,
        "pid": 4242,
        "state": ProcessState.RUNNING,
        "activity": Activity.READY,
        "since": WHEN,
        "evidence": "title",
        "held": None,
        "queue": 0,
        "task": None,
        "restarts": 0,
        "cwd": "/work/space",
        "endpoint": f"http://localhost:{port}",
        "screen": f"{name}> \n\n",
    }
    return AgentDetail(**(facts | changes))


def permission() -> Prompt:
    return Prompt(
        prompt_id="p1",
        type="permission",
        prompt="Do you want to proceed?",
        options=[
            PromptOption(key="1", label="Yes"),
            PromptOption(key="2", label="Yes, and don't ask again"),
            PromptOption(key="3", label="No, tell it what to do instead"),
        ],
        default="1",
    )


def answers(text: str, *, exact: bool = True) -> Script:
    """A script: the task is worked on and completed with `text`."""

    def run(daemon: "FakeDaemon", task: Task) -> None:
        daemon.advance(task, TaskState.WORKING)
        daemon.artifact(task, Artifact(artifact_id="m1", name="progress", parts=[TextPart(text="looking…")]))
        daemon.artifact(task, Artifact.answer(text))
        daemon.advance(task, TaskState.COMPLETED, exact=exact)

    return run


def ends(state: TaskState, **changes: Any) -> Script:
    """A script: the task goes to `state`."""
    return lambda daemon, task: daemon.advance(task, state, **changes)


def fails(code: str, message: str) -> Script:
    return ends(TaskState.FAILED, error=TaskError(code=code, message=message))


class FakeDaemon:
    """`requests` are (method, path with query, body); `script` says what becomes of a task that is sent."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.agents = {a.name: a for a in (agent("claude", port=8100), agent("codex", port=8120))}
        self.tasks: dict[str, Task] = {}
        self.script: Script = answers("the **answer**\n```\ncode\n```")
        self.on_answer: Script = lambda daemon, task: None
        """What becomes of a task whose question is answered."""
        self.requests: list[tuple[str, str, Any]] = []
        self.starts_as: dict[str, Any] = {}
        """What is else of an agent that is started."""
        self.unknown: frozenset[str] = frozenset()
        """Keys of a start that this daemon, an older one, does not know."""
        self.on_start: Callable[[], None] = lambda: None
        """Called while an agent is being started."""
        self.on_verb: Callable[[], None] = lambda: None
        """Called while an agent is being stopped, restarted, parked or killed."""
        self.activated: list[str] = []
        self.conversations: list[dict[str, Any]] = []
        self.teams: list[dict[str, Any]] = []
        self.inbox: list[dict[str, Any]] = []
        """What needs a person."""
        self.hosts_said: list[dict[str, Any]] = []
        self.fleet: list[dict[str, Any]] | None = None
        self.own_fleet: dict[str, Any] | None = None
        self.fleet_files: list[dict[str, Any]] = []
        self.file_content = b""
        self.authorization: list[str | None] = []
        self.errors: dict[tuple[str, str], SynapsedError] = {}
        self.terminals: list[Terminal] = []
        self.settings: dict[str, Any] = {"status": True, "title": True, "bell": True}
        """What else an attached terminal is told at its beginning."""
        self.one_screen = False
        """Whether it knows of that, as older ones do not."""
        self.redraw = b"\x1b[2J\x1b[Hredrawn\r\n"
        self.first_news: dict[str, Any] | None = None
        """Told before the screen, as where that takes its time."""
        self.interrupted = True
        self.printed = bytearray(b"\x1b[1mone\x1b[0m\r\ntwo\r\nthree\r\n")
        self.exited: int | None = None
        self.streamed = 0
        """How many events of a task its newest stream has written."""
        self.down = threading.Event()
        self.cut_off = False
        """The next stream of all events ends as one that was read too slowly."""
        self._events: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._dying = threading.Lock()

    # --- what a test does -------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Listen; may be called again after `die`."""
        self.down.clear()
        ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(DEADLINE)
        return self

    def die(self) -> None:
        """Cut every connection and listen no more, as a kill does. Whoever asks again waits until that is done."""
        with self._dying:
            if self._thread is None:
                return
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join(DEADLINE)
            assert not self._thread.is_alive()
            self._thread = None
            self.down.set()

    def refuse(self, method: str, path: str, error: SynapsedError) -> None:
        """Answer `error` to every such request."""
        self.errors[method, path] = error

    def advance(self, task: Task, state: TaskState, **changes: Any) -> None:
        """The task goes into `state`."""
        self.tasks[task.id] = self.tasks.get(task.id, task).model_copy(update={"status": state, **changes})
        data: dict[str, Any] = {"taskId": task.id, "state": state.value, "timestamp": WHEN}
        self._tell(task, "status", data)

    def artifact(self, task: Task, artifact: Artifact, *, append: bool = False, last: bool = True) -> None:
        current = self.tasks.get(task.id, task)
        others = [a for a in current.artifacts if a.artifact_id != artifact.artifact_id]
        self.tasks[task.id] = current.model_copy(update={"artifacts": [*others, artifact]})
        data = {"taskId": task.id, "artifact": artifact.model_dump(mode="json"), "append": append, "lastChunk": last}
        self._tell(task, "artifact", data)

    def until(self, predicate: Callable[[], object]) -> None:
        """Wait until something that was told or received makes `predicate` true."""
        with self._changed:
            assert self._changed.wait_for(predicate, DEADLINE), "it did not come to that"

    def show(self, data: bytes) -> None:
        """The attached agent prints."""
        self.printed += data
        for terminal in list(self.terminals):
            self._run(self._pass(terminal, wire.OUTPUT, data))

    def tell(self, **news: Any) -> None:
        """The daemon tells the attached terminals something."""
        for terminal in list(self.terminals):
            self._run(self._pass(terminal, wire.NEWS, json.dumps(news).encode()))

    def earlier(self, screen: bytes, output: bytes, *, cols: int = 80, rows: int = 23) -> None:
        """What it answers to whoever looks back."""
        self.tell(type="earlier", cols=cols, rows=rows, pieces=2)
        for piece in (screen, output):
            self._run(self._pass(self.terminals[-1], wire.EARLIER, piece))

    def exit(self, code: int | None) -> None:
        """The attached agent ends for good."""
        self.exited = code
        for terminal in list(self.terminals):
            self._run(self._pass(terminal, wire.NEWS, json.dumps({"type": "exit", "exit_code": code}).encode()))

    @property
    def typed(self) -> bytes:
        """What the newest terminal sent."""
        return bytes(self.terminals[-1].received) if self.terminals else b""

    # --- inside -----------------------------------------------------------------------------------------------------

    def _run(self, what: Coroutine[Any, Any, Any]) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(DEADLINE)

    def _tell(self, task: Task, event: str, data: dict[str, Any]) -> None:
        with self._changed:
            self._events.setdefault(task.id, []).append((event, data))
            self._changed.notify_all()

    def _note(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _serve(self, ready: threading.Event) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._main(ready))

    async def _main(self, ready: threading.Event) -> None:
        self._end = asyncio.Event()
        runner = web.AppRunner(self._application(), shutdown_timeout=0.01, handler_cancellation=True)
        await runner.setup()
        server = runner.server
        assert server is not None
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(str(self.socket))
        listener = await self._loop.create_server(server, sock=sock)
        ready.set()
        await self._end.wait()
        self.socket.unlink(missing_ok=True)
        await stop_listening(listener)
        while server.connections:
            for connection in list(server.connections):
                if connection.transport is not None:
                    connection.transport.abort()
            await asyncio.sleep(0)
        await runner.cleanup()
        # Transports close their sockets in the loop's next turn.
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    def _application(self) -> web.Application:
        app = web.Application(middlewares=[self._middleware], client_max_size=32 * 1024 * 1024)
        app.add_routes(
            [
                web.get("/agents", self._list),
                web.get("/fleet", self._own_fleet),
                web.get("/fleet/hosts", self._fleet_hosts),
                web.get("/fleet/files", self._fleet_files),
                web.post("/fleet/files", self._file_begun),
                web.post("/fleet/files/{file}", self._file_piece),
                web.delete("/fleet/files/{file}", self._file_removed),
                web.get("/fleet/files/{host}/{file}", self._file_content),
                web.post("/agents/{agent}/tasks/reply", self._reply),
                web.get("/inbox", self._inbox),
                web.get("/teams", self._teams),
                web.get("/hosts", self._hosts),
                web.get("/agents/{agent}/status", self._status),
                web.post("/agents/{agent}/tasks/send", self._send),
                web.get("/agents/{agent}/screen", self._screen),
                web.get("/agents/{agent}/terminal", self._terminal),
                web.get("/events", self._all_events),
                web.get("/agents/{agent}/events", self._all_events),
                web.post("/agents/{agent}/events", self._reported),
                web.get("/healthz", self._daemon_status),
                web.get("/control/status", self._daemon_status),
                web.get("/control/profiles", self._profiles),
                web.get("/control/conversations", self._conversations),
                web.post("/control/start", self._start_agent),
                web.post("/control/shutdown", self._shutdown),
                web.get("/control/tasks", self._list_tasks),
                web.get("/control/tasks/{id}", self._task),
                web.get("/control/tasks/{id}/wait", self._wait),
                web.post("/control/tasks/{id}/cancel", self._cancel),
                web.post("/control/tasks/{id}/input", self._input),
                web.post("/control/agents/{agent}/interrupt", self._interrupt),
                web.post("/control/agents/{agent}/input", self._agent_input),
                web.post("/control/agents/{agent}/{verb:stop|restart|park|kill}", self._verb),
                web.post("/control/agents/{agent}/environment", self._environment),
                web.post("/control/agents/{agent}/keys", self._keys),
                web.get("/control/agents/{agent}/history", self._history),
                web.get("/control/agents/{agent}/recording", self._recording),
            ]
        )
        return app

    @web.middleware
    async def _middleware(self, request: web.Request, handler: Any) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        self.requests.append((request.method, request.path_qs, body))
        self.authorization.append(request.headers.get("Authorization"))
        self._note()
        error = self.errors.get((request.method, request.path))
        try:
            if error is not None:
                raise error
            return await handler(request)
        except SynapsedError as caught:
            document = {"error": {"code": caught.code, "message": caught.message, "details": caught.details}}
            return web.json_response(document, status=HTTP_STATUS[caught.code])

    def _find(self, request: web.Request) -> AgentDetail:
        wanted = request.match_info["agent"]
        for known in self.agents.values():
            if wanted in (known.name, known.id):
                return known
        raise UnknownAgent(f"no agent {wanted!r}: there are {', '.join(self.agents)}", agents=list(self.agents))

    def _find_task(self, request: web.Request) -> Task:
        wanted = request.match_info["id"]
        for task in self.tasks.values():
            if task.id.startswith(wanted):
                return task
        raise TaskNotFound(f"no task {wanted!r}", task=wanted)

    def _view(self, detail: AgentDetail) -> dict[str, Any]:
        return AgentView(**{key: getattr(detail, key) for key in AgentView.model_fields}).model_dump(mode="json")

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response([self._view(detail) for detail in self.agents.values()])

    async def _inbox(self, request: web.Request) -> web.Response:
        every = [{"id": f"i{n}", "kind": "permission", "since": WHEN, **one} for n, one in enumerate(self.inbox)]
        if request.query.get("hosts"):
            return web.json_response({"items": every, "hosts": self.hosts_said})
        return web.json_response(every)

    async def _own_fleet(self, request: web.Request) -> web.Response:
        if self.own_fleet is None:
            raise NotInFleet("this host is in no fleet")
        return web.json_response(self.own_fleet)

    async def _fleet_hosts(self, request: web.Request) -> web.Response:
        if self.fleet is None:
            raise NotInFleet("this host is in no fleet")
        return web.json_response(self.fleet)

    async def _fleet_files(self, request: web.Request) -> web.Response:
        return web.json_response(self.fleet_files)

    async def _file_begun(self, request: web.Request) -> web.Response:
        told = await request.json()
        self.file_content = b""
        return web.json_response({"id": "ab" * 16, "uri": f"syn-file:{'ab' * 16}", "size": 0, "name": told["name"]})

    async def _file_piece(self, request: web.Request) -> web.Response:
        told = await request.json()
        assert told["offset"] == len(self.file_content)
        self.file_content += base64.b64decode(told["bytes"])
        size = len(self.file_content)
        return web.json_response({"id": "ab" * 16, "uri": f"syn-file:{'ab' * 16}", "size": size, "whole": told["last"]})

    async def _file_removed(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "removed", "id": request.match_info["file"]})

    async def _file_content(self, request: web.Request) -> web.Response:
        if request.match_info["host"] != "box":
            raise TaskNotFound("no such file is kept here")
        return web.Response(body=self.file_content)

    async def _reply(self, request: web.Request) -> web.Response:
        return web.json_response({"task": {"id": "t1"}})

    async def _hosts(self, request: web.Request) -> web.Response:
        return web.json_response([])

    async def _teams(self, request: web.Request) -> web.Response:
        return web.json_response(self.teams)

    async def _status(self, request: web.Request) -> web.Response:
        assert request.query.get("detail") == "1"
        detail = self._find(request).model_dump(mode="json")
        if request.query.get("explain") == "1":
            detail["explain"] = [
                {"channel": "dialog", "says": "none", "since": None, "decides": False},
                {"channel": "composer", "says": "empty", "since": WHEN, "decides": True},
            ]
        return web.json_response(detail)

    async def _send(self, request: web.Request) -> web.Response:
        body = await request.json()
        task = Task(
            agent_id=self._find(request).id,
            message=Message.model_validate(body["message"]),
            metadata=body.get("metadata", {}),
            priority=body.get("priority", 1),
            context_id=body.get("context_id", "c1"),
            created_at=WHEN,
            updated_at=WHEN,
        )
        self.tasks[task.id] = task
        self.advance(task, TaskState.SUBMITTED)
        self.script(self, task)
        return web.json_response({"task": task.model_dump(mode="json")})

    async def _screen(self, request: web.Request) -> web.Response:
        detail = self._find(request)
        if request.query.get("format") == "json":
            return web.json_response({"cols": 80, "rows": 24, "alternate": False, "lines": [detail.screen]})
        if request.query.get("format") == "coloured":
            return web.Response(body=detail.screen.encode(), content_type="text/plain")
        if request.query.get("format") == "ansi":
            return web.Response(body=b"\x1b[1m" + detail.screen.encode() + b"\x1b[0m", content_type="text/plain")
        if (form := request.query.get("format")) in ("png", "svg"):
            return web.Response(body=f"{form} of {detail.screen}".encode(), content_type=f"image/{form}")
        return web.Response(text=detail.screen)

    async def _daemon_status(self, request: web.Request) -> web.Response:
        return web.json_response(
            {
                "version": "9.9",
                "pid": 77,
                "uptime": 61.5,
                "listen": ["127.0.0.1:8090"],
                "agents": len(self.agents),
                "paths": {"state": "/s"},
            }
        )

    async def _profiles(self, request: web.Request) -> web.Response:
        row = {"name": "dummy", "description": "a script", "command": "x", "ports": [8190, 8199]}
        row |= {"verified": "1", "source": "/profiles/dummy.toml", "model": True}
        return web.json_response(
            [row, row | {"name": "claude"}, row | {"name": "codex", "model": False, "unverified": "never run"}]
        )

    async def _conversations(self, request: web.Request) -> web.Response:
        return web.json_response(self.conversations)

    async def _start_agent(self, request: web.Request) -> web.Response:
        body = await request.json()
        for key in self.unknown & body.keys():
            raise InvalidRequest(f"{key}: no such key", field=key)
        self.on_start()
        name = body.get("name") or body["profile"]
        detail = agent(name, kind=body["profile"], cwd=body["cwd"], **self.starts_as)
        self.agents[detail.name] = detail
        return web.json_response({**self._view(detail), "activated": self.activated})

    async def _shutdown(self, request: web.Request) -> web.Response:
        threading.Thread(target=self.die).start()
        return web.json_response({"status": "stopping"})

    async def _list_tasks(self, request: web.Request) -> web.Response:
        wanted = request.query.get("agent")
        ids = {a.id for a in self.agents.values() if wanted in (None, a.name, a.id)}
        tasks = [task for task in self.tasks.values() if task.agent_id in ids]
        return web.json_response([task.model_dump(mode="json") for task in tasks])

    async def _task(self, request: web.Request) -> web.Response:
        return web.json_response({"task": self._find_task(request).model_dump(mode="json")})

    async def _cancel(self, request: web.Request) -> web.Response:
        task = self._find_task(request)
        self.advance(task, TaskState.CANCELED)
        return web.json_response({"task": self.tasks[task.id].model_dump(mode="json")})

    async def _input(self, request: web.Request) -> web.Response:
        task = self._find_task(request)
        self.on_answer(self, task)
        return web.json_response({"status": "input_provided", "task_id": task.id})

    async def _keys(self, request: web.Request) -> web.Response:
        self._find(request)
        return web.json_response({"status": "pressed"})

    async def _agent_input(self, request: web.Request) -> web.Response:
        self._find(request)
        for task in list(self.tasks.values())[-1:]:
            self.on_answer(self, task)
        return web.json_response({"status": "input_provided"})

    async def _interrupt(self, request: web.Request) -> web.Response:
        self._find(request)
        return web.json_response({"interrupted": self.interrupted})

    async def _environment(self, request: web.Request) -> web.Response:
        self._find(request)
        return web.json_response({"names": self.activated})

    async def _verb(self, request: web.Request) -> web.Response:
        detail = self._find(request)
        await asyncio.to_thread(self.on_verb)
        if request.match_info["verb"] == "stop":
            changes = {"state": ProcessState.STOPPED, "pid": None}
            self.agents[detail.name] = detail.model_copy(update=changes)
        return web.json_response(self._view(self.agents[detail.name]))

    async def _recording(self, request: web.Request) -> web.Response:
        self._find(request)
        return web.Response(text='{"version": 3}\n' + json.dumps([0.0, "o", self.printed.decode()]) + "\n")

    async def _history(self, request: web.Request) -> web.Response:
        self._find(request)
        asked = request.query
        if "after" not in asked:
            start = max(0, len(self.printed) - int(asked["bytes"]))
        else:
            start = min(int(asked["after"]), len(self.printed))
            while start == len(self.printed) and self.exited is None:
                await asyncio.sleep(0.01)
        data = bytes(self.printed[start : start + int(asked["bytes"])])
        over = str(int(not data and self.exited is not None))
        place = {"Synapsed-Offset": str(start), "Synapsed-Ended": over}
        return web.Response(body=data, content_type="application/octet-stream", headers=place)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        return response

    async def _reported(self, request: web.Request) -> web.Response:
        self._find(request)
        return web.json_response({"status": "reported"})

    async def _all_events(self, request: web.Request) -> web.StreamResponse:
        response = await self._stream(request)
        event = {"id": 7, "event": "activity", "time": "2026-01-02T03:04:05.000Z", "agent": "synapse-claude-8100"}
        event |= {"data": {"activity": "busy", "evidence": "title", "prompt": None}, "task": None, "context": None}
        await response.write(f"id: 7\nevent: activity\ndata: {json.dumps(event)}\n\n".encode())
        if self.cut_off:
            self.cut_off = False
            await response.write(b'event: truncated\ndata: {"reason": "read too slowly"}\n\n')
            return response
        if "until" not in request.query:
            await asyncio.get_running_loop().create_future()
        return response

    async def _wait(self, request: web.Request) -> web.StreamResponse:
        task = self._find_task(request)
        cursor = int(request.query["after"])
        response = await self._stream(request)
        ended = False
        while not ended:
            events = self._events.get(task.id, [])
            while cursor < len(events) and not ended:
                event, data = events[cursor]
                cursor += 1
                await response.write(f"id: {cursor}\nevent: {event}\ndata: {json.dumps(data)}\n\n".encode())
                self.streamed = cursor
                self._note()
                ended = data.get("state") in ("completed", "failed", "canceled", "rejected", "input_required")
            await asyncio.sleep(0.005)
        return response

    async def _terminal(self, request: web.Request) -> web.StreamResponse:
        def take(kind: int, payload: bytes) -> None:
            if kind == wire.KEYS:
                terminal.received += payload
            else:
                terminal.messages.append(json.loads(payload))
            self._note()

        found = self._find(request)
        if found.state not in (ProcessState.RUNNING, ProcessState.STARTING):
            raise NotReady(f"{found.name} does not run", agent=found.name, state=found.state.value)
        connection = await FramedConnection.accept(request, take)
        terminal = Terminal(dict(request.query), connection)
        self.terminals.append(terminal)
        told = {"type": "attached", "id": found.id, "name": found.name, "settings": self.settings}
        if self.one_screen:
            told["one_screen"] = request.query.get("one_screen") == "1"
        connection.send(wire.NEWS, json.dumps(told, separators=(",", ":")).encode())  # as the daemon writes it
        if self.first_news is not None:
            connection.send(wire.NEWS, json.dumps(self.first_news).encode())
        connection.send(wire.SCREEN, self.redraw)
        self._note()
        try:
            await connection.lost.wait()
        finally:
            self.terminals.remove(terminal) if len(self.terminals) > 1 else None
        return connection.answer

    @staticmethod
    async def _pass(terminal: Terminal, kind: int, payload: bytes) -> None:
        terminal.connection.send(kind, payload)
