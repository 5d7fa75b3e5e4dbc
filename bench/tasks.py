"""A store of 100,000 tasks: the daemon's start on it, GetTask and ListTasks over HTTP, and getting rid of them.

python -m bench tasks        (`python bench/tasks.py --tasks N` takes another number)

Half of the tasks are of the agent that is asked, ten of each context; one in twenty failed, one in a hundred was
canceled. The daemon is asked over loopback TCP, one request after the other, then over 16 connections at once, when it
has made the history of all that, which it has not seen happen. The last figures are of the store alone: what commits
cost while nine of ten tasks are being removed.
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from aiohttp import ClientSession, TCPConnector

from bench.figures import environment, milliseconds, percentile, report, sized
from synapsed.clock import SystemClock, iso
from synapsed.config.config import Keep
from synapsed.config.paths import Paths
from synapsed.interfaces import NewEvent
from synapsed.model.events import AttentionChanged, TaskArtifactAdded, TaskStatusChanged
from synapsed.model.task import Artifact, Message, Task, TaskState
from synapsed.store.store import SqliteStore
from synapsed.supervisor.task_expiry import Retention
from tests.support.daemon import ANY_PORTS, Daemon

TASKS = sized(100_000, 500)
CONNECTIONS = 16
SECONDS = sized(4.0, 0.3)
SPAN_S = 80 * 86_400.0
"""Over which the tasks were done; what is older than 90 days would go."""

REQUESTS = sized(200, 5)
STARTS = sized(3, 1)
HEADERS = {"A2A-Version": "1.0"}


def a_task(number: int, count: int, agent_id: str, now: float) -> Task:
    at = iso(now - SPAN_S * (count - number) / count)
    state = TaskState.COMPLETED
    if number % 20 == 19:
        state = TaskState.CANCELED if number % 100 == 99 else TaskState.FAILED
    asked = number // 20 % 2 == 0
    return Task(
        agent_id=agent_id if asked else f"synapse-other-{8140 + number % 49}",
        context_id=f"context-{number // 10}",
        status=state,
        message=Message.of("Look at the failing test and say why it fails. " * 4),
        artifacts=[Artifact.answer("It compares the times of two files. " * 20)],
        created_at=at,
        updated_at=at,
    )


async def fill(path: Path, count: int, agent_id: str) -> list[Task]:
    """The tasks with three events each, and two of the inbox; those of the agent that is asked are given back."""
    store = await SqliteStore.open(path, clock=SystemClock())
    now, asked = time.time(), []
    for first in range(0, count, 500):
        tasks = [a_task(number, count, agent_id, now) for number in range(first, min(first + 500, count))]
        events: list[NewEvent] = []
        for task in tasks:
            begun, added = TaskStatusChanged(state=TaskState.WORKING), TaskArtifactAdded(artifact=task.artifacts[0])
            over = [AttentionChanged(id=task.id, state=state, kind="finished") for state in ("opened", "gone")]
            events += [NewEvent.of(task, data) for data in (begun, added, TaskStatusChanged(state=task.status))]
            events += [NewEvent.of(task, data) for data in over]
        await store.commit(tasks=tasks, events=events)
        asked += [task for task in tasks if task.agent_id == agent_id]
    await store.close()
    return asked


async def ask(http: ClientSession, method: str, params: dict[str, Any]) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    async with http.post("/agents/dummy/a2a", json=body, headers=HEADERS) as response:
        answer = await response.json()
    assert "result" in answer, answer
    return answer["result"]


async def asked_one_by_one(http: ClientSession, method: str, params: Callable[[], dict[str, Any]]) -> list[float]:
    took = []
    await ask(http, method, params())
    for _ in range(REQUESTS):
        begun = time.perf_counter()
        await ask(http, method, params())
        took.append(time.perf_counter() - begun)
    return took


async def asked_at_once(http: ClientSession, method: str, params: Callable[[], dict[str, Any]]) -> float:
    """Requests a second over all connections."""
    until = time.perf_counter() + SECONDS

    async def client() -> int:
        count = 0
        while time.perf_counter() < until:
            await ask(http, method, params())
            count += 1
        return count

    return sum(await asyncio.gather(*(client() for _ in range(CONNECTIONS)))) / SECONDS


async def over_http(daemon: Daemon, tasks: list[Task]) -> None:
    choose = random.Random(5)
    contexts = [task.context_id for task in tasks]
    middle = tasks[len(tasks) // 2]
    deep = f"{middle.updated_at}~{middle.id}"
    queries: list[tuple[str, str, Callable[[], dict[str, Any]]]] = [
        ("GetTask, any", "GetTask", lambda: {"id": choose.choice(tasks).id}),
        ("ListTasks, first page of 50", "ListTasks", dict),
        ("ListTasks, a page in the middle", "ListTasks", lambda: {"pageToken": deep}),
        ("ListTasks, failed ones", "ListTasks", lambda: {"status": "TASK_STATE_FAILED"}),
        ("ListTasks, rare state", "ListTasks", lambda: {"status": "TASK_STATE_CANCELED"}),
        ("ListTasks, of a context", "ListTasks", lambda: {"contextId": choose.choice(contexts)}),
        ("ListTasks, since yesterday", "ListTasks", lambda: {"statusTimestampAfter": iso(time.time() - 86_400)}),
    ]
    async with ClientSession(f"http://127.0.0.1:{daemon.port}", connector=TCPConnector(limit=CONNECTIONS)) as http:
        begun = time.perf_counter()
        while not (await asyncio.to_thread(daemon.get, "/control/history?limit=1")).json["complete"]:
            pass  # each question is waited with until the history has come further
        print(f"      the history is made in {time.perf_counter() - begun:.0f} s")
        total = (await ask(http, "ListTasks", {}))["totalSize"]
        assert total == len(tasks), total
        for what, method, params in queries:
            took = await asked_one_by_one(http, method, params)
            rate = await asked_at_once(http, method, params)
            figure = f"{milliseconds(took)}; {rate:,.0f}/s over {CONNECTIONS} connections"
            bar = 0.010 if method == "GetTask" else 0.050
            report(what, figure, f"p95 ≤ {bar * 1e3:.0f} ms", held=percentile(took, 0.95) <= bar)


def started(daemon: Daemon) -> float:
    """Seconds until it answers, the best of three; it runs afterwards."""
    took = []
    for number in range(STARTS):
        if number:
            assert daemon.ctl("shutdown").code == 0
        begun = time.perf_counter()
        daemon.start()
        took.append(time.perf_counter() - begun)
    return min(took)


async def removed(path: Path, count: int) -> None:
    """What commits cost beside the removal of most of the tasks, and without it."""
    store = await SqliteStore.open(path, clock=SystemClock())
    loop = asyncio.get_running_loop()

    async def commits(over: asyncio.Event) -> list[float]:
        took: list[float] = []
        for number in range(10**9):
            if over.is_set():
                return took
            task = a_task(number, count, "synapse-new-8139", time.time() + SPAN_S)
            begun = time.perf_counter()
            await store.commit(tasks=[task], events=[NewEvent.of(task, TaskStatusChanged(state=task.status))])
            took.append(time.perf_counter() - begun)
            await asyncio.sleep(0.002)
        raise AssertionError

    over = asyncio.Event()
    loop.call_later(SECONDS, over.set)
    alone = await commits(over)
    over = asyncio.Event()
    beside = asyncio.create_task(commits(over))
    retention = Retention(
        store, Keep(tasks=count // 10, days=0), inbox=lambda _: path.parent, clock=SystemClock(), timers=loop
    )
    size, begun = path.stat().st_size, time.perf_counter()
    tasks = await retention.tidy()
    took = time.perf_counter() - begun
    over.set()
    meanwhile = await beside
    await store.close()
    print(f"      {tasks:,} tasks removed in {took:.0f} s; {size >> 20} MiB before, {path.stat().st_size >> 20} after")
    figure = f"p50 {statistics.median(meanwhile) * 1e3:.2f}, p99 {percentile(meanwhile, 0.99) * 1e3:.1f} ms"
    quiet = f"p50 {statistics.median(alone) * 1e3:.2f}, p99 {percentile(alone, 0.99) * 1e3:.1f} ms"
    held = percentile(meanwhile, 0.99) <= percentile(alone, 0.99) + 0.020
    report("a commit while tasks are removed", f"{figure} (without: {quiet})", "p99 ≤ 20 ms more", held=held)


def main(count: int = TASKS) -> None:
    with tempfile.TemporaryDirectory(prefix="synapsed-bench-") as folder:
        daemon = Daemon(Path(folder), environ=environment(), config=ANY_PORTS)
        path = Paths.from_environ(daemon.env).database
        try:
            daemon.start()
            agent_id = daemon.start_agent()["id"]
            assert daemon.ctl("shutdown").code == 0
            empty = started(daemon)
            assert daemon.ctl("shutdown").code == 0
            tasks = asyncio.run(fill(path, count, agent_id))
            full = started(daemon)
            print(f"      {count:,} tasks, {path.stat().st_size >> 20} MiB")
            figure = f"{full * 1e3:.0f} ms (with none: {empty * 1e3:.0f} ms)"
            report("the daemon starts, until it answers", figure, "≤ 250 ms more", held=full <= empty + 0.25)
            asyncio.run(over_http(daemon, tasks))
        finally:
            daemon.end()
        asyncio.run(removed(path, count))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tasks", type=int, default=TASKS)
    main(arguments.parse_args().tasks)
