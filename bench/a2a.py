"""SendMessage and GetTask per second, next to the reference servers of A2A's SDKs, in one run.

python -m bench a2a        (needs the extra `bench`; `python bench/a2a.py` takes --seconds and --connections)

Each server runs alone in a process on one core, the load generator on the other. All play the same agent: a task is
submitted, works, answers, completes; SendMessage blocks until then. `reference` is the Python SDK's server as people
install it, with uvloop and httptools; `javascript` is the JavaScript SDK's on express, which `python -m
tests.clients.programs install` installs; both keep everything in memory. `synapsed` has its API, rights and A2A on a
control that does so, too; `synapsed+store` has the real SQLite store behind it.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import psutil

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)  # not this directory: this file is not the SDK `a2a`

from bench.figures import report, sized
from tests.clients.programs import REFERENCE

SERVERS = ("reference", "javascript", "synapsed", "synapsed+store")
BARS = {"SendMessage": 2.5, "GetTask": 2.0}
"""How many times the Python reference server's calls, with the store."""
JAVASCRIPT = Path(__file__).parent / "javascript" / "server.mjs"


# --- the servers -----------------------------------------------------------------------------------------------------


async def serve_synapsed(home: Path, durable: bool) -> None:
    from contextlib import AsyncExitStack

    from synapsed.api.connection_limits import ConnectionLimiter, ConnectionLimits
    from synapsed.api.context import ApiContext
    from synapsed.api.security import Security
    from synapsed.api.servers import ApiServers
    from synapsed.clock import SystemClock, iso
    from synapsed.config.paths import Paths
    from synapsed.errors import TaskNotFound
    from synapsed.interfaces import NewEvent, SendRequest
    from synapsed.kernel import Parts
    from synapsed.model.events import Event, TaskArtifactAdded, TaskStatusChanged
    from synapsed.model.task import Artifact, Task, TaskState
    from synapsed.parts.a2a.face import FACE as A2A
    from synapsed.parts.attention.face import FACE as ATTENTION
    from synapsed.parts.loading import config_model
    from synapsed.process.collector import collecting
    from synapsed.store.store import SqliteStore
    from tests.fakes.control import FakeControl, FakeTasks
    from tests.fakes.store import MemoryStore
    from tests.support.kernels import kernel_of

    class QuickStore(MemoryStore):
        """Without the copies by way of JSON."""

        async def commit(self, *, events: Sequence[NewEvent] = (), tasks: Sequence[Task] = (), **_: Any) -> list[Event]:
            self._tasks.update({task.id: task for task in tasks})
            return self._append(events)

        async def task(self, task_id: str) -> Task | None:
            return self._tasks.get(task_id)

    class BenchTasks(FakeTasks):
        def __init__(self, fake: FakeControl) -> None:
            super().__init__(fake)
            self.running: set[asyncio.Task[None]] = set()

        async def send(self, agent_id_: str, request: SendRequest) -> Task:
            now = iso(time.time())
            task = Task(agent_id=agent_id_, message=request.message, created_at=now, updated_at=now)
            # As a ready agent's turn: it is taken and begun in one commit.
            task = await self.move(task, TaskState.WORKING, TaskStatusChanged(state=TaskState.SUBMITTED))
            running = asyncio.create_task(self.turn(task))
            self.running.add(running)
            running.add_done_callback(self.running.discard)
            return task

        async def turn(self, task: Task) -> None:
            answer = Artifact.answer(f"echo: {task.message.text}")
            task = task.model_copy(update={"artifacts": [answer], "exact": True})
            await self.move(task, TaskState.COMPLETED, TaskArtifactAdded(artifact=answer))

        async def move(self, task: Task, state: TaskState, *before: Any) -> Task:
            task = task.model_copy(update={"status": state, "updated_at": iso(time.time())})
            new = [NewEvent.of(task, data) for data in (*before, TaskStatusChanged(state=state))]
            await self._fake.store.commit(events=new, tasks=[task])
            return task

        async def find(self, task_id: str, agent_id: str | None = None, visible_to: str | None = None) -> Task:
            task = await self._fake.store.task(task_id)
            if task is None:
                raise TaskNotFound("no such task", task_id=task_id)
            return task

    class BenchControl(FakeControl):
        def __init__(self, store: Any) -> None:
            super().__init__()
            self.store = store
            self.tasks = BenchTasks(self)

    async with AsyncExitStack() as stack:
        stack.enter_context(collecting(asyncio.get_running_loop()))  # as the daemon does
        store = await SqliteStore.open(home / "bench.db", clock=SystemClock()) if durable else QuickStore()
        stack.push_async_callback(store.close)
        control = BenchControl(store)
        control.add("dummy")
        paths = Paths.from_environ({"SYNAPSED_HOME": str(home), "HOME": str(home)})
        kernel = kernel_of(
            control=control,
            store=store,
            clock=SystemClock(),
            config=config_model().model_validate({"a2a": {"push": {"enabled": False}}}),
            paths=paths,
            timers=asyncio.get_running_loop(),
        )
        parts = Parts((ATTENTION, A2A), kernel, stack)
        for face in (ATTENTION, A2A):
            await parts.check(face.name)
        parts.started()
        context = ApiContext(
            control=control,
            faces=(A2A,),
            parts=parts,
            security=Security(directory=control.directory, token="bench"),
            clock=SystemClock(),
            paths=paths,
            version="0",
        )
        servers = ApiServers(context, ConnectionLimiter(ConnectionLimits.of(1024, proxied=False)))
        stack.push_async_callback(servers.close)
        listen = await servers.start_main("127.0.0.1", 0)
        print(listen.rpartition(":")[2], "/agents/dummy/a2a", flush=True)
        await asyncio.Event().wait()


async def serve_reference() -> None:
    import logging
    import socket

    import uvicorn
    from a2a.helpers import new_task_from_user_message, new_text_part
    from a2a.server.agent_execution import AgentExecutor, RequestContext
    from a2a.server.events import EventQueue
    from a2a.server.request_handlers import DefaultRequestHandler
    from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
    from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
    from a2a.types import AgentCapabilities, AgentCard, AgentInterface
    from starlette.applications import Starlette

    logging.disable(logging.CRITICAL)

    class Echo(AgentExecutor):
        async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
            assert context.message is not None
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
            updater = TaskUpdater(event_queue, task.id, task.context_id)
            await updater.start_work()
            await updater.add_artifact([new_text_part(f"echo: {context.get_user_input()}")], name="output")
            await updater.complete()

        async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
            raise NotImplementedError

    card = AgentCard(
        name="echo",
        version="1",
        supported_interfaces=[AgentInterface(url="http://x/", protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=True),
    )
    handler = DefaultRequestHandler(Echo(), InMemoryTaskStore(), card)
    app = Starlette(routes=create_jsonrpc_routes(handler, "/a2a"))
    # asyncio sets TCP_NODELAY only where the protocol is named; without it each answer waits 40 ms for an ACK.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.bind(("127.0.0.1", 0))
    sock.listen()
    print(sock.getsockname()[1], "/a2a", flush=True)
    config = uvicorn.Config(app, http="httptools", log_level="critical", access_log=False)
    await uvicorn.Server(config).serve([sock])


# --- the load --------------------------------------------------------------------------------------------------------


class Client(asyncio.Protocol):
    """One keep-alive connection; a request at a time, as bytes made before."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._waiter: asyncio.Future[bytes] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        lowered = bytes(self._buffer[:head]).lower()
        start = lowered.index(b"content-length:") + 15
        end = lowered.find(b"\r\n", start)
        length = int(lowered[start : end if end > 0 else head])
        if len(self._buffer) >= head + 4 + length and self._waiter is not None:
            body = bytes(self._buffer[head + 4 : head + 4 + length])
            del self._buffer[: head + 4 + length]
            self._waiter.set_result(body)

    async def post(self, request: bytes) -> bytes:
        assert self._transport is not None
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._waiter


def request(path: str, method: str, params: dict[str, Any]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


NUMBER = b"0" * 12
"""Stands for a message's id: the same message again is the same task."""

type Figures = dict[str, tuple[float, float, float]]
"""Per method: calls per second, p99 in milliseconds, the server's CPU time per call in microseconds."""


async def measure(port: int, path: str, pid: int, connections: int, seconds: float) -> Figures:
    """Every answer is looked at."""
    server = psutil.Process(pid)
    loop = asyncio.get_running_loop()
    clients = [(await loop.create_connection(Client, "127.0.0.1", port))[1] for _ in range(connections)]
    message = {"messageId": NUMBER.decode(), "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    send = request(path, "SendMessage", {"message": message, "configuration": {}})
    numbers = count(1)
    first = json.loads(await clients[0].post(send))
    task_id = first["result"]["task"]["id"]
    get = request(path, "GetTask", {"id": task_id})
    figures = {}
    for method, raw in (("SendMessage", send), ("GetTask", get)):
        for warm in (True, False):
            took: list[float] = []
            until = time.perf_counter() + (min(1.0, seconds / 3) if warm else seconds)

            async def run(client: Client, raw: bytes = raw, until: float = until, took: list[float] = took) -> None:
                while (began := time.perf_counter()) < until:
                    answer = await client.post(raw.replace(NUMBER, b"%012d" % next(numbers)))
                    took.append(time.perf_counter() - began)
                    assert b"TASK_STATE_COMPLETED" in answer, answer
                    assert b"echo: hello" in answer, answer

            began, cpu = time.perf_counter(), sum(server.cpu_times()[:2])
            await asyncio.gather(*(run(client) for client in clients))
            elapsed, cpu = time.perf_counter() - began, sum(server.cpu_times()[:2]) - cpu
        took.sort()
        figures[method] = (len(took) / elapsed, took[int(len(took) * 0.99)] * 1000, cpu / len(took) * 1e6)
    return figures


def run_server(name: str, home: Path, args: argparse.Namespace) -> Figures:
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    try:
        if len(cores) > 1:
            os.sched_setaffinity(0, cores[:1])  # the server's, which takes it over
        with _started(name, home) as server:
            if len(cores) > 1:
                os.sched_setaffinity(0, cores[1:])
            try:
                assert server.stdout is not None
                port, path = server.stdout.readline().split()
                return asyncio.run(measure(int(port), path, server.pid, args.connections, args.seconds))
            finally:
                server.terminate()
    finally:
        if cores:
            os.sched_setaffinity(0, cores)


def _started(name: str, home: Path) -> "subprocess.Popen[str]":
    if name != "javascript":
        command = [sys.executable, __file__, "--serve", name, "--home", str(home)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with JAVASCRIPT.open() as script:  # from stdin, it finds modules in the folder where it runs
        command = ["node", "--input-type=module"]
        return subprocess.Popen(command, stdin=script, stdout=subprocess.PIPE, text=True, cwd=REFERENCE.folder)


def _servers() -> list[str]:
    """Those that can be measured here."""
    missing = REFERENCE.missing() if shutil.which("node") else "node is not on PATH"
    if missing is None:
        return list(SERVERS)
    print(f"      the JavaScript reference server is NOT measured: {missing}", flush=True)
    return [name for name in SERVERS if name != "javascript"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=sized(5.0, 0.3))
    parser.add_argument("--connections", type=int, default=sized(16, 2))
    parser.add_argument("--serve", choices=SERVERS, help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(None if __name__ == "__main__" else [])
    if args.serve:
        if args.serve == "reference":
            import uvloop

            uvloop.run(serve_reference())
        else:
            asyncio.run(serve_synapsed(args.home, "store" in args.serve))
        return
    figures = {}
    for name in (servers := _servers()):
        with tempfile.TemporaryDirectory() as home:
            figures[name] = run_server(name, Path(home), args)
    for method, bar in BARS.items():
        base = figures["reference"][method][0]
        for name in servers:
            rate, p99, cpu = figures[name][method]
            print(f"      {method:12} {name:16} {rate:6.0f}/s  p99 {p99:6.1f} ms  {cpu:6.0f} us of CPU a call")
        rate = figures["synapsed+store"][method][0]
        report(
            f"{method}, {args.connections} connections, with the store",
            f"{rate:.0f}/s; reference {base:.0f}/s: {rate / base:.1f} x",
            f"≥ {bar:g} x the reference server",
            held=rate >= bar * base,
        )


if __name__ == "__main__":
    main()
