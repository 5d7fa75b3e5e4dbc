"""A new agent with a removed one's id: nothing of the first is its own, whoever reads. Asked of both stores."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from synapsed.errors import InvalidRequest, StoreError, TaskNotFound
from synapsed.interfaces import EventFilter, EventLog, NewEvent, SendRequest, Store, TaskFilter
from synapsed.model.events import REMOVED, AttentionChanged, EventData, StateChanged, TaskStatusChanged, TokensUsed
from synapsed.model.sender import KEY, Sender, Tier
from synapsed.model.task import Message, Task, TaskState
from synapsed.parts.history.interface import HistoryFilter
from synapsed.parts.history.service import SqliteHistory
from synapsed.store.database import Database
from synapsed.store.idempotency import Idempotency
from synapsed.store.lookup import find_id, find_task
from synapsed.store.salvage import salvage
from synapsed.store.schema import MIGRATIONS
from synapsed.store.store import SqliteStore
from tests.fakes.store import MemoryStore
from tests.store.conftest import OpenStore
from tests.store.samples import Hands, a_task, an_agent

AGENT, OTHER = "synapse-claude-8100", "synapse-codex-8120"
AS_AGENT = {KEY: Sender(id=AGENT, tier=Tier.AGENT).metadata()}
ASKED = AttentionChanged(id="i", state="opened", kind="permission", question="Deploy?")


@pytest.fixture(params=["memory", "sqlite", "opened again"])
async def store(request: pytest.FixtureRequest, hands: Hands, open_store: OpenStore) -> AsyncIterator[Store]:
    """The first has worked, been asked and asked others; it is gone, and the second has begun."""
    store: Store = MemoryStore(hands) if request.param == "memory" else await open_store()
    await store.commit(agents=[an_agent(AGENT), an_agent(OTHER)])
    for number, task in enumerate(FIRSTS):
        used = TokensUsed(turn_id=f"{number}", input_tokens=100)
        events: list[EventData] = [TaskStatusChanged(state=TaskState.COMPLETED), used, ASKED]
        await store.commit(tasks=[task], events=[NewEvent(task.agent_id, data, task.id, "c") for data in events])
    await store.delete_agent(AGENT, [NewEvent(AGENT, StateChanged(state=REMOVED))])
    await store.commit(agents=[an_agent(AGENT)])
    if request.param == "opened again":
        assert isinstance(store, SqliteStore)
        await store.close()
        store = await open_store()
    yield store
    if isinstance(store, SqliteStore | MemoryStore):
        await store.close()


def over(number: int, **changes: object) -> Task:
    return a_task(number, context_id="c", status=TaskState.COMPLETED, **changes)


DONE = over(1)
SENT = over(2, agent_id=OTHER, metadata=AS_AGENT)
FIRSTS = [DONE, SENT]
"""What the first did, and what it sent."""


def the_log(agent: str = AGENT) -> dict[str, Callable[[EventLog], Awaitable[object]]]:
    both, alone = EventFilter(agents=frozenset({AGENT, "b"})), EventFilter(agents=frozenset({AGENT}))

    async def page(log: EventLog, which: EventFilter) -> object:
        return (await log.page(0, which, limit=9, size=99_999)).events

    async def followed(log: EventLog) -> object:
        return [event async for event in log.follow(0, agent_id=AGENT, upto=log.last_id)]

    return {
        "read": lambda log: log.read(0, agent_id=AGENT),
        "read by type": lambda log: log.read(0, agent_id=AGENT, types=frozenset({"usage"})),
        "page": lambda log: page(log, alone),
        "page of several": lambda log: page(log, both),
        "followed": followed,
        "attention": lambda log: log.open_attention(AGENT),
    }


@pytest.mark.parametrize("reader", the_log())
async def test_no_event_of_the_first(store: Store, reader: str) -> None:
    read = the_log()[reader]
    assert await read(store.events) == []
    told = [NewEvent(AGENT, ASKED), NewEvent(AGENT, TokensUsed(turn_id="9", input_tokens=1))]
    ids = {event.id for event in await store.commit(events=told)}
    found = await read(store.events)
    assert isinstance(found, list)
    assert found
    assert {event.id for event in found} <= ids


TASKS = {
    "its own": TaskFilter(agent_id=AGENT),
    "in a context": TaskFilter(agent_id=AGENT, context_id="c"),
    "in a state": TaskFilter(agent_id=AGENT, states=frozenset({TaskState.COMPLETED})),
    "what it may see": TaskFilter(visible_to=AGENT),
    "what it sent": TaskFilter(agent_id=OTHER, visible_to=AGENT),
}


@pytest.mark.parametrize("which", TASKS.values(), ids=TASKS)
async def test_no_task_of_the_first(store: Store, which: TaskFilter) -> None:
    assert await store.tasks(which) == ([], 0)
    assert not await store.has_tasks(which)
    assert await store.weigh(which) == []
    new = [over(3), over(4, agent_id=OTHER, metadata=AS_AGENT)]
    await store.commit(tasks=new)
    found, total = await store.tasks(which)
    assert total == len(found) > 0
    assert {task.id for task in found} <= {task.id for task in new}


@pytest.mark.parametrize("shown", [8, 36], ids=["beginning", "whole"])
async def test_no_task_of_the_first_by_its_id(store: Store, shown: int) -> None:
    for task, agent, viewer in [(DONE, AGENT, None), (DONE, None, AGENT), (SENT, None, AGENT), (SENT, OTHER, AGENT)]:
        with pytest.raises(TaskNotFound):
            await find_task(store, task.id[:shown], agent, viewer)
    assert await find_id(store, SENT.id[:shown], OTHER) == SENT.id
    new = over(5)
    await store.commit(tasks=[new])
    assert await find_task(store, new.id[:shown], AGENT, AGENT) == new


async def test_a_person_finds_all_that_ever_was(store: Store) -> None:
    assert await find_task(store, DONE.id) == DONE
    assert (await store.tasks(TaskFilter()))[1] == 2
    assert len(await store.events.read(0)) == 7
    assert len(await store.events.read(0, task_id=DONE.id)) == 3
    assert (await store.tasks(TaskFilter(agent_id=OTHER)))[1] == 1, "who was asked has it"
    await store.delete_agent(AGENT)
    assert (await store.tasks(TaskFilter(agent_id=AGENT)))[1] == 1, "of an id without an agent, all is meant"
    assert len(await store.events.read(0, agent_id=AGENT)) == 4


async def test_its_keys_are_its_own(store: Store) -> None:
    keyed = SendRequest(message=Message.of("go"), key="k", metadata=AS_AGENT)
    named = SendRequest(message=Message.of("go"), named=True)
    idempotency = Idempotency(store)
    ids = []
    for request, to in [(keyed, OTHER), (named, AGENT), (SendRequest(message=Message.of("go"), key="k"), AGENT)]:
        async with idempotency.once(request, to) as (task_id, known):
            assert known is None
            await store.commit(tasks=[a_task(id=task_id, agent_id=to, message=request.message)])
            ids.append(task_id)
    async with idempotency.once(named, AGENT) as (task_id, known):
        assert known is not None, "it is the same agent"
    await store.delete_agent(AGENT, [NewEvent(AGENT, StateChanged(state=REMOVED))])
    await store.commit(agents=[an_agent(AGENT)])
    for request, to in [(keyed, OTHER), (named, AGENT)]:
        async with idempotency.once(request, to) as (task_id, known):
            assert known is None
            assert task_id not in ids
    with pytest.raises(InvalidRequest, match=f"another agent, the {AGENT} that was removed"):
        async with idempotency.once(SendRequest(message=Message.of("go"), key="k"), AGENT):
            raise AssertionError("a person would take the first one's answer for the second's")


async def test_what_retention_removed_of_the_first_is_no_gap(open_store: OpenStore, tmp_path: Path) -> None:
    store = await open_store()
    await store.commit(agents=[an_agent(AGENT)], events=[NewEvent(AGENT, ASKED)])
    store.events.forget({AGENT: 1})
    await store.delete_agent(AGENT)
    await store.commit(agents=[an_agent(AGENT)])
    await store.close()
    store = await open_store()
    store.events.forget({AGENT: 1})
    assert store.events.gap(0, agent_id=AGENT) is None
    assert store.events.gap(0) == 1


async def test_history_and_usage(open_store: OpenStore, tmp_path: Path) -> None:
    store = await open_store()
    state = tmp_path / "state"
    history = await SqliteHistory(state / "synapsed.db", state / "history.db", store.events).open()
    try:
        await store.commit(agents=[an_agent(AGENT)])
        await worked(store)
        await store.delete_agent(AGENT, [NewEvent(AGENT, StateChanged(state=REMOVED))])
        its, seen = HistoryFilter(agent_id=AGENT, limit=9), HistoryFilter(visible_to=AGENT, limit=9)
        assert len((await history.search(its)).items) == 1, "there is no other of that id"
        await store.commit(agents=[an_agent(AGENT)])
        for which in (its, seen):
            assert (await history.search(which)).items == []
            assert (await history.stats(which)).items == 0
            assert (await history.usage(which, "agent")).total.turns == 0
        await worked(store)
        for which, count in ((its, 1), (seen, 1), (HistoryFilter(limit=9), 2)):
            assert len((await history.search(which)).items) == count
            assert (await history.stats(which)).items == count
            assert (await history.usage(which, "agent")).total.input_tokens == count * 100
    finally:
        await history.close()


async def worked(store: SqliteStore) -> None:
    task = a_task(1)
    told: list[EventData] = [
        TaskStatusChanged(state=TaskState.SUBMITTED),
        TokensUsed(turn_id=task.id, input_tokens=100),
    ]
    await store.commit(tasks=[task], events=[NewEvent.of(task, data) for data in told])


async def test_an_agent_that_goes_on_keeps_what_is_its_own(open_store: OpenStore) -> None:
    store = await open_store()
    await store.commit(agents=[an_agent(AGENT)], tasks=[DONE], events=[NewEvent(AGENT, ASKED)])
    await store.commit(agents=[an_agent(AGENT, restarts=1)])
    await store.close()
    store = await open_store()
    await store.commit(agents=[an_agent(AGENT, restarts=2)])
    assert (await store.tasks(TaskFilter(agent_id=AGENT)))[0] == [DONE]
    assert [event.id for event in await store.events.read(0, agent_id=AGENT)] == [1]


async def test_one_whose_removal_the_disk_refused(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon has forgotten it all the same: the next with its id is another one."""
    store = await open_store()
    await store.commit(agents=[an_agent(AGENT)], tasks=[DONE], events=[NewEvent(AGENT, ASKED)])

    async def full(*_: object, **__: object) -> None:
        raise StoreError("the disk is full", reason="full")

    with monkeypatch.context() as refusing:
        refusing.setattr(Database, "write", full)
        with pytest.raises(StoreError):
            await store.delete_agent(AGENT)
    for restarts in (0, 1):
        await store.commit(agents=[an_agent(AGENT, restarts=restarts)])
        assert store.events.born(AGENT) == 1
    assert await store.events.read(0, agent_id=AGENT) == []
    assert await store.tasks(TaskFilter(agent_id=AGENT)) == ([], 0)


async def test_a_database_of_an_older_program(open_store: OpenStore, tmp_path: Path) -> None:
    """There, an agent has all that its id ever had."""
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as old:
        old.executescript("".join(MIGRATIONS[:11]))
        old.execute("INSERT INTO agents (id, data) VALUES (?, ?)", (AGENT, an_agent(AGENT).model_dump_json()))
        old.execute(f"PRAGMA application_id = {0x73796E64}")
        old.execute("PRAGMA user_version = 11")
        old.commit()
    store = await open_store(path)
    await store.commit(tasks=[DONE], events=[NewEvent(AGENT, ASKED)])
    assert (await store.tasks(TaskFilter(agent_id=AGENT)))[0] == [DONE]
    assert store.events.born(AGENT) == 0


async def test_what_comes_after_a_repair_is_not_hidden(open_store: OpenStore, tmp_path: Path) -> None:
    """The last rows may be lost, and their numbers with them."""
    path = tmp_path / "state" / "synapsed.db"
    store = await open_store(path)
    await store.commit(tasks=FIRSTS, events=[NewEvent(OTHER, ASKED)] * 3)
    await store.commit(agents=[an_agent(AGENT)])
    await store.close()
    with closing(sqlite3.connect(path)) as damaged:
        damaged.executescript(
            "DELETE FROM tasks; DELETE FROM events; DELETE FROM sqlite_sequence WHERE name <> 'agents'"
        )
        damaged.commit()
    salvage(path, [])
    store = await open_store(path)
    await store.commit(tasks=[DONE], events=[NewEvent(AGENT, ASKED)])
    assert (await store.tasks(TaskFilter(agent_id=AGENT)))[0] == [DONE]
    assert len(await store.events.read(0, agent_id=AGENT)) == 1
