"""How a broker is connected to that takes connections and says nothing."""

import asyncio
from contextlib import suppress

import pytest

from synapsed_fleet import dial
from synapsed_fleet.nkey import KeyPair

PATIENCE_S = 60.0


async def test_one_that_stands_still_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernel takes connections for it. Who has waited for a handshake in vain begins another one."""
    monkeypatch.setattr(dial, "CONNECT_S", 0.1)
    monkeypatch.setattr(dial, "RECONNECT_S", 0.05)
    monkeypatch.setattr(dial, "CLOSE_S", 0.1)
    came: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
    server = await asyncio.start_server(lambda _, writer: came.put_nowait(writer), "127.0.0.1", 0)
    url = f"tls://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    asked = dial.options([url], token="a.b.c", pair=KeyPair.generate("user"), ca=None, inbox="_INBOX.x")
    asked |= {
        "tls_handshake_first": True,
        "tls_hostname": "broker",
        "allow_reconnect": True,
        "max_reconnect_attempts": -1,
    }
    connecting = asyncio.create_task(dial.connect(**asked))
    writers = []
    try:
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(3):
                writers.append(await came.get())
    finally:
        connecting.cancel()
        with suppress(asyncio.CancelledError):
            await connecting
        for writer in writers:
            writer.close()
        server.close()
