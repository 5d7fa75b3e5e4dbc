"""One press answers one question, whichever way it is pressed; and a question stands whole at every width."""

import pytest
from playwright.async_api import Page, expect

from synapsed.model.attention import AttentionKind
from synapsed.model.task import PromptOption
from tests.web.conftest import CARD, DESK, Devices, Worker, question, read

pytestmark = pytest.mark.night

_HELD = """(key) => {
  const press = (repeat) => (document.activeElement ?? document.body).dispatchEvent(
    new KeyboardEvent("keydown", { key, repeat, bubbles: true, cancelable: true }));
  press(false);
  for (let at = 0; at < 40; at += 1) setTimeout(press, 30 * at, true);
  return new Promise((done) => setTimeout(done, 30 * 45));
}"""
"""A key that is held: pressed once, then said again and again, for longer than a question has to stand."""


async def _three(worker: Worker) -> list[str]:
    control = worker.control
    control.add("cy", "claude", 8101, cwd="/home/me/shop/c")
    names = ("ann", "bob", "cy")
    return [await worker.ask(name, question(f"Run {name}?", key=f"p-{name}"), item=f"i-{name}") for name in names]


async def _ready(page: Page, count: int) -> None:
    await expect(page.locator(CARD)).to_have_count(count)
    await read(page)


@pytest.mark.parametrize("key", ["y", "1", "n"])
@pytest.mark.parametrize("goes", [True, False], ids=["settled at once", "settled later"])
async def test_a_held_key_answers_one_question(devices: Devices, worker: Worker, key: str, *, goes: bool):
    tasks = await _three(worker)
    page = await devices.open("/", **DESK)
    await _ready(page, 3)
    if goes:  # the next one comes to the front while the key is held
        await page.evaluate(_ANSWERED_IS_GONE)
    await page.evaluate(_HELD, key)
    await expect(page.locator(".outcome")).to_have_count(0 if goes else 1)
    assert [task for task, _, _ in worker.answers] == tasks[:1]


_ANSWERED_IS_GONE = """async () => {
  const { now, put } = await import(document.querySelector("script").src.replace("main", "store"));
  setInterval(() => {
    const done = new Set([...now().given].filter(([, one]) => one.state === "done").map(([id]) => id));
    if (done.size) put({ inbox: now().inbox.filter((one) => !done.has(one.id)), given: new Map() });
  }, 5);
}"""
"""What was answered is away at once, not when somebody has read so."""


async def test_keys_pressed_one_after_another_are_for_what_has_been_read(devices: Devices, worker: Worker):
    tasks = await _three(worker)
    page = await devices.open("/", **DESK)
    await _ready(page, 3)
    await page.evaluate(_PRESSED_AS_SOON_AS_SETTLED)
    for _ in range(5):  # all of them may come while the first is being sent
        await page.keyboard.press("y")
    await expect(page.locator(".toast")).to_contain_text("press again")
    await expect(page.locator(".outcome")).to_contain_text("taken")
    assert [task for task, _, _ in worker.answers] == tasks[:1]
    await read(page)
    await page.wait_for_timeout(800)  # nothing says when the answer before counts as seen
    await page.keyboard.press("y")
    await expect(page.locator(".outcome")).to_have_count(2)
    assert [task for task, _, _ in worker.answers] == tasks[:2]


_PRESSED_AS_SOON_AS_SETTLED = """() => new MutationObserver((_, watch) => {
  if (!document.querySelector(".card.done")) return;
  watch.disconnect();
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "y", bubbles: true, cancelable: true }));
}).observe(document.body, { subtree: true, attributes: true, childList: true })"""


@pytest.mark.parametrize("device", ["desk", "phone"])
async def test_a_second_press_in_the_same_place_is_for_nothing(devices: Devices, worker: Worker, device: str):
    """Of a double click or tap: the card above goes, and the next one slides under the finger."""
    tasks = await _three(worker)
    page = await (devices.open("/", **DESK) if device == "desk" else devices.open())
    await _ready(page, 3)
    await page.evaluate(_ANSWERED_IS_GONE)
    box = await page.locator(CARD).first.get_by_role("button", name="Approve").bounding_box()
    assert box is not None
    where = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    press = page.mouse.click if device == "desk" else page.touchscreen.tap
    for _ in range(4):
        await press(*where)
        await page.wait_for_timeout(60)
    await expect(page.locator(CARD)).to_have_count(2)
    assert [task for task, _, _ in worker.answers] == tasks[:1]
    await _ready(page, 2)
    await press(*where)
    await expect(page.locator(CARD)).to_have_count(1)
    assert [task for task, _, _ in worker.answers] == tasks[:2]


async def test_enter_that_is_held_on_a_button_presses_it_once(devices: Devices, worker: Worker):
    """The same agent asks on, in the same card."""
    task = await worker.ask("ann", question("First?"))
    page = await devices.open("/", **DESK)
    await _ready(page, 1)
    await page.locator(CARD).get_by_role("button", name="Approve").focus()
    await page.evaluate(_ASKS_ON)
    await page.keyboard.down("Enter")
    for _ in range(30):  # as often as it is said to be down again, it repeats
        await page.keyboard.down("Enter")
        await page.wait_for_timeout(30)
    await page.keyboard.up("Enter")
    await expect(page.locator(".question")).to_have_text("Next?")
    assert worker.answers == [(task, "1", "p1")]


_ASKS_ON = """() => import(document.querySelector("script").src.replace("main", "store")).then(({ now, put }) => {
  setInterval(() => {
    if ([...now().given.values()].some((one) => one.state === "done"))
      put({ inbox: now().inbox.map((one) => ({ ...one, question: "Next?", prompt_id: "p2" })), given: new Map() });
  }, 5);
})"""
"""The very card has another question as soon as one is answered."""


async def test_a_question_that_takes_the_place_of_another_under_the_pointer(devices: Devices, worker: Worker):
    """It is replaced while the button is down, and a moment before."""
    await worker.ask("ann", question("First?"))
    page = await devices.open("/", **DESK)
    await _ready(page, 1)
    button = page.locator(CARD).get_by_role("button", name="Approve")
    await button.hover()
    await page.mouse.down()
    await page.evaluate(_REPLACED)
    await page.mouse.up()
    await page.evaluate(_REPLACED)
    await page.mouse.down()
    await page.mouse.up()
    await expect(page.locator(".toast")).to_contain_text("press again")
    assert worker.answers == []


_REPLACED = """() => import(document.querySelector("script").src.replace("main", "store")).then(({ now, put }) => {
  put({ inbox: now().inbox.map((one) => ({ ...one, question: "Other?", prompt_id: `${one.prompt_id}x` })) });
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
})"""


async def test_words_for_one_question_are_not_left_to_the_next(devices: Devices, worker: Worker):
    await worker.ask("ann", question("First?"))
    page = await devices.open("/", **DESK)
    await _ready(page, 1)
    await page.get_by_role("button", name="In your own words").click()
    await page.locator(".card textarea").fill("delete all of it")
    await page.evaluate(_REPLACED)
    await expect(page.locator(".question")).to_have_text("Other?")
    await expect(page.locator(".card textarea")).to_have_count(0)
    await page.keyboard.press("Enter")
    assert worker.answers == []


_WIDTHS = (320, 360, 375, 390, 412, 480, 600, 768, 899, 900, 1024, 1400)


@pytest.mark.parametrize("kind", ["question", "permission", "plan"])
async def test_a_question_stands_whole(devices: Devices, worker: Worker, kind: AttentionKind):
    words = "Which of these shall be done with the old tables, now that all of their rows have been moved elsewhere?"
    labels = [f"{at}: leave them where they are for now, and ask again" for at in (1, 2, 3)]
    options = [PromptOption(key=label[0], label=label) for label in labels]
    asked = question(words, options=options, own_words=False, type="selection" if kind == "question" else "permission")
    await worker.ask("ann", asked, kind=kind)
    page = await devices.open()
    for width in _WIDTHS:
        await page.set_viewport_size({"width": width, "height": 800})
        card = page.locator(f"{'.desk' if width >= 900 else '.phone'} {CARD}")  # not the one that the desk's replaces
        await expect(card.locator("[data-key]")).to_have_count(3)
        assert await card.evaluate(_WITHIN) == {"cut": [], "hidden": 0}, width


_WITHIN = """(card) => {
  const whole = card.getBoundingClientRect();
  const cut = [...card.querySelectorAll(".question, [data-key]")].filter((one) => {
    const box = one.getBoundingClientRect();
    return box.height < 10 || box.top < whole.top || box.bottom > whole.bottom || box.left < whole.left
      || box.right > whole.right || one.scrollWidth > one.clientWidth + 1;
  }).map((one) => one.textContent);
  return { cut, hidden: card.scrollHeight - card.clientHeight };
}"""
"""What of the question and its options is not within the card, and how much of the card is scrolled away."""
