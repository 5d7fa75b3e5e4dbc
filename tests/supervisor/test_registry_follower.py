"""The registry follows the log of events: never behind what its agent believes, whole again after a kill."""

import pytest

from synapsed.errors import StoreError
from synapsed.interfaces import EventFilter, EventPage
from synapsed.model.agent import Activity
from synapsed.store.follower import RETRY_S
from synapsed.supervisor.registry import RegistryFollower
from tests.fakes.clock import until
from tests.support.world import World

AGENT = "synapse-fake-8190"


async def shown(world: World) -> str:
    """The status in the file, once it has all that the log has."""
    await world.manager._registry.flush()
    entry = world.registry(AGENT)
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


async def test_it_is_as_the_agent_believes_and_no_timer_turns(world: World) -> None:
    await world.start()
    for _ in range(20):
        await changes_to(world, Activity.BUSY)
        assert await shown(world) == "BUSY"
        await changes_to(world, Activity.READY)
        assert await shown(world) == "IDLE"


async def test_it_comes_back_after_a_kill(quiet_world: World) -> None:
    world = quiet_world
    await world.daemon()
    await world.start()
    assert await shown(world) == "IDLE"
    following = world.manager._registry._running
    assert following is not None
    following.cancel()
    path = world.paths.registry / f"{AGENT}.json"
    path.unlink()  # what the daemon that was killed had not written yet
    stale = world.paths.registry / "synapse-fake-8191.json"
    stale.write_text('{"pid": 4194305}')
    await world.daemon()
    assert await shown(world) == "STARTING", "its link has not looked yet"
    assert not stale.exists()
    await changes_to(world, Activity.READY)
    assert await shown(world) == "IDLE"


async def test_events_that_cannot_be_read_hold_up_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.start()
    refused = []
    page = world.store.events.page

    async def refuse(after: int, which: EventFilter, **bounds: int) -> EventPage:
        if not refused and which == RegistryFollower.wants:
            refused.append(1)
            raise StoreError("the disk is gone", reason="io")
        return await page(after, which, **bounds)

    monkeypatch.setattr(world.store.events, "page", refuse)
    await changes_to(world, Activity.BUSY)
    await until(lambda: bool(refused))
    world.clock.advance(RETRY_S)
    assert await shown(world) == "BUSY"
    await changes_to(world, Activity.READY)
    assert await shown(world) == "IDLE"


async def test_an_agent_that_is_removed_is_withdrawn(world: World) -> None:
    await world.start()
    await world.manager.stop(AGENT, remove=True)
    await world.manager._registry.flush()
    assert world.registry(AGENT) is None
