"""A member that sends more than a host gets done keeps nobody else's mail out of it, over a real broker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from synapsed_fleet import streams
from synapsed_fleet.link import Link
from synapsed_fleet.mail_pulling import Pull
from synapsed_fleet.names import MailSubject
from synapsed_fleet.ports import Delivered
from tests.parts.fleet.brokers import FleetHome, fleet, needs_broker

pytestmark = [needs_broker, pytest.mark.fleet, pytest.mark.timeout(900)]

FLOOD = 1500
"""Messages: more than a host asks for in one go, and than the 1,024 that it was given without an ack before."""
PATIENCE_S = 300.0


class Mail:
    """The mail of a host: what comes of `attic` is not done before `go_on`."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.done: asyncio.Queue[str] = asyncio.Queue()
        self.of_attic: list[int] = []

    async def take(self, delivered: Delivered) -> None:
        src = MailSubject.parse(delivered.subject).src
        if src == "attic":
            await self.go_on.wait()
            self.of_attic.append(int(delivered.body))
        await delivered.ack()
        self.done.put_nowait(src)


@asynccontextmanager
async def pulled(box: FleetHome, mail: Mail) -> AsyncIterator[Link]:
    """The host `box` asks for its mail."""
    pull: list[Pull] = []
    link = Link(
        lambda: box.home.identity().options([box.url]),
        "_INBOX_box",
        on_up=lambda: [each.reconnected() for each in pull],
    )
    pull.append(Pull(link, streams.IN, "box", "_INBOX_box", mail.take))
    running = [asyncio.create_task(link.run()), asyncio.create_task(pull[0].run())]
    try:
        yield link
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _say(home: FleetHome, name: str, count: int) -> None:
    client: Any = await home.connect([f"tls://127.0.0.1:{home.port}"])
    for number in range(count):
        await client.publish(f"syn.to.box.{name}.msg", str(number).encode())
    await client.flush(timeout=60)
    await client.close()


def test_one_whose_mail_is_not_done_keeps_nobody_else_s_out(tmp_path: Path) -> None:
    async def looked(attic: FleetHome, cellar: FleetHome, box: FleetHome) -> None:
        mail = Mail()
        await _say(attic, "attic", FLOOD)
        await _say(cellar, "cellar", 1)
        async with asyncio.timeout(PATIENCE_S), pulled(box, mail):
            assert await mail.done.get() == "cellar"
            mail.go_on.set()
            while len(set(mail.of_attic)) < FLOOD:
                await mail.done.get()

    with fleet(tmp_path) as box:
        homes = [box.joined(tmp_path / name, name) for name in ("attic", "cellar")]
        for home in homes:
            home.port = box.port
        asyncio.run(looked(homes[0], homes[1], box))
