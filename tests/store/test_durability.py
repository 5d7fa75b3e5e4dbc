"""What was acknowledged is there after kill -9, and nothing half."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from synapsed.interfaces import TaskFilter
from tests.store.conftest import OpenStore
from tests.support.gated import first_of

COMMITTER = """
import asyncio, sys
from pathlib import Path
from synapsed.clock import SystemClock
from synapsed.store.store import SqliteStore
from tests.store.samples import a_task, news

async def main():
    store = await SqliteStore.open(Path(sys.argv[1]), clock=SystemClock())
    async def work(worker):
        number = 0
        while True:
            number += 1
            task = a_task(number, context_id=f"{worker}")
            events = await store.commit(tasks=[task], events=[news(task.id, reason="x" * 500), news(task.id)])
            print(task.id, events[0].id, events[1].id, flush=True)
    await asyncio.gather(*(work(worker) for worker in range(4)))

asyncio.run(main())
"""
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("seed", first_of(range(4)))
async def test_what_was_acknowledged_outlives_kill_9(open_store: OpenStore, tmp_path: Path, seed: int) -> None:
    path = tmp_path / "db"
    chance = random.Random(seed)
    acknowledged: list[tuple[str, int, int]] = []
    for _ in range(3):  # lives on one database
        acknowledged += await asyncio.to_thread(one_life, path, chance.randrange(1, 400))
    store = await open_store(path)
    events = {event.id: event.task_id for event in await store.events.read(0, limit=100_000)}
    tasks, total = await store.tasks(TaskFilter(limit=100_000))
    known = {task.id for task in tasks}
    assert list(events) == list(range(1, store.events.last_id + 1))
    for task_id, first, second in acknowledged:
        assert task_id in known
        assert events[first] == events[second] == task_id
    assert total == len(events) / 2  # each commit whole or not at all
    assert set(events.values()) == known


def one_life(path: Path, lines: int) -> list[tuple[str, int, int]]:
    """Commit until `lines` were acknowledged, and be killed; what was acknowledged, to the last whole line."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMMITTER, path], cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."}
    )
    with process:
        assert process.stdout is not None
        read = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        read += process.stdout.readlines()
    found = [line.decode().split() for line in read if line.endswith(b"\n")]
    return [(task_id, int(first), int(second)) for task_id, first, second in found]
