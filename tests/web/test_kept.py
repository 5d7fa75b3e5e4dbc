"""What a page keeps in the browser: drafts over a reload, and what the lists said last."""

import json

import pytest
from playwright.async_api import Page, expect

from synapsed.model.agent import Activity
from tests.web.conftest import CARD, DESK, PHONE, Devices, Worker, question

pytestmark = pytest.mark.night

REFUSED = {"error": {"code": "UNAUTHORIZED", "message": "no", "details": {}}}


async def kept(page: Page, what: str) -> str | None:
    found: str | None = await page.evaluate("(name) => localStorage.getItem(name)", f"{what} ")
    return found


async def test_drafts_outlive_the_page_each_with_its_agent(devices: Devices, worker: Worker):
    page = await devices.open("/#/agent/ann", **DESK)
    await page.get_by_label("Message to ann").fill("half a\nthought <b>")
    await page.goto(f"{devices.url}/#/agent/bob")
    await page.get_by_label("Message to bob").fill("another")
    await page.reload()
    await expect(page.get_by_label("Message to bob")).to_have_value("another")
    await page.goto(f"{devices.url}/#/agent/ann")
    await expect(page.get_by_label("Message to ann")).to_have_value("half a\nthought <b>")
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_label("Message to ann")).to_have_value("")
    await page.reload()
    await expect(page.get_by_label("Message to ann")).to_have_value("")
    assert json.loads(await kept(page, "drafts") or "") == [["bob", "another", ""]]


async def words(page: Page) -> dict[str, str]:
    """The answers that are kept, by their items and prompts."""
    found: dict[str, str] = await page.evaluate(
        "Object.fromEntries(Object.entries(localStorage).filter(([name]) => name.startsWith('words ')))"
    )
    return {name.removeprefix("words "): text for name, text in found.items()}


async def loaded(page: Page) -> None:
    """Returns when the page has the module that keeps what was begun."""
    await page.wait_for_function(
        "() => performance.getEntriesByType('resource').some((one) => one.name.endsWith('/kept.js'))"
    )
    await page.wait_for_function("() => localStorage.getItem('lists ') !== null")


async def test_an_answer_that_was_begun_outlives_the_page_and_is_for_its_question(devices: Devices, worker: Worker):
    task = await worker.ask("ann", question("Run it?"))
    await worker.ask("bob", question("Which?", key="p1", options=[], type="question"), item="i2")
    page = await devices.open("/", **DESK)
    ann, bob = (page.locator(CARD).filter(has_text=text) for text in ("Run it?", "Which?"))
    await ann.get_by_role("button", name="In your own words").click()
    await ann.locator("textarea").fill("only\nin <b>")
    await bob.locator("textarea").fill("the second")
    await loaded(page)
    await page.reload()
    await expect(ann.locator("textarea")).to_have_value("only\nin <b>")
    await expect(bob.locator("textarea")).to_have_value("the second")
    await expect(ann.locator("textarea")).not_to_be_focused()  # who writes elsewhere writes on there
    await expect(page.locator(".card [aria-disabled=true]")).to_have_count(0)
    assert worker.answers == []
    await loaded(page)
    await ann.locator("textarea").press("Enter")
    await expect(ann.locator(".outcome")).to_contain_text("taken")
    assert worker.answers == [(task, "only\nin <b>", "p1")]
    await worker.seen_to("ann", "i1", task)
    for item, key in (("i1", "p3"), ("i3", "p1")):  # another prompt of the item, the same one once more
        task = await worker.ask("ann", question("Again?", key=key), item=item)
        await page.reload()
        again = page.locator(CARD).filter(has_text="Again?")
        await expect(again.get_by_role("button", name="Approve")).to_be_visible()
        await expect(again.locator("textarea")).to_have_count(0)
        assert await words(page) == {"i2 p1": "the second"}
        await loaded(page)
        await worker.seen_to("ann", item, task)


async def test_a_password_is_not_kept(devices: Devices, worker: Worker):
    await worker.ask("ann", question("The password?", options=[], type="password"))
    page = await devices.open("/", **DESK)
    await page.get_by_label("Your answer, not shown").fill("secret")
    await loaded(page)
    await page.reload()
    await expect(page.get_by_label("Your answer, not shown")).to_have_value("")
    assert "secret" not in await page.evaluate("JSON.stringify(localStorage)")


async def test_a_message_that_was_sent_as_the_page_went_is_sent_once(devices: Devices, worker: Worker):
    page = await devices.open("/#/agent/ann", **DESK)
    sent = []

    async def lose(route):
        sent.append(route.request.headers["idempotency-key"])
        if len(sent) == 1:
            await route.fetch()
            await route.abort()
        else:
            await route.continue_()

    await page.route("**/tasks/send", lose)
    await page.get_by_label("Message to ann").fill("Do it.")
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_text("bad line: it is sent again")).to_be_visible()
    await page.reload()
    await expect(page.get_by_label("Message to ann")).to_have_value("Do it.")
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_label("Message to ann")).to_have_value("")
    assert (len(sent) > 1, len(set(sent))) == (True, 1), "under one key, by which the daemon knows it"


async def test_only_so_much_is_kept(devices: Devices, worker: Worker):
    page = await devices.open("/#/agent/ann", **DESK)
    await page.get_by_label("Message to ann").fill("x" * 50_001)
    many = [[f"agent-{number}", "text", ""] for number in range(40)]
    await page.evaluate("(many) => localStorage.setItem('drafts ', JSON.stringify(many))", many)
    await page.goto(f"{devices.url}/#/agent/bob")
    await page.get_by_label("Message to bob").fill("mine")
    await page.reload()
    await expect(page.get_by_label("Message to bob")).to_have_value("mine")
    found = json.loads(await kept(page, "drafts") or "")
    assert len(found) == 20
    assert found[-1] == ["bob", "mine", ""]
    for broken in ("{", "null", "{}", '"x"', "[1]"):
        await page.evaluate("(broken) => localStorage.setItem('drafts ', broken)", broken)
        await page.evaluate("onpagehide = null")
        await page.goto(f"{devices.url}/?again#/agent/ann")
        await expect(page.get_by_label("Message to ann")).to_have_value("")


async def test_a_page_without_a_line_shows_what_it_had(devices: Devices, worker: Worker):
    await worker.does("synapse-codex-8120", Activity.BUSY, "hook: a tool runs")
    await worker.ask("ann", question("Run it?"))
    page = await devices.open("/", **PHONE)
    await expect(page.locator(f"{CARD} .question")).to_have_text("Run it?")
    await page.evaluate("navigator.serviceWorker.ready")
    await page.wait_for_function("() => navigator.serviceWorker.controller !== null")
    await page.wait_for_function("() => localStorage.getItem('lists ') !== null")
    await page.context.set_offline(True)
    await page.reload()
    await expect(page.get_by_text("Offline. What is shown may be old.")).to_be_visible()
    await expect(page.locator(f"{CARD} .question")).to_have_text("Run it?")
    await expect(page.locator(".agents .name")).to_have_text(["ann", "bob"])
    worker.control.add("new", "claude", 8150)
    await page.context.set_offline(False)
    await expect(page.get_by_text("Offline.")).to_have_count(0)
    await expect(page.locator(".agents .name")).to_have_text(["ann", "bob", "new"])


async def test_a_device_that_was_removed_keeps_nothing(devices: Devices, worker: Worker):
    await worker.ask("ann", question())
    page = await devices.open("/#/agent/ann", **DESK)
    await page.get_by_label("Message to ann").fill("a secret")
    await page.get_by_role("button", name="In your own words").click()
    await page.get_by_label("Your answer").fill("another secret")
    await loaded(page)
    await page.reload()
    await expect(page.get_by_label("Your answer")).to_have_value("another secret")
    assert await words(page) == {"i1 p1": "another secret"}
    await loaded(page)
    await page.route("**/web/me", lambda route: route.fulfill(status=401, json=REFUSED))
    await page.reload()
    await expect(page.get_by_text("This device is not let in")).to_be_visible()
    await page.wait_for_function("() => !Object.keys(localStorage).some((name) => /^(lists|drafts|words) /.test(name))")
