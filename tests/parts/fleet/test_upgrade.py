"""A database of the version before the fleet was a part: what was under way in it goes on."""

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from synapsed.clock import SystemClock
from synapsed.errors import StoreError
from synapsed.model.task import Task, TaskState
from synapsed.store.schema import APPLICATION_ID, MIGRATIONS
from synapsed.store.store import SqliteStore
from synapsed_fleet.fleet_rows import FleetChange, InRow, OutRow, WorkCandidate, carried_by_fleet
from synapsed_fleet.fleet_table import FleetTable
from tests.support.daemon import Daemon

THEIRS = ("laptop", "theirs-1", "local-1")
AT = "2026-01-01T00:00:00.000Z"
SCHEMA, VERSION = 12, 393_228


def written(task_id: str, agent_id: str, status: str, metadata: dict[str, Any]) -> dict[str, Any]:
    """The row of a task, as that version wrote it."""
    part = {"type": "text", "text": "hi", "metadata": None}
    message = {"role": "user", "parts": [part], "message_id": "m", "metadata": None}
    data = {"id": task_id, "agent_id": agent_id, "context_id": "c", "status": status, "message": message}
    data |= {"artifacts": [], "metadata": metadata, "created_at": AT, "updated_at": AT, "priority": 1, "error": None}
    data |= {"exact": None, "truncated": False, "missing_lines": None, "prompt": None, "waits_behind": None}
    columns = {"id": task_id, "agent_id": agent_id, "context_id": "c", "status": status, "open": 1, "updated_at": AT}
    return columns | {"data": json.dumps(data | {"exchange": []}, separators=(",", ":"))}


ROWS: dict[str, list[dict[str, Any]]] = {
    "tasks": [
        written("local-1", "synapse-codex-1", "working", {"fleet": {"src": "laptop", "id": "theirs-1"}}),
        written("ours-1", "codex@box", "submitted", {"external": {"via": "fleet", "host": "box"}}),
    ],
    "fleet_in": [
        {"src": "laptop", "id": "theirs-1", "kind": "msg", "n": 1, "task_id": "local-1", "receipted": 1},
        {"src": "box", "id": "ref-1", "kind": "msg", "n": 0, "refused": '{"code":"UNKNOWN_AGENT"}', "receipted": 0},
    ],
    "fleet_out": [
        {"id": "u:laptop:theirs-1", "dst": "laptop", "kind": "upd", "task_id": "local-1", "n": 1, "state": "new"},
        {"id": "ours-1", "dst": "box", "kind": "msg", "task_id": "ours-1", "n": 0, "state": "piped"}
        | {"stream": "2026", "seq": 7, "attempt": 1},
    ],
    "fleet_work": [{"src": "laptop", "id": "work-1", "class": "codex", "round": 1, "body": "{}"}],
    "fleet_pub": [{"name": "events", "cursor": 5}],
    "fleet_peer": [{"host": "box", "jwt": "jwt"}],
}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    path = tmp_path / "synapsed.db"
    with closing(sqlite3.connect(path, autocommit=True)) as old:
        old.executescript("".join(MIGRATIONS[:SCHEMA]))
        old.executescript(f"PRAGMA application_id = {APPLICATION_ID};PRAGMA user_version = {VERSION}")
        for table, rows in ROWS.items():
            for row in rows:
                names, places = ", ".join(row), ", ".join("?" * len(row))
                old.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", tuple(row.values()))
    store = await SqliteStore.open(path, clock=SystemClock())
    yield store
    await store.close()


@pytest.fixture
def table(store: SqliteStore) -> FleetTable:
    return FleetTable(store)


async def task_of(store: SqliteStore, task_id: str) -> Task:
    task = await store.task(task_id)
    assert task is not None
    return task


async def test_what_another_host_has_sent_is_owed_its_updates_and_is_not_taken_again(
    store: SqliteStore, table: FleetTable
) -> None:
    assert [(row.dst, row.wire) for row in await table.due(9)] == [("laptop", "theirs-1/1")]
    task = await task_of(store, "local-1")
    await store.commit(tasks=[task.model_copy(update={"status": TaskState.COMPLETED})])
    assert [(row.dst, row.wire) for row in await table.due(9)] == [("laptop", "theirs-1/2")]
    with pytest.raises(StoreError, match="UNIQUE"):
        await store.commit(tasks=[task.model_copy(update={"id": "local-2"})])
    taken = await table.taken("laptop", "theirs-1")
    assert taken is not None
    assert taken.task_id == "local-1"
    assert await table.owed(9) == [InRow(src="box", id="ref-1", kind="msg", refused='{"code":"UNKNOWN_AGENT"}')]


async def test_what_was_sent_from_here_is_under_way_until_its_receipt(store: SqliteStore, table: FleetTable) -> None:
    task = await task_of(store, "ours-1")
    assert carried_by_fleet(task)
    (row,) = await table.open_rows(dst="box")
    sent = OutRow(id="ours-1", dst="box", kind="msg", task_id="ours-1", state="piped", stream="2026", seq=7, attempt=1)
    assert replace(row, at=0.0) == sent
    await table.commit(task, FleetChange(closed=((row.id, row.n, "box"),)))
    assert await table.open_rows(dst="box") == []


async def test_work_cursors_and_peers_are_there(table: FleetTable) -> None:
    assert await table.candidates() == [WorkCandidate(src="laptop", id="work-1", cls="codex", round=1, body="{}")]
    assert await table.cursor("events") == 5
    assert await table.peers() == {"box": "jwt"}


def test_a_task_whose_agent_is_gone_ends_and_its_host_is_owed_that(tmp_path: Path) -> None:
    """The daemon ends such tasks as it comes up: not before the part is there, which has a row with each."""
    daemon = Daemon(tmp_path)
    database = daemon.home / "state" / "synapsed.db"
    database.parent.mkdir(parents=True)
    with closing(sqlite3.connect(database, autocommit=True)) as old:
        old.executescript("".join(MIGRATIONS[:SCHEMA]))
        old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        old.execute(f"PRAGMA user_version = {VERSION}")
        row = written("local-1", "synapse-gone-8100", "submitted", {"fleet": {"src": "laptop", "id": "theirs-1"}})
        old.execute(f"INSERT INTO tasks ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))
        old.execute("INSERT INTO fleet_in (src, id, kind, n, task_id, receipted) VALUES (?, ?, 'msg', 0, ?, 1)", THEIRS)
    daemon.start()
    assert daemon.end() == 0
    with closing(sqlite3.connect(database)) as now:
        assert now.execute("SELECT status FROM tasks").fetchall() == [("canceled",)]
        assert now.execute("SELECT dst, kind, task_id FROM fleet_out").fetchall() == [("laptop", "upd", "local-1")]
