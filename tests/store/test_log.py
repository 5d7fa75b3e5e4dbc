"""The log's views: equal to a list with the same filter, wherever they begin and whatever happens in between."""

import asyncio
import tempfile
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapsed.model.events import Event
from synapsed.store.event_log import FOLLOW_BATCH, READ_SIZE, SqliteEventLog, last_event_id
from synapsed.store.store import SqliteStore
from tests.store.conftest import OpenStore
from tests.store.samples import DEADLINE, Hands, a_task, news, take

agents = st.sampled_from(["a", "b"])
tasks = st.sampled_from(["t", "u", None])
commits = st.lists(st.tuples(agents, tasks), max_size=5)
steps = st.lists(st.one_of(commits, st.just("reopen"), st.integers(0, 3)), max_size=25)
"""Events to commit, or a new life of the store, or so many events that the follower takes."""


@pytest.mark.slow
@settings(max_examples=60)
@given(steps=steps, after=st.integers(0, 12), agent_id=st.none() | agents, task_id=tasks, recent=st.integers(1, 8))
def test_a_view_is_the_log_with_a_filter(
    steps: list[list[tuple[str, str | None]] | str | int],
    after: int,
    agent_id: str | None,
    task_id: str | None,
    recent: int,
) -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "db"
            store = await SqliteStore.open(path, clock=Hands(), recent_events=recent)
            view = store.events.follow(after, agent_id=agent_id, task_id=task_id)
            log: list[Event] = []
            seen: list[Event] = []
            cursor = after

            def due() -> list[Event]:
                return [
                    event
                    for event in log
                    if event.id > after and agent_id in (None, event.agent_id) and task_id in (None, event.task_id)
                ]

            for step in steps:
                match step:
                    case int():
                        seen += await take(view, min(step, len(due()) - len(seen)))
                        cursor = seen[-1].id if seen else after
                    case list():
                        log += await store.commit(events=[news(task, agent) for agent, task in step])
                    case _:
                        await store.close()
                        await view.aclose()
                        store = await SqliteStore.open(path, clock=Hands(), recent_events=recent)
                        view = store.events.follow(cursor, agent_id=agent_id, task_id=task_id)
            seen += await take(view, len(due()) - len(seen))
            assert seen == due()
            assert await store.events.read(after, agent_id=agent_id, task_id=task_id) == due()
            assert store.events.last_id == len(log)
            assert [event.id for event in log] == list(range(1, len(log) + 1))
            await view.aclose()
            await store.close()

    asyncio.run(run())


async def test_many_followers_of_many_things_while_it_is_written(open_store: OpenStore) -> None:
    store = await open_store()
    everything = 300

    async def follow(after: int, task_id: str | None) -> list[int]:
        seen = []
        async with aclosing(store.events.follow(after, task_id=task_id)) as events:
            async for event in events:
                seen.append(event.id)
                if event.id > everything - 3:
                    break
                if event.id % 7 == 0:
                    await asyncio.sleep(0)
        return seen

    async def write(first: int) -> None:
        for number in range(first, everything, 10):
            await store.commit(events=[news(f"t{number % 3}")])

    followers = [(after, task_id) for after in (0, 5, 150) for task_id in ("t0", "t1", "t2", None)]
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
        following = [group.create_task(follow(*follower)) for follower in followers]
        writers = [group.create_task(write(first)) for first in range(10)]
        await asyncio.gather(*writers)
        await store.commit(events=[news(f"t{n}") for n in range(3)])
    log = await store.events.read(0)
    for (after, task_id), task in zip(followers, following, strict=True):
        expected = [event.id for event in log if event.id > after and task_id in (None, event.task_id)]
        assert task.result() == expected[: len(task.result())]
        assert task.result()[-1] > everything - 3


async def test_only_those_concerned_are_woken(open_store: OpenStore) -> None:
    store = await open_store()
    reads = 0
    log = store.events
    inner = log._read

    async def counting(*arguments: object) -> list[Event]:
        nonlocal reads
        reads += 1
        return await inner(*arguments)  # type: ignore[arg-type]

    log._read = counting  # type: ignore[method-assign, assignment]
    async with aclosing(log.follow(0, task_id="t")) as events:
        coming = asyncio.ensure_future(take(events, 1))
        for _ in range(10):
            await store.commit(events=[news("other")])
        await store.commit(events=[news("t")])
        assert [event.id for event in await coming] == [11]
    assert reads == 2


async def test_a_follower_that_slept_through_more_than_is_in_memory_does_not_touch_the_database(
    tmp_path: Path, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await SqliteStore.open(tmp_path / "db", clock=hands, recent_events=4)
    async with aclosing(store.events.follow(0, task_id="t")) as events:
        coming = asyncio.ensure_future(take(events, 1))
        await store.commit(events=[news("other")] * 50)
        with monkeypatch.context() as patch:
            patch.setattr(store.database, "read", None)
            await store.commit(events=[news("t")])
            assert [event.id for event in await coming] == [51]
    await store.close()


async def test_what_comes_while_a_follower_reads_the_database_is_not_missed(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store()
    await store.commit(events=[news("t")])
    await store.close()
    store = await open_store()  # nothing of it in memory
    read, begun, go_on = store.database.read, asyncio.Event(), asyncio.Event()

    async def held_up(query: Any, *given: Any) -> Any:
        found = await read(query, *given)
        begun.set()
        await go_on.wait()
        return found

    monkeypatch.setattr(store.database, "read", held_up)
    async with aclosing(store.events.follow(0, task_id="t")) as events:
        coming = asyncio.ensure_future(take(events, 2))
        await begun.wait()
        await store.commit(events=[news("t")])
        go_on.set()
        assert [event.id for event in await coming] == [1, 2]


async def test_memory_is_bounded_in_events_and_in_size(open_store: OpenStore) -> None:
    store = await open_store()
    size = len(news(reason="x" * 1000).data.model_dump_json())
    for recent, recent_size in ((3, 10**9), (1000, 3 * size), (1000, size - 1)):
        last = await store.database.read(last_event_id)
        log = SqliteEventLog(store.database, last, recent=recent, recent_size=recent_size)
        store.events = log
        await store.commit(events=[news(reason="x" * 1000)] * 20)
        kept = recent_size // size if recent_size < 10**9 else recent
        assert sum(slot is not None for slot in log._ring._slots) == kept
        assert [event.id for event in await log.read(last)] == list(range(last + 1, last + 21))
        assert [event.id for event in await log.read(last + 18)] == [last + 19, last + 20]


async def test_ids_are_not_given_again_when_the_newest_events_are_deleted(open_store: OpenStore) -> None:
    store = await open_store()
    await store.commit(tasks=[a_task()], events=[news(), news()])
    await store.database.write(lambda connection: connection.execute("DELETE FROM events"))
    await store.close()
    store = await open_store()
    assert store.events.last_id == 2
    assert await store.events.read(0) == []
    assert [event.id for event in await store.commit(events=[news()])] == [3]


async def test_large_events_are_read_few_at_a_time_and_shared(open_store: OpenStore) -> None:
    """From the database: nothing is kept in memory."""
    store = await open_store()
    large = "x" * (READ_SIZE // 2)
    await store.commit(events=[news("t", reason=large) for _ in range(5)] + [news("t")])
    await store.close()
    store = await open_store()
    await store.commit(events=[news("other")])
    log = store.events
    assert [event.id for event in await log.read(0, task_id="t")] == [1, 2]
    assert [event.id for event in await log.read(2, task_id="t", limit=1)] == [3]
    async with aclosing(log.follow(0, task_id="t")) as one, aclosing(log.follow(0, task_id="t")) as other:
        for number in range(6):
            (mine,), (yours,) = await take(one, 1), await take(other, 1)
            assert (mine.id, mine is yours) == (number + 1, number < 5)


async def test_more_events_than_are_read_at_a_time_all_come(open_store: OpenStore) -> None:
    """A follower that is far behind: the events are in the database alone."""
    count = FOLLOW_BATCH + 10
    store = await open_store()
    await store.commit(events=[news("t", reason=str(number)) for number in range(count)])
    await store.close()
    store = await open_store()
    async with aclosing(store.events.follow(0, task_id="t")) as view:
        assert [event.id for event in await take(view, count)] == list(range(1, count + 1))


async def test_who_writes_goes_on_before_who_follows(open_store: OpenStore, tmp_path: Path) -> None:
    """A message is given to its program before anybody looks at the events of its commit."""
    store = await open_store(tmp_path / "db")
    order: list[str] = []

    async def write() -> None:
        await store.commit(events=[news("t")])
        order.append("writer")

    async def follow() -> None:
        async with aclosing(store.events.follow(0)) as events:
            await anext(events)
        order.append("follower")

    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
        group.create_task(follow())
        await asyncio.sleep(0)  # it waits
        group.create_task(write())
    assert order == ["writer", "follower"]
