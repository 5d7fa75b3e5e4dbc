"""What is kept of schedules, asked of the real store and of the fake."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapsed.errors import StoreError
from synapsed.model.task import TaskState
from synapsed.parts.schedules.schedule import NewSchedule, Occurrence, ScheduleState, as_schedule
from synapsed.parts.schedules.table import ScheduleTable, occurrence_of
from synapsed.store.store import SqliteStore
from tests.fakes.store import MemoryStore
from tests.store.conftest import OpenStore
from tests.store.samples import Hands, a_task, news

AT = Occurrence(schedule="standup", at=1_800_000_000)
SCHEDULE = as_schedule(NewSchedule(name="s", at="08:00", agent="a", message="token=sk-ant-" + "a" * 60), now=1.0)


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, hands: Hands, open_store: OpenStore) -> AsyncIterator:
    store = await open_store() if request.param == "sqlite" else MemoryStore(hands)
    store.with_tasks(occurrence_of)
    yield store
    await store.close()


async def test_an_occurrence_has_one_task_ever(store: SqliteStore | MemoryStore) -> None:
    task = a_task(1, metadata={"scheduled": AT.metadata()})
    await store.commit(tasks=[task])
    assert await ScheduleTable(store).task_of(AT) == (task.id, False)
    await store.commit(tasks=[task.model_copy(update={"status": TaskState.WORKING})])
    with pytest.raises(StoreError):
        await store.commit(tasks=[a_task(2, metadata={"scheduled": AT.metadata()})], events=[news()])
    assert store.events.last_id == 0, "nothing of that commit is kept"
    state = ScheduleState(cursor=1.0, times="08:00\0")
    await ScheduleTable(store).keep("standup", state, told=AT, events=[news()])
    assert await ScheduleTable(store).task_of(AT) == (task.id, True)
    await ScheduleTable(store).remove("standup")
    assert await ScheduleTable(store).task_of(AT) == (task.id, True), "it is known longer than the schedule"


async def test_what_was_sent_by_hand_is_no_occurrence(store: SqliteStore | MemoryStore) -> None:
    for number in (1, 2):
        await store.commit(tasks=[a_task(number, metadata={"scheduled": {"schedule": "standup"}})])


async def test_schedules_come_back(store: SqliteStore | MemoryStore) -> None:
    state = ScheduleState(cursor=1.0, times=SCHEDULE.times)
    await ScheduleTable(store).keep(SCHEDULE.id, state, schedule=SCHEDULE)
    later = state.model_copy(update={"cursor": 2.0, "last_outcome": "missed", "last_at": 1})
    await ScheduleTable(store).keep(SCHEDULE.id, later)
    assert await ScheduleTable(store).schedules() == {SCHEDULE.id: (SCHEDULE, later)}


async def test_one_that_cannot_be_read_takes_no_other_along(store: SqliteStore | MemoryStore) -> None:
    """Its time zone is gone from this machine's database, for example."""
    table, state = ScheduleTable(store), ScheduleState(cursor=1.0, times=SCHEDULE.times)
    await table.keep("gone", state, schedule=SCHEDULE.model_copy(update={"id": "gone", "zone": "Nowhere/Gone"}))
    await table.keep(SCHEDULE.id, state, schedule=SCHEDULE)
    assert await table.schedules() == {SCHEDULE.id: (SCHEDULE, state)}


async def test_only_the_newest_occurrences_are_kept(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synapsed.parts.schedules.table.OCCURRENCES_KEPT", 2)
    store = await open_store()
    store.with_tasks(occurrence_of)
    times = [Occurrence(schedule="s", at=number) for number in (3, 2, 1)]
    for number, one in enumerate(times):
        await store.commit(tasks=[a_task(number, metadata={"scheduled": one.metadata()})])
    assert [await ScheduleTable(store).task_of(one) is not None for one in times] == [False, True, True]


async def test_a_secret_in_a_message_is_not_in_the_file(open_store: OpenStore, tmp_path: Path) -> None:
    store = await open_store()
    table = ScheduleTable(store)
    await table.keep(SCHEDULE.id, ScheduleState(cursor=1.0, times="x"), schedule=SCHEDULE)
    assert (await table.schedules())[SCHEDULE.id][0] == SCHEDULE, "but who reads it has it"
    await store.close()
    files = [path for path in (tmp_path / "state").iterdir() if path.name.startswith("synapsed.db")]
    assert files
    assert not [path.name for path in files if b"sk-ant-aaaa" in path.read_bytes()]
