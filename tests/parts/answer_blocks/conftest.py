"""A world in which answers are read."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapsed.parts.answer_blocks.reading import Reading
from tests.support.world import World


@pytest.fixture
async def quiet_world(tmp_path: Path) -> AsyncIterator[World]:
    """A world without a daemon yet, with the part."""
    world = World(tmp_path)
    world.provides |= Reading().provides
    yield world
    await world.close()
