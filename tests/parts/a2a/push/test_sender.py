"""Durable, at least once, in order: the sender on a real store, with a clock that stands still and a fake network."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from synapsed.clock import iso
from synapsed.documents.budget import BUDGET
from synapsed.documents.writing import LARGE, Parts, joined
from synapsed.errors import InvalidRequest, QueueFull, StoreError
from synapsed.interfaces import STORE_RETRY_S, NewEvent
from synapsed.model.events import AgentAlert, InputAnswered, TaskArtifactAdded, TaskStatusChanged
from synapsed.model.task import Artifact, Message, Task, TaskState
from synapsed.outgoing import PushPolicy
from synapsed.outgoing.poster import Receipt
from synapsed.parts.a2a.push import sender as sender_module
from synapsed.parts.a2a.push.lanes import Lanes
from synapsed.parts.a2a.push.push_record import PushRecord
from synapsed.parts.a2a.push.push_table import PushTable
from synapsed.parts.a2a.push.sender import PushSender
from synapsed.parts.a2a.push.telling import GIVEN_UP, SubscriptionDeps
from synapsed.store.store import SqliteStore
from tests.fakes.clock import FakeClock
from tests.support.patience import PATIENCE_S

AGENT = "synapse-dummy-8190"
POLICY = PushPolicy(jitter=0, initial=1, factor=2, maximum=8)
OK = Receipt(accepted=True)
NO = Receipt(accepted=False, problem="it answered 500")
DEADLINE_S = PATIENCE_S


class FakePoster:
    """Takes everything, unless `answer` says otherwise for a URL and the attempt's number (from 0)."""

    def __init__(self) -> None:
        self.answer: Callable[[str, int], Receipt] = lambda url, number: OK
        self.holding: dict[str, asyncio.Event] = {}
        self.headers: list[dict[str, str]] = []
        self.attempts: list[tuple[str, dict[str, Any]]] = []
        self.taken: list[tuple[str, dict[str, Any]]] = []
        self.busy: dict[str, int] = {}
        self.busiest = 0
        self.changed = asyncio.Condition()

    async def check(self, url: str) -> None:
        if "refused" in url:
            raise InvalidRequest("url: refused", field="url")

    async def post(self, url: str, body: Parts, headers: dict[str, str]) -> Receipt:
        number = sum(1 for other, _ in self.attempts if other == url)
        document = json.loads(await joined(body))
        self.attempts.append((url, document))
        self.headers.append(headers)
        self.busy[url] = self.busy.get(url, 0) + 1
        self.busiest = max(self.busiest, self.busy[url])
        await self._tell()
        try:
            if (held := self.holding.get(url)) is not None:
                await held.wait()
            receipt = self.answer(url, number)
        finally:
            self.busy[url] -= 1
        if receipt.accepted:
            self.taken.append((url, document))
        await self._tell()
        return receipt

    async def close(self) -> None:
        pass

    async def until(self, ready: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S), self.changed:
            await self.changed.wait_for(ready)

    async def took(self, count: int, url: str | None = None) -> list[dict[str, Any]]:
        """The first `count` that were taken."""
        await self.until(lambda: len(self._of(url)) >= count)
        return self._of(url)

    def _of(self, url: str | None) -> list[dict[str, Any]]:
        return [document for other, document in self.taken if url in (None, other)]

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()


class World:
    """One home's store; `up` is a daemon's life in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = FakeClock()
        self.poster = FakePoster()
        self.policy = POLICY
        self.lanes: Lanes | None = None

    @asynccontextmanager
    async def up(self) -> AsyncGenerator[PushSender]:
        self.store = await SqliteStore.open(self.path, clock=self.clock)
        self.book = PushTable(self.store)
        self.means = SubscriptionDeps(
            book=self.book,
            store=self.store,
            poster=self.poster,
            policy=self.policy,
            lanes=self.lanes or Lanes(),
            clock=self.clock,
            timers=self.clock,
            rng=lambda: 0.0,
            user_agent="synapsed/test",
            texts=self.store.texts,
        )
        sender = PushSender(self.means)
        await sender.start()
        try:
            yield sender
        finally:
            await sender.close()
            await self.store.close()

    async def task(self, task_id: str = "t1") -> Task:
        task = Task(
            id=task_id, agent_id=AGENT, context_id="c", message=Message.of("hi"), created_at=iso(1), updated_at=iso(1)
        )
        await self.store.commit(tasks=[task], events=[status(task, TaskState.SUBMITTED)])
        return task

    async def move(self, task: Task, state: TaskState, *events: NewEvent) -> None:
        task.status = state
        await self.store.commit(tasks=[task], events=[*events, status(task, state)])

    async def record(self, task_id: str = "t1", push_id: str = "p") -> PushRecord:
        return next(record for record in await self.book.of_task(task_id) if record.id == push_id)

    async def until(self, ready: Callable[[PushRecord], bool], task_id: str = "t1") -> PushRecord:
        """The record when it is so."""
        async with asyncio.timeout(DEADLINE_S):
            while not ready(record := await self.record(task_id)):
                await asyncio.sleep(0.005)
        return record

    async def wait_for_pause(self) -> float:
        """How long it is until something is tried again, once something is."""
        async with asyncio.timeout(DEADLINE_S):
            while not self.clock.pending():
                await asyncio.sleep(0.005)
        return self.clock.pending()[0]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "state" / "synapsed.db")


def status(task: Task, state: TaskState, **more: Any) -> NewEvent:
    return NewEvent(task.agent_id, TaskStatusChanged(state=state, **more), task.id)


def artifact(task: Task, text: str, **more: Any) -> NewEvent:
    return NewEvent(task.agent_id, TaskArtifactAdded(artifact=Artifact.answer(text), **more), task.id)


def a_push(task: Task, cursor: int, push_id: str = "p", **changes: Any) -> PushRecord:
    return PushRecord(
        task_id=task.id,
        id=push_id,
        agent_id=task.agent_id,
        url="https://example.com/hook",
        cursor=cursor,
        token="token-secret",
        scheme="Bearer",
        credentials="credentials-secret",
    ).model_copy(update=changes)


def told(documents: list[dict[str, Any]]) -> list[str]:
    """States, and texts of artifacts."""
    return [
        document["artifactUpdate"]["artifact"]["parts"][0]["text"]
        if "artifactUpdate" in document
        else (document.get("statusUpdate") or document["task"])["status"]["state"].removeprefix("TASK_STATE_")
        for document in documents
    ]


async def test_a_task_is_told_from_its_beginning_to_its_end(world: World):
    async with world.up() as sender:
        task = await world.task()
        await sender.put(a_push(task, 0))
        await world.move(task, TaskState.WORKING)
        await world.store.commit(
            events=[
                artifact(task, "approx", append=False, last_chunk=False),
                artifact(task, "imate", append=True, last_chunk=False),
                NewEvent(AGENT, InputAnswered(prompt_id="p", answer=None), task.id),
                NewEvent(AGENT, TaskArtifactAdded(artifact=Artifact.block(1, parts=[])), task.id),
            ]
        )
        await world.move(task, TaskState.COMPLETED, artifact(task, "exact"))
        documents = await world.poster.took(4)
        assert told(documents) == ["SUBMITTED", "WORKING", "exact", "COMPLETED"]
        ids = [next(iter(document.values()))["metadata"]["synapsed"]["eventId"] for document in documents]
        assert ids == sorted(ids)
        assert all(next(iter(document.values()))["contextId"] == "c" for document in documents)
        assert (await world.until(lambda record: record.state == "done")).cursor == ids[-1]
    assert world.poster.headers[0] == {
        "Content-Type": "application/a2a+json",
        "A2A-Version": "1.0",
        "User-Agent": "synapsed/test",
        "Authorization": "Bearer credentials-secret",
        "X-A2A-Notification-Token": "token-secret",
    }


async def test_what_was_told_in_pieces_is_told_whole(world: World):
    """A receiver of notifications gets the last piece only: it is given the artifact."""
    async with world.up() as sender:
        task = await world.task()
        await sender.put(a_push(task, 0))
        pieces = [
            artifact(task, "exa", append=True, last_chunk=False),
            artifact(task, "ct", append=True, last_chunk=True),
        ]
        task = task.model_copy(update={"artifacts": [Artifact.answer("exact")]})
        await world.move(task, TaskState.COMPLETED, *pieces)
        documents = await world.poster.took(3)
        assert told(documents) == ["SUBMITTED", "exact", "COMPLETED"]
        assert documents[1]["artifactUpdate"]["append"] is False


@pytest.mark.parametrize("dialect", ["1.0", "0.3"])
async def test_what_is_large_is_told_when_there_is_room(world: World, dialect: str):
    """Of an event by itself, of a task that is over, and of an artifact that was told in pieces."""
    text = "é" * LARGE
    async with world.up() as sender:
        room = world.store.events.room
        held = room.take_now("held", BUDGET)
        assert held is not None
        whole, pieces, over = [await world.task(name) for name in ("t1", "t2", "t3")]
        for task in (whole, pieces):
            await sender.put(a_push(task, world.store.events.last_id, dialect=dialect))
        answers = {"artifacts": [Artifact.answer(text)]}
        await world.move(whole.model_copy(update=answers), TaskState.COMPLETED, artifact(whole, text))
        rest = artifact(pieces, "rest", append=True, last_chunk=True)
        await world.move(pieces.model_copy(update=answers), TaskState.COMPLETED, rest)
        await world.move(over.model_copy(update=answers), TaskState.COMPLETED)
        await sender.put(a_push(over, world.store.events.last_id, dialect=dialect))
        async with asyncio.timeout(DEADLINE_S):
            while room.waiting < 3:
                await asyncio.sleep(0.005)
        assert world.poster.attempts == []
        held.release()
        for name in ("t1", "t2", "t3"):
            await world.until(lambda record: record.state == "done", name)
        assert room.used == 0, "what is told is given back"
    assert sum(text in json.dumps(document, ensure_ascii=False) for _, document in world.poster.taken) >= 3


async def test_without_secrets_there_are_no_headers_for_them(world: World):
    async with world.up() as sender:
        task = await world.task()
        await sender.put(a_push(task, 0, token=None, credentials=None))
        await world.poster.took(1)
    assert {"Authorization", "X-A2A-Notification-Token"}.isdisjoint(world.poster.headers[0])


async def test_only_what_comes_after_the_cursor_is_told(world: World):
    async with world.up() as sender:
        task = await world.task()
        await sender.put(a_push(task, world.store.events.last_id))
        await world.move(task, TaskState.INPUT_REQUIRED)
        assert told(await world.poster.took(1)) == ["INPUT_REQUIRED"]
        await world.move(task, TaskState.CANCELED)
        assert told(await world.poster.took(2)) == ["INPUT_REQUIRED", "CANCELED"]


async def test_of_a_task_that_is_over_the_task_is_told_once(world: World):
    async with world.up() as sender:
        task = await world.task()
        await world.move(task, TaskState.FAILED)
        await sender.put(a_push(task, world.store.events.last_id))
        assert told(await world.poster.took(1)) == ["FAILED"]
        assert world.poster.taken[0][1]["task"]["id"] == task.id
        await world.until(lambda record: record.state == "done")
    async with world.up():
        assert await world.book.active() == []
    assert len(world.poster.taken) == 1


async def test_in_03_the_task_is_told_in_the_form_of_03(world: World):
    async with world.up() as sender:
        task = await world.task()
        await sender.put(a_push(task, 0, dialect="0.3"))
        (document,) = await world.poster.took(1)
    assert (document["kind"], document["id"], document["contextId"]) == ("task", task.id, "c")
    assert document["status"]["state"] == "submitted"
    assert world.poster.headers[0]["Content-Type"] == "application/json"


async def test_failures_are_tried_again_in_order_and_with_growing_pauses(world: World):
    world.poster.answer = lambda url, number: NO if number < 4 else OK
    async with world.up() as sender:
        task = await world.task()
        await sender.put(a_push(task, 0))
        await world.move(task, TaskState.COMPLETED)
        pauses = []
        for attempt in range(1, 5):
            record = await world.until(lambda record, attempt=attempt: record.attempt == attempt)
            assert record.cursor == 0
            pauses.append(await world.wait_for_pause())
            world.clock.advance(pauses[-1])
        assert pauses == [1, 2, 4, 8]
        assert told(await world.poster.took(2)) == ["SUBMITTED", "COMPLETED"]
        record = await world.until(lambda record: record.state == "done")
        assert (record.attempt, record.failing_since) == (0, None)


async def test_retry_after_is_honoured(world: World):
    busy = Receipt(accepted=False, retry_after="60", problem="it answered 503")
    world.poster.answer = lambda url, number: busy if number == 0 else OK
    async with world.up() as sender:
        task = await world.task()
        await sender.put(a_push(task, 0))
        assert await world.wait_for_pause() == 60
        world.clock.advance(59)
        assert len(world.poster.attempts) == 1
        world.clock.advance(1)
        await world.poster.took(1)


@pytest.mark.parametrize("moment", ["in flight", "in a pause", "between"])
async def test_nothing_is_lost_with_the_daemon(world: World, moment: str):
    """It ends at the worst moment; the next goes on there, at most the last notification comes twice."""
    if moment == "in flight":
        world.poster.holding["https://example.com/hook"] = asyncio.Event()
    if moment == "in a pause":
        world.poster.answer = lambda url, number: NO if number == 0 else OK
    async with world.up() as sender:
        task = await world.task()
        await sender.put(a_push(task, 0))
        await world.poster.until(lambda: bool(world.poster.attempts))
        if moment == "in a pause":
            await world.wait_for_pause()
        if moment == "between":
            await world.until(lambda record: record.cursor > 0)
        await world.move(task, TaskState.WORKING)
    world.poster.holding.clear()
    async with world.up():
        await world.move(task, TaskState.COMPLETED)
        if moment == "in a pause":
            assert await world.wait_for_pause() == 1, "a restart does not shorten it"
            world.clock.advance(1)
        await world.until(lambda record: record.state == "done")
    states = told([document for _, document in world.poster.taken])
    assert list(dict.fromkeys(states)) == ["SUBMITTED", "WORKING", "COMPLETED"]
    assert len(states) <= 4


async def test_a_receiver_is_given_up_and_a_person_told(world: World):
    world.policy = PushPolicy(jitter=0, initial=1, attempts=2)
    world.poster.answer = lambda url, number: NO
    async with world.up() as sender:
        task = await world.task()
        await sender.put(a_push(task, 0, url="https://example.com/hook?key=url-secret"))
        world.clock.advance(await world.wait_for_pause())
        await world.until(lambda record: record.state == "given_up")
        await alert(world)
    assert len(world.poster.attempts) == 2
    async with world.up():
        assert await world.book.active() == []


async def alert(world: World) -> None:
    async with asyncio.timeout(DEADLINE_S):
        async for event in world.store.events.follow(0, agent_id=AGENT):
            if isinstance(event.data, AgentAlert):
                assert (event.data.code, event.task_id) == (GIVEN_UP, None)
                assert "https://example.com is not notified" in event.data.message
                assert "it answered 500" in event.data.message
                assert "secret" not in event.model_dump_json()
                return


async def test_gone_is_taken_at_its_word(world: World):
    world.poster.answer = lambda url, number: Receipt(accepted=False, gone=True, problem="it answered 410")
    async with world.up() as sender:
        task = await world.task()
        await sender.put(a_push(task, 0))
        assert (await world.until(lambda record: record.state == "given_up")).attempt == 1


@pytest.mark.parametrize("change", ["put", "delete"])
@pytest.mark.parametrize("trouble", ["a store that refuses", "a caller that goes away"])
async def test_a_change_that_does_not_happen_ends_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, change: str, trouble: str
):
    reached, over = asyncio.Event(), asyncio.Event()

    async def refuse(*_: object) -> None:
        reached.set()
        await over.wait()
        raise StoreError("the disk is full")

    async with world.up() as sender:
        task = await world.task()
        await sender.put(a_push(task, 0))
        await world.poster.took(1)
        await world.until(lambda record: record.cursor > 0)
        with monkeypatch.context() as patched:
            patched.setattr(world.book, change, refuse)
            changing = sender.put(a_push(task, 0)) if change == "put" else sender.delete(task.id, "p")
            asked = asyncio.ensure_future(changing)
            await reached.wait()
            if trouble == "a caller that goes away":
                asked.cancel()
            over.set()
            with pytest.raises((StoreError, asyncio.CancelledError)):
                await asked
        await world.move(task, TaskState.COMPLETED)
        await world.until(lambda record: record.state == "done")
    assert told(await world.poster.took(2)) == ["SUBMITTED", "COMPLETED"]


async def test_what_is_deleted_is_not_told_any_more(world: World):
    world.poster.holding["https://example.com/hook"] = asyncio.Event()
    async with world.up() as sender:
        task = await world.task()
        await sender.put(a_push(task, 0))
        await world.poster.until(lambda: bool(world.poster.attempts))
        await sender.delete(task.id, "p")
        await sender.delete(task.id, "p")
        assert await sender.get(task.id, "p") is None
        await world.move(task, TaskState.COMPLETED)
    assert world.poster.taken == []
    async with world.up():
        assert await world.book.active() == []


async def test_a_config_that_is_replaced_goes_on_where_the_old_one_was(world: World):
    world.poster.answer = lambda url, number: OK if "new" in url else NO
    async with world.up() as sender:
        task = await world.task()
        await sender.put(a_push(task, 0))
        await world.wait_for_pause()
        await sender.put(a_push(task, world.store.events.last_id, url="https://example.com/new"))
        assert told(await world.poster.took(1)) == ["SUBMITTED"]
        assert [record.url for record in await sender.of_task(task.id)] == ["https://example.com/new"]


async def test_a_receiver_that_is_slow_or_dead_holds_up_only_itself(world: World):
    """Of many configs with a receiver that never answers, few are on their way; the others' are not concerned."""
    world.lanes = Lanes(first=3, retries=1, origin=2)
    world.poster.holding = {f"https://slow.example/{n}": asyncio.Event() for n in range(8)}
    async with world.up() as sender:
        tasks = [await world.task(f"t{n}") for n in range(8)]
        for number, task in enumerate(tasks):
            await sender.put(a_push(task, 0, "slow", url=f"https://slow.example/{number}"))
        await world.poster.until(lambda: sum(world.poster.busy.values()) == 2)
        for number, task in enumerate(tasks):
            await sender.put(a_push(task, 0, "fast", url=f"https://fast.example/{number}"))
        for number, task in enumerate(tasks):
            await world.move(task, TaskState.COMPLETED)
            assert told(await world.poster.took(2, f"https://fast.example/{number}")) == ["SUBMITTED", "COMPLETED"]
        assert len([url for url, _ in world.poster.attempts if "slow" in url]) == 2
        for held in world.poster.holding.values():
            held.set()
        for number in range(8):
            await world.poster.took(2, f"https://slow.example/{number}")
    assert world.poster.busiest == 1


async def test_dead_receivers_take_no_place_from_healthy_ones(world: World):
    world.lanes = Lanes(first=1, retries=1, origin=1)
    held = asyncio.Event()
    world.poster.answer = lambda url, number: NO if "dead" in url else OK
    async with world.up() as sender:
        task = await world.task()
        await sender.put(a_push(task, 0, "dead", url="https://dead.example/"))
        pause = await world.wait_for_pause()
        world.poster.holding["https://dead.example/"] = held
        world.clock.advance(pause)
        await world.poster.until(lambda: world.poster.busy.get("https://dead.example/") == 1)
        await sender.put(a_push(task, 0, "well", url="https://well.example/"))
        assert told(await world.poster.took(1, "https://well.example/")) == ["SUBMITTED"]
        held.set()


async def test_a_store_that_refuses_for_a_while_costs_nothing(world: World, monkeypatch: pytest.MonkeyPatch):
    async with world.up() as sender:
        task = await world.task()
        whole = world.book.update
        refusals = iter([True, True])

        async def update(record: PushRecord) -> bool:
            if next(refusals, False):
                raise StoreError("full", reason="full")
            return await whole(record)

        monkeypatch.setattr(world.book, "update", update)
        await sender.put(a_push(task, 0))
        for _ in range(2):
            assert await world.wait_for_pause() == STORE_RETRY_S
            world.clock.advance(STORE_RETRY_S)
        await world.move(task, TaskState.COMPLETED)
        await world.until(lambda record: record.state == "done")
    assert told([document for _, document in world.poster.taken]) == ["SUBMITTED", "COMPLETED"]


async def test_there_are_bounds(world: World, monkeypatch: pytest.MonkeyPatch):
    async with world.up() as sender:
        task = await world.task()
        for number in range(sender_module.TASK_MAX):
            await sender.put(a_push(task, 0, str(number)))
        with pytest.raises(QueueFull):
            await sender.put(a_push(task, 0, "one more"))
        await sender.put(a_push(task, 0, "3"))  # in place of one that is there
        monkeypatch.setattr(sender_module, "ACTIVE_MAX", sender_module.TASK_MAX)
        with pytest.raises(QueueFull):
            await sender.check("https://example.com/")


async def test_nothing_secret_is_logged(world: World, capsys: pytest.CaptureFixture[str]):
    world.policy = PushPolicy(jitter=0, initial=1, attempts=2)
    world.poster.answer = lambda url, number: NO
    async with world.up() as sender:
        task = await world.task()
        await sender.put(a_push(task, 0, url="https://example.com/hook?key=url-secret"))
        world.clock.advance(await world.wait_for_pause())
        await world.until(lambda record: record.state == "given_up")
    out = "".join(capsys.readouterr())
    assert "https://example.com" in out
    assert "secret" not in out
