"""The page under a clock that is set while it is open (docs/clocks.md)."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.fakes.clock import JUMPS
from tests.web.conftest import CARD, Devices, Worker, module, question

pytestmark = pytest.mark.night

SET = "(ms) => { const real = Date.now; Date.now = () => real() + ms; }"
HIDDEN = """(hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
LEASES = """async ([from, ms]) => {
  const { LeasedKeys } = await import(from);
  const keys = new LeasedKeys();
  keys.took(1, 0);
  keys.type(new Uint8Array([97, 98]));
  const before = [keys.silent, keys.old];
  const real = Date.now;
  Date.now = () => real() + ms;
  const after = [keys.silent, keys.old, keys.piece()];
  const lost = keys.drop();
  keys.took(2, 0);  // a word of the daemon's
  keys.type(new Uint8Array([99]));
  const again = [keys.silent, keys.old, keys.piece()?.length];
  Date.now = real;
  return [before, after, lost, again];
}"""


async def streams(devices: Devices) -> tuple[Page, list[str]]:
    """A page that has its lists, and the addresses of the streams that it begins."""
    page = await (await devices.context()).new_page()
    begun: list[str] = []
    page.on("websocket", lambda socket: begun.append(socket.url) if "/events?" in socket.url else None)
    await page.goto(devices.url)
    await expect(page.locator(".agents .name")).to_have_text(["ann", "bob"])
    return page, begun


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_page_that_comes_back_has_another_line(devices: Devices, worker: Worker, jump: float) -> None:
    page, begun = await streams(devices)
    assert len(begun) == 1
    await page.evaluate(HIDDEN, True)
    await page.evaluate(SET, jump * 1000)
    async with page.expect_websocket():
        await page.evaluate(HIDDEN, False)
    assert "after=" not in begun[-1], "the lists are read whole"
    await worker.ask("ann", question())
    await expect(page.locator(CARD)).to_have_count(1)


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_page_whose_line_was_away_misses_nothing(devices: Devices, worker: Worker, jump: float) -> None:
    page, _ = await streams(devices)
    await page.context.set_offline(True)
    await expect(page.get_by_text("Offline. What is shown may be old.")).to_be_visible()
    await worker.ask("ann", question())
    await page.evaluate(SET, jump * 1000)
    await page.context.set_offline(False)
    await expect(page.locator(CARD)).to_have_count(1)
    await page.get_by_role("button", name="Approve").click()
    await expect(page.locator(".outcome")).to_contain_text("taken")
    await page.evaluate(SET, -jump * 1000)
    await expect(page.locator(".outcome")).to_have_count(0)
    await worker.ask("bob", question(key="p2"), item="i2")
    await expect(page.locator(CARD)).to_have_count(1)


@pytest.mark.parametrize("jump", JUMPS)
async def test_keys_of_before_are_not_typed_and_those_of_now_are(devices: Devices, jump: float) -> None:
    page, _ = await streams(devices)
    told: Any = await page.evaluate(LEASES, [module("js/leases.js"), jump * 1000])
    assert told == [[False, False], [True, True, None], 2, [False, False, 8 + 1]]
