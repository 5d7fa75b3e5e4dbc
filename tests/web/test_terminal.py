"""A terminal in the page: the keys that are the page's, pastes, and the search."""

import asyncio

import pytest
from playwright.async_api import Page, expect

from tests.web.conftest import DESK, Devices, Worker

pytestmark = pytest.mark.night

_PASTE = """(text) => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  const field = document.querySelector(".xterm-helper-textarea");
  field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""


async def terminal(devices: Devices) -> Page:
    page = await devices.open("/#/agent/ann", **DESK)
    await page.locator("#terminal").click()
    await expect(page.locator(".terminal .under [role=status]").first).to_contain_text("You type here")
    await expect(page.locator(".xterm-rows")).to_contain_text("screen")
    await page.locator(".xterm-helper-textarea").focus()
    return page


def typed(worker: Worker) -> bytes:
    return b"".join(data for one in worker.control.attachments for data in one.written)


async def until_typed(worker: Worker, wanted: bytes) -> None:
    async with asyncio.timeout(60):
        while typed(worker) != wanted:
            await asyncio.sleep(0.02)


async def test_it_asks_for_no_window_that_is_in_use(devices: Devices, worker: Worker):
    await terminal(devices)
    assert [one.keep_size for one in worker.control.attachments] == [True]


async def test_the_search_types_nothing_and_counts(devices: Devices, worker: Worker):
    page = await terminal(devices)
    worker.control.attachments[-1].show(b"\r\nneedle one\r\nneedle two\r\nneedle three")
    await expect(page.locator(".xterm-rows")).to_contain_text("needle three")
    await page.keyboard.press("Control+Shift+F")
    field = page.get_by_label("Search the terminal")
    await expect(field).to_be_focused()
    count = page.locator(".finding [role=status]")
    await field.press_sequentially("needle")
    await expect(count).to_have_text("1 of 3")
    await field.press("Enter")
    await expect(count).to_have_text("2 of 3")
    await page.get_by_role("button", name="Previous match").click()
    await expect(count).to_have_text("1 of 3")
    await field.fill("nowhere")
    await expect(count).to_have_text("no match")
    await field.press("Escape")
    await expect(page.locator(".xterm-helper-textarea")).to_be_focused()
    await page.keyboard.type("x")
    await until_typed(worker, b"x")


async def test_a_cell_has_any_colour(devices: Devices, worker: Worker):
    page = await terminal(devices)
    worker.control.attachments[-1].show(b"\r\n\x1b[38;2;1;200;3mgreen\x1b[48;2;9;8;7mish")
    green = page.locator(".xterm-rows span", has_text="green").first
    await expect(green).to_have_css("color", "rgb(1, 200, 3)")
    await expect(page.locator(".xterm-rows span", has_text="ish").last).to_have_css("background-color", "rgb(9, 8, 7)")


async def test_a_key_leads_out_of_it(devices: Devices, worker: Worker):
    page = await terminal(devices)
    await page.keyboard.press("Tab")
    await page.keyboard.press("Escape")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Escape")
    await page.keyboard.press("a")
    await page.keyboard.press("Escape")
    await page.keyboard.press("Tab")
    await expect(page.locator(".xterm-helper-textarea")).to_be_focused()
    await until_typed(worker, b"\t\x1b\t\x1ba\x1b\t")
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Search")).to_be_focused()
    await page.locator(".xterm-helper-textarea").focus()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await page.keyboard.press("Shift+Tab")
    await expect(page.locator(".xterm-helper-textarea")).not_to_be_focused()
    await until_typed(worker, b"\t\x1b\t\x1ba\x1b\t" + b"\x1b" * 4)


@pytest.mark.parametrize("bracketed", [True, False])
async def test_a_paste_is_one_paste(devices: Devices, worker: Worker, *, bracketed: bool):
    page = await terminal(devices)
    if bracketed:
        worker.control.attachments[-1].show(b"\x1b[?2004hready")
        await expect(page.locator(".xterm-rows")).to_contain_text("ready")
    evil = "one\x1b[201~\nrm -rf ~\n\x1b[20\x1b[201~1~ \x9b201~two\x07\x03\tthree\u2028 日本"
    await page.evaluate(_PASTE, evil)
    wanted = "one\rrm -rf ~\r two\tthree\u2028 日本".encode()
    async with asyncio.timeout(60):
        while not typed(worker).rstrip(b"\x1b[201~").endswith("日本".encode()):
            await asyncio.sleep(0.02)
    got = typed(worker)
    if bracketed:
        assert got.startswith(b"\x1b[200~")
        assert got.endswith(b"\x1b[201~")
        got = got[6:-6]
    assert b"\x1b" not in got
    assert b"\x9b" not in got.replace("日本".encode(), b"")
    assert not set(got) & (set(range(0x20)) - {9, 13})
    assert got.replace(b"[201~", b"") == wanted


async def test_a_paste_that_is_too_large_is_refused_whole(devices: Devices, worker: Worker):
    page = await terminal(devices)
    await page.evaluate(_PASTE, "x" * 1_000_001)
    await expect(page.get_by_text("A paste has at most 1 MB")).to_be_visible()
    await page.keyboard.type("y")
    await until_typed(worker, b"y")
