"""The API over real sockets, in front of the fake control."""

from collections.abc import AsyncGenerator

import pytest

from tests.api.serving import Api, serving
from tests.fakes.control import FakeControl


@pytest.fixture
def control() -> FakeControl:
    fake = FakeControl()
    fake.add("claude", "claude", 8100)
    fake.add("codex", "codex", 8120)
    return fake


@pytest.fixture
async def api(control: FakeControl, tmp_path) -> AsyncGenerator[Api]:
    async with serving(control, tmp_path) as api:
        yield api
