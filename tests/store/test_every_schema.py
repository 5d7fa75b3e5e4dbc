"""A database of every schema there was, with rows in each of its tables: nothing of it is lost when it is opened."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from synapsed.interfaces import TaskFilter
from synapsed.model.events import AttentionChanged, TaskStatusChanged
from synapsed.model.records import FollowerState, ReplyRecord, TurnRecord
from synapsed.model.task import TaskState
from synapsed.parts.a2a.push.push_record import PushRecord
from synapsed.parts.a2a.push.push_table import PushTable
from synapsed.parts.schedules.schedule import ScheduleState
from synapsed.parts.schedules.table import ScheduleTable
from synapsed.store.encoding import KEY_BYTES
from synapsed.store.schema import APPLICATION_ID, MIGRATIONS, OLDEST
from tests.store.conftest import OpenStore
from tests.store.samples import a_task, an_agent

AGENT = an_agent()
TASK = a_task(1)
TURN = TurnRecord(task_id=TASK.id, launch_id="l")
REPLY = ReplyRecord(task_id=TASK.id, asker=AGENT.id, limit=60, due=1.0)
PUSH = PushRecord(task_id=TASK.id, id="p", agent_id=AGENT.id, url="https://example.com/", cursor=1)
FOLLOWER = FollowerState(cursor=1)
TOLD = [
    TaskStatusChanged(state=TaskState.WORKING),
    AttentionChanged(id="1", state="opened", kind="question", question="?"),
]

ROWS: Mapping[str, list[dict[str, object]]] = {
    "events": [
        {"at": 1.0, "agent_id": AGENT.id, "task_id": TASK.id, "type": told.type, "data": told.model_dump_json()}
        for told in TOLD
    ],
    "tasks": [
        {"id": TASK.id, "agent_id": AGENT.id, "context_id": TASK.context_id, "status": TASK.status, "open": 1}
        | {"updated_at": TASK.updated_at, "data": TASK.model_dump_json()}
    ],
    "turns": [{"task_id": TASK.id, "data": TURN.model_dump_json()}],
    "agents": [{"id": AGENT.id, "data": AGENT.model_dump_json()}],
    "checkpoints": [{"agent_id": AGENT.id, "data": '{"offset": 3, "cols": 80, "rows": 24}', "redraw": b"drawn"}],
    "pushes": [{"task_id": TASK.id, "id": PUSH.id, "active": 1, "data": PUSH.model_dump_json()}],
    "removed": [{"agent_id": "gone", "upto": 1}],
    "replies": [{"task_id": TASK.id, "data": REPLY.model_dump_json()}],
    "schedules": [{"id": "file:s", "data": None, "state": ScheduleState(cursor=1.0, times="t").model_dump_json()}],
    "occurrences": [{"schedule": "file:s", "at": "2020-01-01T00:00:00Z", "task_id": TASK.id, "told": 1}],
    "followers": [{"name": "f", "data": FOLLOWER.model_dump_json()}],
    "open_attention": [],  # its triggers have filled it
    "fleet_out": [{"id": "o", "dst": "h", "kind": "msg", "task_id": TASK.id, "state": "new"}],
    "fleet_in": [{"src": "h", "id": "i", "kind": "msg", "receipted": 1}],
    "fleet_work": [{"src": "h", "id": "w", "class": "c", "round": 1, "body": "{}"}],
    "fleet_pub": [{"name": "p", "cursor": 1}],
    "fleet_peer": [{"host": "h", "jwt": "j"}],
    "fleet_quarantine": [{"at": 1.0, "subject": "s", "reason": "r", "headers": "{}", "size": 1}],
}
"""As an older program wrote them, by table: what a schema does not have of a row is left out."""

type Rows = dict[str, list[dict[str, object]]]


def made(path: Path, schema: int) -> Rows:
    """A database of `schema`, and what is in it."""
    with closing(sqlite3.connect(path, autocommit=True)) as old:
        old.executescript("".join(MIGRATIONS[:schema]))
        old.executescript(
            f"PRAGMA application_id = {APPLICATION_ID};PRAGMA user_version = {schema | (min(OLDEST, schema) - 1) << 16}"
        )
        for table in tables(old):
            for row in ROWS[table]:
                names, places = ", ".join(row), ", ".join("?" * len(row))
                old.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", tuple(row.values()))
        return read(old)


def tables(connection: sqlite3.Connection) -> list[str]:
    named = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    return [name for (name,) in connection.execute(named)]


def read(connection: sqlite3.Connection) -> Rows:
    def rows(table: str) -> list[dict[str, object]]:
        found = connection.execute(f"SELECT * FROM {table}")
        names = [name for name, *_ in found.description]
        return [dict(zip(names, row, strict=True)) for row in found]

    return {table: rows(table) for table in tables(connection)}


def kept(now: Rows, before: Rows) -> Rows:
    """What is there now, as `before` would have it: without columns and tables that are newer."""
    return {
        table: [{name: row[name] for name in rows[0]} for row in now[table]] if rows else []
        for table, rows in before.items()
    }


@pytest.mark.parametrize("schema", range(1, len(MIGRATIONS)))
async def test_nothing_is_lost(open_store: OpenStore, tmp_path: Path, schema: int) -> None:
    path = tmp_path / "old.db"
    before = made(path, schema)
    assert all(before.values()), "each of its tables has rows"
    if schema >= OLDEST:
        path.with_suffix(".key").write_bytes(bytes(KEY_BYTES))  # secrets are sealed since then
    store = await open_store(path)
    with closing(sqlite3.connect(path)) as opened:
        assert kept(read(opened), before) == before
        assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert [event.data for event in await store.events.read(0)] == TOLD
    assert [event.data for event in await store.events.open_attention(AGENT.id)] == TOLD[1:]
    assert await store.tasks(TaskFilter(agent_id=AGENT.id)) == ([TASK], 1)
    assert await store.agents() == [AGENT]
    assert await store.turns() == [TURN]
    checkpoint = await store.checkpoint(AGENT.id)
    assert checkpoint is not None
    assert (checkpoint.offset, checkpoint.redraw) == (3, b"drawn")
    assert await PushTable(store).of_task(TASK.id) == ([PUSH] if "pushes" in before else [])
    assert await store.replies() == ([REPLY] if "replies" in before else [])
    assert list(await ScheduleTable(store).schedules()) == (["file:s"] if "schedules" in before else [])
    assert await store.follower("f") == (FOLLOWER if "followers" in before else None)
