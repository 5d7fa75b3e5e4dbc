"""A world in which usage limits hold messages back."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapsed.config.config import agent_model
from synapsed.interfaces import Holding
from synapsed.parts.config import config_with
from synapsed.parts.usage_limits.face import FACE
from synapsed.parts.usage_limits.holding import UsageLimits
from synapsed.supervisor.manager import Manager
from tests.support.world import World

MODEL = config_with([FACE])
AGENT_MODEL = agent_model(MODEL)


class LimitedWorld(World):
    """Each daemon of it has a part of its own, or what is `instead` of it."""

    instead: object = None

    async def daemon(self, *, adopt: bool = True) -> Manager:
        self.model = MODEL
        self.provides[Holding] = self.instead or UsageLimits({}, self.clock)
        return await super().daemon(adopt=adopt)


@pytest.fixture
async def quiet_world(tmp_path: Path) -> AsyncIterator[World]:
    """A world without a daemon yet."""
    world = LimitedWorld(tmp_path)
    yield world
    await world.close()
