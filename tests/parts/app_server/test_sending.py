"""Messages to an app server that does not take them."""

import asyncio

import pytest

from synapsed.errors import ChannelAway
from synapsed.parts.app_server import connection as app_connection
from synapsed.parts.app_server.connection import AppConnection
from tests.parts.session_server.test_channel import DEADLINE


async def test_a_server_that_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was stopped, for example: its socket takes the beginning of a large message."""

    class Full:
        async def send_str(self, data: str) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(app_connection, "REQUEST_S", 0.01)
    server = AppConnection(Full())  # type: ignore[arg-type]  # all that is used
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(ChannelAway) as caught:
            await server.call("turn/start", {})
    assert caught.value.sent
