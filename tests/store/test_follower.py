"""Whatever follows the log: each event once, in order, whoever is killed and whatever fails."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from synapsed.errors import StoreError
from synapsed.interfaces import EventFilter, NewEvent
from synapsed.model.events import AgentAlert, AgentReported, Event, TurnSeen
from synapsed.model.records import FollowerState
from synapsed.store import follower as module
from synapsed.store.follower import PASSED_OVER, SAVE_EVERY, Changes, DurableFollower, Ended, Follower, NotNow
from synapsed.store.store import SqliteStore
from tests.fakes.clock import FakeClock, until
from tests.fakes.store import MemoryStore

TRIES = 3


class Killed(BaseException):
    """The daemon was killed here."""


class Counting(DurableFollower):
    """Tells of each turn which it was, counted over all daemons; `faults` are raised before."""

    name = "counting"
    wants = EventFilter(types=frozenset({"turnSeen"}))

    def __init__(self, store: Any, timers: FakeClock, faults: list[BaseException] | None = None) -> None:
        super().__init__(store, timers)
        self.faults = faults if faults is not None else []
        self.count = 0
        self.ahead = False
        self.passed: list[int] = []

    async def restore(self) -> None:
        await super().restore()
        kept = await self._store.follower("count")
        self.count, self.ahead = 0 if kept is None else kept.cursor, False

    def memory(self) -> dict[str, FollowerState]:
        return {"count": FollowerState(cursor=self.count)} if self.ahead else {}

    async def handle(self, event: Event) -> Changes | None:
        assert isinstance(event.data, TurnSeen)
        self.count += 1
        self.ahead = True
        if self.faults:
            raise self.faults.pop(0)
        if event.data.text == "quiet":
            return None
        return Changes([NewEvent("a", AgentReported(kind="count", message=f"{event.data.text} {self.count}"))])

    async def pass_over(self, event: Event) -> None:
        self.passed.append(event.id)


class Hearing(Follower):
    """Remembers what it has handled."""

    name = "hearing"
    wants = EventFilter(types=frozenset({"turnSeen"}))

    def __init__(self, store: MemoryStore, timers: FakeClock) -> None:
        super().__init__(store.events, timers)
        self.heard: list[str] = []
        self.faults: list[Exception] = []

    async def handle(self, event: Event) -> None:
        if self.faults:
            raise self.faults.pop(0)
        assert isinstance(event.data, TurnSeen)
        self.heard.append(event.data.text)


@pytest.fixture(autouse=True)
def _few_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them writes a traceback into the log, which is dear here."""
    monkeypatch.setattr(module, "TRIES", TRIES)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(clock: FakeClock) -> AsyncIterator[MemoryStore]:
    return MemoryStore(clock)


async def say(store: Any, *texts: str) -> None:
    await store.commit(events=[NewEvent("a", TurnSeen(text=text)) for text in texts])


async def reports(store: Any) -> list[str]:
    found = await store.events.read(0, limit=10_000, types=frozenset({"agentReported"}))
    return [event.data.message for event in found]


async def turns() -> None:
    """Everybody has their turns of the loop."""
    for _ in range(50):
        await asyncio.sleep(0)


async def started[F: Follower](follower: F) -> F:
    await follower.restore()
    follower.start()
    return follower


@pytest.mark.parametrize("before", [True, False], ids=["before", "behind"])
async def test_a_kill_at_every_commit(tmp_path: Path, clock: FakeClock, before: bool) -> None:
    """On a real database: each daemon dies at its second commit, just before it or just behind it."""
    store = await SqliteStore.open(tmp_path / "db", clock=clock)
    await Counting(store, clock).restore()
    texts = [f"t{number}" if number % 3 else "quiet" for number in range(12)]
    await say(store, *texts, "the last, of which nobody dies")
    keep = store.keep_follower
    while len(await reports(store)) < 8:
        commits = 0

        async def dies(*args: Any, **kwargs: Any) -> None:
            nonlocal commits
            commits += 1
            if commits == 1 or not before:
                await keep(*args, **kwargs)
            if commits == 2:
                raise Killed

        store.keep_follower = dies  # type: ignore[method-assign]
        with pytest.raises(Killed):
            await Counting(store, clock).run()
    told = [f"{text} {number}" for number, text in enumerate(texts, 1) if text != "quiet"]
    assert (await reports(store))[: len(told)] == told
    await store.close()


async def test_a_store_that_refuses_is_tried_for_as_long_as_it_does(store: MemoryStore, clock: FakeClock) -> None:
    follower = await started(Counting(store, clock))
    keep, refused = store.keep_follower, 0

    async def refuses(*_: Any, **__: Any) -> None:
        nonlocal refused
        refused += 1
        raise StoreError("the disk is full", reason="full")

    store.keep_follower = refuses  # type: ignore[method-assign]
    await say(store, "one", "two")
    await until(lambda: bool(clock.advance(60)) or refused > TRIES + 2)
    store.keep_follower = keep  # type: ignore[method-assign]
    await until(lambda: bool(clock.advance(60)) or follower.cursor >= 4)
    assert await reports(store) == ["one 1", "two 2"]
    await follower.close()


async def test_an_event_that_fails_for_a_while_is_handled_once(store: MemoryStore, clock: FakeClock) -> None:
    follower = await started(Counting(store, clock, [RuntimeError("bug")] * (TRIES - 1)))
    await say(store, "one", "two")
    await until(lambda: bool(clock.advance(60)) or follower.cursor >= 4)
    assert await reports(store) == ["one 1", "two 2"]
    assert not store.events.last_id > 4, "no alert"
    await follower.close()


async def test_an_event_that_fails_for_good_is_passed_over_and_told(store: MemoryStore, clock: FakeClock) -> None:
    follower = Counting(store, clock, [RuntimeError("bug geheim")] * TRIES)
    await started(follower)
    await say(store, "one", "two")
    await until(lambda: bool(clock.advance(60)) or follower.cursor >= 2)
    await follower.reached(2)
    assert await reports(store) == ["two 1"], "what the failed one had changed in memory is gone"
    assert follower.passed == [1]
    (alert,) = [event.data for event in store.events.all if isinstance(event.data, AgentAlert)]
    assert (alert.code, alert.details["follower"], alert.details["event"]) == (PASSED_OVER, "counting", 1)
    assert "geheim" not in alert.message
    await follower.close()


async def test_an_alert_of_its_own_kind_that_fails_makes_no_other(store: MemoryStore, clock: FakeClock) -> None:
    class OfAlerts(Counting):
        wants = EventFilter(types=frozenset({"agentAlert"}))

        async def handle(self, event: Event) -> Changes | None:
            raise RuntimeError("bug")

    follower = OfAlerts(store, clock)
    await started(follower)
    await store.commit(events=[NewEvent("a", AgentAlert(code="X", message="m"))])
    await until(lambda: bool(clock.advance(60)) or follower.passed == [1, 2])
    await follower.reached(2)
    assert store.events.last_id == 2
    await follower.close()


async def test_one_in_memory_handles_what_failed_again_and_nothing_else(store: MemoryStore, clock: FakeClock) -> None:
    await say(store, "before")
    hearing = Hearing(store, clock)
    await started(hearing)
    await say(store, "one", "two", "three")
    await hearing.reached(4)
    hearing.faults = [RuntimeError("bug"), StoreError("busy", reason="busy")]
    await say(store, "four", "five")
    await until(lambda: bool(clock.advance(1)) or len(hearing.heard) == 5)
    assert hearing.heard == ["one", "two", "three", "four", "five"]
    await hearing.close()


async def test_the_cursor_of_what_leads_to_nothing(store: MemoryStore, clock: FakeClock) -> None:
    follower = await started(Counting(store, clock))
    await say(store, *["quiet"] * (SAVE_EVERY - 1))
    await follower.reached(SAVE_EVERY - 1)
    assert store._followers["counting"].cursor == 0
    await say(store, "quiet")
    await follower.reached(SAVE_EVERY)
    assert (store._followers["counting"].cursor, store._followers["count"].cursor) == (SAVE_EVERY, SAVE_EVERY)
    await say(store, "quiet")
    await follower.reached(SAVE_EVERY + 1)
    await follower.close()
    assert store._followers["count"].cursor == SAVE_EVERY + 1, "closing writes it"


async def test_closing_in_the_middle_of_an_event_writes_nothing(store: MemoryStore, clock: FakeClock) -> None:
    class Slow(Counting):
        async def handle(self, event: Event) -> Changes | None:
            await super().handle(event)
            self.begun = True
            await asyncio.Event().wait()
            return None

    follower = Slow(store, clock)
    await started(follower)
    await say(store, "quiet")
    await until(lambda: getattr(follower, "begun", False))
    await follower.close()
    await follower.close()
    assert store._followers["counting"].cursor == 0
    assert "count" not in store._followers


async def test_waiting_for_one_ends_with_it(store: MemoryStore, clock: FakeClock) -> None:
    hearing = Hearing(store, clock)
    await hearing.reached(7)
    await started(hearing)
    hearing.faults = [Ended()]
    await say(store, "one")
    await hearing.reached(7)
    assert not hearing.running
    await hearing.close()


async def test_nobody_waits_for_one_that_fails(store: MemoryStore, clock: FakeClock) -> None:
    """Whoever ends the daemon would wait for ever for what can never be done."""
    hearing = await started(Hearing(store, clock))
    hearing.faults = [RuntimeError("bug")] * 100
    await say(store, "one")
    await hearing.reached(1)
    assert hearing.running
    await hearing.close()


async def test_what_is_in_no_hurry_looks_now_and_then(store: MemoryStore, clock: FakeClock) -> None:
    hearing = Hearing(store, clock)
    hearing.pace = 5.0
    await started(hearing)
    await turns()
    await say(store, "one")
    clock.advance(4.9)
    await turns()
    assert hearing.heard == []
    clock.advance(0.2)
    await until(lambda: hearing.heard == ["one"])
    await say(store, "two")
    await hearing.reached(2)
    assert hearing.heard == ["one", "two"], "but at once for who waits for it"
    await hearing.close()


async def test_what_escapes_ends_it(store: MemoryStore, clock: FakeClock) -> None:
    hearing = Hearing(store, clock)
    hearing.escapes = (LookupError,)
    hearing.faults = [LookupError("gone")]
    await hearing.restore()
    await say(store, "one")
    with pytest.raises(LookupError):
        await hearing.run()


async def test_catching_up_raises_and_loses_nothing(store: MemoryStore, clock: FakeClock) -> None:
    hearing = Hearing(store, clock)
    await hearing.restore()
    await say(store, "one", "two")
    hearing.faults = [StoreError("busy", reason="busy")]
    with pytest.raises(StoreError):
        await hearing.catch_up()
    await hearing.catch_up()
    assert hearing.heard == ["one", "two"]


async def test_catching_up_after_a_fault_behind_the_events(store: MemoryStore, clock: FakeClock) -> None:
    class Sending(Counting):
        away = True

        async def handled(self) -> None:
            if self.away:
                self.away = False
                raise NotNow("nobody is there")

    sending = Sending(store, clock)
    await sending.restore()
    await say(store, "quiet", "two")
    with pytest.raises(NotNow):
        await sending.catch_up()
    assert sending.count == 2
    await sending.catch_up()
    assert (sending.count, sending.cursor) == (2, store.events.last_id)


async def test_a_closed_store_ends_it(tmp_path: Path, clock: FakeClock) -> None:
    store = await SqliteStore.open(tmp_path / "db", clock=clock)
    follower = Counting(store, clock)
    await follower.restore()
    store.events.close()
    await follower.run()
    await store.close()
