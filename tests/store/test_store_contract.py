"""What every `Store` and `EventLog` promises, asked of the real one and of the fake."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from synapsed.clock import iso
from synapsed.errors import AmbiguousAddress, InvalidRequest, StoreError, TaskNotFound
from synapsed.interfaces import NewEvent, Store, TaskFilter, task_cursor
from synapsed.model.events import REMOVED, StateChanged, TaskArtifactAdded
from synapsed.model.records import Checkpoint, LaunchRecord, ReplyRecord, TurnRecord
from synapsed.model.task import Artifact, FileContent, FilePart, Message, TaskError, TaskState, TextPart
from synapsed.store.lookup import find_id, find_task
from synapsed.store.store import SqliteStore
from tests.fakes.store import MemoryStore
from tests.store.conftest import OpenStore
from tests.store.samples import DEADLINE, Hands, a_task, an_agent, news, reasons, take, take_from

AGENT = "synapse-claude-8100"
AnyStore = SqliteStore | MemoryStore


def the_types_agree(real: SqliteStore, fake: MemoryStore) -> tuple[Store, Store]:
    """For the type checker."""
    return real, fake


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, hands: Hands, open_store: OpenStore) -> AsyncIterator[AnyStore]:
    store = await open_store() if request.param == "sqlite" else MemoryStore(hands)
    yield store
    await store.close()


# --- tasks -----------------------------------------------------------------------------------------------------------


async def test_a_task_comes_back_as_it_was_put(store: AnyStore) -> None:
    task = a_task(
        1,
        artifacts=[
            Artifact.answer("naïve \x00 \u2028 答え"),
            Artifact(artifact_id="f", type="file", parts=[FilePart(file=FileContent(name="a", mimeType="text/x"))]),
        ],
        metadata={"sender": {"id": "x"}, "n": 1.5},
        error=TaskError(code="TIMEOUT", message="late"),
        exact=False,
    )
    await store.commit(tasks=[task])
    assert await store.task(task.id) == task
    assert (await store.tasks(TaskFilter()))[0] == [task]


async def test_an_unknown_task_is_none(store: AnyStore) -> None:
    assert await store.task("nope") is None


async def test_a_tasks_metadata_without_the_rest_of_it(store: AnyStore) -> None:
    key = f"sk-ant-api03-{'a' * 93}AA"
    metadata = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "n": [1.5, None], "k": key}
    task = a_task(1, metadata=metadata)
    await store.commit(tasks=[task, bare := a_task(2, metadata={})])
    assert await store.task_metadata(task.id) == metadata
    assert await store.task_metadata(bare.id) == {}
    assert await store.task_metadata("nope") == {}


async def test_events_of_some_types_only(store: AnyStore) -> None:
    task = a_task(1)
    told = [StateChanged(state=REMOVED), TaskArtifactAdded(artifact=Artifact.answer("x")), StateChanged(state=REMOVED)]
    await store.commit(tasks=[task], events=[NewEvent(AGENT, data, task.id) for data in told])
    for after, types, ids in [
        (0, {"agentState"}, [1, 3]),
        (1, {"agentState"}, [3]),
        (0, {"agentState", "taskArtifact"}, [1, 2, 3]),
        (0, {"nothing"}, []),
        (0, set(), []),
    ]:
        found = await store.events.read(after, types=frozenset(types))
        assert [event.id for event in found] == ids, (after, types)
    assert [event.id for event in await store.events.read(1, types=frozenset({"agentState"}), limit=1)] == [3]
    assert store.events.published == {"agentState": 2, "taskArtifact": 1}


async def test_what_was_put_or_given_is_nobody_elses(store: AnyStore) -> None:
    task = a_task(1)
    committing = asyncio.ensure_future(store.commit(tasks=[task]))
    await asyncio.sleep(0)  # it has begun
    task.metadata["later"] = True
    await committing
    given = await store.task(task.id)
    assert given is not None
    assert given.metadata == {}
    given.artifacts.append(Artifact.answer("mine"))
    again = await store.task(task.id)
    assert again is not None
    assert again.artifacts == []


async def test_a_task_is_replaced_whole_and_keeps_its_place_in_the_order_of_arrival(store: AnyStore) -> None:
    first, second = a_task(1), a_task(2)
    await store.commit(tasks=[first])
    await store.commit(tasks=[second])
    changed = first.model_copy(update={"status": TaskState.WORKING, "updated_at": iso(9)})
    await store.commit(tasks=[changed])
    assert await store.task(first.id) == changed
    assert await store.open_tasks() == [changed, second]


async def test_open_tasks_are_those_not_ended(store: AnyStore) -> None:
    tasks = [a_task(number, status=state) for number, state in enumerate(TaskState)]
    await store.commit(tasks=tasks)
    assert [task.status for task in await store.open_tasks()] == [
        TaskState.SUBMITTED,
        TaskState.WORKING,
        TaskState.INPUT_REQUIRED,
        TaskState.AUTH_REQUIRED,
    ]


async def test_pages_give_each_task_once_newest_first_with_the_count_of_all(store: AnyStore) -> None:
    tasks = [a_task(number // 3) for number in range(20)]  # three of the same time
    await store.commit(tasks=tasks)
    seen, before = [], None
    while True:
        page, total = await store.tasks(TaskFilter(limit=7, before=before))
        assert total == 20
        if not page:
            break
        seen += page
        before = task_cursor(page[-1])
    assert [task.id for task in seen] == [
        task.id for task in sorted(tasks, key=lambda task: (task.updated_at, task.id), reverse=True)
    ]


async def test_a_page_goes_on_where_the_last_ended_though_tasks_change_meanwhile(store: AnyStore) -> None:
    tasks = [a_task(number) for number in range(6)]
    await store.commit(tasks=tasks)
    page, _ = await store.tasks(TaskFilter(limit=3))
    await store.commit(tasks=[page[0].model_copy(update={"updated_at": iso(50)}), a_task(60)])
    rest, total = await store.tasks(TaskFilter(limit=10, before=task_cursor(page[-1])))
    assert [task.id for task in rest] == [tasks[2].id, tasks[1].id, tasks[0].id]
    assert total == 7


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        (TaskFilter(agent_id="a"), [5, 3, 1]),
        (TaskFilter(context_id="c0"), [3, 0]),
        (TaskFilter(agent_id="a", context_id="c0"), [3]),
        (TaskFilter(states=frozenset({TaskState.WORKING, TaskState.FAILED})), [4, 2, 0]),
        (TaskFilter(states=frozenset()), []),
        (TaskFilter(updated_since=iso(4)), [5, 4]),
        (TaskFilter(agent_id="b", states=frozenset({TaskState.WORKING}), updated_since=iso(1)), [4, 2]),
        (TaskFilter(limit=0), []),
        (TaskFilter(limit=-1), []),
        (TaskFilter(before=f"{iso(2)}~"), [1, 0]),
        (TaskFilter(visible_to="a"), [5, 3, 2, 1]),
        (TaskFilter(agent_id="b", visible_to="a"), [2]),
        (TaskFilter(agent_id="a", visible_to="a"), [5, 3, 1]),
        (TaskFilter(visible_to="nobody"), []),
    ],
)
async def test_filters(store: AnyStore, which: TaskFilter, expected: list[int]) -> None:
    tasks = [
        a_task(
            number,
            agent_id="a" if number % 2 else "b",
            context_id=f"c{number % 3}",
            status=TaskState.COMPLETED if number % 2 else TaskState.WORKING,
            metadata={"sender": {"sender_id": "a"}} if number == 2 else {},
        )
        for number in range(6)
    ]
    await store.commit(tasks=tasks)
    found, total = await store.tasks(which)
    assert [tasks.index(task) for task in found] == expected
    if which.limit > 0 and which.before is None:
        assert total == len(expected)


async def test_a_cursor_that_is_none_is_refused(store: AnyStore) -> None:
    with pytest.raises(InvalidRequest):
        await store.tasks(TaskFilter(before="gibberish"))


async def test_tasks_are_found_by_the_beginning_of_their_id(store: AnyStore) -> None:
    ids = ["aa", "ab", "ab\U0010fffe", "abc", "AB", "a%", "b"]
    await store.commit(tasks=[a_task(id=task_id) for task_id in ids])
    assert await store.find_tasks("ab", 10) == ["ab", "abc", "ab\U0010fffe"]
    assert await store.find_tasks("a%", 10) == ["a%"]
    assert await store.find_tasks("a", 2) == ["a%", "aa"]
    assert await store.find_tasks("x", 10) == []
    assert await store.find_tasks("", 3) == ["AB", "a%", "aa"]


SHORT = "0a1b2c3d"


async def three_with_one_beginning(store: AnyStore) -> list[str]:
    """One of agent `a`, one of `b` that `a` has sent, one of `b`; and one of `b` with another beginning."""
    ids = [f"{SHORT}-{number}" for number in range(3)]
    sent = {"sender": {"sender_id": "a"}}
    await store.commit(
        tasks=[
            a_task(id=ids[0], agent_id="a"),
            a_task(id=ids[1], agent_id="b", metadata=sent),
            a_task(id=ids[2], agent_id="b"),
            a_task(id="another-of-b", agent_id="b"),
        ]
    )
    return ids


async def test_a_beginning_finds_an_agents_tasks_and_those_that_an_agent_may_see(store: AnyStore) -> None:
    ids = await three_with_one_beginning(store)
    assert await store.find_tasks(SHORT, 10) == ids
    assert await store.find_tasks(SHORT, 10, agent_id="b") == ids[1:]
    assert await store.find_tasks(SHORT, 10, visible_to="a") == ids[:2]
    assert await store.find_tasks(SHORT, 1, visible_to="b") == [ids[1]], "the limit counts what is found"
    assert await store.find_tasks(SHORT, 10, agent_id="b", visible_to="a") == [ids[1]]
    assert await store.find_tasks(SHORT, 10, agent_id="a", visible_to="b") == []
    assert await store.find_tasks(SHORT, 10, visible_to="") == []
    assert await store.find_tasks("another-", 10, visible_to="a") == []


async def test_a_task_is_looked_up_among_those_that_may_be_seen(store: AnyStore) -> None:
    ids = await three_with_one_beginning(store)
    with pytest.raises(AmbiguousAddress) as ambiguous:
        await find_task(store, SHORT)
    assert ambiguous.value.details["candidates"] == ids
    assert (await find_task(store, SHORT, "a")).id == ids[0], "those of other agents do not count"
    assert (await find_task(store, SHORT, "b", "a")).id == ids[1]
    with pytest.raises(AmbiguousAddress) as ambiguous:
        await find_task(store, SHORT, None, "a")
    assert ids[2] not in str(ambiguous.value)
    assert ambiguous.value.details["candidates"] == ids[:2]
    for named, agent_id, visible_to in [
        (SHORT, None, "c"),
        (SHORT, None, ""),
        ("another-", None, "a"),
        ("0a1b2", None, None),
    ]:
        with pytest.raises(TaskNotFound):
            await find_task(store, named, agent_id, visible_to)
    whole = a_task(agent_id="b")
    await store.commit(tasks=[whole])
    assert (await find_task(store, whole.id, None, "c")).id == whole.id, "a whole id is for rights to judge"
    assert await find_id(store, ids[0]) == ids[0], "an id may be the beginning of another"


# --- agents, turns, checkpoints --------------------------------------------------------------------------------------


async def test_agents_are_kept_in_their_order_until_deleted(store: AnyStore) -> None:
    launch = LaunchRecord(
        launch_id="l", socket="s", keeper_pid=1, keeper_start=2, pid=3, pid_start=4, spool_start=5, started_at=6.5
    )
    one, two = an_agent("one"), an_agent("two")
    await store.commit(agents=[one, two])
    one = one.model_copy(update={"launch": launch, "restarts": 3})
    await store.commit(agents=[one])
    assert await store.agents() == [one, two]
    await store.delete_agent("one", [NewEvent("one", StateChanged(state=REMOVED))])
    assert await store.agents() == [two]
    assert [event.data for event in await store.events.read(0)] == [StateChanged(state=REMOVED)]


async def test_turns_are_put_and_removed(store: AnyStore) -> None:
    one, two = a_task(1), a_task(2)
    await store.commit(tasks=[one], turn=TurnRecord(task_id=one.id, launch_id="l"))
    again = TurnRecord(task_id=one.id, launch_id="l", attempt=2, link={"offset": 2**40, "ids": ["a"]})
    await store.commit(turn=again)
    assert await store.turns() == [again]
    following = TurnRecord(task_id=two.id, launch_id="l")
    await store.commit(tasks=[two], turn=following, turn_ended=one.id)
    assert await store.turns() == [following]
    await store.commit(turn_ended="never there")


async def test_replies_are_put_and_removed(store: AnyStore) -> None:
    one, two = a_task(1), a_task(2)
    first = ReplyRecord(task_id=one.id, asker="a", limit=60.0, due=1.5)
    await store.commit(tasks=[one], reply=first)
    later = first.model_copy(update={"state": "asked", "asked": "b", "request": two.id, "hops": 2})
    await store.commit(tasks=[two], reply=later)
    assert await store.replies() == [later]
    await store.commit(reply=ReplyRecord(task_id=two.id, asker="a", limit=1.0, due=1.0, wait=True), reply_over=one.id)
    assert [(reply.task_id, reply.wait) for reply in await store.replies()] == [(two.id, True)]
    await store.commit(reply_over="never there")
    with pytest.raises(StoreError):
        await store.commit(reply=first.model_copy(update={"task_id": "nope"}))


async def test_a_turn_of_an_unknown_task_is_refused_with_all_that_came_with_it(store: AnyStore) -> None:
    task = a_task()
    with pytest.raises(StoreError) as caught:
        await store.commit(tasks=[task], events=[news()], turn=TurnRecord(task_id="nope", launch_id="l"))
    assert caught.value.details["reason"] == "constraint"
    assert await store.task(task.id) is None
    assert await store.open_tasks() == []
    assert await store.events.read(0) == []
    assert [event.id for event in await store.commit(events=[news()])] == [1]


async def test_a_checkpoint_lives_with_its_agent(store: AnyStore) -> None:
    one = Checkpoint(offset=5, cols=80, rows=24, redraw=bytes(range(256)), state={"title": "é"})
    two = Checkpoint(offset=2**40, cols=80, rows=24, redraw=b"")
    await store.save_checkpoint(AGENT, one)
    assert await store.checkpoint(AGENT) is None
    await store.commit(agents=[an_agent()])
    await store.save_checkpoint(AGENT, one)
    assert await store.checkpoint(AGENT) == one
    await store.save_checkpoint(AGENT, two)
    await store.commit(agents=[an_agent(restarts=1)])
    assert await store.checkpoint(AGENT) == two
    await store.delete_agent(AGENT)
    await store.commit(agents=[an_agent()])
    assert await store.checkpoint(AGENT) is None


async def test_tasks_outlive_their_agent(store: AnyStore) -> None:
    task = a_task()
    await store.commit(agents=[an_agent()], tasks=[task])
    await store.delete_agent(AGENT)
    assert await store.task(task.id) == task


# --- the log ---------------------------------------------------------------------------------------------------------


async def test_events_get_ids_that_grow_by_one_and_the_time(store: AnyStore, hands: Hands) -> None:
    assert store.events.last_id == 0
    one = await store.commit(events=[news("t", reason="a"), news()])
    hands.now += 5.25
    two = await store.commit(events=[news()])
    assert [event.id for event in one + two] == [1, 2, 3]
    assert [event.at for event in one + two] == [hands.now - 5.25, hands.now - 5.25, hands.now]
    assert store.events.last_id == 3
    assert await store.events.read(0) == one + two
    assert await store.events.read(1, limit=1) == one[1:]
    assert await store.events.read(3) == []
    assert await store.events.read(0, limit=0) == []
    assert await store.events.read(99) == []


async def test_nothing_is_a_commit_too(store: AnyStore) -> None:
    assert await store.commit() == []


async def test_an_event_that_is_read_is_what_was_written(store: AnyStore) -> None:
    artifact = Artifact(artifact_id="a", parts=[TextPart(text="x")], metadata={"n": math.nan})
    await store.commit(events=[NewEvent(AGENT, TaskArtifactAdded(artifact=artifact), "t")])
    artifact.parts.append(TextPart(text="later"))
    (event,) = await store.events.read(0)
    assert isinstance(event.data, TaskArtifactAdded)
    assert event.data.artifact.text == "x"
    assert event.data.artifact.metadata == {"n": None}


async def test_views_by_task_and_agent(store: AnyStore) -> None:
    await store.commit(events=[news("t", "a"), news("u", "a"), news(None, "a"), news("t", "b"), news("u", "b")])

    async def ids(**which: Any) -> list[int]:
        found = [event.id for event in await store.events.read(0, **which)]
        assert [event.id for event in await take_from(store.events, 0, len(found), **which)] == found
        return found

    assert await ids(task_id="t") == [1, 4]
    assert await ids(agent_id="a") == [1, 2, 3]
    assert await ids(agent_id="b", task_id="u") == [5]
    assert await ids(agent_id="c") == []
    assert await ids() == [1, 2, 3, 4, 5]


async def test_a_follower_waits_for_what_comes_and_for_nothing_else(store: AnyStore) -> None:
    await store.commit(events=[news("t"), news("u")])
    async with aclosing(store.events.follow(1, task_id="t")) as events:
        coming = asyncio.ensure_future(take(events, 2))
        for _ in range(5):
            await store.commit(events=[news("u"), news()])
        assert not coming.done()
        await store.commit(events=[news("u"), news("t", reason="one"), news("u")])
        await store.commit(events=[news("t", reason="two")])
        assert reasons(await coming) == ["one", "two"]


async def test_a_follower_may_be_cancelled_and_others_go_on(store: AnyStore) -> None:
    async with aclosing(store.events.follow(0)) as one, aclosing(store.events.follow(0)) as two:
        leaving, staying = asyncio.ensure_future(take(one, 1)), asyncio.ensure_future(take(two, 1))
        await store.commit(tasks=[a_task()])
        leaving.cancel()
        await store.commit(events=[news()])
        assert [event.id for event in await staying] == [1]


async def test_a_follower_from_the_future_waits_for_it(store: AnyStore) -> None:
    async with aclosing(store.events.follow(2)) as events:
        coming = asyncio.ensure_future(take(events, 1))
        await store.commit(events=[news(), news()])
        await store.commit(events=[news()])
        assert [event.id for event in await coming] == [3]


async def test_what_is_told_can_be_looked_up(store: AnyStore) -> None:
    """A follower that hears of a task finds it as it was told, or newer."""
    task = a_task()
    async with aclosing(store.events.follow(0)) as events:
        coming = asyncio.ensure_future(take(events, 1))
        await store.commit(tasks=[task], events=[news(task.id)])
        (event,) = await coming
        assert event.task_id is not None
        assert await store.task(event.task_id) == task


async def test_a_cancelled_commit_completes(store: AnyStore) -> None:
    task = a_task()
    committing = asyncio.ensure_future(store.commit(tasks=[task], events=[news(task.id)]))
    await asyncio.sleep(0)  # it has begun
    committing.cancel()
    await take_from(store.events, 0, 1)
    assert await store.task(task.id) == task


async def test_commits_are_done_in_the_order_of_their_calls(store: AnyStore) -> None:
    task = a_task()
    versions = [task.model_copy(update={"metadata": {"version": number}}) for number in range(100)]
    committed = await asyncio.gather(*(store.commit(tasks=[version], events=[news(task.id)]) for version in versions))
    assert [event.id for events in committed for event in events] == list(range(1, 101))
    assert await store.task(task.id) == versions[-1]
    assert (await store.tasks(TaskFilter()))[0] == [versions[-1]]


async def test_closing_lets_followers_have_what_there_is_and_refuses_the_rest(store: AnyStore) -> None:
    async def drain() -> list[int]:
        return [event.id async for event in store.events.follow(0)]

    following = asyncio.ensure_future(drain())
    committing = asyncio.ensure_future(store.commit(events=[news()]))
    await asyncio.sleep(0)  # both have begun
    await store.close()
    async with asyncio.timeout(DEADLINE):
        assert await following == [1]
    assert [event.id for event in await committing] == [1]
    with pytest.raises(StoreError):
        await store.commit(events=[news()])
    with pytest.raises(StoreError):
        await store.open_tasks()


async def test_a_page_ends_by_size_with_one_task_at_least(store: Store) -> None:
    for number in range(4):
        await store.commit(tasks=[a_task(number, message=Message.of("x" * 1000))])
    assert [len((await store.tasks(TaskFilter(size=size)))[0]) for size in (None, 1, 2000, 10**6)] == [4, 1, 2, 4]


async def test_whether_there_are_more_is_known_without_them(store: AnyStore) -> None:
    tasks = [a_task(number) for number in range(3)]
    await store.commit(tasks=tasks)
    which = TaskFilter(limit=0, size=0)
    assert [await store.has_tasks(replace(which, before=task_cursor(task))) for task in tasks] == [False, True, True]
    assert await store.has_tasks(which)
    assert not await store.has_tasks(TaskFilter(agent_id="nobody"))
    with pytest.raises(InvalidRequest):
        await store.has_tasks(TaskFilter(before="x"))
