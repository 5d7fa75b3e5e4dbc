"""The page in a browser, in the gate: a question answered, a message sent. All else of it runs at night."""

from playwright.async_api import expect

from synapsed.interfaces import TaskFilter
from tests.web.conftest import CARD, Devices, Worker, question


async def test_a_tap_answers_the_question_that_is_shown(devices: Devices, worker: Worker):
    page = await devices.open()
    task = await worker.ask("ann", question("Run it?"))
    card = page.locator(CARD)
    await expect(card.locator(".question")).to_have_text("Run it?")
    await expect(card.locator(".where")).to_have_text("…/shop/api")
    await expect(page).to_have_title("(1) synapsed")
    await expect(card.get_by_role("button", name="Approve")).to_have_attribute("data-key", "1")
    await expect(card.get_by_role("button", name="Deny")).to_have_attribute("data-key", "3")
    await expect(card.get_by_role("button", name="Yes, and don't ask again")).to_be_visible()
    await card.get_by_role("button", name="Approve").tap()
    await expect(card.locator(".outcome")).to_contain_text("Yes")
    await worker.seen_to("ann", "i1", task, by="person", where="http")
    await expect(card.locator(".outcome")).to_contain_text("taken")
    await expect(page.locator(CARD)).to_have_count(0)
    assert worker.answers == [(task, "1", "p1")]


async def test_a_message_with_a_file(devices: Devices, worker: Worker):
    page = await devices.open("/#/agent/ann")
    await page.get_by_label("Message to ann").fill("Look at this")
    await page.locator("input[type=file]").set_input_files(
        [{"name": "日本 <i>.txt", "mimeType": "text/plain", "buffer": b"words"}]
    )
    await expect(page.locator(".files li span")).to_have_text(["日本 <i>.txt"])
    await page.get_by_role("button", name="Send").tap()
    await expect(page.get_by_label("Message to ann")).to_have_value("")
    await page.get_by_role("tab", name="Conversation").tap()
    await expect(page.locator(".asked .said")).to_have_text("Look at this\n📎 日本 <i>.txt")
    ((task,), _) = await worker.control.tasks.page(TaskFilter(limit=5))
    assert [part.type for part in task.message.parts] == ["text", "file"]
