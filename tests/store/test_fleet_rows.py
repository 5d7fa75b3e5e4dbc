"""What is under way between hosts is written with the task that it is about, or not at all."""

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from synapsed.clock import SystemClock
from synapsed.errors import StoreError
from synapsed.model.fleet import KEY, FleetChange, InRow, OutRow, Quarantined, WorkCandidate
from synapsed.model.task import Message, Task, TaskState
from synapsed.store.fleet import QUARANTINE_KEPT
from synapsed.store.store import SqliteStore

T = "5b0c2a52-7d0e-4d57-9d0b-6d6f9c1f3a11"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "synapsed.db", clock=SystemClock())
    yield store
    await store.close()


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


async def test_a_task_and_the_row_by_which_it_is_sent_are_one_commit(store: SqliteStore) -> None:
    await store.commit(tasks=[task(id=T)], fleet=FleetChange(put=(out(),)))
    assert [(row.id, row.state) for row in await store.fleet.due(9)] == [(T, "new")]
    assert await store.fleet.due(9, without={"box"}) == []


async def test_a_task_from_another_host_is_taken_once(store: SqliteStore) -> None:
    await store.commit(tasks=[come()])
    assert [(row.id, row.task_id) for row in await store.fleet.owed(9)] == [(T, "local-1")]
    with pytest.raises(StoreError):
        await store.commit(tasks=[come().model_copy(update={"id": "local-2"})])
    assert await store.task("local-2") is None


async def test_each_change_of_it_owes_its_host_an_update(store: SqliteStore) -> None:
    await store.commit(tasks=[come()])
    assert await store.fleet.due(9) == []
    await store.commit(tasks=[come(status=TaskState.WORKING)])
    await store.commit(tasks=[come(status=TaskState.COMPLETED)])
    (row,) = await store.fleet.due(9)
    assert (row.dst, row.kind, row.wire, row.task_id) == ("laptop", "upd", f"{T}/2", "local-1")


async def test_the_receipt_of_an_older_update_closes_nothing(store: SqliteStore) -> None:
    await store.commit(tasks=[come()])
    await store.commit(tasks=[come(status=TaskState.WORKING)])
    (row,) = await store.fleet.due(9)
    await store.commit(tasks=[come(status=TaskState.COMPLETED)])
    await store.fleet.piped([row])
    await store.fleet.change(FleetChange(closed=((row.id, row.n, "laptop"),)))
    (left,) = await store.fleet.due(9)
    assert left.wire == f"{T}/2"
    await store.fleet.change(FleetChange(closed=((left.id, left.n, "other"),)))
    assert len(await store.fleet.due(9)) == 1, "that host was not told"
    await store.fleet.change(FleetChange(closed=((left.id, left.n, "laptop"),)))
    assert await store.fleet.due(9) == []
    await store.commit(tasks=[come(status=TaskState.COMPLETED)])
    assert [row.wire for row in await store.fleet.due(9)] == [f"{T}/3"], "an id of the past would be dropped there"


async def test_what_the_broker_has_is_open_until_the_receipt(store: SqliteStore) -> None:
    row = out()
    await store.fleet.change(FleetChange(put=(row,)))
    piped = out(state="piped", stream="2026", seq=7, attempt=1)
    await store.fleet.piped([piped])
    assert await store.fleet.due(9) == []
    (kept,) = await store.fleet.open_rows(state="piped")
    assert replace(kept, at=0.0) == piped
    await store.fleet.again([piped])
    assert [each.attempt for each in await store.fleet.due(9)] == [1]
    assert await store.fleet.counts() == {"box": {"new": 1}}


async def test_what_was_refused_stays_so(store: SqliteStore) -> None:
    refused = InRow(src="laptop", id=T, kind="msg", refused='{"code":"UNKNOWN_AGENT"}')
    await store.fleet.change(FleetChange(taken=(refused,)))
    (owed,) = await store.fleet.owed(9)
    await store.fleet.receipted([owed])
    assert await store.fleet.owed(9) == []
    await store.fleet.owe("laptop", T)
    assert await store.fleet.owed(9) == [refused]
    with pytest.raises(StoreError):
        await store.commit(tasks=[come()])


async def test_a_receipt_of_an_older_update_leaves_the_newer_owed(store: SqliteStore) -> None:
    first = InRow(src="box", id=f"{T}:u", kind="upd", n=1)
    await store.fleet.change(FleetChange(taken=(first,)))
    await store.fleet.change(FleetChange(taken=(InRow(src="box", id=f"{T}:u", kind="upd", n=2),)))
    await store.fleet.receipted([first])
    assert [row.n for row in await store.fleet.owed(9)] == [2]


async def test_whoever_asks_is_told_again_or_that_it_is_unknown(store: SqliteStore) -> None:
    await store.commit(tasks=[come()])
    assert await store.fleet.tell_again("laptop", [T, "gone-gone"]) == ["gone-gone"]
    assert await store.fleet.tell_again("other", [T]) == [T], "it is not that host's task"
    assert [row.wire for row in await store.fleet.due(9)] == [f"{T}/1"]


async def test_the_same_id_of_two_hosts_are_two(store: SqliteStore) -> None:
    await store.commit(tasks=[come()])
    other = task(id="local-2", metadata={KEY: {"src": "other", "id": T}})
    await store.commit(tasks=[other])
    assert len(await store.fleet.owed(9)) == 2


async def test_candidates_stay_until_they_are_decided(store: SqliteStore) -> None:
    work = WorkCandidate(src="laptop", id=T, cls="codex", round=1, body="{}")
    await store.fleet.change(FleetChange(candidates=(work,)))
    assert await store.fleet.candidates() == [work]
    await store.fleet.change(FleetChange(decided=(("laptop", T),)))
    assert await store.fleet.candidates() == []


async def test_quarantine_keeps_the_newest(store: SqliteStore) -> None:
    for n in range(QUARANTINE_KEPT + 3):
        await store.fleet.quarantine(Quarantined(at=n, subject="s", reason="r", headers="h", size=n))
    kept = await store.fleet.quarantined()
    assert (len(kept), kept[0].size, kept[-1].size) == (QUARANTINE_KEPT, QUARANTINE_KEPT + 2, 3)


async def test_secrets_of_a_control_are_sealed(store: SqliteStore, tmp_path: Path) -> None:
    secret = "sk-ant-api03-" + "A1b2C3d4" * 10
    await store.fleet.change(FleetChange(put=(out("ctl-00000001", kind="ctl", body=f'{{"text":"key {secret}"}}'),)))
    (row,) = await store.fleet.due(9)
    assert row.body is not None
    assert secret in row.body
    with sqlite3.connect(tmp_path / "synapsed.db") as connection:
        (kept,) = connection.execute("SELECT body FROM fleet_out").fetchone()
    connection.close()
    assert secret not in kept


async def test_what_other_hosts_go_by_is_synced(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    write = store.database.write

    async def spy(job, done=None, *, durable=False):
        seen.append(durable)
        return await write(job, done, durable=durable)

    monkeypatch.setattr(store.database, "write", spy)
    await store.commit(tasks=[task(id="local-3")])
    await store.commit(tasks=[come()])
    await store.commit(tasks=[task(id=T)], fleet=FleetChange(put=(out(),)))
    assert seen == [False, True, True]


async def test_ids_of_what_was_taken_are_kept_as_long_as_their_task_and_so_many_after(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [InRow(src="box", id=str(number), kind="ctl") for number in range(9)]
    rows[0] = replace(rows[0], kind="msg", task_id=T)
    await store.commit(tasks=[task(id=T)], fleet=FleetChange(taken=tuple(rows)))
    await store.fleet.receipted([row for row in rows if row.id != "1"])
    monkeypatch.setattr("synapsed.store.fleet.TAKEN_KEPT", 3)
    await store.fleet.forget_taken()
    kept = [number for number in range(9) if await store.fleet.taken("box", str(number)) is not None]
    assert kept == [0, 1, 6, 7, 8], "0 has a task here, and of 1 no receipt is sent yet"
