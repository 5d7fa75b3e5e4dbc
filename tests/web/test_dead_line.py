"""A terminal in the page over a line that is dead: what comes late is not typed, and that is told."""

import asyncio
import json

import pytest
from playwright.async_api import Page, WebSocketRoute, expect

from tests.web.conftest import DESK, Devices, Worker

pytestmark = pytest.mark.night


class Line:
    """Between the page and the daemon; while it is dead it keeps what it is given, both ways."""

    _NONSENSE = '{"type": "nothing that is known"}'
    """Is answered with an error, once all before it has been dealt with."""

    def __init__(self, socket: WebSocketRoute) -> None:
        self.server = socket.connect_to_server()
        self.dead = False
        self._kept: list[tuple[WebSocketRoute, str | bytes]] = []
        socket.on_message(lambda message: self._carry(self.server, message))
        self.server.on_message(lambda message: self._carry(socket, message))

    def _carry(self, to: WebSocketRoute, message: str | bytes) -> None:
        if self.dead:
            self._kept.append((to, message))
        else:
            to.send(message)

    async def mend(self, *, left: bool) -> None:
        """It is back; `left`: nobody is at this end any more, and what comes is kept. Returns when the daemon has dealt
        with all that it was given."""
        self.dead = left
        kept, self._kept = self._kept, []
        for to, message in kept:
            if to is self.server or not left:
                to.send(message)
        if left:
            self.server.send(self._NONSENSE)
            async with asyncio.timeout(60):
                while not any(json.loads(told)["type"] == "error" for _, told in self._kept if isinstance(told, str)):
                    await asyncio.sleep(0.02)


async def terminal(devices: Devices) -> tuple[Page, Line]:
    lines: list[Line] = []
    page = await (await devices.context(**DESK)).new_page()
    await page.route_web_socket("**/terminal?*", lambda socket: lines.append(Line(socket)))
    await page.goto(f"{devices.url}/#/agent/ann")
    await page.get_by_role("button", name="Terminal").click()
    await expect(page.locator(".terminal [role=status]")).to_contain_text("You type here")
    await page.locator(".xterm-helper-textarea").focus()
    return page, lines[-1]


def typed(worker: Worker) -> bytes:
    return b"".join(data for one in worker.control.attachments for data in one.written)


async def until(worker: Worker, wanted: bytes) -> None:
    async with asyncio.timeout(60):
        while typed(worker) != wanted:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("left", [True, False], ids=["who has left", "who is still there"])
async def test_what_was_typed_over_a_dead_line(devices: Devices, worker: Worker, *, left: bool):
    page, line = await terminal(devices)
    await page.keyboard.type("ab")
    await until(worker, b"ab")
    line.dead = True
    await page.keyboard.type("rm")
    await page.keyboard.press("Enter")
    await expect(page.locator(".terminal [role=status]")).to_contain_text("No word from the daemon")
    await page.keyboard.type("y")
    await line.mend(left=left)
    if left:
        assert typed(worker) == b"ab"
    else:
        await until(worker, b"abrm\ry")
