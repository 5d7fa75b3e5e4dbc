"""The mail is asked for: what is heard from the connection, without a broker."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from nats.aio.msg import Msg

from synapsed_fleet import mail_pulling, mail_turns
from synapsed_fleet.ports import Delivered
from tests.support.patience import PATIENCE_S


class FakeLink:
    """One connection after the other; `asked` has the requests of each, as the connection's number and the batch."""

    def __init__(self) -> None:
        self.connects = 1
        self.up = True
        self.asked: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
        self.back: asyncio.Queue[bytes] = asyncio.Queue()
        self.come: Callable[[Msg], Awaitable[None]]

    @property
    def client(self) -> "FakeLink":
        return self

    async def wait_up(self) -> None: ...

    async def subscribe(self, subject: str, cb: Callable[[Msg], Awaitable[None]]) -> Any:
        async def unsubscribe() -> None: ...

        self.come = cb
        return SimpleNamespace(unsubscribe=unsubscribe)

    async def publish(self, subject: str, body: bytes, reply: str | None = None) -> None:
        if reply is None:
            return self.back.put_nowait(body)
        return self.asked.put_nowait((int(reply.rpartition(".")[2]), json.loads(body)["batch"]))

    async def deliver(self, count: int, src: str = "laptop", kind: str = "msg") -> None:
        for n in range(count):
            ack = f"$JS.ACK.SYN_IN.box.1.{n}.{n}.0.0"
            await self.come(Msg(self, f"syn.to.box.{src}.{kind}", ack, b"{}"))  # type: ignore[arg-type]


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


async def test_a_line_that_stands_lets_the_mail_of_others_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail_pulling, "SILENCE_S", 1e6)
    monkeypatch.setattr(mail_pulling, "LOOK_S", 0.0)
    monkeypatch.setattr(mail_turns, "TURN_S", 0.0)
    taken: asyncio.Queue[str] = asyncio.Queue()

    async def take(delivered: Delivered) -> None:
        taken.put_nowait(delivered.subject)
        if delivered.subject == "syn.to.box.laptop.msg":
            await asyncio.Event().wait()

    link = FakeLink()
    mail = mail_pulling.Pull(link, "SYN_IN", "box", "_INBOX_box", take)  # type: ignore[arg-type]
    running = asyncio.create_task(mail.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            assert await link.asked.get() == (1, mail_pulling.BATCH)
            await link.deliver(mail_pulling.BATCH)
            assert await taken.get() == "syn.to.box.laptop.msg"
            _, batch = await link.asked.get()
            assert batch >= mail_pulling.BATCH // 2
            assert json.loads((await link.back.get()).removeprefix(b"-NAK "))["delay"] > 0
            await link.deliver(1, "attic")
            await link.deliver(1, "laptop", "upd")
            assert {await taken.get(), await taken.get()} == {"syn.to.box.attic.msg", "syn.to.box.laptop.upd"}
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_begun_again_it_takes_the_mail_of_those_that_it_was_busy_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault ends a run, and another one is begun (`Fleet._for_ever`)."""
    monkeypatch.setattr(mail_pulling, "SILENCE_S", 1e6)
    taken: asyncio.Queue[str] = asyncio.Queue()

    async def take(delivered: Delivered) -> None:
        taken.put_nowait(delivered.subject)
        await asyncio.Event().wait()

    link = FakeLink()
    mail = mail_pulling.Pull(link, "SYN_IN", "box", "_INBOX_box", take)  # type: ignore[arg-type]
    for _ in range(2):
        running = asyncio.create_task(mail.run())
        try:
            async with asyncio.timeout(PATIENCE_S):
                assert await link.asked.get() == (1, mail_pulling.BATCH)
                await link.deliver(1)
                assert await taken.get() == "syn.to.box.laptop.msg"
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
