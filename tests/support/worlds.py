"""The fixtures `world` and `quiet_world`."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.world import World


@pytest.fixture
async def world(quiet_world: "World") -> "World":
    """A world with a running daemon, without agents."""
    await quiet_world.daemon()
    return quiet_world


@pytest.fixture
async def quiet_world(tmp_path: Path) -> AsyncIterator["World"]:
    """A world without a daemon yet."""
    from tests.support.world import World

    world = World(tmp_path)
    yield world
    await world.close()
