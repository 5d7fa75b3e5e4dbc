"""The registry follows the log of events: never behind what its agent believes, whole again after a kill."""

import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from synapsed.config.config import AgentConfig, Config, ParkPolicy
from synapsed.errors import StoreError
from synapsed.interfaces import EventFilter, EventPage
from synapsed.kernel import Kernel
from synapsed.model.agent import Activity, ProcessState
from synapsed.parts.registry.following import LOOK_S, SWEEP_EVERY, RegistryFollower, opened
from synapsed.store.follower import RETRY_S
from tests.fakes.clock import until
from tests.support.kernels import kernel_of
from tests.support.world import World

AGENT = "synapse-fake-8190"
PARKED = "synapse-talker-8170"


def kernel_beside(world: World) -> Kernel:
    """Returns what the part gets beside the world's daemon."""
    return kernel_of(
        control=world.manager,
        store=world.store,
        clock=world.clock,
        timers=world.clock,
        config=Config(),
        paths=world.paths,
    )


@asynccontextmanager
async def part_of(world: World) -> AsyncIterator[RegistryFollower]:
    """The part, beside the world's daemon, whose agents are there."""
    async with opened(kernel_beside(world)) as running:
        running.started()
        yield running.follower


@pytest.fixture
async def following(world: World) -> AsyncIterator[RegistryFollower]:
    async with part_of(world) as follower:
        yield follower


def entry_of(world: World, agent_id: str) -> dict[str, Any] | None:
    path = world.paths.registry / f"{agent_id}.json"
    return json.loads(path.read_text()) if path.exists() else None


async def shown(world: World, following: RegistryFollower) -> str:
    """The status in the file, once it has all that the log has."""
    await following.flush()
    entry = entry_of(world, AGENT)
    assert entry is not None
    return str(entry["status"])


async def changes_to(world: World, activity: Activity) -> None:
    """The link reports `activity`; returns when that is in the log, whether the agent believes it yet or not."""
    log = world.store.events
    before = log.last_id
    world.link.observe_as(activity)
    async for event in log.follow(before, agent_id=AGENT):
        if event.data.type == "activity":
            return


async def test_it_is_as_the_agent_believes_and_no_timer_turns(world: World, following: RegistryFollower) -> None:
    await world.start()
    for _ in range(20):
        await changes_to(world, Activity.BUSY)
        assert await shown(world, following) == "BUSY"
        await changes_to(world, Activity.READY)
        assert await shown(world, following) == "IDLE"


async def test_an_entry_is_all_of_an_agent_until_it_is_stopped(world: World, following: RegistryFollower) -> None:
    view = await world.start(ready=False)
    await following.flush()
    assert entry_of(world, AGENT) == {
        "agent_id": AGENT,
        "agent_type": "fake",
        "name": "fake",
        "port": 8190,
        "status": "STARTING",
        "pid": view.pid,
        "working_dir": "/",
        "endpoint": view.endpoint,
    }
    await world.manager.stop(AGENT)
    await following.flush()
    assert entry_of(world, AGENT) is None


async def test_an_agent_without_a_port_is_there(world: World, following: RegistryFollower) -> None:
    agent = await world.start(port=False)
    await following.flush()
    entry = entry_of(world, agent.id)
    assert entry is not None
    assert entry["port"] is None


async def test_it_comes_back_after_a_kill(quiet_world: World) -> None:
    world = quiet_world
    await world.daemon()
    killed = AsyncExitStack()
    following = await killed.enter_async_context(part_of(world))
    await world.start()
    assert await shown(world, following) == "IDLE"
    assert following._running is not None
    assert following._look_later is not None
    following._running.cancel()
    following._look_later.cancel()
    path = world.paths.registry / f"{AGENT}.json"
    path.unlink()  # what the daemon that was killed had not written yet
    stale = world.paths.registry / "synapse-fake-8191.json"
    stale.write_text('{"pid": 4194305}')
    await world.daemon()
    async with part_of(world) as following:
        assert await shown(world, following) == "STARTING", "its link has not looked yet"
        assert not stale.exists()
        await changes_to(world, Activity.READY)
        assert await shown(world, following) == "IDLE"
    await killed.aclose()


async def test_events_that_cannot_be_read_hold_up_nothing(
    world: World, following: RegistryFollower, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.start()
    refused = []
    page = world.store.events.page

    async def refuse(after: int, which: EventFilter, **bounds: int) -> EventPage:
        if not refused and which is RegistryFollower.wants:
            refused.append(1)
            raise StoreError("the disk is gone", reason="io")
        return await page(after, which, **bounds)

    monkeypatch.setattr(world.store.events, "page", refuse)
    await changes_to(world, Activity.BUSY)
    await until(lambda: bool(refused))
    world.clock.advance(RETRY_S)
    assert await shown(world, following) == "BUSY"
    await changes_to(world, Activity.READY)
    assert await shown(world, following) == "IDLE"


async def test_an_agent_that_is_removed_is_withdrawn(world: World, following: RegistryFollower) -> None:
    await world.start()
    await world.manager.stop(AGENT, remove=True)
    await following.flush()
    assert entry_of(world, AGENT) is None


def putting(folder: Path) -> Callable[[str, str], Path]:
    folder.mkdir(parents=True, exist_ok=True)

    def put(name: str, text: str) -> Path:
        path = folder / f"{name}.json"
        path.write_text(text)
        return path

    return put


async def test_stale_entries_are_removed_at_the_start_and_later(world: World) -> None:
    put = putting(world.paths.registry)
    dead = put("synapse-gone-9000", json.dumps({"agent_id": "synapse-gone-9000", "pid": 2**22 + 1}))
    alive = put("synapse-other-9001", json.dumps({"agent_id": "synapse-other-9001", "pid": os.getpid()}))
    foreign = put("notes", "no JSON")
    async with part_of(world) as following:
        await following.flush()
        assert not dead.exists()
        assert alive.exists()
        assert foreign.exists()
        put("synapse-gone-9000", '{"pid": 4194305}')
        for _ in range(SWEEP_EVERY):
            world.clock.advance(LOOK_S)
        await following.flush()
        assert not dead.exists()


async def test_nothing_of_ours_is_swept_before_the_agents_are_there(world: World) -> None:
    """An agent that is not adopted yet is not live; its program is, and others find it by its entry. What is left of
    others need not wait for that."""
    await world.start()
    await world.manager.stop(AGENT)
    put = putting(world.paths.registry)
    async with opened(kernel_beside(world)) as running:
        foreign, own = put("synapse-gone-9000", '{"pid": 4194305}'), put(AGENT, '{"pid": 4194305}')
        for _ in range(2 * SWEEP_EVERY):
            world.clock.advance(LOOK_S)
        await running.follower.flush()
        assert not foreign.exists()
        assert own.exists()
        running.started()
        await running.follower.flush()
        assert not own.exists()


async def test_the_address_of_a_parked_agent_stays(quiet_world: World) -> None:
    world = quiet_world
    world.agents["talker"] = AgentConfig(autostart=True, park=ParkPolicy(idle_timeout=30))
    await world.daemon()
    async with part_of(world) as following:
        world.link.ready()
        await until(lambda: world.manager.directory.view(PARKED).activity is Activity.READY)
        await world.manager.park(PARKED)
        await world.agent_is(PARKED, ProcessState.PARKED)
        await following.flush()
        entry = entry_of(world, PARKED)
        assert entry is not None
        assert (entry["status"], entry["pid"]) == ("IDLE", None)
        for _ in range(2 * SWEEP_EVERY):
            world.clock.advance(LOOK_S)
        await following.flush()
        assert entry_of(world, PARKED) == entry
