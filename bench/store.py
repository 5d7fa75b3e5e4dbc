"""Figures of the store: commits, reads, pages and fan-out. Run: python bench/store.py [--tasks N] [--dir D]"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.figures import sized
from synapsed.clock import SystemClock, iso
from synapsed.interfaces import NewEvent, TaskFilter, task_cursor
from synapsed.model.events import TaskArtifactAdded, TaskStatusChanged
from synapsed.model.task import Artifact, Message, Task, TaskState
from synapsed.store.store import SqliteStore

COMMITTERS = 16
FOLLOWERS = sized(1000, 20)
AGENTS = 50


def a_task(number: int) -> Task:
    now = iso(time.time())
    return Task(
        agent_id=f"synapse-claude-{8100 + number % AGENTS}",
        context_id=f"context-{number // 10}",
        status=list(TaskState)[number % len(TaskState)],
        message=Message.of("Look at the failing test and say why it fails. " * 4),
        artifacts=[Artifact.answer("It compares the times of two files. " * 20)],
        created_at=now,
        updated_at=iso(1_700_000_000 + number),
    )


def its_events(task: Task) -> list[NewEvent]:
    return [
        NewEvent.of(task, TaskStatusChanged(state=task.status)),
        NewEvent.of(task, TaskArtifactAdded(artifact=task.artifacts[0])),
    ]


def tell(what: str, figure: str) -> None:
    print(f"{what:58} {figure}", flush=True)


@contextmanager
def loop_lag() -> Iterator[list[float]]:
    """How late, in seconds, the event loop runs what is due each millisecond."""
    late: list[float] = []

    async def watch() -> None:
        while True:
            due = time.perf_counter() + 0.001
            await asyncio.sleep(0.001)
            late.append(time.perf_counter() - due)

    task = asyncio.ensure_future(watch())
    yield late
    task.cancel()


def p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


async def commits(store: SqliteStore, committers: int, count: int) -> None:
    made = [(task, its_events(task)) for task in map(a_task, range(count))]
    waiting = iter(made)
    took: list[float] = []

    async def committer() -> None:
        for task, events in waiting:
            begun = time.perf_counter()
            await store.commit(tasks=[task], events=events)
            took.append(time.perf_counter() - begun)

    begun = time.perf_counter()
    with loop_lag() as late:
        await asyncio.gather(*(committer() for _ in range(committers)))
    tell(
        f"commits, task + 2 events, {committers} at once",
        f"{count / (time.perf_counter() - begun):,.0f}/s, p50 {statistics.median(took) * 1e3:.2f} ms, "
        f"p99 {p99(took) * 1e3:.1f} ms; loop p99 {p99(late) * 1e3:.1f} ms late",
    )


async def fill(store: SqliteStore, count: int) -> list[str]:
    ids = []
    for first in range(0, count, 500):
        tasks = [a_task(number) for number in range(first, min(first + 500, count))]
        ids += [task.id for task in tasks]
        await store.commit(tasks=tasks, events=[event for task in tasks for event in its_events(task)])
    return ids


async def reads(store: SqliteStore, ids: list[str]) -> None:
    for what, some in (("just written (memory)", ids[-100:]), ("old (database)", ids[:: max(len(ids) // 5000, 1)])):
        begun, count = time.perf_counter(), 0
        while time.perf_counter() < begun + 1:
            await asyncio.gather(*(store.task(some[(count + n) % len(some)]) for n in range(COMMITTERS)))
            count += COMMITTERS
        tell(f"one task, {what}, {COMMITTERS} at once", f"{count / (time.perf_counter() - begun):,.0f}/s")


async def pages(store: SqliteStore) -> None:
    deep = (await store.tasks(TaskFilter(limit=5000)))[0][-1]
    some = [
        ("all", TaskFilter()),
        ("all, deep", TaskFilter(before=task_cursor(deep))),
        ("of one agent", TaskFilter(agent_id="synapse-claude-8101")),
        ("of one context", TaskFilter(context_id="context-7")),
        ("working", TaskFilter(states=frozenset({TaskState.WORKING}))),
    ]
    for what, which in some:
        took = []
        for _ in range(20):
            begun = time.perf_counter()
            await store.tasks(which)
            took.append(time.perf_counter() - begun)
        total = (await store.tasks(which))[1]
        tell(f"a page of 50, {what}, of {total:,}", f"p50 {statistics.median(took) * 1e3:.1f} ms")
    begun = time.perf_counter()
    found = await store.open_tasks()
    tell(f"open tasks ({len(found):,})", f"{(time.perf_counter() - begun) * 1e3:.0f} ms")


async def fan_out(store: SqliteStore) -> None:
    task = a_task(0)
    delays: list[float] = []
    heard = 0
    sent = 0.0
    all_heard = asyncio.Event()

    async def follower() -> None:
        nonlocal heard
        async with aclosing(store.events.follow(store.events.last_id, task_id=task.id)) as events:
            async for _ in events:
                delays.append(time.perf_counter() - sent)
                heard += 1
                if heard % FOLLOWERS == 0:
                    all_heard.set()

    followers = [asyncio.ensure_future(follower()) for _ in range(FOLLOWERS)]
    others = a_task(1)
    await asyncio.sleep(0)
    for _ in range(50):
        await store.commit(events=its_events(others))
        all_heard.clear()
        sent = time.perf_counter()
        await store.commit(events=its_events(task)[:1])
        await all_heard.wait()
    tell(
        f"event to {FOLLOWERS:,} followers of one task, from commit()",
        f"p50 {statistics.median(delays) * 1e3:.1f} ms, p99 {p99(delays) * 1e3:.1f} ms",
    )
    begun, count = time.perf_counter(), sized(2000, 50)
    await asyncio.gather(*(store.commit(events=its_events(others)[:1]) for _ in range(count)))
    tell("commits of others meanwhile", f"{count / (time.perf_counter() - begun):,.0f}/s")
    for waiting in followers:
        waiting.cancel()
    await asyncio.gather(*followers, return_exceptions=True)


async def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tasks", type=int, default=sized(100_000, 500))
    arguments.add_argument("--dir", help="where to make the database (default: a temporary directory)")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=given.dir) as directory:
        path = Path(directory) / "bench.db"
        store = await SqliteStore.open(path, clock=SystemClock())
        await commits(store, COMMITTERS, sized(20_000, 200))
        await commits(store, 1, sized(5_000, 50))
        await store.close()
        path.unlink()
        store = await SqliteStore.open(path, clock=SystemClock())
        ids = await fill(store, given.tasks)
        tell(f"{given.tasks:,} tasks", f"{path.stat().st_size / 2**20:.0f} MiB")
        await reads(store, ids)
        await pages(store)
        await fan_out(store)
        await store.close()
        begun = time.perf_counter()
        store = await SqliteStore.open(path, clock=SystemClock())
        tell("open again", f"{(time.perf_counter() - begun) * 1e3:.1f} ms")
        await store.close()


if __name__ == "__main__":
    asyncio.run(main())
