"""Each thing that compares with the wall clock, under a clock that is set by ±1 and ±20 days, and over sleep
(docs/clocks.md, whose other rows are in the tests of their rooms)."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from synapsed.agents import message_files
from synapsed.agents.stop_requests import Unanswered
from synapsed.clock import iso
from synapsed.config.config import Keep
from synapsed.interfaces import NewEvent
from synapsed.model.events import TaskStatusChanged
from synapsed.model.task import Message, Prompt, Task, TaskState
from synapsed.parts.attention.sent_notices import Mark, Marks, digest, new_token
from synapsed.parts.web import visitors
from synapsed.parts.web.book import SESSION_S, AccessBook
from synapsed.parts.web.certificates import read
from synapsed.parts.web.codes import CODE_S, Codes
from synapsed.parts.web.pairs import load_own
from synapsed.parts.web.records import DEVICES_MAX
from synapsed.parts.web.visitors import Visitors
from synapsed.store.acts import KEPT_S, ActLog
from synapsed.store.backups import EVERY_S, Backups, newest_first
from synapsed.store.store import SqliteStore
from synapsed.supervisor.task_expiry import Retention
from synapsed_fleet.parcel import id_of_body
from synapsed_fleet.parcel_fetching import KEPT_S as PARCELS_KEPT_S
from synapsed_fleet.parcel_fetching import Fetching
from synapsed_fleet.parcel_spool import InSpool
from tests.fakes.clock import DAY_S, JUMPS, FakeClock
from tests.fakes.store import MemoryStore

AGENT = "synapse-dummy-8190"
HOUR_S = 3600.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "synapsed.db", clock=clock)
    yield store
    await store.close()


# --- copies of the database ------------------------------------------------------------------------------------------


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "own.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE events (id INTEGER PRIMARY KEY)")
        connection.commit()
    return path


def event(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("INSERT INTO events DEFAULT VALUES")
        connection.commit()


async def of_a_day(backups: Backups, clock: FakeClock) -> list[Path]:
    """The copies that are made in one day of looks, of which this takes every sixteenth."""
    made = []
    for _ in range(int(DAY_S / EVERY_S / 16)):
        clock.advance(EVERY_S * 16)
        made.append(await backups.look())
    return [copy for copy in made if copy is not None]


@pytest.mark.parametrize("lasts", [HOUR_S, 3 * DAY_S])
@pytest.mark.parametrize("jump", JUMPS)
async def test_copies_survive_a_jump_and_come_once_a_day(
    database: Path, tmp_path: Path, clock: FakeClock, jump: float, lasts: float
) -> None:
    folder = tmp_path / "backups"
    backups = Backups(database, folder, days=7, clock=clock)
    for _ in range(7):
        event(database)
        assert await backups.look() is not None
        clock.advance(DAY_S)
    before = set(folder.iterdir())
    clock.jump(jump)
    await backups.look()
    clock.advance(lasts)
    await backups.look()
    assert len(before - set(folder.iterdir())) <= lasts // DAY_S, "none goes but by another day's"
    clock.jump(-jump)
    assert len(await of_a_day(backups, clock)) <= 1
    assert len(await of_a_day(backups, clock)) == 1, "once a day again"
    assert len(list(folder.iterdir())) <= 7 + 1 + 2, "and it stays bounded"
    for _ in range(25):
        event(database)
        clock.advance(DAY_S)
        await backups.look()
    assert len(list(folder.iterdir())) <= 7 + 1


async def test_a_machine_that_slept_has_its_copy_at_the_next_look(
    database: Path, tmp_path: Path, clock: FakeClock
) -> None:
    backups = Backups(database, tmp_path / "backups", days=7, clock=clock)
    assert await backups.look() is not None
    clock.sleep(20 * DAY_S)
    assert await backups.look() is not None
    assert len(list((tmp_path / "backups").iterdir())) == 2


async def test_the_newest_copy_is_the_one_that_knows_most(database: Path, tmp_path: Path, clock: FakeClock) -> None:
    folder = tmp_path / "backups"
    backups = Backups(database, folder, days=7, clock=clock)
    event(database)
    clock.jump(20 * DAY_S)
    ahead = await backups.look()
    clock.jump(-20 * DAY_S)
    event(database)
    later = await backups.look()
    assert ahead is not None
    assert later is not None
    assert newest_first(folder) == [later, ahead]
    (folder / "synapsed-20200101T000000Z.db").write_bytes(b"no database")
    assert newest_first(folder)[:2] == [later, ahead], "one that cannot be read comes last"


# --- what is forgotten for its age -----------------------------------------------------------------------------------


async def ended(store: SqliteStore, clock: FakeClock, *, ago: float) -> Task:
    at = iso(clock.wall() - ago)
    task = Task(agent_id=AGENT, status=TaskState.COMPLETED, message=Message.of("hi"), created_at=at, updated_at=at)
    await store.commit(tasks=[task], events=[NewEvent(AGENT, TaskStatusChanged(state=task.status), task.id)])
    return task


@pytest.mark.parametrize("jump", JUMPS)
async def test_no_task_goes_for_its_age_while_the_clock_may_be_wrong(
    store: SqliteStore, clock: FakeClock, tmp_path: Path, jump: float
) -> None:
    kept = await ended(store, clock, ago=75 * DAY_S)
    gone = await ended(store, clock, ago=91 * DAY_S)
    keeper = Retention(
        store, Keep(tasks=0, days=90), inbox=lambda _: tmp_path / "inbox", clock=clock, timers=_Hasty(clock)
    )
    assert await keeper.tidy() == 1
    assert await store.find_tasks(gone.id, 1) == []
    clock.jump(jump)
    for _ in range(5):
        assert await keeper.tidy() == 0
        clock.advance(600)
    clock.jump(-jump)
    assert await keeper.tidy() == 0
    assert await store.find_tasks(kept.id, 1) == [kept.id], "it is right again, and nothing is lost"
    clock.advance(16 * DAY_S)
    assert await keeper.tidy() == 1


class _Hasty:
    """Timers of which none is waited for."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock

    def call_later(self, delay: float, callback: Any) -> Any:
        timer = self._clock.call_later(delay, callback)
        self._clock.advance(delay)
        return timer


def test_no_file_goes_for_its_age_while_the_clock_may_be_wrong(tmp_path: Path) -> None:
    (tmp_path / "aaaaaaaa-a.txt").write_text("x")
    now = (tmp_path / "aaaaaaaa-a.txt").stat().st_mtime
    assert message_files.tidy(tmp_path, [], now=None) == 0
    assert message_files.tidy(tmp_path, [], now=now - 20 * DAY_S) == 0
    assert message_files.tidy(tmp_path, [], now=now + 20 * DAY_S) == 1


# --- what was done under a key ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", JUMPS)
async def test_what_was_done_under_a_key_stays_done(tmp_path: Path, clock: FakeClock, jump: float) -> None:
    acts = ActLog(tmp_path / "acts", clock)
    await acts.begin("a")
    await acts.done("a", {"ok": True})
    clock.jump(jump)
    clock.advance(HOUR_S)
    found = await acts.get("a")
    assert found is not None
    assert found.answer == {"ok": True}
    clock.sleep(KEPT_S)
    assert await acts.get("a") is None, "a day is a day, also asleep"


async def test_a_key_of_the_future_counts_after_a_restart(tmp_path: Path, clock: FakeClock) -> None:
    acts = ActLog(tmp_path / "acts", clock)
    await acts.begin("a")
    clock.jump(-20 * DAY_S)
    assert await ActLog(tmp_path / "acts", clock).get("a") is not None
    clock.jump(40 * DAY_S)
    assert await ActLog(tmp_path / "acts", clock).get("a") is None


# --- questions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", JUMPS)
def test_a_question_waits_as_long_as_it_may(clock: FakeClock, jump: float) -> None:
    at = iso(clock.wall())
    asked = Task(
        agent_id=AGENT,
        status=TaskState.INPUT_REQUIRED,
        message=Message.of("hi"),
        created_at=at,
        updated_at=at,
        prompt=Prompt(prompt_id="p", type="question", prompt="Go on?"),
    )
    posted: list[Any] = []
    unanswered = Unanswered(
        cast("Any", SimpleNamespace(current=asked)),
        cast("Any", SimpleNamespace(config=SimpleNamespace(question_timeout="2h"))),
        clock=clock,
        actor=cast("Any", SimpleNamespace(post=lambda *given: posted.append(given))),
    )
    unanswered.sweep()
    clock.jump(jump)
    clock.advance(HOUR_S)
    unanswered.sweep()
    assert posted == []
    clock.sleep(HOUR_S)
    unanswered.sweep()
    assert len(posted) == 1, "the machine slept, and the question was open"


# --- who may come in -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_device_is_let_in_again_once_the_clock_is_right(tmp_path: Path, clock: FakeClock, jump: float) -> None:
    book = AccessBook(tmp_path / "access.json", clock)
    device, session = await book.pair("phone", frozenset({"look"}))
    clock.advance(SESSION_S / 2)
    clock.jump(jump)
    await book.pair("another", frozenset({"look"}))
    await book.make_token("script", frozenset({"look"}), agents=None, days=1)
    clock.jump(-jump)
    found = book.device_of(session)
    assert found is not None
    assert found.id == device.id
    await book.seen(device.id)
    clock.advance(SESSION_S - HOUR_S)
    assert book.device_of(session) is not None
    clock.advance(2 * HOUR_S)
    assert book.device_of(session) is None, "30 days are 30 days"


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_token_is_good_again_once_the_clock_is_right(tmp_path: Path, clock: FakeClock, jump: float) -> None:
    book = AccessBook(tmp_path / "access.json", clock)
    made, token = await book.make_token("script", frozenset({"look"}), agents=None, days=10)
    for_good, endless = await book.make_token("endless", frozenset({"look"}), agents=None, days=None)
    clock.jump(jump)
    assert (book.token_of(token) is None) == (jump > 10 * DAY_S), "it is over by what the clock shows"
    await book.make_token("another", frozenset({"look"}), agents=None, days=1)
    await book.pair("phone", frozenset({"look"}))
    clock.jump(-jump)
    again = AccessBook(tmp_path / "access.json", clock)
    await again.load()
    for one in (book, again):
        found, other = one.token_of(token), one.token_of(endless)
        assert found is not None, "it was not forgotten"
        assert other is not None
        assert (found.id, other.id) == (made.id, for_good.id)
    clock.sleep(10 * DAY_S)
    assert book.token_of(token) is None, "ten days are ten days, also of sleep"
    assert book.token_of(endless) is not None


@pytest.mark.parametrize("by", [FakeClock.jump, FakeClock.sleep], ids=["set", "slept"])
async def test_what_is_open_ends_with_its_token(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, by: Any
) -> None:
    """At the next look at the clock: its interval is the event loop's."""
    monkeypatch.setattr(visitors, "EXPIRY_LOOK_S", 0.001)
    book = AccessBook(tmp_path / "access.json", clock)
    _, token = await book.make_token("script", frozenset({"look"}), agents=None, days=10)
    grant = book.token_of(token)
    assert grant is not None
    opened, cut = asyncio.Event(), False

    async def request() -> None:
        nonlocal cut
        at = cast("Any", SimpleNamespace(transport=None))
        with Visitors(book, clock).at_work(grant, at):
            opened.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cut = True
                raise

    work = asyncio.create_task(request())
    await opened.wait()
    by(clock, 5 * DAY_S)
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert not work.done(), "it is good for ten days"
    clock.jump(-20 * DAY_S)
    by(clock, 25 * DAY_S)
    await asyncio.wait({work})
    assert cut


async def test_devices_that_were_not_seen_make_room(tmp_path: Path, clock: FakeClock) -> None:
    book = AccessBook(tmp_path / "access.json", clock)
    for number in range(DEVICES_MAX):
        await book.pair(f"old {number}", frozenset({"look"}))
    clock.advance(SESSION_S)
    await book.pair("new", frozenset({"look"}))
    assert [one.name for one in book.devices] == ["new"]
    assert book.device_of("") is None


@pytest.mark.parametrize("jump", [*JUMPS, 0.0])
def test_a_code_is_good_for_two_minutes_also_of_sleep(clock: FakeClock, jump: float) -> None:
    codes = Codes()
    first, second = (codes.make(frozenset({"look"}), None, now=clock.boot()) for _ in range(2))
    clock.jump(jump)
    clock.advance(CODE_S / 2)
    assert codes.take(first, now=clock.boot(), here=False) is not None
    clock.sleep(CODE_S)
    assert codes.take(second, now=clock.boot(), here=False) is None


@pytest.mark.parametrize("jump", JUMPS)
def test_a_jump_costs_no_device_its_trust(tmp_path: Path, clock: FakeClock, jump: float) -> None:
    def told() -> tuple[str, Any, datetime]:
        now = datetime.fromtimestamp(clock.wall(), UTC)
        own = load_own(tmp_path, ["box.lan"], host="box", now=now)
        assert own.authority is not None
        assert own.told.begins <= now < own.told.ends
        assert read(own.authority).begins <= now, "also where it was made under a clock that was ahead"
        return own.authority, own.told, now

    clock.jump(jump)
    authority = told()[0]
    clock.jump(-jump)
    assert told()[0] == authority
    clock.jump(jump)
    assert told()[0] == authority


async def test_a_button_ends_with_its_time(clock: FakeClock) -> None:
    marks = Marks("phone", cast("Any", MemoryStore(clock)))
    yes, no = new_token(), new_token()
    await marks.put("item", Mark(state="told", approve=digest(yes), deny=digest(no), expires=clock.wall() + HOUR_S))
    clock.jump(20 * DAY_S)
    assert await marks.take(yes, now=clock.wall()) is None
    clock.jump(-20 * DAY_S)
    assert await marks.take(yes, now=clock.wall()) == ("item", True), "it was not forgotten"


# --- files of other hosts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", JUMPS)
async def test_no_parcel_goes_for_its_age_while_the_clock_may_be_wrong(tmp_path: Path, jump: float) -> None:
    spool = InSpool(tmp_path)
    path = spool.path("box", id_of_body("laptop", "a", b"x"))
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    clock = FakeClock(wall=path.stat().st_mtime)
    fetching = cast("Any", SimpleNamespace(_clock=clock, _spool=spool))
    await Fetching.sweep(fetching)
    clock.jump(jump)
    await Fetching.sweep(fetching)
    clock.jump(-jump)
    await Fetching.sweep(fetching)
    assert path.exists()
    clock.advance(PARCELS_KEPT_S + 1)
    await Fetching.sweep(fetching)
    assert not path.exists()
