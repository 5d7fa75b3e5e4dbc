"""The API over real sockets, in front of the fake control."""

from collections.abc import AsyncGenerator
from pathlib import Path

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


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out what needs schemathesis' plugin where that is not loaded: importing it takes seconds."""
    return (
        True
        if collection_path.name == "test_schema_fuzz.py" and not config.pluginmanager.hasplugin("schemathesis")
        else None
    )
