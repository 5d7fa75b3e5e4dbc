"""How a broker is connected to that takes connections and says nothing."""

import asyncio
from contextlib import suppress

import pytest
from nats.errors import AuthorizationError
from nats.errors import Error as NatsError

from synapsed_fleet import dial
from synapsed_fleet.link import Link
from synapsed_fleet.nkey import KeyPair
from tests.support.patience import PATIENCE_S


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


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BrokenPipeError(32, "Broken pipe"), "it ends the connection without a word"),
        (ConnectionResetError(104, "Connection reset by peer"), "revoked or expired, or a clock is wrong"),
        (AuthorizationError(), "it refuses these credentials"),
        (NatsError("nats: User Authentication Revoked"), "was removed from the fleet"),
    ],
)
def test_a_host_that_was_removed_is_told_what_to_do(error: Exception, words: str) -> None:
    """The broker may have ended the connection before all was written: its word is lost then."""
    told = dial.explained(error)
    assert words in told
    assert "pipe" not in told
    assert "'synapsectl fleet leave'" in told


async def test_that_it_was_removed_is_told_until_it_is_connected_again() -> None:
    link = Link(dict, "_INBOX_x", on_up=lambda: None)
    await link._on_error(NatsError("nats: User Authentication Revoked"))
    await link._on_error(BrokenPipeError(32, "Broken pipe"))
    assert link.error == dial.REMOVED
    await link._on_again()
    await link._on_error(OSError(111, "Connection refused"))
    assert "refused" in link.error
