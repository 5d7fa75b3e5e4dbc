"""What is refused, asked about or not answered, beside what a person does meanwhile."""

import asyncio
import json

import pytest
from playwright.async_api import Dialog, Page, Route, expect

from synapsed.model.agent import Activity
from tests.web.conftest import CARD, DESK, Devices, Worker, question

pytestmark = [pytest.mark.night, pytest.mark.asyncio(loop_scope="module")]

FULL = {"error": {"code": "MAILBOX_FULL", "message": "it is full", "details": {}}}
MANAGER = {"device": None, "rights": ["look", "answer", "type", "manage"], "push_key": None, "version": "", "page": ""}


async def refused_later(page: Page) -> asyncio.Event:
    """A message to ann is refused when the event is set."""
    refused = asyncio.Event()

    async def refuse(route: Route) -> None:
        await refused.wait()
        await route.fulfill(status=429, json=FULL)

    await page.route("**/agents/ann/tasks/send", refuse)
    return refused


async def test_a_list_that_could_not_be_read_is_read_again(devices: Devices, worker: Worker) -> None:
    """The stream goes on, and no event comes by which it would be asked for."""
    await worker.ask("ann", question("Run it?"))
    page = await (await devices.context(**DESK)).new_page()
    refused: list[str] = []

    async def busy(route: Route) -> None:
        if route.request.url in refused:
            await route.continue_()
            return
        refused.append(route.request.url)
        await route.fulfill(status=503, json={"error": {"code": "BUSY", "message": "it is busy", "details": {}}})

    for path in ("/agents", "/inbox"):
        await page.route(devices.url + path, busy)
    await page.goto(devices.url)
    await expect(page.locator(f"{CARD} .question")).to_have_text("Run it?")
    await expect(page.locator(".agents .name")).to_have_text(["ann", "bob"])
    assert sorted(refused) == [f"{devices.url}/agents", f"{devices.url}/inbox"]


async def test_a_refused_message_stays_with_its_own_agent(devices: Devices) -> None:
    page = await devices.open("/#/agent/ann", **DESK)
    refused = await refused_later(page)
    await page.get_by_label("Message to ann").fill("drop the table")
    await page.get_by_role("button", name="Send").click()
    await page.evaluate("location.hash = '#/agent/bob'")
    await page.get_by_label("Message to bob").fill("hello")
    refused.set()
    await expect(page.get_by_text("it is full")).to_be_visible()
    await expect(page.get_by_label("Message to bob")).to_have_value("hello")
    await page.evaluate("location.hash = '#/agent/ann'")
    await expect(page.get_by_label("Message to ann")).to_have_value("drop the table")
    await page.get_by_label("Message to ann").fill("")


async def test_what_is_typed_while_a_message_is_on_its_way_stays(devices: Devices) -> None:
    page = await devices.open("/#/agent/ann", **DESK)
    refused = await refused_later(page)
    await page.get_by_label("Message to ann").fill("first")
    await page.get_by_role("button", name="Send").click()
    await page.get_by_label("Message to ann").press_sequentially(" and a second thought")
    refused.set()
    await expect(page.get_by_text("it is full")).to_be_visible()
    await expect(page.get_by_label("Message to ann")).to_have_value("first and a second thought")
    await page.get_by_label("Message to ann").fill("")


async def test_a_restart_of_an_agent_that_asks_is_asked_about(devices: Devices, worker: Worker) -> None:
    ann = next(id_ for id_, view in worker.control.views.items() if view.name == "ann")
    await worker.ask("ann", question("Run it?"))
    await worker.does(ann, Activity.WAITING, "hook")
    page = await devices.open("/#/agent/ann", **DESK)
    await page.route("**/web/me", lambda route: route.fulfill(json=MANAGER))
    await page.reload()
    await page.locator(CARD).first.wait_for()
    asked: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def dismiss(dialog: Dialog) -> None:
        asked.set_result(dialog.message)
        await dialog.dismiss()

    page.on("dialog", dismiss)
    posts: list[str] = []
    page.on("request", lambda request: posts.append(request.url) if request.url.endswith("/restart") else None)
    await page.get_by_role("button", name="Restart").click()
    assert "It asks something: that ends" in await asked
    assert posts == []


async def test_a_start_that_is_not_answered_is_sent_again_under_the_same_name(devices: Devices, worker: Worker) -> None:
    page = await devices.open("/", **DESK)
    await page.route("**/web/me", lambda route: route.fulfill(json=MANAGER))
    await page.evaluate("location.hash = '#/start'")
    await page.reload()
    names: list[str] = []

    async def lost(route: Route) -> None:
        body = json.loads(route.request.post_data or "{}")
        names.append(body["name"])
        await route.abort()

    await page.route("**/control/start", lost)
    button = page.get_by_role("button", name="Start", exact=True)
    await button.click()
    await expect(page.locator(".problem")).to_be_visible()
    worker.control.add(names[0], "dummy", 8300)
    added = next(id_ for id_, view in worker.control.views.items() if view.name == names[0])
    await worker.does(added, Activity.BUSY, "hook")
    await expect(page.locator(".agents .name", has_text=names[0]).first).to_be_visible()
    await button.click()
    await expect(page.locator(".problem")).to_be_visible()
    assert names == [names[0]] * 2
