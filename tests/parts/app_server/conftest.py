"""The server, and a channel that has reached it."""

from collections.abc import AsyncIterator

import pytest

from synapsed.parts.app_server.channel import AppServerChannel
from tests.channels.conftest import Launch, launch, library
from tests.parts.app_server.scripted import AppServer, made, reached
from tests.parts.session_server.test_channel import Facts

__all__ = ["launch", "library"]


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
