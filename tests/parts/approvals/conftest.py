"""A world in which rules decide, and in which it is known what dialogs are about."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapsed.config.config import agent_model
from synapsed.parts.approvals.deciding import DecidingByRules
from synapsed.parts.approvals.face import FACE
from synapsed.parts.config import config_with
from synapsed.parts.work_events.reporting import WorkEvents
from tests.support.world import PROFILE, World

MODEL = config_with([FACE])
AGENT_MODEL = agent_model(MODEL)


ASKS = """
[channels.hooks]
adapter = "hooks"
[channels.hooks.decisions.Asked]
deny = { ok = false, why = { text = "{reason}" } }
"""


@pytest.fixture
async def quiet_world(tmp_path: Path) -> AsyncIterator[World]:
    """A world without a daemon yet, with both parts."""
    world = World(tmp_path)
    world.model = MODEL
    (world.paths.config.parent / "profiles" / "fake.toml").write_text(PROFILE + ASKS)
    world.library.reload()
    world.provides |= {**DecidingByRules(world.store).provides, **WorkEvents(world.store, world.clock).provides}
    yield world
    await world.close()
