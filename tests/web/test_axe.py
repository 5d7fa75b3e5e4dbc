"""Accessibility as axe-core judges it: no serious finding, on phone and desk, light and dark."""

from typing import Any

import pytest
from playwright.async_api import expect

from tests.web.conftest import CARD, DESK, PHONE, Devices, Worker, question
from tests.web.programs import CACHE

pytestmark = pytest.mark.skipif(
    CACHE.missing() is not None, reason=f"*** ACCESSIBILITY NOT TRIED: {CACHE.missing()} ***"
)

VIEWS = ("", "agent/ann", "events", "history", "usage", "settings", "side/ann,bob")


async def findings(page: Any) -> list[str]:
    source = (CACHE.folder / "node_modules" / "axe-core" / "axe.min.js").read_text()
    await page.evaluate(source)
    found = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{one['id']} ({one['impact']}): {node['target']} {node['html'][:160]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", [PHONE, DESK], ids=["phone", "desk"])
async def test_no_serious_finding(devices: Devices, worker: Worker, device: dict[str, Any], scheme: str):
    task = await worker.ask("ann", question("Run it?", type="permission"), message="Do **it**.")
    await worker.control.progress(task, "On the way.")
    page = await devices.open("/", **device, color_scheme=scheme)
    await expect(page.locator(CARD)).to_have_count(1)
    for view in VIEWS:
        await page.goto(f"{devices.url}/#/{view}")
        await expect(page.locator("h1, h2").first).to_be_visible()
        await expect(page.locator("[aria-busy=true]")).to_have_count(0)
        assert await findings(page) == [], (view, scheme)
