"""The mail is asked for: what is heard from the connection, without a broker."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from nats.aio.msg import Msg

from synapsed.fleet import pull
from synapsed.fleet.ports import Delivered

PATIENCE_S = 30.0


class FakeLink:
    """One connection after the other; `asked` counts the requests of each."""

    def __init__(self) -> None:
        self.connects = 1
        self.up = True
        self.asked: asyncio.Queue[int] = asyncio.Queue()

    @property
    def client(self) -> "FakeLink":
        return self

    async def wait_up(self) -> None: ...

    async def subscribe(self, subject: str, cb: Callable[[Msg], Awaitable[None]]) -> Any:
        async def unsubscribe() -> None: ...

        return SimpleNamespace(unsubscribe=unsubscribe)

    async def publish(self, subject: str, body: bytes, reply: str) -> None:
        self.asked.put_nowait(int(reply.rpartition(".")[2]))


async def test_it_is_asked_anew_as_soon_as_there_is_another_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull, "SILENCE_S", 1e6)

    async def take(delivered: Delivered) -> None:
        raise AssertionError("nothing comes")

    link = FakeLink()
    mail = pull.Pull(link, "SYN_IN", "box", "_INBOX_box", take)  # type: ignore[arg-type]
    running = asyncio.create_task(mail.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            assert await link.asked.get() == 1
            link.connects = 2
            mail.reconnected()
            assert await link.asked.get() == 2
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
