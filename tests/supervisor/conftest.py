from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.supervisor.world import World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A world with a running daemon, without agents."""
    world = World(tmp_path)
    await world.daemon()
    yield world
    await world.close()


@pytest.fixture
async def quiet_world(tmp_path: Path) -> AsyncIterator[World]:
    """A world without a daemon yet."""
    world = World(tmp_path)
    yield world
    await world.close()
