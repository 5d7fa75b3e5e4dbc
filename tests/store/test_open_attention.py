"""What is open of all that agents needed a person for: the same over versions, removals and repairs, and found at the
same cost in a log of any length."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest

from synapsed.interfaces import NewEvent
from synapsed.model.events import AttentionChanged
from synapsed.store.event_log import _open_attention
from synapsed.store.salvage import salvage
from synapsed.store.schema import MIGRATIONS
from synapsed.store.store import SqliteStore
from tests.store.conftest import OpenStore
from tests.store.samples import Hands

BEFORE = 9
"""The last schema in which what is open was looked for among all events."""
STEP = 10
"""Instructions of SQLite's machine between two counts."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "synapsed.db"


def told(
    item: str, state: Literal["opened", "answered", "gone"] = "opened", agent: str = "a", question: str = "?"
) -> NewEvent:
    return NewEvent(agent, AttentionChanged(id=item, state=state, kind="failure", question=question))


async def opened(store: SqliteStore, agent: str = "a") -> list[str]:
    found = await store.events.open_attention(agent)
    assert all(isinstance(event.data, AttentionChanged) and event.data.state == "opened" for event in found)
    assert [event.id for event in found] == sorted(event.id for event in found)
    return [event.data.id for event in found if isinstance(event.data, AttentionChanged)]


async def test_what_is_open_is_what_was_told_of_last(open_store: OpenStore) -> None:
    store = await open_store()
    await store.commit(events=[told("1"), told("2"), told("3"), told("1", agent="b"), told("3", "gone")])
    assert await opened(store) == ["1", "2"]
    await store.commit(events=[told("1", "answered"), told("3"), told("2", question="What?")])
    assert await opened(store) == ["3", "2"]
    assert [event.id for event in await store.events.open_attention("a")] == [7, 8]
    assert await opened(store, "b") == ["1"]
    assert await opened(store, "c") == []


async def test_it_costs_no_more_where_much_is_over(open_store: OpenStore, path: Path) -> None:
    def steps() -> int:
        with closing(sqlite3.connect(path)) as connection:
            count = [0]

            def counted() -> None:
                count[0] += 1

            connection.set_progress_handler(counted, STEP)
            found = _open_attention(connection, "a")
            connection.set_progress_handler(None, 0)
        assert len(found) == 2
        return count[0]

    store = await open_store(path)
    await store.commit(events=[told("first"), told("second")])
    before = steps()
    past = [event for number in range(500) for event in (told(f"{number}"), told(f"{number}", "gone"))]
    await store.commit(events=past)
    assert steps() == before


async def test_a_database_of_an_older_program(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr("synapsed.store.schema.MIGRATIONS", MIGRATIONS[:BEFORE])
        older.setattr("synapsed.store.store.select_born", lambda _: {})
        store = await open_store(path)
        await store.commit(events=[told("1"), told("2"), told("2", "gone"), told("1", agent="b")])
        await store.close()
    store = await open_store(path)
    assert (await opened(store), await opened(store, "b")) == (["1"], ["1"])
    await store.close()


async def test_an_older_program_on_a_database_of_this_one(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store(path)
    await store.commit(events=[told("1"), told("2")])
    await store.close()
    with monkeypatch.context() as older:
        older.setattr("synapsed.store.schema.MIGRATIONS", MIGRATIONS[:BEFORE])
        older.setattr("synapsed.store.store.select_born", lambda _: {})
        store = await open_store(path)
        await store.commit(events=[told("1", "gone"), told("3")])
        await store.close()
    assert await opened(await open_store(path)) == ["2", "3"]


async def test_what_is_removed_from_the_log_is_open_no_more(open_store: OpenStore, path: Path) -> None:
    store = await open_store(path)
    await store.commit(events=[told("1"), told("2"), told("2", question="again")])
    await store.database.write(lambda connection: connection.execute("DELETE FROM events WHERE id <= 2").rowcount)
    assert await opened(store) == ["2"], "which was told of again"
    rows = await store.database.read(lambda connection: connection.execute("SELECT id FROM open_attention").fetchall())
    assert rows == [("2",)]


async def test_rows_that_no_program_of_ours_wrote_can_be_added(open_store: OpenStore, path: Path) -> None:
    store = await open_store(path)
    values = ", ".join(f"(1, 'a', 'attention', '{data}')" for data in ("no JSON", "{}", '{"state": "opened"}', "[]"))
    statement = f"INSERT INTO events (at, agent_id, type, data) VALUES {values}"
    await store.database.write(lambda connection: connection.execute(statement).rowcount)
    assert await opened(store, "b") == []


async def test_a_repaired_database_takes_older_events_from_a_copy(path: Path) -> None:
    store = await SqliteStore.open(path, clock=Hands())
    await store.commit(events=[told("1"), told("2")])
    await store.close()
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    store = await SqliteStore.open(path, clock=Hands())
    await store.commit(events=[told("1", "gone"), told("3")])
    await store.database.write(lambda connection: connection.execute("DELETE FROM events WHERE id <= 2").rowcount)
    await store.close()
    salvage(path, [copy])
    store = await SqliteStore.open(path, clock=Hands())
    assert await opened(store) == ["2", "3"]
    await store.close()
