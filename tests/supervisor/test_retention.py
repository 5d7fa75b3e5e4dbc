"""The loop that forgets: when it looks, how it paces itself, and the files that go."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapsed.clock import iso
from synapsed.config.config import Keep
from synapsed.errors import StoreError
from synapsed.interfaces import NewEvent
from synapsed.model.events import TaskStatusChanged
from synapsed.model.task import Message, Task, TaskState
from synapsed.store.retention import Cut
from synapsed.store.store import SqliteStore
from synapsed.supervisor.task_expiry import DAY_S, EVERY_S, LEAST_AGE_S, STEP_PAUSE_S, Retention
from tests.fakes.clock import FakeClock
from tests.support.patience import PATIENCE_S

AGENT = "synapse-dummy-8190"
DEADLINE_S = PATIENCE_S


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "synapsed.db", clock=clock)
    yield store
    await store.close()


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


def retention(store: SqliteStore, clock: FakeClock, inbox: Path, *, tasks: int = 0, days: float = 0) -> Retention:
    return Retention(store, Keep(tasks=tasks, days=days), inbox=lambda _: inbox, clock=clock, timers=clock)


async def ended(store: SqliteStore, clock: FakeClock, task_id: str, *, ago: float) -> Task:
    at = iso(clock.wall() - ago)
    task = Task(
        id=task_id,
        agent_id=AGENT,
        status=TaskState.COMPLETED,
        message=Message.of("hi"),
        created_at=at,
        updated_at=at,
    )
    await store.commit(tasks=[task], events=[NewEvent(AGENT, TaskStatusChanged(state=task.status), task_id)])
    return task


async def ids(store: SqliteStore) -> list[str]:
    return await store.find_tasks("", 100)


async def until_it_looks_again(running: asyncio.Task[None], clock: FakeClock, pause: float) -> None:
    """Let it work, turning the clock over the pauses between its steps."""
    async with asyncio.timeout(DEADLINE_S):
        while pytest.approx(pause) not in (pending := clock.pending()):
            assert not running.done()
            assert pending in ([], [pytest.approx(STEP_PAUSE_S)]), "it paces itself"
            if pending:
                clock.advance(STEP_PAUSE_S)
            await asyncio.sleep(0.001)


async def test_it_looks_again_and_again(store: SqliteStore, clock: FakeClock, inbox: Path):
    await ended(store, clock, "old-1", ago=11 * DAY_S)
    await ended(store, clock, "new-1", ago=9 * DAY_S)
    running = asyncio.create_task(retention(store, clock, inbox, days=10).run())
    await until_it_looks_again(running, clock, EVERY_S)
    assert await ids(store) == ["new-1"]
    clock.advance(2 * DAY_S)
    await until_it_looks_again(running, clock, EVERY_S)
    assert await ids(store) == []
    running.cancel()


async def test_what_has_just_ended_stays(store: SqliteStore, clock: FakeClock, inbox: Path):
    for number in range(4):
        await ended(store, clock, f"task-{number}", ago=LEAST_AGE_S / 2 * number)
    running = asyncio.create_task(retention(store, clock, inbox, tasks=1).run())
    await until_it_looks_again(running, clock, EVERY_S)
    assert await ids(store) == ["task-0", "task-1", "task-2"]
    running.cancel()


async def test_without_bounds_everything_stays(store: SqliteStore, clock: FakeClock, inbox: Path):
    await ended(store, clock, "old-1", ago=10_000 * DAY_S)
    assert await retention(store, clock, inbox).tidy() == 0
    assert await ids(store) == ["old-1"]


async def test_files_go_with_their_task(store: SqliteStore, clock: FakeClock, inbox: Path):
    """But not those of another one whose id begins in the same way."""
    await ended(store, clock, "aaaaaaaa-1", ago=20 * DAY_S)
    await ended(store, clock, "bbbbbbbb-1", ago=20 * DAY_S)
    await ended(store, clock, "bbbbbbbb-2", ago=1)
    await ended(store, clock, "cccccccc-1", ago=1)
    for name in ("aaaaaaaa-a.txt", "aaaaaaaa-b.txt", "bbbbbbbb-a.txt", "cccccccc-a.txt", "person's own.txt"):
        (inbox / name).write_text("x")
    running = asyncio.create_task(retention(store, clock, inbox, days=10).run())
    await until_it_looks_again(running, clock, EVERY_S)
    running.cancel()
    assert await ids(store) == ["bbbbbbbb-2", "cccccccc-1"]
    assert sorted(path.name for path in inbox.iterdir()) == ["bbbbbbbb-a.txt", "cccccccc-a.txt", "person's own.txt"]


async def test_a_store_that_refuses_is_asked_again_later(clock: FakeClock, inbox: Path):
    class Refusing:
        asked = 0

        async def find_cut(self, *, keep: int, oldest: str | None, newest: str) -> Cut | None:
            self.asked += 1
            raise StoreError("no", reason="full" if self.asked < 3 else "closed")

    store = Refusing()
    running = asyncio.create_task(retention(store, clock, inbox, days=1).run())  # type: ignore[arg-type]
    for times in (1, 2):
        await until_it_looks_again(running, clock, EVERY_S)
        assert store.asked == times
        clock.advance(EVERY_S)
        await asyncio.sleep(0)
    await asyncio.wait_for(running, DEADLINE_S)
