"""The API over real sockets, in front of the fake control: as for the API's own tests."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.api.conftest import api, control
from tests.daemon.conftest import kind
from tests.parts.elsewhere.here import Here, on_this_side

__all__ = ["api", "control", "here", "kind"]


@pytest.fixture
async def here(tmp_path: Path) -> AsyncGenerator[Here]:
    async with on_this_side(tmp_path / "a2a" / "external") as here:
        yield here
