"""Schedules at work: a manager with a scripted program, a clock that the test turns, and daemons that die anywhere."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from synapsed.errors import (
    AmbiguousAddress,
    Forbidden,
    InvalidRequest,
    NameTaken,
    QueueFull,
    StoreError,
    UnknownAgent,
    UnknownSchedule,
)
from synapsed.interfaces import STORE_RETRY_S, SendRequest
from synapsed.model.events import ScheduleCame
from synapsed.model.task import Message, Task
from synapsed.parts.schedules.due import LATE_S
from synapsed.parts.schedules.schedule import NewSchedule
from synapsed.parts.schedules.scheduler import RECHECK_S, Scheduler
from synapsed.parts.schedules.table import ScheduleTable, occurrence_of
from synapsed.store.store import SqliteStore
from synapsed.supervisor import manager
from tests.fakes.clock import JUMPS, PATIENCE_S, POLL_S, FakeClock, until
from tests.fakes.store import MemoryStore
from tests.support.world import World

BERLIN = ZoneInfo("Europe/Berlin")
DAY, HOUR = 86_400, 3600
TICK = 0.002
"""Sums of floats are off by less."""


class Home(World):
    """A world with a scheduler: `up` is a daemon's coming."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.zone = BERLIN
        self.schedulers: list[Scheduler] = []
        self.schedules: list[NewSchedule] = []

    def at(self, text: str) -> None:
        """Set all clocks, before anything runs."""
        self.clock = FakeClock(wall=datetime.fromisoformat(text).astimezone(self.zone).timestamp())
        self.store = MemoryStore(self.clock)
        self.store.with_tasks(occurrence_of)

    async def up(self) -> Scheduler:
        await self.daemon()
        scheduler = Scheduler(
            directory=self.manager.directory,
            tasks=self.manager.tasks,
            store=self.store,
            clock=self.clock,
            timers=self.clock,
            zone=lambda: self.zone,
        )
        self.schedulers.append(scheduler)
        await scheduler.restore(self.schedules)
        scheduler.start()
        return scheduler

    async def down(self) -> None:
        """As after a kill: what is durable stays, and programs live on."""
        await self.schedulers.pop().close()
        await self.manager.close(keep_agents=True)

    async def close(self) -> None:
        for scheduler in self.schedulers:
            await scheduler.close()
        await super().close()

    async def rest(self) -> None:
        """Until the scheduler has seen to everything that is due by now, and waits again."""
        scheduler = self.schedulers[-1]

        def waits() -> bool:
            entries = scheduler._entries.values()
            settled = all(entry.work is None and not entry.stale for entry in entries)
            due = any(entry.next is not None and entry.next < self.clock.wall() - TICK / 2 for entry in entries)
            return settled and not due and not scheduler._woken.is_set()

        await until(waits, "the scheduler is at rest")

    async def pass_(self, seconds: float, step: float = 600.0) -> None:
        """Time passes while the daemon runs; it is awake at each time of a schedule."""
        end = self.clock.wall() + seconds
        while (left := end - self.clock.wall()) > 0:
            await self.rest()
            times = [entry.next for entry in self.schedulers[-1]._entries.values() if entry.next is not None]
            waits = [at - self.clock.wall() for at in times if at > self.clock.wall()]
            self.clock.advance(min([left, step, *waits]))
            self.clock.advance(TICK)
        await self.rest()

    @property
    def tasks(self) -> list[Task]:
        return list(self.store._tasks.values())

    def came(self) -> list[tuple[str, str]]:
        """Outcome and time of each that was told, as clocks show it."""
        return [(data.outcome, self.shown(data.at)) for data in self.told(ScheduleCame)]

    def shown(self, at: str) -> str:
        return datetime.fromisoformat(at).astimezone(self.zone).strftime("%m-%d %H:%M")


@pytest.fixture(autouse=True)
def rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Days pass here: the rounds of the manager, which are nothing to a schedule, are not walked for each second."""
    monkeypatch.setattr(manager, "SWEEP_S", 600.0)


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    home = Home(tmp_path)
    home.at("2026-11-23T07:30+01:00")
    yield home
    await home.close()


def daily(**changes: Any) -> NewSchedule:
    return NewSchedule(**{"name": "standup", "at": "08:00", "agent": "fake", "message": "What is new?", **changes})


async def test_a_message_at_its_time(home: Home) -> None:
    scheduler = await home.up()
    await home.start()
    view = await scheduler.add(daily())
    assert view.next[:2] == ["2026-11-23T08:00:00+01:00", "2026-11-24T08:00:00+01:00"]
    assert (len(view.next), view.last, view.source, view.by) == (5, None, "verb", None)
    await home.pass_(HOUR / 2 - 1)
    assert home.tasks == []
    await home.pass_(1.1)
    (task,) = home.tasks
    assert task.message.text == "What is new?"
    assert task.metadata["scheduled"] == {"schedule": "standup", "at": "2026-11-23T07:00:00.000Z"}
    assert task.metadata["sender"]["sender_id"] == "schedule-standup"
    assert task.metadata["sender"]["tier"] == "person"
    await home.delivered()
    assert home.link.deliveries[0].text == "What is new?", "a person's words, as they are"
    (view,) = await scheduler.views()
    assert view.last is not None
    assert (view.last.at, view.last.outcome, view.last.task) == ("2026-11-23T08:00:00+01:00", "sent", task.id)
    assert view.next[0] == "2026-11-24T08:00:00+01:00"
    await home.pass_(2 * DAY)
    assert home.came() == [("sent", "11-23 08:00"), ("sent", "11-24 08:00"), ("sent", "11-25 08:00")]


async def test_nothing_is_late_by_looking_at_the_clock_now_and_then(home: Home) -> None:
    scheduler = await home.up()
    await home.start()
    await scheduler.add(daily())
    await until(lambda: RECHECK_S in home.clock.pending(), "it looks again before long")
    home.clock.advance(HOUR / 2 - 3)
    await until(lambda: 3.0 in [round(wait, 3) for wait in home.clock.pending()], "and then exactly at its time")


@pytest.mark.parametrize(("missed", "tasks"), [("skip", 0), ("once", 1)])
async def test_the_clock_is_set_forward(home: Home, missed: str, tasks: int) -> None:
    scheduler = await home.up()
    await home.start()
    await scheduler.add(daily(missed=missed))
    await until(lambda: RECHECK_S in home.clock.pending(), "it looks again before long")
    home.clock.jump(3 * DAY + 2 * HOUR)
    home.clock.advance(RECHECK_S)
    await home.rest()
    assert len(home.tasks) == tasks, "it is noticed at the next look"
    assert home.came() == [("sent" if tasks else "missed", "11-26 08:00")]
    assert home.shown(home.told(ScheduleCame)[0].missed_since) == "11-23 08:00"
    await home.pass_(DAY)
    assert len(home.tasks) == tasks + 1
    assert home.came()[-1] == ("sent", "11-27 08:00")


@pytest.mark.parametrize("missed", ["skip", "once"])
async def test_the_clock_is_set_back(home: Home, missed: str) -> None:
    """What has had its message has it no second time; what had none gets it when its time comes."""
    scheduler = await home.up()
    await home.start()
    await scheduler.add(daily(missed=missed))
    await home.pass_(2 * DAY)
    assert len(home.tasks) == 2
    home.clock.jump(-(DAY + HOUR))
    await home.pass_(HOUR * 24)
    assert len(home.tasks) == 2
    assert home.came() == [("sent", "11-23 08:00"), ("sent", "11-24 08:00")], "nor is it told again"
    await home.pass_(HOUR * 24)
    assert home.came()[2:] == [("sent", "11-25 08:00")]
    home.clock.jump(-DAY * 30)
    await home.rest()
    home.clock.jump(DAY * 30)
    await home.pass_(DAY)
    assert len(home.tasks) == 4, "there and back"


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("missed", ["skip", "once"])
async def test_each_time_once_though_the_clock_is_wrong_for_an_hour(home: Home, missed: str, jump: float) -> None:
    scheduler = await home.up()
    await home.start()
    await scheduler.add(daily(missed=missed))
    await home.pass_(2 * DAY)
    await set_clock(home, jump)
    await home.pass_(HOUR)
    await set_clock(home, -jump)
    await home.pass_(2 * DAY)
    sent = [at for outcome, at in home.came() if outcome == "sent"]
    assert len(set(sent)) == len(sent), "no time has its message twice"
    assert len(sent) <= 2 + 2 + 2, "one for all that seemed to be missed, and that of the hour"
    assert sent[-2:] == ["11-26 08:00", "11-27 08:00"], "and it goes on as before"


async def set_clock(home: Home, jump: float) -> None:
    """By `jump`, and the scheduler has noticed."""
    home.clock.jump(jump)
    entries = home.schedulers[-1]._entries.values()
    async with asyncio.timeout(PATIENCE_S):
        while not all(one.cursor <= home.clock.wall() < (one.next or 0) and not one.stale for one in entries):
            home.clock.advance(RECHECK_S)
            await asyncio.sleep(POLL_S)
    await home.rest()


async def test_a_machine_that_slept_sends_what_was_missed_once(home: Home) -> None:
    scheduler = await home.up()
    await home.start()
    await scheduler.add(daily(missed="once"))
    await home.rest()
    home.clock.sleep(20 * DAY + HOUR)
    home.clock.advance(RECHECK_S)
    await home.rest()
    assert [outcome for outcome, _ in home.came()] == ["sent"]


async def test_the_clock_is_set_back_over_a_restart(home: Home) -> None:
    scheduler = await home.up()
    await home.start()
    await scheduler.add(daily(missed="once"))
    await home.pass_(DAY)
    await home.down()
    home.clock.jump(-HOUR)
    await home.up()
    await home.pass_(2 * HOUR)
    assert home.came() == [("sent", "11-23 08:00"), ("sent", "11-24 08:00")]
    home.clock.jump(-23 * HOUR)
    await home.down()
    await home.up()
    await home.pass_(25 * HOUR)
    assert home.came() == [("sent", "11-23 08:00"), ("sent", "11-24 08:00")]


@pytest.mark.parametrize(("missed", "tasks"), [("skip", 0), ("once", 1)])
async def test_no_daemon_runs_at_the_time(home: Home, missed: str, tasks: int) -> None:
    scheduler = await home.up()
    await home.start()
    await scheduler.add(daily(missed=missed))
    await home.rest()
    await home.down()
    home.clock.jump(5 * HOUR)
    await home.up()
    await home.rest()
    assert len(home.tasks) == tasks
    assert home.came() == [("sent" if tasks else "missed", "11-23 08:00")]


async def test_a_restart_at_the_time_itself_is_not_late(home: Home) -> None:
    scheduler = await home.up()
    await home.start()
    await scheduler.add(daily())
    await home.pass_(HOUR / 2 - 5)
    await home.down()
    home.clock.jump(LATE_S)
    await home.up()
    await home.rest()
    assert home.came() == [("sent", "11-23 08:00")]


SUMMER = [
    # zone, daemon up, what is scheduled, hours that pass, what is told
    ("Europe/Berlin", "2026-03-28T12:00+01:00", "02:30", 48, ["03-30 02:30"]),
    ("Europe/Berlin", "2026-03-28T12:00+01:00", "30 2 * * *", 40, ["03-29 03:00", "03-30 02:30"]),
    ("Europe/Berlin", "2026-10-24T12:00+02:00", "02:30", 40, ["10-25 02:30", "10-26 02:30"]),
    ("Europe/Berlin", "2026-10-24T12:00+02:00", "30 2 * * *", 40, ["10-25 02:30", "10-26 02:30"]),
    ("Europe/Berlin", "2026-10-25T01:30+02:00", "0 * * * *", 3, ["10-25 02:00", "10-25 02:00", "10-25 03:00"]),
    ("Europe/Berlin", "2026-10-25T01:30+02:00", "hourly", 4, ["10-25 02:00", "10-25 03:00", "10-25 04:00"]),
    ("America/New_York", "2026-03-07T12:00-05:00", "Sun 02:30", 48, []),
    ("America/New_York", "2026-03-07T12:00-05:00", "30 2 * * SUN", 48, ["03-08 03:00"]),
    ("America/New_York", "2026-10-31T12:00-04:00", "01:30", 40, ["11-01 01:30", "11-02 01:30"]),
    ("Australia/Lord_Howe", "2026-04-05T01:00+11:00", "*:0/30", 1.8, ["04-05 01:30", "04-05 02:00"]),
    ("Africa/Cairo", "2026-04-23T12:00+02:00", "15 0 * * *", 38, ["04-24 01:00", "04-25 00:15"]),
]  # fmt: skip


@pytest.mark.parametrize(("zone", "begin", "at", "hours", "told"), SUMMER)
async def test_summer_time(tmp_path: Path, zone: str, begin: str, at: str, hours: float, told: list[str]) -> None:
    home = Home(tmp_path)
    home.zone = ZoneInfo(zone)
    home.at(begin)
    try:
        scheduler = await home.up()
        await home.start()
        await scheduler.add(daily(at=at))
        await home.pass_(hours * HOUR, step=1800)
        assert home.came() == [("sent", one) for one in told]
        assert len(home.tasks) == len(told)
    finally:
        await home.close()


async def test_people_travel(home: Home) -> None:
    """The machine's zone counts as it is; what is earlier over there is not missed."""
    scheduler = await home.up()
    await home.start()
    await scheduler.add(daily(missed="once"))
    await scheduler.add(daily(name="fixed", zone="Europe/Berlin"))
    await home.rest()
    home.zone = ZoneInfo("Asia/Tokyo")
    await home.pass_(RECHECK_S)
    assert home.tasks == []
    by_name = {view.name: view.next[0] for view in await scheduler.views()}
    assert by_name == {"standup": "2026-11-24T08:00:00+09:00", "fixed": "2026-11-23T08:00:00+01:00"}


# --- agents that cannot take it ---


async def test_an_agent_that_is_not_there(home: Home) -> None:
    home.schedules = [daily(agent="nobody")]
    scheduler = await home.up()
    await home.pass_(HOUR)
    assert home.tasks == []
    (view,) = await scheduler.views()
    assert view.last is not None
    assert (view.last.outcome, view.source, view.id) == ("refused", "file", "file:standup")
    assert "nobody" in view.last.problem
    (came,) = home.told(ScheduleCame)
    assert (came.outcome, came.problem) == ("refused", view.last.problem)


async def test_an_agent_that_was_stopped_is_not_started(home: Home) -> None:
    scheduler = await home.up()
    agent = await home.start()
    await scheduler.add(daily())
    await home.manager.stop(agent.id)
    await home.pass_(HOUR)
    assert home.tasks == []
    assert home.came() == [("refused", "11-23 08:00")]
    assert "restart fake" in home.told(ScheduleCame)[0].problem


async def test_a_parked_agent_is_woken(home: Home) -> None:
    scheduler = await home.up()
    agent = await home.start("talker", name="t")
    await scheduler.add(daily(agent="t"))
    await home.manager.park(agent.id)
    await home.pass_(HOUR)
    assert home.came() == [("sent", "11-23 08:00")]
    await until(lambda: home.manager.directory.view(agent.id).state != "parked", "it is woken")


async def test_a_full_mailbox(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synapsed.agents.mailbox.CAPACITY", 1)
    scheduler = await home.up()
    agent = await home.start(ready=False)
    for number in range(100):
        await home.send(agent.id, f"{number}")
    await scheduler.add(daily())
    await home.pass_(HOUR)
    assert len(home.tasks) == 100
    assert home.came() == [("refused", "11-23 08:00")]


async def test_the_disk_is_full_for_a_while(home: Home) -> None:
    scheduler = await home.up()
    await home.start()
    await scheduler.add(daily())
    await home.rest()
    home.store.refuse = StoreError("the disk is full", reason="full")
    home.clock.advance(HOUR / 2)
    await until(lambda: any(entry.work for entry in scheduler._entries.values()))
    await until(lambda: any(abs(wait - STORE_RETRY_S) < 0.001 for wait in home.clock.pending()))
    assert home.tasks == []
    home.store.refuse = None
    home.clock.advance(STORE_RETRY_S)
    await home.rest()
    assert home.came() == [("sent", "11-23 08:00")]
    assert len(home.tasks) == 1


async def test_one_that_fails_is_tried_again_after_a_pause(home: Home) -> None:
    scheduler = await home.up()
    await home.start()
    tried: list[str] = []
    send = home.manager.tasks.send

    async def faulty(agent_id: str, _request: SendRequest) -> Task:
        tried.append(agent_id)
        raise RuntimeError("a defect")

    home.manager.tasks.send = faulty
    await scheduler.add(daily())
    await home.rest()
    home.clock.advance(HOUR / 2)
    await until(lambda: sum(abs(wait - RECHECK_S) < 0.001 for wait in home.clock.pending()) == 2, "it pauses, too")
    assert len(tried) == 1
    home.manager.tasks.send = send
    home.clock.advance(RECHECK_S)
    await home.rest()
    assert home.came() == [("sent", "11-23 08:00")]


async def test_one_whose_times_cannot_be_found_ends_no_other(home: Home) -> None:
    class Faulty:
        zone = None

        def next_after(self, _instant: int, _zone: ZoneInfo) -> int:
            raise ValueError("a defect")

    scheduler = await home.up()
    await home.start()
    await scheduler.add(daily(name="faulty"))
    await home.rest()
    entry = scheduler._entries["faulty"]
    entry.spec, entry.next, entry.stale = Faulty(), None, True  # type: ignore[assignment]  # no spec that is read fails
    await scheduler.add(daily())
    await home.pass_(HOUR / 2 + 1)
    assert home.came() == [("sent", "11-23 08:00")]


# --- what people ask ---


async def test_names(home: Home) -> None:
    home.schedules = [daily(), daily(name=None, at="09:00"), daily(name=None, at="10:00")]
    scheduler = await home.up()
    await home.start(name="fake")
    assert [view.source for view in await scheduler.views()] == ["file"] * 3
    with pytest.raises(NameTaken):
        await scheduler.add(daily())
    first = await scheduler.add(daily(name=None))
    second = await scheduler.add(daily(name=None))
    assert (first.name, second.name) == ("fake-1", "fake-2")
    with pytest.raises(InvalidRequest, match=r"config\.toml"):
        await scheduler.remove("standup")
    await scheduler.remove("fake-1")
    with pytest.raises(UnknownSchedule, match="fake-2"):
        await scheduler.remove("fake-1")
    scheduler.reconfigure([daily(name="fake-2")])
    assert [view.id for view in await until_views(scheduler, 2)] == ["fake-2", "file:fake-2"]
    with pytest.raises(AmbiguousAddress, match="file:fake-2"):
        await scheduler.remove("fake-2")
    assert (await scheduler.run("file:fake-2")).message.text == "What is new?"


async def until_views(scheduler: Scheduler, count: int) -> list[Any]:
    await until(lambda: len(scheduler._entries) == count)
    return await scheduler.views()


async def test_what_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = await home.up()
    with pytest.raises(UnknownAgent):
        await scheduler.add(daily(agent="nobody"))
    await home.start()
    with pytest.raises(InvalidRequest, match="never come"):
        await scheduler.add(daily(at="2026-11-22 08:00"))
    await scheduler.add(daily())
    monkeypatch.setattr("synapsed.parts.schedules.scheduler.SCHEDULES_MAX", 1)
    with pytest.raises(QueueFull):
        await scheduler.add(daily(name="more"))


async def test_run_sends_now_and_changes_no_time(home: Home) -> None:
    scheduler = await home.up()
    await home.start()
    await scheduler.add(daily())
    task = await scheduler.run("standup", key="k")
    assert task.metadata["scheduled"] == {"schedule": "standup"}
    assert (await scheduler.run("standup", key="k")).id == task.id
    await home.pass_(HOUR)
    assert len(home.tasks) == 2
    assert home.came() == [("sent", "11-23 08:00")]


async def test_what_an_agent_has_made_is_its_own(home: Home) -> None:
    scheduler = await home.up()
    await home.start()
    maker = await home.start("talker", name="t")
    await scheduler.add(daily(name="mine"), by=maker.id)
    await scheduler.add(daily(name="persons"))
    with pytest.raises(Forbidden):
        await scheduler.remove("persons", by=maker.id)
    await home.pass_(HOUR)
    (task,) = [task for task in home.tasks if task.metadata["scheduled"]["schedule"] == "mine"]
    assert task.metadata["sender"]["sender_id"] == maker.id
    assert task.metadata["sender"]["verified"] is True
    await scheduler.remove("mine", by=maker.id)


async def test_what_an_agent_has_made_is_no_other_s_with_its_id(home: Home) -> None:
    scheduler = await home.up()
    await home.start()
    maker = await home.start("talker", name="t")
    await scheduler.add(daily(name="mine"), by=maker.id)
    await home.manager.stop(maker.id, remove=True)
    assert (await home.start("talker", name="t")).id == maker.id
    with pytest.raises(Forbidden, match="not yours"):
        await scheduler.remove("mine", by=maker.id)
    await scheduler.add(daily(name="new"), by=maker.id)
    await home.pass_(HOUR)
    (task,) = home.tasks
    assert task.metadata["scheduled"]["schedule"] == "new"
    outcomes = {told.schedule: (told.outcome, told.problem) for told in home.told(ScheduleCame)}
    assert outcomes["new"] == ("sent", "")
    assert outcomes["mine"][0] == "refused"
    assert f"the {maker.id} that has made it was removed" in outcomes["mine"][1]
    await scheduler.remove("new", by=maker.id)


async def test_no_client_says_that_it_is_a_schedule(home: Home) -> None:
    await home.up()
    await home.start()
    forged = {"schedule": "standup", "at": "2026-11-23T07:00:00.000Z"}
    task = await home.manager.tasks.send(
        home.manager.directory.resolve("fake"), SendRequest(message=Message.of("x"), metadata={"scheduled": forged})
    )
    assert "scheduled" not in task.metadata


async def test_times_that_are_written_otherwise_begin_now(home: Home) -> None:
    home.schedules = [daily(missed="once")]
    scheduler = await home.up()
    await home.start()
    await home.pass_(3 * HOUR)
    assert len(home.tasks) == 1
    scheduler.reconfigure([daily(missed="once", at="09:00", message="New words")])
    await until(lambda: next(iter(scheduler._entries.values())).schedule.at == "09:00")
    await home.pass_(HOUR)
    assert len(home.tasks) == 1, "09:00 has passed before it was written"
    await home.pass_(DAY)
    assert home.tasks[-1].message.text == "New words"
    scheduler.reconfigure([])
    await until(lambda: not scheduler._entries)
    assert await ScheduleTable(home.store).schedules() == {}


# --- daemons that die ---


class Dying:
    """The store of a daemon that dies at its n-th operation: before it, or just after it was done."""

    def __init__(self, store: SqliteStore, at: int, *, after: bool) -> None:
        self._store = store
        self._left = at
        self._after = after
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in ("commit", "read", "task"):
            return found

        async def counted(*args: Any, **kwargs: Any) -> Any:
            self._left -= 1
            if self._left < 0 or (self._left == 0 and not self._after):
                self._die()
            result = await found(*args, **kwargs)
            if self._left == 0:
                self._die()
            return result

        return counted

    def _die(self) -> None:
        self.dead = True
        raise StoreError("killed", reason="closed")


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
async def test_a_daemon_that_dies_at_any_step_sends_it_once(tmp_path: Path, after: bool) -> None:
    """Each operation on the store of the one that sends, in turn; the next daemon finds what is durable."""
    finished, at = False, 0
    while not finished:
        at += 1
        folder = tmp_path / f"{at}"
        folder.mkdir()
        finished = await one_death(Home(folder), folder / "synapsed.db", at, after=after)
    assert at > 3, "it was killed at each of several steps"


async def one_death(home: Home, path: Path, at: int, *, after: bool) -> bool:
    """Whether the daemon had nothing left to do when it was to die."""
    home.clock = FakeClock(wall=datetime.fromisoformat("2026-11-23T07:30+01:00").timestamp())
    store: Any = await SqliteStore.open(path, clock=home.clock)
    store.with_tasks(occurrence_of)
    try:
        home.store = store
        scheduler = await home.up()
        await home.start(ready=False)
        await scheduler.add(daily(missed="once"))
        await home.rest()
        dying = Dying(store, at, after=after)
        # From here on everything that this daemon does goes over the store that dies.
        scheduler._table._store = dying
        home.manager.tasks._store = home.manager.tasks._idempotency._store = dying
        agent = next(iter(home.manager._agents.values()))
        agent.turns._store = dying
        home.clock.advance(HOUR / 2)
        await until(lambda: dying.dead or settled(scheduler))
        died = dying.dead
        await home.down()
    finally:
        await store.close()
    store = home.store = await SqliteStore.open(path, clock=home.clock)
    store.with_tasks(occurrence_of)
    try:
        scheduler = await home.up()
        await home.rest()
        home.clock.advance(HOUR)
        await home.rest()
        tasks = await store.open_tasks()
        assert [task.message.text for task in tasks] == ["What is new?"], (at, after)
        told = [event.data for event in await store.events.read(0) if isinstance(event.data, ScheduleCame)]
        assert [data.outcome for data in told] == ["sent"], (at, after)
        await home.close()
    finally:
        await store.close()
    return not died


def settled(scheduler: Scheduler) -> bool:
    return all(entry.work is None and entry.state.last_at is not None for entry in scheduler._entries.values())
