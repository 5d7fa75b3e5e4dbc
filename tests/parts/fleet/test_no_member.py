"""A host that is in no fleet, or takes no part in its own."""

from collections.abc import AsyncGenerator
from contextlib import nullcontext
from pathlib import Path

import pytest

from synapsed.errors import TaskNotCancelable, UnknownAgent
from synapsed.interfaces import SendRequest
from synapsed.model.external import KEY
from synapsed.model.task import Message, Task, TaskState
from synapsed.store.store import SqliteStore
from synapsed.supervisor.carriers import Carriers
from synapsed_fleet.fleet_rows import FleetChange, OutRow
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.no_member import NoMember
from tests.fakes.clock import FakeClock
from tests.parts.fleet.world import World


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path / "tasks.db", clock=FakeClock())
    yield opened
    await opened.close()


async def test_it_says_why_nobody_is_reached(store: SqliteStore) -> None:
    none, broken = (NoMember(store, FleetTable(store), FakeClock(), problem) for problem in (None, "no key"))
    assert (none.find("bob@box"), broken.find("bob")) == (None, None)
    for address in ("any:review", "@any:review"):
        with pytest.raises(UnknownAgent, match=f"'{address}' means an agent of a fleet, and this host is in none"):
            none.find(address)
        with pytest.raises(UnknownAgent, match="this host takes no part in its fleet: no key"):
            broken.find(address)


async def test_a_task_of_a_fleet_that_was_left_can_be_given_up(store: SqliteStore) -> None:
    table = FleetTable(store)
    left = NoMember(store, table, FakeClock(), None)
    task = Task(
        agent_id="bob@box", message=Message.of("hi"), created_at="", updated_at="", metadata={KEY: {"via": "fleet"}}
    )
    await table.commit(task, FleetChange(put=(OutRow(id=task.id, dst="box", kind="msg", task_id=task.id),)))
    assert left.carries(task)
    assert not left.carries(task.model_copy(update={"metadata": {}}))
    with pytest.raises(UnknownAgent, match="bob@box is reached by the fleet: this host is in none any more"):
        await left.answer(task, Message.of("yes"))
    broken, request = (
        NoMember(store, table, FakeClock(), "no key"),
        SendRequest(message=Message.of("yes"), task_id=task.id),
    )
    with pytest.raises(UnknownAgent, match="is reached by the fleet: no key"):
        await broken.send("bob@box", request, lambda *_, **__: nullcontext())
    assert (await left.cancel(task)).status is TaskState.CANCELED
    assert await table.open_rows() == []
    with pytest.raises(TaskNotCancelable):
        await left.cancel(task)


async def test_what_was_canceled_while_the_part_was_not_there_is_not_sent_when_it_is_back(tmp_path: Path) -> None:
    world = World(tmp_path)
    try:
        laptop, box = await world.host("laptop"), await world.host("box")
        await world.rest()
        task = await laptop.send("codex@box", "hello", key="once")
        await laptop.fetching.close()
        await laptop.store.close()
        store = await SqliteStore.open(laptop.path, clock=world.clock)
        assert (await Carriers(store, world.clock).cancel(task)).status is TaskState.CANCELED
        await store.close()
        await laptop.start()
        await world.rest()
        assert await box.tasks() == []
    finally:
        await world.close()
