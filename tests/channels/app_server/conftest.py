"""The server, and a channel that has reached it."""

from collections.abc import AsyncIterator

import pytest

from synapsed.channels.app_server import AppServerChannel
from tests.channels.app_server.scripted import AppServer, made, reached
from tests.channels.conftest import Launch
from tests.channels.test_session_server import Facts


@pytest.fixture
async def server(launch: Launch) -> AsyncIterator[AppServer]:
    running = AppServer(launch.context.server_socket)
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def channel(launch: Launch, server: AppServer) -> AsyncIterator[tuple[AppServerChannel, Facts]]:
    it, facts = made(launch), Facts()
    await it.open(facts)
    await reached(it, "idle")
    yield it, facts
    await it.close()
