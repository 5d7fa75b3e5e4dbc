"""Stores, and the API with schedules, as their rooms' tests have them."""

import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from synapsed.parts.config import config_with
from synapsed.parts.schedules import running
from synapsed.parts.schedules.face import FACE
from tests.api.conftest import control
from tests.api.serving import Api, serving
from tests.fakes.clock import FakeClock
from tests.fakes.control import FakeControl
from tests.fakes.served import Served, served
from tests.store.conftest import hands, open_store
from tests.support.kernels import kernel_of

__all__ = ["control", "hands", "open_store"]


@asynccontextmanager
async def with_schedules(control: Any, home: Path) -> AsyncGenerator[Api]:
    """The API with a scheduler that is never started."""
    clock = FakeClock(wall=time.time())
    kernel = kernel_of(
        control=control,
        store=control.store,
        clock=clock,
        timers=clock,
        config=config_with([FACE])(),
        paths=None,
        zone=lambda: ZoneInfo("Europe/Berlin"),
    )
    async with running.opened(kernel) as part:
        async with serving(control, home, running={FACE.name: part}) as api:
            yield api
        await part.stopping()


@pytest.fixture
async def api(control: FakeControl, tmp_path: Path) -> AsyncGenerator[Api]:
    async with with_schedules(control, tmp_path) as api:
        yield api


@pytest.fixture
def served_daemon(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path, with_schedules) as daemon:
        daemon.add()
        yield daemon
