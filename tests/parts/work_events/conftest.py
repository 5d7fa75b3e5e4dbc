"""A world in which agents' work is told of."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapsed.parts.work_events.reporting import WorkEvents
from tests.support.world import World


@pytest.fixture
async def quiet_world(tmp_path: Path) -> AsyncIterator[World]:
    """A world without a daemon yet, with the part."""
    world = World(tmp_path)
    world.provides |= WorkEvents(world.store, world.clock).provides
    yield world
    await world.close()
