"""What the history costs: the same turns on two daemons, one with it and one without; what is in the file for a task,
and how long a search of many tasks takes.

python -m bench history
"""

import asyncio
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.figures import daemon, milliseconds, report, sized
from bench.telemetry import OFF, cpu_s, pauses, turn
from synapsed.clock import SystemClock, iso
from synapsed.interfaces import NewEvent
from synapsed.model.events import TaskStatusChanged
from synapsed.model.task import Artifact, Message, Task, TaskState
from synapsed.parts.history.interface import HistoryFilter
from synapsed.parts.history.service import SqliteHistory
from synapsed.store.store import SqliteStore

TURNS = sized(150, 3)
TASKS = sized(3_000, 50)
SEARCHES = sized(20, 2)
RATIO = 1.1
SEARCH_MS = 100
LARGE = sized(9_000_000, 90_000)
WORDS = "It compares the times of two files, 議事録の要約, and the tests say why it fails. "


def main() -> None:
    turns()
    asyncio.run(tasks())


def turns() -> None:
    with ExitStack() as stack:
        daemons = {
            "without": stack.enter_context(daemon(f"{OFF}[history]\nenabled = false\n")),
            "with": stack.enter_context(daemon(OFF)),
        }
        for running in daemons.values():
            running.start_agent()
        took: dict[str, list[float]] = {name: [] for name in daemons}
        before = {name: cpu_s(running) for name, running in daemons.items()}
        for number in range(TURNS):
            for name, running in daemons.items():
                took[name].append(turn(running, number))
        assert daemons["with"].get("/control/history").json["complete"]
        used = {name: (cpu_s(running) - before[name]) / TURNS for name, running in daemons.items()}
    ratio = statistics.median(took["with"]) / statistics.median(took["without"])
    figure = ", ".join(f"{name} {milliseconds(took[name])} and {used[name] * 1e3:.1f} ms of CPU" for name in daemons)
    report(
        f"a turn, {TURNS} with and without history", f"{ratio:.2f} times: {figure}", f"≤ {RATIO}", held=ratio <= RATIO
    )


async def tasks() -> None:
    """In one process: an existing database is taken up, then searched; then an answer of megabytes."""
    with tempfile.TemporaryDirectory(prefix="synapsed-bench-") as folder:
        path = Path(folder) / "synapsed.db"
        store = await SqliteStore.open(path, clock=SystemClock())
        begin, cpu = time.perf_counter(), time.process_time()
        for number in range(TASKS):
            await commit(store, number, WORDS * 10)
        written, written_cpu = time.perf_counter() - begin, time.process_time() - cpu
        history = SqliteHistory(path, path.with_name("history.db"), store.events)
        begin, cpu = time.perf_counter(), time.process_time()
        await history.open()
        await caught_up(history)
        taken, cpu = time.perf_counter() - begin, time.process_time() - cpu
        texts = TASKS * len(f"task 00000: {WORDS * 10}".encode()) * 2
        size = sum(file.stat().st_size for file in path.parent.glob("history.db*"))
        print(
            f"      {TASKS} tasks of {texts // TASKS} bytes: {cpu / TASKS * 1e3:.2f} ms of CPU each, beside "
            f"{written_cpu / TASKS * 1e3:.2f} ms for their commits ({taken:.1f} s and {written:.1f} s); "
            f"{size / texts:.1f} times the bytes of the texts"
        )
        for what, query in (
            ("a rare word", f"{TASKS - 1:05}:"),
            ("one in all", "議事録の"),
            ("two characters", "議事"),
        ):
            times = []
            for _ in range(SEARCHES):
                begin = time.perf_counter()
                page = await history.search(HistoryFilter(query=query))
                times.append(time.perf_counter() - begin)
                assert page.items
            held = statistics.median(times) * 1e3 <= SEARCH_MS
            report(f"a search, {what}", milliseconds(times), f"p50 ≤ {SEARCH_MS} ms", held=held)
        quiet = await pauses(lambda: asyncio.sleep(0.2))
        await commit(store, TASKS, WORDS * (LARGE // len(WORDS)))
        held_up = await pauses(lambda: caught_up(history))
        await history.close()
        await store.close()
    report(
        f"the loop's work in one go while {LARGE >> 10} KiB are taken up",
        f"most {max(held_up) * 1e3:.2f} ms (without: {max(quiet) * 1e3:.2f} ms)",
        "never 5 ms",
        held=max(held_up) < 0.005,
    )


async def caught_up(history: SqliteHistory) -> None:
    while not (await history.search(HistoryFilter(limit=1))).complete:
        pass


async def commit(store: SqliteStore, number: int, text: str) -> None:
    now = iso(time.time())
    task = Task(
        agent_id=f"synapse-claude-{8100 + number % 50}",
        context_id=f"context-{number // 10}",
        message=Message.of(f"task {number:05}: {WORDS * 10}"),
        created_at=now,
        updated_at=now,
    )
    submitted = [NewEvent.of(task, TaskStatusChanged(state=TaskState.SUBMITTED))]
    await store.commit(tasks=[task], events=submitted)
    answer = {"status": TaskState.COMPLETED, "artifacts": [Artifact.answer(f"task {number:05}: {text}")]}
    done = task.model_copy(update=answer)
    await store.commit(tasks=[done], events=[NewEvent.of(done, TaskStatusChanged(state=TaskState.COMPLETED))])


if __name__ == "__main__":
    main()
