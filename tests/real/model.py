"""A model endpoint that follows a script: the other end of the real agent programs in tests.

It speaks the Anthropic messages, OpenAI responses and chat completions, and Gemini APIs (`apis`), answers as the last
message of the user directs (`script` documents the directives), and logs every request: tests judge by what arrived.

    with Model() as model:                       # own thread and loop; model.url is http://127.0.0.1:PORT
        …
        (request,) = model.turns("nonce-17")     # what arrived about it

    python -m tests.real.model --port 0 --log FILE   # prints the URL, then serves until SIGINT or SIGTERM

Routes beside the APIs: ``GET /log[?after=N]`` is the JSON array of `Request` dictionaries, ``POST /release/NAME`` lets
go a ``[[hold:NAME]]`` (also one that comes later), ``GET /held`` lists the names that requests wait for now. The same
dictionaries are appended to the log file, one a line, when a request arrives and once more when it has ended (same `n`,
`outcome` set).
"""

import argparse
import asyncio
import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tests.real.apis import APIS, Api, Call, Encoder, ToolResult
from tests.real.script import Plan, ToolCall, plan_for, with_plan_file
from tests.support.daemon import PATIENCE_S

__all__ = ["Model", "Request", "read_log", "serve"]

CHUNK_CHARS = 40  # text of one streamed piece: small enough that a line comes in several
MAX_REQUEST_BYTES = 256 * 1024 * 1024  # programs send whole conversations
SIDE_TEXT = "Scripted title"
_ENDING = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request to the model, as logged.

    `n` counts from 1; `at` and `ended_at` are Unix seconds. `side`: kind of a side call, None for the conversation
    itself. `user` is the last text of the user, `users` all of them, `notes` what the program added under the user's
    role. `results` are tool results since `user`, `all_results` those of the whole conversation. `reply`: "text",
    "tool", "side" or "error". `outcome`: None while it runs, then "sent" or "aborted" (the program went away before
    the end).
    """

    n: int
    at: float
    api: str
    path: str
    model: str
    stream: bool
    side: str | None
    user: str
    users: tuple[str, ...]
    notes: tuple[str, ...]
    results: tuple[ToolResult, ...]
    all_results: tuple[ToolResult, ...]
    tools: tuple[str, ...]
    reply: str
    status: int
    outcome: str | None = None
    ended_at: float | None = None

    @property
    def is_side_call(self) -> bool:
        return self.side is not None


def read_log(path: Path) -> list[Request]:
    """Requests of a log file, in order of arrival, each in its latest state. A missing file is an empty log."""
    if not path.exists():
        return []
    latest: dict[int, Request] = {}
    for line in path.read_text().splitlines():
        request = _request_of(json.loads(line))
        latest[request.n] = request
    return list(latest.values())


def _request_of(data: dict[str, Any]) -> Request:
    results = {key: tuple(ToolResult(**result) for result in data[key]) for key in ("results", "all_results")}
    lists = {key: tuple(data[key]) for key in ("users", "notes", "tools")}
    return Request(**{**data, **lists, **results})


class _Log:
    """Requests in memory and, if asked, in a file. Safe to read from any thread."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._requests: dict[int, Request] = {}
        self._changed = threading.Condition()

    def put(self, request: Request) -> None:
        with self._changed:
            self._requests[request.n] = request
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps(asdict(request), ensure_ascii=False) + "\n")
            self._changed.notify_all()

    def requests(self) -> list[Request]:
        with self._changed:
            return list(self._requests.values())

    def wait_for(self, found: Callable[[list[Request]], bool], timeout: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: found(list(self._requests.values())), timeout)


class _Gates:
    """Named gates for ``[[hold:NAME]]``. Once released, a gate stays open."""

    def __init__(self) -> None:
        self._gates: dict[str, asyncio.Event] = {}
        self.waiting: Counter[str] = Counter()

    def release(self, name: str) -> None:
        self._gates.setdefault(name, asyncio.Event()).set()

    async def wait(self, name: str) -> None:
        self.waiting[name] += 1
        try:
            await self._gates.setdefault(name, asyncio.Event()).wait()
        finally:
            self.waiting[name] -= 1


class _Endpoint:
    """The aiohttp application."""

    def __init__(self, log: _Log, bodies: Path | None) -> None:
        self._log = log
        self._bodies = bodies
        self._count = 0
        self._failed: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.gates = _Gates()

    def app(self) -> web.Application:
        anthropic, responses, chat, gemini = APIS
        app = web.Application(client_max_size=MAX_REQUEST_BYTES)
        app.add_routes(
            [
                web.get("/", self._root),
                web.get("/log", self._get_log),
                web.get("/held", self._get_held),
                web.post("/release/{name}", self._release),
                web.get("/v1/models", self._models),
                web.post("/v1/messages", self._handler(anthropic)),
                web.post("/v1/messages/count_tokens", self._handler(anthropic)),
                web.post("/v1/responses", self._handler(responses)),
                web.post("/v1/chat/completions", self._handler(chat)),
                web.post("/{version:v1|v1beta}/models/{call}", self._handler(gemini)),
            ]
        )
        return app

    async def _root(self, _: web.Request) -> web.Response:
        return web.Response(text="scripted model\n")

    async def _get_log(self, request: web.Request) -> web.Response:
        after = int(request.query.get("after", "0"))
        return web.json_response([asdict(entry) for entry in self._log.requests() if entry.n > after])

    async def _get_held(self, _: web.Request) -> web.Response:
        return web.json_response(sorted(name for name, count in self.gates.waiting.items() if count))

    async def _release(self, request: web.Request) -> web.Response:
        self.gates.release(request.match_info["name"])
        return web.Response(status=204)

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "scripted", "object": "model"}], "models": []})

    def _handler(self, api: Api) -> Callable[[web.Request], Any]:
        async def handle(http: web.Request) -> web.StreamResponse:
            body = await http.json()
            call = api.read(http.path, body)
            plan = _plan(call)
            if any(tool.arguments for tool in plan.tools):
                plan = with_plan_file(plan, json.dumps(body))
            status = self._status(api, call, plan)
            tools = _next_tools(call, plan)
            reply = "side" if call.side else "error" if status != 200 else "tool" if tools else "text"
            self._count += 1
            entry = _entry(self._count, api, http.path, call, reply, status)
            self._log.put(entry)
            if self._bodies is not None:
                (self._bodies / f"{entry.n:04d}-{api.name}-{entry.side or entry.reply}.json").write_text(
                    json.dumps(body, indent=1)
                )
            outcome = "aborted"
            try:
                answer = await self._answer(http, api, call, plan, entry)
                outcome = "sent"
                return answer
            finally:
                self._log.put(replace(entry, outcome=outcome, ended_at=time.time()))

        return handle

    def _status(self, api: Api, call: Call, plan: Plan) -> int:
        """200, or the failure that the plan has for this request; counts the failures of a turn."""
        if call.side:
            return 200
        if (refusal := plan.refusal) is not None and (refusal.until is None or time.time() < refusal.until):
            return api.refused(refusal)[0]
        if plan.status is None:
            return 200
        turn = (api.name, call.users)
        if plan.failures is not None and self._failed[turn] >= plan.failures:
            return 200
        self._failed[turn] += 1
        return plan.status

    async def _answer(self, http: web.Request, api: Api, call: Call, plan: Plan, entry: Request) -> web.StreamResponse:
        encoder = api.encoder(call, entry.n)
        if call.side is not None:
            return await self._side(http, api, call, encoder)
        await self._wait_before(plan)
        if entry.status != 200:
            if plan.refusal is not None:
                status, body, headers = api.refused(plan.refusal)
                return web.json_response(body, status=status, headers=headers)
            message = f"scripted failure {entry.status}"
            return web.json_response(api.error(entry.status, message), status=entry.status)
        tools = _next_tools(call, plan)
        text = plan.text if not tools else plan.before if tools[0] is plan.tools[0] else ""
        if not call.stream:
            return web.json_response(encoder.whole(text, tools))
        return await self._stream(http, encoder, plan, text, tools)

    async def _wait_before(self, plan: Plan) -> None:
        if plan.hold is not None:
            await self.gates.wait(plan.hold)
        await asyncio.sleep(plan.delay)

    async def _wait_middle(self, plan: Plan) -> None:
        if plan.hold_mid is not None:
            await self.gates.wait(plan.hold_mid)
        await asyncio.sleep(plan.stall)

    async def _side(self, http: web.Request, api: Api, call: Call, encoder: Encoder) -> web.StreamResponse:
        if call.side == "count":
            return web.json_response({"totalTokens": 10} if api.name == "gemini" else {"input_tokens": 10})
        text = _side_text(call)
        if not call.stream:
            return web.json_response(encoder.whole(text, ()))
        return await self._stream(http, encoder, Plan(text=text), text, ())

    async def _stream(
        self, http: web.Request, encoder: Encoder, plan: Plan, text: str, tools: Sequence[ToolCall]
    ) -> web.StreamResponse:
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        if plan.used is not None:
            headers |= {
                "x-codex-primary-used-percent": str(plan.used),
                "x-codex-primary-window-minutes": "300",
                "x-codex-primary-reset-at": str(int(time.time()) + 3600),
            }
        response = web.StreamResponse(headers=headers)
        await response.prepare(http)
        await response.write(encoder.start())
        size = CHUNK_CHARS if plan.rate is None else max(1, round(plan.rate / 20))
        chunks = [text[start : start + size] for start in range(0, len(text), size)]
        middle = len(chunks) // 2
        for index, chunk in enumerate(chunks):
            if index == middle and not tools:
                await self._wait_middle(plan)
                if plan.cut and http.transport is not None:
                    http.transport.abort()
            await response.write(encoder.delta(chunk))
            if plan.rate is not None:
                await asyncio.sleep(len(chunk) / plan.rate)
        await response.write(encoder.finish(tools))
        await response.write_eof()
        return response


def _plan(call: Call) -> Plan:
    if call.side is not None:
        return Plan(text=SIDE_TEXT)
    try:
        return plan_for(call.user)
    except ValueError as error:
        return Plan(text=f"Scripted model: {error}.")


def _next_tools(call: Call, plan: Plan) -> Sequence[ToolCall]:
    """The tools to call in this request: those whose results are not back, one of them unless all go at once."""
    waiting = plan.tools[len(call.results) :] if call.side is None else ()
    return waiting if plan.at_once else waiting[:1]


def _side_text(call: Call) -> str:
    if call.side == "title":
        return json.dumps({"title": SIDE_TEXT}) if call.wants_json else SIDE_TEXT
    if call.side == "route":
        return json.dumps(
            {
                "reasoning": "scripted",
                "model_choice": "flash",
                "complexity_reasoning": "scripted",
                "complexity_score": 1,
            }
        )
    if call.side == "json":
        return "{}"
    return SIDE_TEXT


def _entry(n: int, api: Api, path: str, call: Call, reply: str, status: int) -> Request:
    return Request(
        n=n,
        at=time.time(),
        api=api.name,
        path=path,
        model=call.model,
        stream=call.stream,
        side=call.side,
        user=call.user,
        users=call.users,
        notes=call.notes,
        results=call.results,
        all_results=call.all_results,
        tools=call.tools,
        reply=reply,
        status=status,
    )


class Model:
    """The endpoint in a thread of its own. A context manager; also `start` and `stop`."""

    def __init__(self, *, port: int = 0, log_file: Path | None = None, bodies: Path | None = None) -> None:
        self._log = _Log(log_file)
        self._endpoint = _Endpoint(self._log, bodies)
        self._port = port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._started: Future[int] = Future()
        self._thread = threading.Thread(target=self._run, name="scripted-model", daemon=True)

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT``, without a trailing slash."""
        return f"http://127.0.0.1:{self._started.result(timeout=10)}"

    def start(self) -> Self:
        self._thread.start()
        self._started.result(timeout=10)
        return self

    def stop(self) -> None:
        assert self._loop is not None, "not started"
        assert self._stopping is not None
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def requests(self, *, after: int = 0, side: bool = False) -> list[Request]:
        """Requests with `n` above `after`, in order; side calls only if asked."""
        return [r for r in self._log.requests() if r.n > after and (side or not r.is_side_call)]

    def turns(self, containing: str) -> list[Request]:
        """Requests whose last user text contains this, no side calls: one a turn, one more for each tool or retry."""
        return [request for request in self.requests() if containing in request.user]

    def submissions(self, containing: str) -> int:
        """How many user messages containing this the model knows of: the largest number in any one request."""
        return max((sum(containing in text for text in request.users) for request in self.requests()), default=0)

    def wait_for(self, found: Callable[[list[Request]], bool], *, timeout: float = PATIENCE_S) -> None:
        """Waits until `found` is true of all requests. TimeoutError after `timeout` seconds."""
        if not self._log.wait_for(found, timeout):
            raise TimeoutError(f"not among {len(self._log.requests())} requests within {timeout} s")

    def wait_for_turn(self, containing: str, *, timeout: float = PATIENCE_S) -> Request:
        """The first request of the conversation whose last user text contains this."""
        self.wait_for(lambda _: bool(self.turns(containing)), timeout=timeout)
        return self.turns(containing)[0]

    def release(self, name: str) -> None:
        """Lets go every request, present or future, that waits for ``[[hold:NAME]]``."""
        assert self._loop is not None, "not started"
        self._loop.call_soon_threadsafe(self._endpoint.gates.release, name)

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        runner = web.AppRunner(self._endpoint.app(), access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", self._port)
            await site.start()
        except OSError as error:
            self._started.set_exception(error)
            return
        self._started.set_result(runner.addresses[0][1])
        try:
            await self._stopping.wait()
        finally:
            await runner.cleanup()


def serve(arguments: Sequence[str] | None = None) -> None:
    """The command line: serves until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m tests.real.model", description="Scripted model endpoint.")
    parser.add_argument("--port", type=int, default=0, help="0 chooses a free one")
    parser.add_argument("--log", type=Path, help="append requests to this JSONL file")
    parser.add_argument("--bodies", type=Path, help="keep every request's JSON body in this folder")
    options = parser.parse_args(arguments)
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)  # before the thread starts, which inherits the mask
    with Model(port=options.port, log_file=options.log, bodies=options.bodies) as model:
        print(model.url, flush=True)
        signal.sigwait(_ENDING)


if __name__ == "__main__":
    serve()
