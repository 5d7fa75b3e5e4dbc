"""Texts that are composed: by an input method for Japanese or Korean, or with a dead key. The keys that make them are
nobody else's, and what comes of them is there once."""

import pytest
from playwright.async_api import CDPSession, Page, expect

from tests.fakes.clock import until
from tests.web.conftest import CARD, DESK, Devices, Worker, question, read
from tests.web.test_terminal import terminal, typed, until_typed

pytestmark = pytest.mark.night

WAYS = {
    "japanese": [(["k", "か", "かn", "かん", "かんj", "かんじ", "漢字"], "漢字")],
    "korean": [(["ㅎ", "하", "한"], "한"), (["ㄱ", "그", "글"], "글")],
    "dead key": [(["´"], "é")],
}
ways = pytest.mark.parametrize("way", WAYS)


async def key(ime: CDPSession, name: str) -> None:
    """As a browser is told of a key that the input method has taken."""
    pressed = {"key": name, "windowsVirtualKeyCode": 229, "nativeVirtualKeyCode": 229}
    for kind in ("rawKeyDown", "keyUp"):
        await ime.send("Input.dispatchKeyEvent", {"type": kind, **pressed})


async def compose(ime: CDPSession, way: str, *, last: str = "Enter") -> str:
    """Makes that text, of which the last piece is chosen by `last`."""
    for steps, text in WAYS[way]:
        for step in steps:
            await key(ime, "Process")
            await ime.send(
                "Input.imeSetComposition", {"text": step, "selectionStart": len(step), "selectionEnd": len(step)}
            )
        await key(ime, last)
        await ime.send("Input.insertText", {"text": text})
    return "".join(text for _, text in WAYS[way])


async def input_method(page: Page) -> CDPSession:
    return await page.context.new_cdp_session(page)


@ways
async def test_a_message(devices: Devices, worker: Worker, way: str):
    page = await devices.open("/#/agent/ann", **DESK)
    await page.get_by_label("Message to ann").focus()
    ime = await input_method(page)
    whole = await compose(ime, way)
    await page.keyboard.type(", ")
    whole += ", " + await compose(ime, way, last="Escape")
    await expect(page.get_by_label("Message to ann")).to_have_value(whole)
    await expect(page.get_by_label("Message to ann")).to_be_focused()
    await expect(page.locator(".talk .empty")).to_be_visible()
    await page.keyboard.press("Enter")
    await expect(page.locator(".task .said")).to_have_text([whole])


async def test_the_last_enter_of_a_composition_in_safari(devices: Devices, worker: Worker):
    """It comes when the composition is over, and is known by its code only."""
    page = await devices.open("/#/agent/ann", **DESK)
    await page.get_by_label("Message to ann").fill("漢字")
    await page.evaluate(
        """() => document.querySelector("#message").dispatchEvent(
          new KeyboardEvent("keydown", { key: "Enter", keyCode: 229, bubbles: true, cancelable: true }))"""
    )
    await page.keyboard.type("!")
    await page.keyboard.press("Enter")
    await expect(page.locator(".task .said")).to_have_text(["漢字!"])


@ways
async def test_an_answer_while_others_come_and_go(devices: Devices, worker: Worker, way: str):
    task = await worker.ask("ann", question())
    other = await worker.ask("bob", question("Another?", key="p2"), item="i2")
    page = await devices.open("/", **DESK)
    await read(page)
    card = page.locator(CARD).filter(has_text="Run ls?")
    await card.get_by_role("button", name="In your own words").click()
    field = card.locator("textarea")
    await expect(field).to_be_focused()
    ime = await input_method(page)
    whole = await compose(ime, way, last="Escape")
    await expect(field).to_have_value(whole)
    step = {"text": "に", "selectionStart": 1, "selectionEnd": 1}
    await ime.send("Input.imeSetComposition", step)
    await worker.seen_to("bob", "i2", other)
    await expect(page.locator(CARD).filter(has_text="Another?").get_by_role("button")).to_have_count(0)
    worker.control.add("cid", "claude", 8130)
    await worker.ask("cid", question("A third?", key="p3"), item="i3")
    await expect(page.locator(CARD).filter(has_text="A third?")).to_be_visible()
    await expect(field).to_have_value(whole + "に")
    await ime.send("Input.insertText", {"text": "日"})
    await expect(field).to_have_value(whole + "日")
    assert worker.answers == []
    await page.keyboard.press("Enter")
    await until(lambda: worker.answers == [(task, whole + "日", "p1")])


_COMPOSES_ON = """() => {
  const field = document.querySelector(".card textarea");
  const told = { key: "Process", keyCode: 229, isComposing: true, bubbles: true };
  const goesOn = setInterval(() => field.dispatchEvent(new KeyboardEvent("keydown", told)), 50);
  new MutationObserver((_, watch) => {
    if (field.isConnected) return;
    watch.disconnect();
    clearInterval(goesOn);
    for (const key of ["n", "2"]) document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  }).observe(document.body, { childList: true, subtree: true });
  const toast = document.querySelector(".toast");
  window.said = new Promise((done) => new MutationObserver(() => toast.textContent && done(toast.textContent))
    .observe(toast, { childList: true, characterData: true, subtree: true }));
}"""
"""Two keys in the moment in which the field is gone in which somebody composes: they are plain ones then."""


async def test_keys_of_a_composition_are_for_no_other_question(devices: Devices, worker: Worker):
    first = await worker.ask("ann", question("First?"))
    await worker.ask("bob", question("Second?", key="p2"), item="i2")
    page = await devices.open("/", **DESK)
    await read(page)
    await page.keyboard.press("j")  # brings the keys' module
    await page.locator(CARD).first.get_by_role("button", name="In your own words").click()
    await page.evaluate(_COMPOSES_ON)
    await worker.seen_to("ann", "i1", first)
    assert "What you were writing to is gone" in await page.evaluate("window.said.then((said) => said)")
    assert worker.answers == []


@ways
async def test_a_terminal(devices: Devices, worker: Worker, way: str):
    page = await terminal(devices)
    ime = await input_method(page)
    whole = await compose(ime, way)
    await until_typed(worker, whole.encode())
    await ime.send("Input.imeSetComposition", {"text": "か", "selectionStart": 1, "selectionEnd": 1})
    await key(ime, "Escape")
    await ime.send("Input.imeSetComposition", {"text": "", "selectionStart": 0, "selectionEnd": 0})  # it is given up
    again = await compose(ime, way, last="Process")
    await page.keyboard.type("x")
    await page.keyboard.press("Enter")
    await until_typed(worker, f"{whole}{again}x\r".encode())


async def test_a_terminal_is_told_nothing_until_it_is_composed(devices: Devices, worker: Worker):
    page = await terminal(devices)
    ime = await input_method(page)
    await page.keyboard.type("a")
    await until_typed(worker, b"a")
    for step in ("に", "にh", "にほ", "日本"):
        await key(ime, "Process")
        await ime.send("Input.imeSetComposition", {"text": step, "selectionStart": 0, "selectionEnd": len(step)})
    for name in ("ArrowLeft", "Tab", "Backspace", " ", "Enter"):
        await key(ime, name)
    await page.evaluate("new Promise((done) => setTimeout(done, 200))")  # longer than the terminal waits for a text
    assert typed(worker) == b"a"
    await ime.send("Input.insertText", {"text": "日本"})
    await until_typed(worker, "a日本".encode())
    await ime.send("Input.insertText", {"text": "🎉"})  # chosen from a list, without a composition
    await page.keyboard.type("b")
    await until_typed(worker, "a日本🎉b".encode())
