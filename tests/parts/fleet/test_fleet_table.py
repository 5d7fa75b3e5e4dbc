"""What is under way between hosts is written with the task that it is about, or not at all."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from synapsed.clock import SystemClock
from synapsed.errors import StoreError
from synapsed.model.task import Message, Task, TaskState
from synapsed.store.store import SqliteStore
from synapsed_fleet.fleet_rows import KEY, FleetChange, InRow, OutRow, Quarantined, WorkCandidate
from synapsed_fleet.fleet_table import QUARANTINE_KEPT, FleetTable

T = "5b0c2a52-7d0e-4d57-9d0b-6d6f9c1f3a11"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "synapsed.db", clock=SystemClock())
    yield store
    await store.close()


@pytest.fixture
def table(store: SqliteStore) -> FleetTable:
    return FleetTable(store)


def task(**changes: object) -> Task:
    return Task(
        **{  # type: ignore[arg-type]
            "agent_id": "a",
            "message": Message.of("hi"),
            "created_at": "2026-01-01T00:00:00.000Z",
            "updated_at": "2026-01-01T00:00:00.000Z",
            **changes,
        }
    )


def come(**changes: object) -> Task:
    return task(id="local-1", metadata={KEY: {"src": "laptop", "id": T}}, **changes)


def out(id_: str = T, **changes: object) -> OutRow:
    return OutRow(**{"id": id_, "dst": "box", "kind": "msg", "task_id": T, **changes})  # type: ignore[arg-type]


async def test_a_task_and_the_row_by_which_it_is_sent_are_one_commit(table: FleetTable) -> None:
    await table.commit(task(id=T), FleetChange(put=(out(),)))
    assert [(row.id, row.state) for row in await table.due(9)] == [(T, "new")]
    assert await table.due(9, without={"box"}) == []


async def test_a_task_from_another_host_is_taken_once(store: SqliteStore, table: FleetTable) -> None:
    await store.commit(tasks=[come()])
    assert [(row.id, row.task_id) for row in await table.owed(9)] == [(T, "local-1")]
    with pytest.raises(StoreError):
        await store.commit(tasks=[come().model_copy(update={"id": "local-2"})])
    assert await store.task("local-2") is None


async def test_each_change_of_it_owes_its_host_an_update(store: SqliteStore, table: FleetTable) -> None:
    await store.commit(tasks=[come()])
    assert await table.due(9) == []
    await store.commit(tasks=[come(status=TaskState.WORKING)])
    await store.commit(tasks=[come(status=TaskState.COMPLETED)])
    (row,) = await table.due(9)
    assert (row.dst, row.kind, row.wire, row.task_id) == ("laptop", "upd", f"{T}/2", "local-1")


async def test_the_receipt_of_an_older_update_closes_nothing(store: SqliteStore, table: FleetTable) -> None:
    await store.commit(tasks=[come()])
    await store.commit(tasks=[come(status=TaskState.WORKING)])
    (row,) = await table.due(9)
    await store.commit(tasks=[come(status=TaskState.COMPLETED)])
    await table.piped([row])
    await table.change(FleetChange(closed=((row.id, row.n, "laptop"),)))
    (left,) = await table.due(9)
    assert left.wire == f"{T}/2"
    await table.change(FleetChange(closed=((left.id, left.n, "other"),)))
    assert len(await table.due(9)) == 1, "that host was not told"
    await table.change(FleetChange(closed=((left.id, left.n, "laptop"),)))
    assert await table.due(9) == []
    await store.commit(tasks=[come(status=TaskState.COMPLETED)])
    assert [row.wire for row in await table.due(9)] == [f"{T}/3"], "an id of the past would be dropped there"


async def test_what_the_broker_has_is_open_until_the_receipt(table: FleetTable) -> None:
    row = out()
    await table.change(FleetChange(put=(row,)))
    piped = out(state="piped", stream="2026", seq=7, attempt=1)
    await table.piped([piped])
    assert await table.due(9) == []
    (kept,) = await table.open_rows(state="piped")
    assert replace(kept, at=0.0) == piped
    await table.again([piped])
    assert [each.attempt for each in await table.due(9)] == [1]
    assert await table.counts() == {"box": {"new": 1}}


async def test_many_to_one_host_keep_nothing_else_back(table: FleetTable) -> None:
    many = tuple(out(f"{n}") for n in range(30))
    others = (out("update", kind="upd"), out("to shed", dst="shed"), out("to shed too", dst="shed"))
    await table.change(FleetChange(put=(*many, *others)))
    assert [row.id for row in await table.due(5)] == ["0", "1", "update", "to shed", "to shed too"]
    await table.piped(await table.due(5))
    assert [row.id for row in await table.due(3)] == ["2", "3", "4"]


async def test_what_was_refused_stays_so(store: SqliteStore, table: FleetTable) -> None:
    refused = InRow(src="laptop", id=T, kind="msg", refused='{"code":"UNKNOWN_AGENT"}')
    await table.change(FleetChange(taken=(refused,)))
    (owed,) = await table.owed(9)
    await table.receipted([owed])
    assert await table.owed(9) == []
    await table.owe("laptop", T)
    assert await table.owed(9) == [refused]
    with pytest.raises(StoreError):
        await store.commit(tasks=[come()])


async def test_a_receipt_of_an_older_update_leaves_the_newer_owed(table: FleetTable) -> None:
    first = InRow(src="box", id=f"{T}:u", kind="upd", n=1)
    await table.change(FleetChange(taken=(first,)))
    await table.change(FleetChange(taken=(InRow(src="box", id=f"{T}:u", kind="upd", n=2),)))
    await table.receipted([first])
    assert [row.n for row in await table.owed(9)] == [2]


async def test_whoever_asks_is_told_again_or_that_it_is_unknown(store: SqliteStore, table: FleetTable) -> None:
    await store.commit(tasks=[come()])
    assert await table.tell_again("laptop", [T, "gone-gone"]) == ["gone-gone"]
    assert await table.tell_again("other", [T]) == [T], "it is not that host's task"
    assert [row.wire for row in await table.due(9)] == [f"{T}/1"]


async def test_the_same_id_of_two_hosts_are_two(store: SqliteStore, table: FleetTable) -> None:
    await store.commit(tasks=[come()])
    other = task(id="local-2", metadata={KEY: {"src": "other", "id": T}})
    await store.commit(tasks=[other])
    assert len(await table.owed(9)) == 2


async def test_candidates_stay_until_they_are_decided(table: FleetTable) -> None:
    work = WorkCandidate(src="laptop", id=T, cls="codex", round=1, body="{}")
    await table.change(FleetChange(candidates=(work,)))
    assert await table.candidates() == [work]
    await table.change(FleetChange(decided=(("laptop", T),)))
    assert await table.candidates() == []


async def test_quarantine_keeps_the_newest(table: FleetTable) -> None:
    for n in range(QUARANTINE_KEPT + 3):
        await table.quarantine(Quarantined(at=n, subject="s", reason="r", headers="h", size=n))
    kept = await table.quarantined()
    assert (len(kept), kept[0].size, kept[-1].size) == (QUARANTINE_KEPT, QUARANTINE_KEPT + 2, 3)


async def test_secrets_of_a_control_are_sealed(table: FleetTable, tmp_path: Path) -> None:
    secret = "sk-ant-api03-" + "A1b2C3d4" * 10
    await table.change(FleetChange(put=(out("ctl-00000001", kind="ctl", body=f'{{"text":"key {secret}"}}'),)))
    (row,) = await table.due(9)
    assert row.body is not None
    assert secret in row.body
    with sqlite3.connect(tmp_path / "synapsed.db") as connection:
        (kept,) = connection.execute("SELECT body FROM fleet_out").fetchone()
    connection.close()
    assert secret not in kept


async def test_what_other_hosts_go_by_is_synced(
    store: SqliteStore, table: FleetTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    write = store.database.write

    async def spy(job, done=None, *, durable=False):
        seen.append(durable)
        return await write(job, done, durable=durable)

    monkeypatch.setattr(store.database, "write", spy)
    await store.commit(tasks=[task(id="local-3")])
    await store.commit(tasks=[come()])
    await table.commit(task(id=T), FleetChange(put=(out(),)))
    assert seen == [False, True, True]


async def test_who_sends_is_told_of_what_is_owed_though_nobody_waits_for_the_commit(
    store: SqliteStore, table: FleetTable
) -> None:
    owed = asyncio.Event()
    table.on_owed = owed.set
    await store.commit(tasks=[task(id="local-3")])
    assert not owed.is_set(), "it is of no other host"
    await store.commit(tasks=[come()])
    assert owed.is_set()
    owed.clear()
    sending = asyncio.create_task(table.commit(task(id=T), FleetChange(put=(out(),))))
    await asyncio.sleep(0)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    await owed.wait()
    assert [row.id for row in await table.due(9)] == [T]


async def test_ids_of_what_was_taken_are_kept_as_long_as_their_task_and_so_many_after(
    table: FleetTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [InRow(src="box", id=str(number), kind="ctl") for number in range(9)]
    rows[0] = replace(rows[0], kind="msg", task_id=T)
    await table.commit(task(id=T), FleetChange(taken=tuple(rows)))
    await table.receipted([row for row in rows if row.id != "1"])
    monkeypatch.setattr("synapsed_fleet.fleet_table.TAKEN_KEPT", 3)
    await table.forget_taken()
    kept = [number for number in range(9) if await table.taken("box", str(number)) is not None]
    assert kept == [0, 1, 6, 7, 8], "0 has a task here, and of 1 no receipt is sent yet"
