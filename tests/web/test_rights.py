"""What a paired device may not is not offered, and refused where it is tried all the same."""

from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from synapsed.interfaces import Right
from synapsed.model.agent import Activity
from tests.api.serving import Api
from tests.web.conftest import DESK, PATIENCE_MS, Worker, question

pytestmark = pytest.mark.night

TRIED: dict[str, tuple[str, dict[str, Any]]] = {
    "answer": ("/control/agents/ann/input", {"input": "1"}),
    "interrupt": ("/control/agents/ann/interrupt", {}),
    "send": ("/agents/ann/tasks/send", {"message": "hello"}),
    "type": ("/control/agents/ann/keys", {"keys": ["x"]}),
    "stop": ("/control/agents/ann/stop", {}),
    "devices": ("/control/web/code", {"rights": ["look"]}),
}
TRY = """async ([path, body]) => (await fetch(path, {method: "POST", body: JSON.stringify(body),
    headers: {"Content-Type": "application/json", "Synapsed-Page": "1"}})).status"""


class Paired:
    """Browsers at the desk, each let in by a code for other rights."""

    def __init__(self, browser: Browser, api: Api) -> None:
        self._browser = browser
        self._api = api

    async def open(self, *rights: Right) -> Page:
        body = {"rights": list(rights), "here": True}
        status, made = await self._api.json(self._api.unix, "POST", "/control/web/code", json=body)
        assert status == 200, made
        context = await self._browser.new_context(**DESK)
        context.set_default_timeout(PATIENCE_MS)
        page = await context.new_page()
        await page.goto(f"{self._api.url}/#code={made['code']}")
        return page


@pytest.fixture
def paired(browser: Browser, api: Api) -> Paired:
    return Paired(browser, api)


async def refused(page: Page) -> set[str]:
    """What of `TRIED` the device may not."""
    return {name for name, (path, body) in TRIED.items() if await page.evaluate(TRY, [path, body]) == 403}


async def test_what_a_device_may_not_is_not_there(paired: Paired, worker: Worker):
    await worker.ask("ann", question())
    await worker.does("synapse-claude-8100", Activity.BUSY, "hook: a tool runs")
    offered = ("Approve", "Cancel", "Interrupt", "Terminal")

    async def offers(page: Page) -> set[str]:
        await expect(page.locator(".card .question")).to_be_visible()
        answers = await page.get_by_role("button", name="Approve").count()
        await page.goto(page.url.partition("#")[0] + "#/agent/ann")
        await expect(page.locator(".bubble.asked").first).to_be_visible()
        found = {name for name in offered if await page.get_by_role("button", name=name, exact=True).count()}
        found |= {"Approve"} if answers else set()
        found |= {"Keys"} if await page.get_by_role("button", name="Control C").count() else set()
        return found | ({"Send"} if await page.get_by_role("textbox", name="Message").count() else set())

    looks = await paired.open("look")
    assert await offers(looks) == set()
    await expect(looks.get_by_text("This device may look, not send.")).to_be_visible()
    assert await refused(looks) == set(TRIED)

    answers = await paired.open("look", "answer")
    assert await offers(answers) == {"Approve", "Cancel", "Interrupt", "Send"}
    assert await refused(answers) == {"type", "stop", "devices"}

    types = await paired.open("look", "type")
    assert await offers(types) == {"Keys", "Terminal"}
    assert await refused(types) == {"answer", "interrupt", "send", "stop", "devices"}

    blind = await paired.open("answer")
    await expect(blind.get_by_text("This device is not let in")).to_be_visible()
    for page in (looks, answers, types, blind):
        await page.context.close()
