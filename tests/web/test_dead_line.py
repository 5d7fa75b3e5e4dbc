"""A terminal in the page over a line that is dead: what comes late is not typed, and that is told."""

import asyncio

import pytest
from playwright.async_api import Page, WebSocketRoute, expect

from tests.web.conftest import DESK, Devices, Worker

pytestmark = pytest.mark.night


class Line:
    """Between the page and the daemon; while it is dead it keeps what it is given, both ways."""

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

    def mend(self) -> None:
        """It is back, and nobody is at this end any more."""
        self.dead = False
        for to, message in self._kept:
            if to is self.server:
                to.send(message)


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


async def test_what_was_typed_over_a_dead_line_once_the_person_has_left(devices: Devices, worker: Worker):
    page, line = await terminal(devices)
    await page.keyboard.type("ab")
    await until(worker, b"ab")
    line.dead = True
    await page.keyboard.type("rm")
    await page.keyboard.press("Enter")
    await expect(page.locator(".terminal [role=status]")).to_contain_text("No word from the daemon")
    await page.keyboard.type("y")
    line.mend()
    await page.wait_for_timeout(2000)  # what would be typed, would be by then
    assert typed(worker) == b"ab"
