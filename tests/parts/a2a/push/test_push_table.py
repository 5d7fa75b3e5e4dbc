"""Push notification configs in the database."""

import pytest

from synapsed.errors import StoreError
from synapsed.parts.a2a.push.push_record import PushRecord
from synapsed.parts.a2a.push.push_table import PushTable
from tests.store.conftest import OpenStore
from tests.store.samples import a_task


def a_push(task_id: str, push_id: str = "p", **changes) -> PushRecord:
    return PushRecord(
        task_id=task_id, id=push_id, agent_id="a", url="https://example.com/", credentials="secret", cursor=1
    ).model_copy(update=changes)


async def test_they_survive_and_go_by_task(open_store: OpenStore):
    store = await open_store()
    one, two = a_task(1), a_task(2)
    await store.commit(tasks=[one, two])
    first, second, other = a_push(one.id, "z"), a_push(one.id, "a"), a_push(two.id, "z", state="done")
    for record in (first, second, other):
        await PushTable(store).put(record)
    await store.close()
    store = await open_store()
    assert await PushTable(store).of_task(one.id) == [first, second]
    assert await PushTable(store).of_task(two.id) == [other]
    assert await PushTable(store).active() == [first, second]


async def test_put_replaces_update_only_changes(open_store: OpenStore):
    store = await open_store()
    task = a_task()
    await store.commit(tasks=[task])
    assert not await PushTable(store).update(a_push(task.id))
    await PushTable(store).put(a_push(task.id))
    await PushTable(store).put(a_push(task.id, cursor=5))
    assert await PushTable(store).update(a_push(task.id, cursor=9, state="done"))
    assert await PushTable(store).of_task(task.id) == [a_push(task.id, cursor=9, state="done")]
    assert await PushTable(store).active() == []
    await PushTable(store).delete(task.id, "p")
    await PushTable(store).delete(task.id, "p")
    assert await PushTable(store).of_task(task.id) == []


async def test_the_task_must_be_known(open_store: OpenStore):
    store = await open_store()
    with pytest.raises(StoreError) as refused:
        await PushTable(store).put(a_push("nothing"))
    assert refused.value.details["reason"] == "constraint"


def test_secrets_are_not_shown():
    record = a_push("t", token="secret-token", url="https://example.com/?key=secret")
    assert "secret" not in repr(record)
