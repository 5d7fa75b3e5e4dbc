"""The mail is asked for: what is heard from the connection, without a broker."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from nats.aio.msg import Msg

from synapsed_fleet import mail_pulling
from synapsed_fleet.ports import Delivered

PATIENCE_S = 30.0


class FakeLink:
    """One connection after the other; `asked` has the requests of each, as the connection's number and the batch."""

    def __init__(self) -> None:
        self.connects = 1
        self.up = True
        self.asked: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
        self.come: Callable[[Msg], Awaitable[None]]

    @property
    def client(self) -> "FakeLink":
        return self

    async def wait_up(self) -> None: ...

    async def subscribe(self, subject: str, cb: Callable[[Msg], Awaitable[None]]) -> Any:
        async def unsubscribe() -> None: ...

        self.come = cb
        return SimpleNamespace(unsubscribe=unsubscribe)

    async def publish(self, subject: str, body: bytes, reply: str) -> None:
        self.asked.put_nowait((int(reply.rpartition(".")[2]), json.loads(body)["batch"]))

    async def deliver(self, count: int) -> None:
        for n in range(count):
            ack = f"$JS.ACK.SYN_IN.box.1.{n}.{n}.0.0"
            await self.come(Msg(self, "syn.to.box.laptop.msg", ack, b"{}"))  # type: ignore[arg-type]


async def test_it_is_asked_anew_as_soon_as_there_is_another_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail_pulling, "SILENCE_S", 1e6)

    async def take(delivered: Delivered) -> None:
        raise AssertionError("nothing comes")

    link = FakeLink()
    mail = mail_pulling.Pull(link, "SYN_IN", "box", "_INBOX_box", take)  # type: ignore[arg-type]
    running = asyncio.create_task(mail.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            assert (await link.asked.get())[0] == 1
            link.connects = 2
            mail.reconnected()
            assert (await link.asked.get())[0] == 2
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize(("slow", "next_batch"), [(True, mail_pulling.FIRST // 4), (False, mail_pulling.FIRST // 2)])
async def test_no_more_is_in_hand_than_is_done_in_time(
    monkeypatch: pytest.MonkeyPatch, slow: bool, next_batch: int
) -> None:
    monkeypatch.setattr(mail_pulling, "SILENCE_S", 1e6)
    monkeypatch.setattr(mail_pulling, "SLOW_S", -1.0 if slow else 1e6)
    monkeypatch.setattr(mail_pulling, "QUICK_S", -1.0)
    done = asyncio.Semaphore(0)

    async def take(delivered: Delivered) -> None:
        await done.acquire()

    link = FakeLink()
    mail = mail_pulling.Pull(link, "SYN_IN", "box", "_INBOX_box", take)  # type: ignore[arg-type]
    running = asyncio.create_task(mail.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            assert await link.asked.get() == (1, mail_pulling.FIRST)
            await link.deliver(mail_pulling.FIRST)
            for _ in range(mail_pulling.FIRST // 2 - 1):
                done.release()
            for _ in range(10 * mail_pulling.FIRST):
                await asyncio.sleep(0)
            assert link.asked.empty(), "over half of it is in hand"
            for _ in range(mail_pulling.FIRST // 4 + 1):
                done.release()
            _, batch = await link.asked.get()
            assert batch >= next_batch
            assert batch <= next_batch + mail_pulling.FIRST // 4
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
