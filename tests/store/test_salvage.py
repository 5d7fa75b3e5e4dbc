"""Damaged databases: what is saved of them and of the daily copies, and what is never taken from a copy."""

import json
import random
import sqlite3
import stat
import time
from contextlib import closing
from pathlib import Path

import pytest

from synapsed.errors import StoreError
from synapsed.interfaces import TaskFilter
from synapsed.model.records import FollowerState, TurnRecord
from synapsed.model.task import Task, TaskState
from synapsed.store.backups import Backups, newest_first
from synapsed.store.encoding import KEY_BYTES
from synapsed.store.salvage import AFTER_LOSS, FROM_COPIES, LEFT, NOT_FROM_COPIES, TABLES, is_sound, salvage
from synapsed.store.schema import migrate
from synapsed.store.store import SqliteStore
from tests.store.samples import Hands, a_task, an_agent, news

PAGE = 4096
MANY = 400
DAY = 86_400.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "synapsed.db"


def backups(path: Path, clock: Hands, days: float = 7) -> Backups:
    return Backups(path, path.parent / "backups", days=days, clock=clock)


async def filled(path: Path, count: int = MANY) -> list[Task]:
    """So many completed tasks with an event each, and an agent."""
    store = await SqliteStore.open(path, clock=Hands())
    tasks = [a_task(number, status=TaskState.COMPLETED) for number in range(count)]
    await store.commit(agents=[an_agent()])
    for task in tasks:
        await store.commit(tasks=[task], events=[news(task.id)])
    await store.close()
    return tasks


def damage(path: Path, *, seed: int, pages: int) -> None:
    """Overwrite some pages behind the first ones, which say what tables there are."""
    rng = random.Random(seed)
    count = path.stat().st_size // PAGE
    with path.open("r+b") as file:
        for page in rng.sample(range(count // 3, count), pages):
            file.seek(page * PAGE)
            file.write(rng.randbytes(PAGE))


async def content(path: Path) -> tuple[list[Task], int, list[str]]:
    """Tasks, the id of the newest event, names of agents."""
    if not (key := path.with_suffix(".key")).exists():
        key.write_bytes(bytes(KEY_BYTES))  # a copy is opened with the key of its database; none here has secrets
    store = await SqliteStore.open(path, clock=Hands())
    tasks, _ = await store.tasks(TaskFilter(limit=10_000))
    agents = [agent.name for agent in await store.agents()]
    last = store.events.last_id
    await store.close()
    return tasks, last, agents


# --- copies ----------------------------------------------------------------------------------------------------------


async def test_a_copy_a_day_for_so_many_days(path: Path) -> None:
    await filled(path, 3)
    clock = Hands()
    keeper = backups(path, clock, days=2)
    first = await keeper.look()
    assert first is not None
    assert is_sound(first)
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    clock.now += DAY / 2
    assert await keeper.look() is None
    made = [first]
    for _ in range(3):
        clock.now += DAY
        copy = await keeper.look()
        assert copy is not None
        made.append(copy)
    assert newest_first(path.parent / "backups") == made[:0:-1], "the first is more than two days old"
    assert await backups(path, clock, days=0).look() is None


async def test_a_copy_is_made_beside_a_store_that_is_written(path: Path) -> None:
    store = await SqliteStore.open(path, clock=Hands())
    task = a_task(1, status=TaskState.COMPLETED)
    await store.commit(tasks=[task])  # stands in the write-ahead log alone
    copy = await backups(path, Hands()).look()
    await store.close()
    assert copy is not None
    tasks, _, _ = await content(copy)
    assert [found.id for found in tasks] == [task.id]


async def test_a_copy_that_cannot_be_made_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"no database" * 1000)
    assert await backups(path, Hands()).look() is None
    assert list((path.parent / "backups").iterdir()) == []


async def test_what_a_killed_copy_has_left_is_removed(path: Path) -> None:
    await filled(path, 1)
    left = path.parent / "backups" / ".synapsed-20200101T000000Z.db.part"
    left.parent.mkdir()
    left.write_bytes(b"half")
    copy = await backups(path, Hands()).look()
    assert list(left.parent.iterdir()) == [copy]


async def test_a_clock_that_was_set_back_is_no_reason_to_wait(path: Path) -> None:
    await filled(path, 1)
    clock = Hands()
    assert await backups(path, clock).look() is not None
    clock.now -= 30 * DAY
    assert await backups(path, clock).look() is not None


# --- repairs ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
async def test_what_can_be_read_is_saved(path: Path, seed: int) -> None:
    tasks = await filled(path)
    damage(path, seed=seed, pages=5)
    assert not is_sound(path)
    saved = salvage(path, [])
    assert is_sound(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert saved.damaged.exists()
    found, last, _ = await content(path)
    assert saved.rows["tasks"] == len(found)
    assert {task.id for task in found} <= {task.id for task in tasks}
    assert len(found) >= MANY // 2, "five pages of many"
    assert last >= MANY, "no id of an event is given twice"


async def test_what_it_lost_comes_from_the_copies(path: Path) -> None:
    tasks = await filled(path)
    copy = await backups(path, Hands()).look()
    assert copy is not None
    damage(path, seed=1, pages=12)
    saved = salvage(path, [copy])
    found, last, agents = await content(path)
    assert {task.id for task in found} == {task.id for task in tasks}
    assert saved.rows["tasks"] + saved.filled["tasks"] == MANY
    assert (last, agents) == (MANY, ["synapse-claude-8100"])


async def test_a_file_that_is_no_database_is_made_of_its_copy(path: Path) -> None:
    tasks = await filled(path, 5)
    store = await SqliteStore.open(path, clock=Hands())
    waiting = a_task(7, status=TaskState.SUBMITTED)
    await store.commit(tasks=[waiting], turn=None)
    working = a_task(8, status=TaskState.WORKING)
    await store.commit(tasks=[working], turn=TurnRecord(task_id=working.id, launch_id="l"))
    await store.close()
    copy = await backups(path, Hands()).look()
    assert copy is not None
    path.write_bytes(random.Random(0).randbytes(20_000))
    salvage(path, [copy])
    found, last, _ = await content(path)
    by_id = {task.id: task for task in found}
    assert set(by_id) == {task.id for task in [*tasks, waiting, working]}
    for task in (waiting, working):
        failed = by_id[task.id]
        assert failed.status is TaskState.FAILED, "it may have been typed since"
        assert failed.error is not None
        assert failed.error.code == "INTERRUPTED"
    store = await SqliteStore.open(path, clock=Hands())
    assert await store.turns() == []
    await store.close()
    assert last > 5, "events came after the copy"


async def test_without_a_copy_there_is_an_empty_one(path: Path) -> None:
    path.write_bytes(b"no database" * 1000)
    saved = salvage(path, [])
    assert saved.damaged.read_bytes().startswith(b"no database")
    assert (await content(path))[0] == []


async def test_a_database_stands_there_at_every_moment_of_a_repair(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"no database" * 1000)
    moved, replace = [], Path.replace

    def watched(file: Path, target: Path) -> Path:
        moved.append(file.name)
        done = replace(file, target)
        assert path.exists(), f"a daemon that starts after {file.name} was moved would make an empty one"
        return done

    monkeypatch.setattr(Path, "replace", watched)
    saved = salvage(path, [])
    assert moved[-1] == f".{path.name}.salvaged"
    assert saved.damaged.read_bytes().startswith(b"no database")
    assert (await content(path))[0] == []


async def test_a_repair_without_hard_links(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"no database" * 1000)

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refused)
    assert salvage(path, []).damaged.read_bytes().startswith(b"no database")
    assert (await content(path))[0] == []


async def test_a_repair_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"no database" * 1000)
    before = path.read_bytes()

    def full(_: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("synapsed.store.salvage.migrate", full)
    with pytest.raises(StoreError, match="cannot be repaired"):
        salvage(path, [])
    assert [found.name for found in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before


# --- tables of parts -------------------------------------------------------------------------------------------------

STATE = '{"cursor": 5.0, "times": "daily", "last_task": "t1"}'
ROWS = {
    "schedules": [("added", '{"name": "added"}', STATE), ("configured", None, STATE)],
    "occurrences": [(1, "added", "2026-01-01T00:00:00Z", "t1", 1)],
    "followers": [("rule x", FollowerState(cursor=7).model_dump_json())],
    "fleet_out": [
        (1, "m1", "box", "msg", "TASK", 0, None, "piped", "s", 3, 1, 5.0),
        (2, "c1", "box", "ctl", "gone", 0, "{}", "new", None, None, 0, 5.0),
    ],
    "fleet_in": [(1, "box", "i1", "msg", 4, "t9", None, 1), (2, "box", "upd i2", "upd", 6, None, None, 0)],
    "fleet_work": [("box", "w1", "build", 1, "{}")],
    "fleet_pub": [("kept", 7)],
    "fleet_peer": [("box", "jwt")],
    "fleet_quarantine": [(1, 5.0, "syn.x", "unsigned", "{}", 3)],
}
"""Rows of the tables that parts write, with one task of their own."""


async def with_rows_of_parts(path: Path) -> Task:
    (task,) = await filled(path, 1)
    with closing(sqlite3.connect(path, autocommit=True)) as connection:
        for table, rows in ROWS.items():
            for row in rows:
                values = [task.id if value == "TASK" else value for value in row]
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", values)
    return task


def rows_of(path: Path, table: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path, autocommit=True)) as connection:
        return connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()


def wreck(path: Path, *tables: str) -> None:
    """Overwrite the first page of each table."""
    with closing(sqlite3.connect(path, autocommit=True)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        pages = [
            connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()[0]
            for table in tables
        ]
    with path.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * PAGE)
            file.write(b"\xee" * PAGE)


def leftmost_leaf(path: Path, table: str) -> int:
    """Returns the number of the page that has the first rows of a table with several levels."""
    with closing(sqlite3.connect(path, autocommit=True)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    raw = path.read_bytes()
    while raw[at := (page - 1) * PAGE] == 5:  # an interior page: its first cell begins with the page to the left
        cell = at + int.from_bytes(raw[at + 12 : at + 14])
        page = int.from_bytes(raw[cell : cell + 4])
    return page


@pytest.mark.parametrize("table", ["events", "tasks"])
async def test_a_damaged_page_with_the_first_rows_costs_these_alone(path: Path, table: str) -> None:
    await filled(path)
    count = len(rows_of(path, table))
    page = leftmost_leaf(path, table)
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\0" * PAGE)
    saved = salvage(path, [])
    assert count - 100 < len(rows_of(path, table)) < count
    assert saved.lost < 100


async def test_a_row_that_would_keep_its_part_down_is_lost(path: Path) -> None:
    await with_rows_of_parts(path)
    with closing(sqlite3.connect(path, autocommit=True)) as connection:
        connection.execute("UPDATE schedules SET state = substr(state, 1, 20) WHERE id = 'added'")
        connection.execute("UPDATE followers SET data = '[]'")
    saved = salvage(path, [])
    assert rows_of(path, "schedules") == ROWS["schedules"][1:]
    assert rows_of(path, "followers") == []
    assert saved.lost == 2


def test_each_table_is_saved_or_left_with_a_reason(path: Path) -> None:
    with closing(sqlite3.connect(path, autocommit=True)) as connection:
        migrate(connection)
        found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        names = [name for (name,) in found]
    assert sorted(names) == sorted([*TABLES, *LEFT]), "say what a repair does with a new table"
    assert sorted(TABLES) == sorted([*FROM_COPIES, *NOT_FROM_COPIES]), "say what it takes of it from copies"


async def test_rows_of_parts_are_saved(path: Path) -> None:
    task = await with_rows_of_parts(path)
    wreck(path, "checkpoints")
    assert not is_sound(path)
    salvage(path, [])
    for table, rows in ROWS.items():
        wanted = [tuple(task.id if value == "TASK" else value for value in row) for row in rows]
        assert rows_of(path, table) == wanted, table


async def test_nothing_of_parts_is_done_twice_by_a_copy(path: Path) -> None:
    await with_rows_of_parts(path)
    copy = await backups(path, Hands()).look()
    assert copy is not None
    wreck(path, *ROWS)
    before = time.time()
    salvage(path, [copy])
    for table in ("followers", "fleet_out", "fleet_work", "fleet_pub", "fleet_quarantine"):
        assert rows_of(path, table) == [], table
    for table in ("occurrences", "fleet_peer"):
        assert rows_of(path, table) == ROWS[table]
    assert [row[4] for row in rows_of(path, "fleet_in")] == [4 + AFTER_LOSS, 6], "numbers of updates that were not sent"
    ((name, _, state),) = rows_of(path, "schedules")
    assert name == "added"
    assert json.loads(str(state))["cursor"] >= before, "its times since the copy may have been sent"


@pytest.mark.parametrize("table", ["schedules", "agents"])
async def test_a_row_that_was_removed_does_not_come_back_and_act(path: Path, table: str) -> None:
    await with_rows_of_parts(path)
    clock = Hands()
    keeper = backups(path, clock)
    first = await keeper.look()
    with closing(sqlite3.connect(path, autocommit=True)) as connection:
        connection.execute(f"DELETE FROM {table}")
    clock.now += DAY
    second = await keeper.look()
    assert first is not None
    assert second is not None
    broken = path.with_name("broken.db")
    broken.write_bytes(path.read_bytes())
    wreck(path, "checkpoints")
    salvage(path, [first])
    assert rows_of(path, table) == [], "the damaged file, which was read whole, has no such row"
    wreck(broken, table, "checkpoints")
    salvage(broken, [second, first])
    assert rows_of(broken, table) == [], "the newer copy says so"


async def test_a_message_to_a_host_goes_with_its_task(path: Path) -> None:
    await with_rows_of_parts(path)
    wreck(path, "tasks")
    salvage(path, [])
    assert [row[1] for row in rows_of(path, "fleet_out")] == ["c1"], "a command has a body of its own"


async def test_no_event_gets_a_number_that_a_follower_has_passed(path: Path) -> None:
    await filled(path, 1)
    far = 10 * AFTER_LOSS
    with closing(sqlite3.connect(path, autocommit=True)) as connection:
        connection.execute("INSERT INTO followers VALUES ('rules', ?)", (FollowerState(cursor=far).model_dump_json(),))
        connection.execute("DELETE FROM sqlite_sequence")
    wreck(path, "checkpoints")
    salvage(path, [])
    store = await SqliteStore.open(path, clock=Hands())
    (event,) = await store.commit(events=[news()])
    await store.close()
    assert event.id > far
