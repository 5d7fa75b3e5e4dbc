"""The file: its modes, its schema, what is refused, full disks, and many commits in one transaction."""

import asyncio
import json
import os
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from synapsed.errors import StoreError
from synapsed.interfaces import NewEvent, TaskFilter
from synapsed.model.agent import Activity, ProcessState
from synapsed.model.events import REMOVED, ActivityChanged, AgentAlert, InputAnswered, StateChanged, envelope
from synapsed.model.task import TaskState
from synapsed.store import database
from synapsed.store.encoding import KEY_BYTES
from synapsed.store.schema import MIGRATIONS, OLDEST
from synapsed.store.store import SqliteStore
from tests.store.conftest import OpenStore
from tests.store.samples import a_task, an_agent, news


def on(path: Path, *statements: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path, autocommit=True)
    try:
        return [row for statement in statements for row in connection.execute(statement)]
    finally:
        connection.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "synapsed.db"


# --- opening ---------------------------------------------------------------------------------------------------------


async def test_the_files_are_the_owners_alone(open_store: OpenStore, path: Path) -> None:
    before = os.umask(0)
    try:
        store = await open_store(path)
        await store.commit(agents=[an_agent()])
        files = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert files == {f"synapsed.{name}": 0o600 for name in ("db", "db-wal", "db-shm", "key")}
    assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_a_file_that_others_could_read_is_closed_to_them(open_store: OpenStore, path: Path) -> None:
    await (await open_store(path)).close()
    path.chmod(0o644)
    await open_store(path)
    assert path.stat().st_mode & 0o777 == 0o600


async def test_the_settings_that_durability_and_retention_rest_on(open_store: OpenStore, path: Path) -> None:
    store = await open_store(path)

    def settings(connection: sqlite3.Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys", "auto_vacuum", "user_version")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    assert await store.database.write(settings) == ["wal", 1, 1, 2, mark(0)]


def mark(more: int) -> int:
    """What is in a database of a program with so many `more` migrations than this one, which only add."""
    return len(MIGRATIONS) + more | (OLDEST - 1) << 16


async def test_a_newer_schema_is_refused_and_left_alone(open_store: OpenStore, path: Path) -> None:
    await (await open_store(path)).close()
    mark = 99 | (97 << 16)
    on(path, f"PRAGMA user_version = {mark}")
    with pytest.raises(StoreError, match="newer synapsed, and wants a program that knows schema 98") as caught:
        await open_store(path)
    assert caught.value.details == {"reason": "newer", "schema": 99, "known": len(MIGRATIONS), "path": str(path)}
    assert on(path, "PRAGMA user_version") == [(mark,)]


async def test_an_older_program_works_on_what_a_newer_one_only_added_to(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer:
        newer.setattr("synapsed.store.schema.MIGRATIONS", (*MIGRATIONS, "CREATE TABLE added (x)"))
        await (await open_store(path)).close()
    store = await open_store(path)
    await store.commit(tasks=[a_task(1)])
    await store.close()
    assert on(path, "PRAGMA user_version", "SELECT count(*) FROM added") == [(mark(1),), (0,)]


async def test_what_only_a_newer_program_knows_is_passed_over(open_store: OpenStore, path: Path) -> None:
    store = await open_store(path)
    task = a_task(1)
    await store.commit(tasks=[task], events=[NewEvent("synapse-a-1", StateChanged(state=REMOVED))])
    await store.close()
    on(path, "UPDATE tasks SET data = json_set(data, '$.added', 1, '$.message.added', json('[2]'))")
    on(path, 'UPDATE events SET type = \'new\', data = \'{"type": "new", "x": 1}\'')
    store = await open_store(path)
    assert await store.open_tasks() == [task] == (await store.tasks(TaskFilter()))[0]
    assert await store.task(task.id) == task
    (event,) = await store.events.read(0)
    assert event.data == AgentAlert(
        code="NEWER_EVENT", message="a newer version of synapsed told of 'new'", details={"type": "new", "x": 1}
    )


OLD_EVENTS = [
    ("agentProcess", {"state": "running", "pid": 7}, StateChanged(state=ProcessState.RUNNING, pid=7)),
    ("agentActivity", {"activity": "busy", "evidence": "e"}, ActivityChanged(activity=Activity.BUSY, evidence="e")),
    ("inputProvided", {"prompt_id": "p", "answer": "1"}, InputAnswered(prompt_id="p", answer="1")),
    ("agentRemoved", {}, StateChanged(state=REMOVED)),
]


async def test_events_of_an_older_program_are_read_under_their_new_names(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr("synapsed.store.schema.MIGRATIONS", MIGRATIONS[:5])
        older.setattr("synapsed.store.store.select_born", lambda _: {})
        await (await open_store(path)).close()
    rows = [json.dumps({"type": was, **told}) for was, told, _ in OLD_EVENTS]
    values = ", ".join(f"(1, 'a', json_extract('{row}', '$.type'), '{row}')" for row in rows)
    on(path, f"INSERT INTO events (at, agent_id, type, data) VALUES {values}")
    store = await open_store(path)
    events = await store.events.read(0)
    assert [event.data for event in events] == [told for _, _, told in OLD_EVENTS]
    assert [envelope(event)["event"] for event in events] == ["agentState", "activity", "inputAnswered", "agentState"]
    await store.commit(events=[NewEvent("a", StateChanged(state=REMOVED), context_id="c")])
    assert [event.context_id for event in await store.events.read(3)] == [None, "c"]


async def test_what_an_older_program_would_trip_over_is_refused_by_it(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await open_store(path)).close()
    with monkeypatch.context() as newer:
        newer.setattr("synapsed.store.schema.MIGRATIONS", (*MIGRATIONS, ""))
        newer.setattr("synapsed.store.schema.OLDEST", len(MIGRATIONS) + 1)
        await (await open_store(path)).close()
        await (await open_store(path)).close()
    with pytest.raises(StoreError, match="newer synapsed"):
        await open_store(path)


async def test_another_programs_database_is_refused(open_store: OpenStore, path: Path) -> None:
    path.parent.mkdir()
    on(path, "CREATE TABLE theirs (x)")
    with pytest.raises(StoreError, match="another program"):
        await open_store(path)
    assert on(path, "SELECT name FROM sqlite_schema") == [("theirs",)]


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough" * 200, b"SQLite format 3\0" + b"\xff" * 8000]
)
async def test_a_damaged_file_is_refused(open_store: OpenStore, path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    path.with_suffix(".key").write_bytes(bytes(KEY_BYTES))  # without it, that is told first
    with pytest.raises(StoreError) as caught:
        await open_store(path)
    assert caught.value.details["reason"] == "corrupt"
    assert str(path) in caught.value.message
    assert path.read_bytes() == content


async def test_damage_within_is_told_when_it_is_met(open_store: OpenStore, path: Path) -> None:
    store = await open_store(path)
    await store.commit(tasks=[a_task(n, metadata={"x": "y" * 3000}) for n in range(50)])
    await store.close()
    ((root,),) = on(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'tasks'")
    with path.open("r+b") as file:
        assert isinstance(root, int)
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 4096)
    store = await open_store(path)
    with pytest.raises(StoreError) as caught:
        await store.open_tasks()
    assert caught.value.details["reason"] == "corrupt"
    assert await store.agents() == []


async def test_what_is_no_file_is_refused(open_store: OpenStore, tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    for place in ("directory", "pipe", "file/db"):
        with pytest.raises(StoreError):
            await open_store(tmp_path / place)


async def test_a_migration_that_is_cut_short_leaves_nothing(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await open_store(path)).close()
    monkeypatch.setattr("synapsed.store.schema.MIGRATIONS", (*MIGRATIONS, "CREATE TABLE new (x); SELECT nonsense"))
    with pytest.raises(StoreError):
        await open_store(path)
    assert on(path, "PRAGMA user_version") == [(mark(0),)]
    assert on(path, "SELECT 1 FROM sqlite_schema WHERE name = 'new'") == []
    monkeypatch.setattr("synapsed.store.schema.MIGRATIONS", (*MIGRATIONS, "CREATE TABLE new (x)", ""))
    await (await open_store(path)).close()
    assert on(path, "PRAGMA user_version", "SELECT name FROM sqlite_schema WHERE name = 'new'") == [
        (mark(2),),
        ("new",),
    ]


# --- groups ----------------------------------------------------------------------------------------------------------


class Trace:
    """What the writer's connection runs, and where."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.threads: set[str] = set()

    def __call__(self, statement: str) -> None:
        self.statements.append(statement)
        self.threads.add(threading.current_thread().name)


async def traced(store: SqliteStore) -> Trace:
    trace = Trace()
    await store.database.write(lambda connection: connection.set_trace_callback(trace))
    trace.statements.clear()
    return trace


async def test_many_commits_share_a_transaction_outside_the_loops_thread(open_store: OpenStore) -> None:
    store = await open_store()
    trace = await traced(store)
    await asyncio.gather(*(store.commit(tasks=[a_task(n)], events=[news()]) for n in range(100)))
    assert trace.statements.count("COMMIT") == 1
    assert len(trace.threads) == 1
    assert threading.current_thread().name not in trace.threads


async def test_one_that_fails_fails_alone(open_store: OpenStore) -> None:
    store = await open_store()
    trace = await traced(store)
    done: list[int] = []

    def broken(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO agents (id, data) VALUES ('half', '')")
        raise ZeroDivisionError

    results: list[Any] = await asyncio.gather(
        store.commit(events=[news()]),
        store.database.write(broken, done.append),
        store.commit(events=[news()]),
        store.database.write(lambda connection: connection.execute("nonsense")),
        store.commit(tasks=[a_task(agent_id="\ud800")]),
        store.commit(events=[news(), news()]),
        store.database.write(lambda connection: 5, done.append),
        return_exceptions=True,
    )
    assert [event.id for index in (0, 2, 5) for event in results[index]] == [1, 2, 3, 4]
    assert [type(results[index]) for index in (1, 3, 4)] == [ZeroDivisionError, StoreError, StoreError]
    assert done == [5]
    assert await store.agents() == []
    assert [event.id for event in await store.events.read(0)] == [1, 2, 3, 4]
    assert trace.statements.count("COMMIT") < 8


async def test_what_waits_is_bounded_and_kept_in_order(open_store: OpenStore) -> None:
    store = await open_store()
    count = database.WRITES_MAX + 500
    writing = [asyncio.ensure_future(store.commit(events=[news()])) for _ in range(count)]
    await asyncio.sleep(0)
    assert len(store.database._pending) <= database.WRITES_MAX
    written = await asyncio.gather(*writing)
    assert [event.id for events in written for event in events] == list(range(1, count + 1))


async def test_those_who_wait_for_room_when_it_closes_are_refused(open_store: OpenStore) -> None:
    store = await open_store()
    count = database.WRITES_MAX + 50
    writing = [asyncio.ensure_future(store.commit(events=[news()])) for _ in range(count)]
    await asyncio.sleep(0)
    await store.close()
    written = await asyncio.gather(*writing, return_exceptions=True)
    assert [isinstance(result, StoreError) for result in written] == [False] * database.WRITES_MAX + [True] * 50


# --- a full disk -----------------------------------------------------------------------------------------------------


async def test_a_full_disk_is_told_and_survived(open_store: OpenStore, path: Path) -> None:
    store = await open_store(path)
    small = a_task(1)
    await store.commit(tasks=[small])

    async def pages(extra: int) -> None:
        def limit(connection: sqlite3.Connection) -> None:
            (used,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {used + extra}")

        await store.database.write(limit)

    await pages(2)
    big = a_task(2, metadata={"x": "y" * 200_000})
    results = await asyncio.gather(
        store.commit(tasks=[big], events=[news(big.id)]),
        store.commit(tasks=[small.model_copy(update={"status": TaskState.WORKING})], events=[news(small.id)]),
        store.commit(tasks=[big], events=[news(big.id)]),
        return_exceptions=True,
    )
    for index in (0, 2):
        error = results[index]
        assert isinstance(error, StoreError)
        assert error.details["reason"] == "full"
    assert isinstance(results[1], list)
    assert [event.id for event in results[1]] == [1]
    assert await store.task(big.id) is None
    assert [task.status for task in await store.open_tasks()] == [TaskState.WORKING]

    await pages(1000)
    assert [event.id for event in await store.commit(tasks=[big], events=[news(big.id)])] == [2]
    assert await store.task(big.id) == big
    assert on(path, "PRAGMA integrity_check") == [("ok",)]


# --- speed that rests on indexes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("which", "index"),
    [
        (TaskFilter(), "tasks_recent"),
        (TaskFilter(before="2020~x", states=frozenset({TaskState.WORKING})), "tasks_recent"),
        (TaskFilter(agent_id="a", before="2020~x"), "tasks_agent"),
        (TaskFilter(agent_id="a", states=frozenset({TaskState.WORKING})), "tasks_agent_status"),
        (
            TaskFilter(agent_id="a", states=frozenset({TaskState.WORKING}), updated_since="2020", before="2021~x"),
            "tasks_agent_status",
        ),
        (TaskFilter(agent_id="a", states=frozenset({TaskState.WORKING, TaskState.FAILED})), "tasks_agent "),
        (TaskFilter(context_id="c", agent_id="a", before="2020~x"), "tasks_context"),
    ],
)
async def test_no_page_reads_the_whole_table(open_store: OpenStore, which: TaskFilter, index: str) -> None:
    plans = await plans_of(await open_store(), lambda store: store.tasks(which))
    assert len(plans) == 2
    assert "USING COVERING INDEX" in plans[0]
    assert f"USING INDEX {index}" in plans[1]
    assert "TEMP B-TREE" not in plans[1]
    (plan,) = await plans_of(await open_store(), lambda store: store.has_tasks(which))
    assert f"INDEX {index}" in plan
    assert "TEMP B-TREE" not in plan


async def test_no_view_reads_the_whole_log(open_store: OpenStore, path: Path) -> None:
    store = await open_store(path)
    await store.commit(events=[news("t")])
    await store.close()
    for which, index in (
        ({"task_id": "t"}, "events_task"),
        ({"agent_id": "a"}, "events_agent"),
        ({"task_id": "t", "agent_id": "a"}, "events_task"),
        ({}, "INTEGER PRIMARY KEY"),
    ):
        (plan,) = await plans_of(await open_store(path), lambda store, which=which: store.events.read(0, **which))
        assert index in plan
        assert "TEMP B-TREE" not in plan


async def plans_of(store: SqliteStore, ask: Callable[[SqliteStore], Awaitable[object]]) -> list[str]:
    """How the queries that `ask` makes are run."""
    statements: list[str] = []
    await store.database.read(lambda connection: connection.set_trace_callback(statements.append))
    await ask(store)
    await store.database.read(lambda connection: connection.set_trace_callback(None))

    def explain(connection: sqlite3.Connection) -> list[str]:
        return [
            " ".join(str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}"))
            for statement in statements
            if statement.startswith("SELECT")
        ]

    return await store.database.read(explain)


async def test_a_defect_ends_the_store_with_a_word_to_everybody(open_store: OpenStore, path: Path) -> None:
    """Else all that is written later would wait for ever, and nobody would know."""
    store = await open_store(path)
    loop = asyncio.get_running_loop()
    told: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _loop, context: told.append(context))

    def defect(_value: object) -> None:
        raise AssertionError("ids grow by one")

    broken = asyncio.create_task(store.database.write(lambda _connection: 1, defect))
    beside = [asyncio.create_task(store.database.write(lambda _connection: 2)) for _ in range(3)]
    await asyncio.sleep(0)
    assert await broken == 1, "it is in the database"
    assert "ids grow by one" in await store.failed
    for waiting in beside:
        with pytest.raises(StoreError, match="the store cannot go on") as refused:
            await waiting
        assert refused.value.details["reason"] == "failed"
    with pytest.raises(StoreError, match="the store cannot go on"):
        await store.commit(agents=[an_agent()])
    assert isinstance(told[0]["exception"], AssertionError), "its place is in the log"
    await store.close()


async def test_a_writer_that_falls_over_ends_the_store(open_store: OpenStore, path: Path) -> None:
    store = await open_store(path)
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    store.database._rows_checkpointed = None  # type: ignore[assignment]
    with pytest.raises(StoreError, match="the store cannot go on"):
        await store.commit(agents=[an_agent()])
    assert store.failed.done()
    await store.close()
