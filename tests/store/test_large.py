"""Tasks and events of megabytes: in order, as they were at the call, and nobody else waits for them."""

import asyncio
from contextlib import aclosing

import pytest

from synapsed.documents.budget import Budget, Lease
from synapsed.interfaces import NewEvent, TaskFilter
from synapsed.model.agent import Activity
from synapsed.model.events import ActivityChanged, TaskArtifactAdded
from synapsed.model.task import ANSWER_ID, Artifact, DataPart, Task, TaskState, TextPart
from tests.store.conftest import OpenStore
from tests.store.samples import DEADLINE, a_task

TEXT = 'ein “Wort”, a "quote"\nand \x01 and 🌊 ' * 40_000
PLAIN = "ein Wort, und noch eines " * 40_000


def large(task: Task) -> Task:
    data = DataPart(data={"inside": [TEXT + "!", 1.5, None]}, metadata={"a": [1]})
    artifact = Artifact(artifact_id="answer", parts=[TextPart(text=TEXT), data], metadata={"b": {}})
    return task.model_copy(update={"artifacts": [artifact], "metadata": {"nested": {"list": [1]}}})


def told(task: Task) -> NewEvent:
    return NewEvent(task.agent_id, TaskArtifactAdded(artifact=task.artifacts[0]), task.id)


@pytest.mark.slow
async def test_is_read_as_it_was_written_from_memory_and_from_the_disk(open_store: OpenStore):
    store = await open_store()
    task = large(a_task())
    small = a_task(1)
    await store.commit(tasks=[small])
    (event,) = await store.commit(tasks=[task], events=[told(task)])
    for each in (store, await open_store()):
        assert await each.task(task.id) == task
        assert await each.open_tasks() == [small, task]
        assert (await each.tasks(TaskFilter()))[0] == [small, task]
        assert (await each.tasks(TaskFilter(size=1_000)))[0] == [small, task]
        assert (await each.events.read(0))[-1] == event


async def test_is_taken_as_it_is_at_the_call(open_store: OpenStore):
    store = await open_store()
    task = large(a_task())
    before = task.model_copy(deep=True)
    writing = asyncio.ensure_future(store.commit(tasks=[task]))
    await asyncio.sleep(0)
    task.artifacts[0].parts[0] = TextPart(text="changed")
    task.metadata["nested"]["list"].append(2)
    await writing
    found = await store.task(task.id)
    assert found == before
    found.metadata["nested"]["list"].append(3)
    assert await store.task(task.id) == before


@pytest.mark.slow
async def test_commits_are_done_in_the_order_of_the_calls(open_store: OpenStore):
    store = await open_store()
    task = large(a_task())
    done = task.model_copy(update={"status": TaskState.COMPLETED, "artifacts": []})
    others = [a_task(number) for number in range(3)]
    commits = [
        store.commit(tasks=[task], events=[told(task)]),
        store.commit(tasks=[done]),
        *(store.commit(tasks=[other], events=[told(large(other))]) for other in others),
        store.commit(tasks=[large(done)]),
        store.commit(tasks=[done]),
    ]
    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(*map(asyncio.ensure_future, commits))
    assert await store.task(task.id) == done
    assert [event.task_id for event in await store.events.read(0)] == [task.id]
    after = (await store.events.read(0))[-1].id
    assert [event.task_id for event in await store.events.read(after)] == [others[0].id]
    async with aclosing(store.events.follow(0)) as events:
        order = [(await anext(events)).task_id for _ in range(4)]
    assert order == [task.id, *(other.id for other in others)]


async def test_others_have_the_loop_meanwhile(open_store: OpenStore):
    store = await open_store()
    task = large(a_task())
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    running = asyncio.create_task(others())
    await store.commit(tasks=[task], events=[told(task)])
    running.cancel()
    assert turns >= len(TEXT) / 65536


async def test_one_that_was_begun_completes(open_store: OpenStore):
    store = await open_store()
    task, other = large(a_task()), large(a_task(1))
    left = asyncio.ensure_future(store.commit(tasks=[task]))
    kept = asyncio.ensure_future(store.commit(tasks=[other]))
    await asyncio.sleep(0)
    left.cancel()
    await store.close()
    await kept
    again = await open_store()
    assert [await again.task(task.id), await again.task(other.id)] == [task, other]


@pytest.mark.slow
async def test_streams_take_room_for_a_large_event_and_none_for_small_ones(open_store: OpenStore):
    """From memory and from the disk: what is read and not written yet is in the budget, once for all who share it."""
    store = await open_store()
    tasks = [large(a_task(number)) for number in range(3)]
    for task in tasks:
        await store.commit(
            tasks=[task], events=[NewEvent.of(task, ActivityChanged(activity=Activity.READY, evidence=""))]
        )
        await store.commit(events=[told(task)])
    size = len(TEXT)
    for each in (store, await open_store()):
        log = each.events
        log.room = room = Budget(4 * size)
        async with (
            aclosing(log.follow(0, task_id=tasks[0].id, reserved=True)) as first,
            aclosing(log.follow(0, task_id=tasks[0].id, reserved=True, upto=2)) as same,
            aclosing(log.follow(0, task_id=tasks[1].id, reserved=True)) as other,
            aclosing(log.follow(0, reserved=False)) as free,
        ):
            assert [(await anext(first)).id, (await anext(same)).id, (await anext(other)).id] == [1, 1, 3]
            assert room.used == 0
            assert (await anext(first)).id == 2
            held = room.used
            assert held > 2 * size
            assert (await anext(same)).id == 2
            assert room.used == held, "it is shared"
            waits = asyncio.create_task(anext(other))
            assert [(await anext(free)).id for _ in range(6)] == [1, 2, 3, 4, 5, 6]
            assert not waits.done()
            await first.aclose()
            assert not waits.done()
            assert [event async for event in same] == []
            async with asyncio.timeout(DEADLINE):
                assert (await waits).id == 4
            assert room.used == held
        assert room.used == 0


async def test_large_tasks_are_weighed_without_being_read(open_store: OpenStore):
    store = await open_store()
    tasks = [large(a_task(1)), a_task(2), large(a_task(3))]
    for task in tasks:
        await store.commit(tasks=[task])
    for each in (store, await open_store()):
        assert await each.weigh(tasks[1].id) == []
        assert await each.weigh("nothing") == []
        ((found, size, _),) = await each.weigh(tasks[0].id)
        assert found == tasks[0].id
        assert size > 2 * len(TEXT)
        assert [one.id for one in await each.weigh(tasks[2].id[:-1])] == [tasks[2].id]
        assert [one.id for one in await each.weigh(TaskFilter())] == [tasks[2].id, tasks[0].id]
        assert [one.id for one in await each.weigh(TaskFilter(size=len(TEXT)))] == [tasks[2].id]


@pytest.mark.parametrize(("end", "width"), [("", 1), ("é", 2), ("“", 2), ("😀", 4)])
async def test_a_task_weighs_what_its_text_takes_in_memory(open_store: OpenStore, end: str, width: int):
    store = await open_store()
    task = a_task(artifacts=[Artifact(artifact_id=ANSWER_ID, parts=[TextPart(text=PLAIN + end)])])
    await store.commit(tasks=[task], events=[told(task)])
    ((_, size, _),) = await (await open_store()).weigh(task.id)
    assert width * len(PLAIN) <= size < width * (len(PLAIN) + 8192)


async def test_who_reads_the_same_at_once_shares_its_texts_until_it_changes(open_store: OpenStore):
    store = await open_store()
    task = large(a_task())
    await store.commit(tasks=[task])
    again = await open_store()
    room = again.events.room

    async def read(held: list[Lease]) -> Task:
        (one,) = await again.weigh(task.id)
        lease = room.take_now((one.id, one.version), one.size)
        assert lease is not None
        held.append(lease)
        found = await again.task(task.id)
        assert found is not None
        return found

    held: list[Lease] = []
    first, second = await read(held), await read(held)
    assert first == second == task
    assert first.artifacts[0].text is second.artifacts[0].text
    first.metadata["changed"] = True
    assert await read(held) == task, "the documents are its readers' own"
    used = room.used
    changed = task.model_copy(update={"metadata": {"n": 1}})
    await store.commit(tasks=[changed])
    third = await read(held)
    assert third == changed
    assert room.used > used, "another version takes room of its own"
    for lease in held:
        lease.release()
    assert room.used == 0
    (alone,) = [await read(held)]
    assert alone.artifacts[0].text is not third.artifacts[0].text, "what nobody holds is let go"
