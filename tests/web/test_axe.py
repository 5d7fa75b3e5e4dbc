"""Accessibility as axe-core judges it: no finding, on phone and desk, light and dark."""

from typing import Any

import pytest
from playwright.async_api import expect

from synapsed.model.events import ToolExecution
from tests.web.conftest import CARD, DESK, PHONE, Devices, Worker, question
from tests.web.programs import CACHE

pytestmark = [
    pytest.mark.night,
    pytest.mark.skipif(CACHE.missing() is not None, reason=f"*** ACCESSIBILITY NOT TRIED: {CACHE.missing()} ***"),
    pytest.mark.timeout(400),  # some 20 s of CPU
]

VIEWS = ("", "agent/ann", "events", "history", "usage", "settings", "side/ann,bob", "start")


async def findings(page: Any, *rules: str) -> list[str]:
    if await page.evaluate("!window.axe"):
        await page.evaluate((CACHE.folder / "node_modules" / "axe-core" / "axe.min.js").read_text())
    only = {"runOnly": rules} if rules else {}
    found = await page.evaluate("(only) => axe.run(document, { resultTypes: ['violations'], ...only })", only)
    return [
        f"{one['id']} ({one['impact']}): {node['target']} {node['html'][:160]}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


async def nothing_found(page: Any, view: str) -> None:
    """In the dark only the colours are others."""
    await page.emulate_media(color_scheme="light")
    assert await findings(page) == [], view
    await page.emulate_media(color_scheme="dark")
    assert await findings(page, "color-contrast") == [], f"{view} in the dark"


@pytest.mark.parametrize("device", [PHONE, DESK], ids=["phone", "desk"])
async def test_no_finding(devices: Devices, worker: Worker, device: dict[str, Any]):
    task = await worker.ask("ann", question("Run it?", type="permission"), message="Do **it**.")
    await worker.control.progress(task, "On the way.")
    page = await devices.open("/", **device)
    await expect(page.locator(CARD)).to_have_count(1)
    for view in VIEWS:
        await page.goto(f"{devices.url}/#/{view}")
        await expect(page.locator("h1, h2").first).to_be_visible()
        await expect(page.locator("[aria-busy=true]")).to_have_count(0)
        await nothing_found(page, view)


REFUSED = {"error": {"code": "UNAUTHORIZED", "message": "no", "details": {}}}
PAIRED = {
    "device": {"id": "d1", "name": "Ann's phone", "push": False},
    "rights": ["look", "answer"],
    "push_key": "BPk",
    "version": "1",
}
CALLED = {"file_path": "a.py", "old_string": "a\nb", "new_string": "a\nc"}


@pytest.mark.parametrize("device", [PHONE, DESK], ids=["phone", "desk"])
async def test_no_finding_in_what_is_opened(devices: Devices, worker: Worker, device: dict[str, Any]):
    """A tool call with a change, the keys of the desk, what a device may, and what one sees that is not let in."""
    task = await worker.ask("ann", question())
    call = ToolExecution(tool_name="Edit", status="failed", call_id="c", input=CALLED, error="no such file")
    await worker.control.tell(worker.control.directory.resolve("ann"), call, task_id=task)
    page = await devices.open("/#/agent/ann", **device)
    if device is PHONE:
        await page.get_by_role("tab", name="Conversation").click()
    await page.locator(".calls > summary").click()
    await page.locator(".call > summary").click()
    await expect(page.locator(".call .problem")).to_have_text("no such file")
    await nothing_found(page, "call")
    if device is DESK:
        await page.keyboard.press("?")
        await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        await nothing_found(page, "keys")
    await page.route("**/web/me", lambda route: route.fulfill(json=PAIRED))
    await page.goto(f"{devices.url}/#/settings")
    await page.reload()
    await expect(page.get_by_text("Ann's phone")).to_be_visible()
    await nothing_found(page, "settings")
    await page.route("**/web/me", lambda route: route.fulfill(status=401, json=REFUSED))
    await page.reload()
    await expect(page.get_by_text("This device is not let in")).to_be_visible()
    await nothing_found(page, "out")
