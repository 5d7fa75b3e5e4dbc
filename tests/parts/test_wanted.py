"""A part that nothing wants costs its face: no module, file, row or task. It is opened when something wants it."""

import asyncio
import re
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from synapsed.errors import NotReady
from synapsed.kernel import Face, Kernel, Parts, Running, WantedBy, open_parts
from synapsed.outgoing import OutgoingConfig
from synapsed.outgoing.poster import HttpPoster
from synapsed.outgoing.screening import AddressScreen
from synapsed.parts.loading import config_model, faces
from synapsed.store.store import SqliteStore
from tests.store.samples import Hands, a_task
from tests.support.kernels import kernel_of, posting_kernel
from tests.support.world import World

OPENED = [face for face in faces() if face.opens]
WAITING = [face for face in OPENED if face.wanted is not None]
BY_AGENTS = {
    "answer_blocks",
    "approvals",
    "attention",
    "history",
    "mentions",
    "moods",
    "person_settings",
    "pictures",
    "registry",
    "usage_limits",
    "work_events",
}
AT_EACH_START = {"web", "elsewhere", "fleet"}
"""The first says who a request is of, the others to whom an address leads."""
NOTHING = {"metrics": {"enabled": False}}
"""A configuration that wants no part."""
BY_CONFIG: dict[str, dict[str, Any]] = {
    "telemetry": {},
    "schedules": {"schedule": [{"name": "s", "agent": "fake", "message": "m", "at": "08:00"}]},
    "rules": {"webhooks": {"w": {"url": "https://example.com/", "secret_env": "NONE"}}},
    "attention": {"notify": {"sinks": {"desk": {"type": "desktop"}}}},
}


@pytest.fixture
async def world(quiet_world: World) -> World:
    """One whose agents have the keys of parts."""
    quiet_world.model = config_model()
    await quiet_world.daemon()
    return quiet_world


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "state" / "synapsed.db", clock=Hands())
    yield store
    await store.close()


def kernel_for(world: World, store: SqliteStore, **config: Any) -> Kernel:
    poster = partial(HttpPoster, AddressScreen([]), timeout=1.0, outgoing=OutgoingConfig())
    return kernel_of(
        control=world.manager,
        outgoing=posting_kernel(poster, clock=world.clock).outgoing,
        store=store,
        clock=world.clock,
        timers=world.clock,
        paths=world.paths,
        config=config_model().model_validate(config),
    )


def named(chosen: list[Face]) -> list[Any]:
    return [pytest.param(face, id=face.name) for face in chosen]


def open_of(parts: Parts) -> set[str]:
    assert parts.problems == {}
    return set(parts._running)


def costs(world: World, database: Path) -> tuple[set[str], dict[str, int], set[str]]:
    """The files, the rows of each table, and the tasks of the loop."""
    with closing(sqlite3.connect(database)) as read:
        tables = [name for (name,) in read.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        rows = {name: read.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}
    files = {str(path) for path in world.paths.state.parent.rglob("*") if path.suffix not in (".db-wal", ".db-shm")}
    return files, rows, {task.get_name() for task in asyncio.all_tasks()}


@pytest.mark.parametrize("face", named(OPENED))
async def test_one_that_nothing_wants_costs_its_face(
    face: Face, world: World, store: SqliteStore, tmp_path: Path
) -> None:
    database = tmp_path / "state" / "synapsed.db"
    before = costs(world, database)
    async with open_parts([face], kernel_for(world, store, **NOTHING), agents=False) as parts:
        parts.started()
        assert open_of(parts) == {face.name} & AT_EACH_START
        if face.wanted is not None:
            files, rows, tasks = costs(world, database)
            assert (files, rows) == before[:2]
            assert tasks <= before[2], "what the daemon still did may be over"


@pytest.mark.parametrize("face", named(WAITING))
async def test_the_first_agent_opens_those_that_agents_need(face: Face, world: World, store: SqliteStore) -> None:
    async with open_parts([face], kernel_for(world, store, **NOTHING), agents=False) as parts:
        world.manager.doors.become(parts.all, parts.closed, lambda agents: parts.open_wanted(agents=agents))
        parts.started()
        await world.start()
        assert open_of(parts) == {face.name} & BY_AGENTS


@pytest.mark.parametrize("section", ["moods", "history"])
async def test_one_that_is_switched_off_is_needed_by_no_agent(section: str, world: World, store: SqliteStore) -> None:
    config = {section: {"enabled": False}, "attach": {"mentions": False}}
    chosen = [face for face in WAITING if face.name in (section, "mentions")]
    async with open_parts(chosen, kernel_for(world, store, **config)) as parts:
        assert open_of(parts) == set()


@pytest.mark.parametrize("part", BY_CONFIG)
async def test_a_changed_configuration_opens_it(part: str, world: World, store: SqliteStore) -> None:
    (face,) = (face for face in WAITING if face.name == part)
    kernel = kernel_for(world, store, **NOTHING)
    async with open_parts([face], kernel, agents=False) as parts:
        kernel.config = config_model().model_validate(BY_CONFIG[part])
        parts.reconfigured()
        await parts.open_wanted(agents=False)
        assert open_of(parts) == {part}


def queries() -> Iterator[Any]:
    for face in WAITING:
        assert face.wanted is not None
        yield from (pytest.param(face, query, id=f"{face.name}: {query}") for query in face.wanted.rows)


ROW = {
    "followers": "INSERT INTO followers (name, data) VALUES (?, '{\"cursor\": 0}')",
    "schedules": 'INSERT INTO schedules (id, state) VALUES (\'file:s\', \'{"cursor": 1.0, "times": "t"}\')',
    "occurrences": "INSERT INTO occurrences (schedule, at, task_id) VALUES ('s', '2020-01-01T00:00:00Z', 't')",
    "pushes": "INSERT INTO pushes (task_id, id, active, data) SELECT id, 'p', 0, '{}' FROM tasks",
}
TOLD = """
INSERT INTO events (at, agent_id, type, data) VALUES (1, 'a', 'attention',
 '{"type": "attention", "id": "1", "state": "opened", "kind": "question", "question": "?"}')
"""


@pytest.mark.parametrize(("face", "query"), list(queries()))
async def test_a_row_of_it_opens_it(face: Face, query: str, world: World, store: SqliteStore) -> None:
    found = re.search(r"FROM (\w+)(?: WHERE name = '(\w+)')?", query)
    assert found is not None
    await store.commit(tasks=[a_task()])
    insert = TOLD if found[1] == "open_attention" else ROW[found[1]]
    await store.commit(also=[lambda connection, _: connection.execute(insert, (found[2],) if found[2] else ())])
    async with open_parts([face], kernel_for(world, store, **NOTHING), agents=False) as parts:
        assert set(parts._running) | set(parts.problems) == {face.name}


@pytest.mark.parametrize("face", named([face for face in WAITING if face.wanted and face.wanted.files is not None]))
async def test_a_file_of_it_opens_it(face: Face, world: World, store: SqliteStore) -> None:
    assert face.wanted is not None
    kernel = kernel_for(world, store, **NOTHING)
    assert face.wanted.files is not None
    for path in face.wanted.files(world.paths):
        folder = not path.suffix
        path.mkdir(parents=True) if folder else path.parent.mkdir(parents=True, exist_ok=True)
        async with open_parts([face], kernel, agents=False) as parts:
            assert open_of(parts) == set(), "an empty folder wants no part"
            (path / "one.json" if folder else path).write_text("")
            await parts.open_wanted(agents=False)
            assert set(parts._running) | set(parts.problems) == {face.name}


@pytest.mark.parametrize("face", named([face for face in WAITING if face.routes]))
async def test_the_first_request_opens_it(face: Face, world: World, store: SqliteStore) -> None:
    async with open_parts([face], kernel_for(world, store, **NOTHING), agents=False) as parts:
        await parts.check(face.name)
        assert open_of(parts) == {face.name}
    with pytest.raises(NotReady, match="not open"):
        await Parts([], kernel_for(world, store), parts._up).check(face.name)


class _Noted(Running):
    def __init__(self, said: list[str]) -> None:
        self._said = said

    def started(self) -> None:
        self._said.append("started")

    async def stopping(self) -> None:
        self._said.append("stopping")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> tuple[Face, list[str], asyncio.Event]:
    """A part that is opened when the event is set, and what it says."""
    said: list[str] = []
    go_on = asyncio.Event()
    module = ModuleType("part_that_waits")

    @asynccontextmanager
    async def opened(_: Kernel) -> AsyncIterator[Running]:
        said.append("opens")
        await go_on.wait()
        yield _Noted(said)
        said.append("ends")

    module.opened = opened  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return Face(name="slow", opens=module.__name__, wanted=WantedBy()), said, go_on


async def test_requests_that_come_together_open_it_once(
    world: World, store: SqliteStore, slow: tuple[Face, list[str], asyncio.Event]
) -> None:
    """And one that is gone meanwhile leaves it as whole as the others."""
    face, said, go_on = slow
    async with open_parts([face], kernel_for(world, store), agents=False) as parts:
        parts.started()
        requests = [asyncio.create_task(parts.check("slow")) for _ in range(3)]
        await asyncio.to_thread(lambda: None)
        requests[0].cancel()
        go_on.set()
        done = await asyncio.gather(*requests, return_exceptions=True)
        assert [type(one) for one in done] == [asyncio.CancelledError, type(None), type(None)]
        assert said == ["opens", "started"]
    assert said == ["opens", "started", "stopping", "ends"]


async def test_none_is_opened_at_the_end(
    world: World, store: SqliteStore, slow: tuple[Face, list[str], asyncio.Event]
) -> None:
    face, said, _ = slow
    async with open_parts([face], kernel_for(world, store), agents=False) as parts:
        await parts.stopping()
        with pytest.raises(NotReady, match="the part slow is not open"):
            await parts.check("slow")
    assert said == []


async def test_what_it_guards_is_closed_until_it_is_open(world: World, store: SqliteStore) -> None:
    chosen = [face for face in WAITING if face.guards]
    async with open_parts(chosen, kernel_for(world, store), agents=False) as parts:
        closed = parts.closed
        assert closed == {key: f"the part {face.name} is not open" for face in chosen for key in face.agent_settings}
        await parts.open_wanted(agents=True)
        assert closed == {}


async def test_a_fault_in_what_it_is_wanted_for_opens_it(world: World, store: SqliteStore) -> None:
    face = Face(name="odd", opens="no_such_module", wanted=WantedBy(config=lambda _: 1 / 0 > 0))
    kernel, alerts = kernel_for(world, store), list[str]()
    kernel.alert = alerts.append
    async with open_parts([face], kernel, agents=False) as parts:
        assert list(parts.problems) == ["odd"]
        assert [told.partition(":")[0] for told in alerts] == ["the part odd is left out"]
        with pytest.raises(NotReady, match="left out: ModuleNotFoundError"):
            await parts.check("odd")
