"""What is too old, or too much, goes: step by step, with all that is its own, and whoever resumes there is told."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapsed.clock import iso
from synapsed.interfaces import NewEvent, TaskFilter
from synapsed.model.agent import Activity
from synapsed.model.events import ActivityChanged
from synapsed.model.records import TurnRecord
from synapsed.model.task import Task, TaskState
from synapsed.parts.a2a.push.push_record import PushRecord
from synapsed.parts.a2a.push.push_table import PushTable
from synapsed.store import retention
from synapsed.store.retention import STEP_ROWS, Cut
from synapsed.store.store import SqliteStore
from tests.store.conftest import OpenStore
from tests.store.samples import Hands, a_task, news
from tests.store.test_database import plans_of

LATER = iso(10_000)
AGENT = "synapse-claude-8100"


async def cut(store: SqliteStore, keep: int = 0, oldest: str | None = None, newest: str = LATER) -> Cut | None:
    return await store.find_cut(keep=keep, oldest=oldest, newest=newest)


async def prune(store: SqliteStore, found: Cut) -> int:
    """All that is to go; the number of steps."""
    for steps in range(10_000):
        if (await store.prune(found)).rows == 0:
            return steps
    raise AssertionError("it never ends")


async def numbers(store: SqliteStore) -> set[int]:
    """Of the tasks that are there (see `a_task`)."""
    tasks, total = await store.tasks(TaskFilter(limit=10_000))
    assert total == len(tasks)
    return {int(task.message.text.removeprefix("do ")) for task in tasks}


async def fill(
    store: SqliteStore, count: int, *, state: TaskState = TaskState.COMPLETED, events: int = 2
) -> list[Task]:
    tasks = [a_task(number, status=state) for number in range(count)]
    for task in tasks:
        await store.commit(tasks=[task], events=[news(task.id) for _ in range(events)])
    return tasks


async def test_too_many(open_store: OpenStore):
    store = await open_store()
    await fill(store, 10)
    assert await cut(store, keep=10) is None
    found = await cut(store, keep=4)
    assert found is not None
    await prune(store, found)
    assert await numbers(store) == {6, 7, 8, 9}
    assert await cut(store, keep=4) is None


async def test_too_old(open_store: OpenStore):
    store = await open_store()
    await fill(store, 10)
    found = await cut(store, oldest=iso(7))
    assert found is not None
    await prune(store, found)
    assert await numbers(store) == {7, 8, 9}


async def test_both_and_what_is_young_stays(open_store: OpenStore):
    store = await open_store()
    await fill(store, 10)
    assert await cut(store) is None
    assert await cut(store, keep=4, oldest=iso(8)) == Cut(iso(8))
    found = await cut(store, keep=1, oldest=iso(8), newest=iso(3))
    assert found == Cut(iso(3))
    await prune(store, found)
    assert await numbers(store) == set(range(3, 10))


async def test_what_is_not_over_stays(open_store: OpenStore):
    store = await open_store()
    await fill(store, 3)
    waiting = a_task(0, status=TaskState.INPUT_REQUIRED)
    await store.commit(tasks=[waiting], events=[news(waiting.id)])
    await prune(store, Cut(LATER))
    assert [task.id for task in await store.open_tasks()] == [waiting.id]
    assert [event.task_id for event in await stored_events(store)] == [waiting.id]


async def test_what_receivers_are_not_told_yet_stays(open_store: OpenStore):
    store = await open_store()
    told, untold = await fill(store, 2)
    for task, state in ((told, "done"), (untold, "active")):
        record = PushRecord(task_id=task.id, id="p", agent_id=AGENT, url="https://x", cursor=0)
        await PushTable(store).put(record.model_copy(update={"state": state}))
    await prune(store, Cut(LATER))
    assert await numbers(store) == {1}
    assert await PushTable(store).of_task(told.id) == []
    await PushTable(store).delete(untold.id, "p")
    await prune(store, Cut(LATER))
    assert await numbers(store) == set()


async def stored_events(store: SqliteStore, **which: str):
    """From the database, not from memory."""
    await store.close()
    again = await SqliteStore.open(store.database._path, clock=Hands())
    try:
        return await again.events.read(0, **which)
    finally:
        await again.close()


async def test_nothing_of_a_task_stays(open_store: OpenStore):
    store = await open_store()
    old, new = await fill(store, 2)
    await store.commit(turn=TurnRecord(task_id=old.id, launch_id="l"))
    await prune(store, Cut(iso(0), "~"))
    assert await store.task(old.id) is None, "not from memory either"
    assert await store.task(new.id) == new
    assert await store.turns() == []
    assert {event.task_id for event in await stored_events(store)} == {new.id}


async def test_what_the_log_has_of_agents_goes_as_far_back_as_the_tasks(open_store: OpenStore, hands: Hands):
    store = await open_store()
    for second in range(10):
        hands.now = second
        await store.commit(events=[NewEvent(AGENT, ActivityChanged(activity=Activity.READY, evidence=str(second)))])
    await prune(store, Cut(iso(6)))
    assert [event.at for event in await stored_events(store)] == [6, 7, 8, 9]


async def test_steps_are_small(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(retention, "STEP_S", 3600.0)
    store = await open_store()
    await fill(store, 3, events=STEP_ROWS)
    sizes = []
    while (step := await store.prune(Cut(LATER))).rows:
        sizes.append(step.rows)
    assert max(sizes) == STEP_ROWS
    assert sum(sizes) == 3 * STEP_ROWS + 3
    monkeypatch.setattr(retention, "STEP_S", 0.0)
    await fill(store, 3)
    step = await store.prune(Cut(LATER))
    assert step.rows == 1, "time is up: but something is done in each step"
    await prune(store, Cut(LATER))
    assert await numbers(store) == set()


async def test_a_kill_between_two_steps_costs_nothing(open_store: OpenStore):
    store = await open_store()
    await fill(store, 3, events=STEP_ROWS)
    await store.prune(Cut(LATER))
    await store.close()
    store = await open_store()
    await prune(store, Cut(LATER))
    assert await numbers(store) == set()


async def test_who_resumes_where_something_is_missing_is_told(open_store: OpenStore):
    store = await open_store()
    old, _ = await fill(store, 2)  # events 1 to 4
    other = a_task(1, agent_id="synapse-codex-8120")
    await store.commit(tasks=[other], events=[news(other.id, other.agent_id)])  # 5
    await prune(store, Cut(iso(0), "~"))
    assert store.events.gap(0) is None, "all of it is still in memory"
    await store.close()
    store = await open_store()
    assert store.events.gap(0) == 2
    assert store.events.gap(1) == 2
    assert store.events.gap(2) is None
    assert store.events.gap(0, agent_id=AGENT) == 2
    assert store.events.gap(0, agent_id=other.agent_id) is None
    assert [event.id for event in await store.events.read(0)] == [3, 4, 5]
    assert store.events.last_id == 5
    assert old.id not in {event.task_id for event in await store.events.read(0)}


async def test_ids_are_never_given_again(open_store: OpenStore):
    store = await open_store()
    await fill(store, 2)
    await prune(store, Cut(LATER))
    await store.close()
    store = await open_store()
    (event,) = await store.commit(events=[news()])
    assert event.id == 5


async def test_space_is_given_back(open_store: OpenStore, tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(retention, "SPARE_PAGES", 16)
    path = tmp_path / "state" / "synapsed.db"
    store = await open_store(path)
    for number in range(50):
        task = a_task(number, status=TaskState.COMPLETED, metadata={"filler": "x" * 20_000})
        await store.commit(tasks=[task], events=[news(task.id)])
    await prune(store, Cut(LATER))
    steps = 1
    while await store.shrink(32):
        steps += 1
    await store.close()
    assert steps > 3
    with closing(sqlite3.connect(path)) as connection:
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
    assert free <= 16
    assert pages < 100, "some 250 before"


async def test_what_is_looked_for_is_found_by_an_index(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(retention, "STEP_S", 3600.0)  # one step has to come to everything, however slow the machine
    store = await open_store()
    for plan in await plans_of(store, lambda store: cut(store, keep=5)):
        assert "COVERING INDEX tasks_recent" in plan
        assert "TEMP B-TREE" not in plan
    with closing(sqlite3.connect(store.database._path)) as connection:
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        task = a_task(status=TaskState.COMPLETED)
        await store.commit(tasks=[task], events=[news(task.id), news()])
        retention.prune(connection, Cut(LATER))
        connection.set_trace_callback(None)
        plans = {
            statement: " ".join(str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}"))
            for statement in statements
            if statement.startswith(("SELECT", "DELETE"))
        }
        connection.rollback()
    assert any("tasks_recent" in plan for plan in plans.values())
    assert any("events_task" in plan for plan in plans.values())
    assert any("events_outside" in plan for plan in plans.values())
    for statement, plan in plans.items():
        assert "SCAN" not in plan or "events_outside" in plan, (statement, plan)
        assert "TEMP B-TREE" not in plan, (statement, plan)
    for plan in await plans_of(store, lambda store: PushTable(store).active()):
        assert "pushes_active" in plan
    for plan in await plans_of(store, lambda store: PushTable(store).of_task("t")):
        assert "sqlite_autoindex_pushes" in plan


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))
def test_any_bounds(keep: int, oldest: int, newest: int):
    """As counted by hand: the same tasks stay."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE tasks (id, updated_at, status)")
        rows = [(f"t{number}", iso(number // 2), "completed" if number % 3 else "working") for number in range(12)]
        connection.executemany("INSERT INTO tasks VALUES (?, ?, ?)", rows)
        found = retention.find_cut(connection, keep=keep, oldest=iso(oldest), newest=iso(newest))
    finished = sorted(((at, task_id) for task_id, at, status in rows if status == "completed"), reverse=True)
    expected = {
        (at, task_id)
        for place, (at, task_id) in enumerate(finished)
        if (at < iso(oldest) or (keep and place >= keep)) and at < iso(newest)
    }
    assert found is not None
    assert {row for row in finished if row <= (found.updated_at, found.task_id)} == expected
