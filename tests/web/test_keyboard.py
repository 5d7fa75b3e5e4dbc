"""The page by the keyboard alone: all that it can do is reached, what is focused is seen to be, and no action and no
redraw takes the focus away."""

import asyncio
import re
from typing import Any

import pytest
from playwright.async_api import Locator, Page, Route, expect

from synapsed.model.agent import Activity, ProcessState
from synapsed.model.events import REMOVED, AttentionChanged, StateChanged
from tests.fakes.clock import until
from tests.web.conftest import CARD, PHONE, Devices, Worker, question, read

pytestmark = pytest.mark.night

DESK: dict[str, Any] = {"viewport": {"width": 1000, "height": 700}}
ANN = "synapse-claude-8100"
STOPS_MOST = 80
"""So many presses of Tab lead to anything."""

_WATCH = """
window.lost = [];
window.rings = [];
let begun = false;
setInterval(() => {
  const none = document.activeElement === document.body;
  if (begun && none) window.lost.push(document.title + location.hash);
  begun = !none;
}, 20);
addEventListener("focusin", () => setTimeout(() => { const wrong = ring(); if (wrong) window.rings.push(wrong); }));
const ring = () => {
  const has = document.activeElement;
  if (has === document.body) return "";
  const shown = has.closest(".xterm-box") ?? has;
  const { outlineStyle, outlineWidth, outlineOffset } = getComputedStyle(shown);
  const what = `${has.tagName}.${has.className} ${has.getAttribute("aria-label") ?? has.textContent.slice(0, 40)}`;
  if (outlineStyle === "none" || parseFloat(outlineWidth) < 2) return `${what}: no ring`;
  const [box, more] = [shown.getBoundingClientRect(), parseFloat(outlineOffset) + parseFloat(outlineWidth) - 1];
  const seen = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
  for (let one = shown.parentElement; one; one = one.parentElement) {
    const { overflowX, overflowY, contentVisibility, contain } = getComputedStyle(one);
    const all = contentVisibility === "auto" || /paint|content|strict/.test(contain);
    const at = one.getBoundingClientRect();
    for (const [side, hides] of [["left", overflowX], ["top", overflowY]]) {
      if (all || hides !== "visible") seen[side] = Math.max(seen[side], at[side]);
    }
    for (const [side, hides] of [["right", overflowX], ["bottom", overflowY]]) {
      if (all || hides !== "visible") seen[side] = Math.min(seen[side], at[side]);
    }
  }
  const cut = [
    ...["left", "top"].filter((side) => box[side] - more < seen[side]),
    ...["right", "bottom"].filter((side) => box[side] + more > seen[side]),
  ];
  return cut.length > 1 ? `${what}: its ring is cut at ${cut}` : "";
};
"""
"""Keeps the moments in which nothing was focused any more, as a person would see them, who sees no step of a redraw;
and what is wrong with the ring of whatever is focused: it has none, or what it stands in hides more than one side of
it."""


async def opened(devices: Devices, path: str = "/", **options: Any) -> Page:
    """A page at which a key was pressed, which is watched from then on."""
    page = await (await devices.context(**(options or DESK))).new_page()
    page.on("pageerror", lambda error: devices.complaints.append(f"error: {error}"))
    devices.pages.append(page)
    await page.add_init_script(_WATCH)
    await page.goto(devices.url + path)
    await expect(page.locator("[aria-busy=true]")).to_have_count(0)
    await page.keyboard.press("Shift")
    await page.wait_for_function(
        "() => performance.getEntriesByType('resource').some((one) => one.name.endsWith('/focus.js'))"
    )
    return page


async def go(page: Page, to: Locator, key: str = "Tab") -> None:
    """Presses `key` until that has the focus."""
    await expect(to).to_be_visible()
    wanted = await to.element_handle()
    for _ in range(STOPS_MOST):
        await page.keyboard.press(key)
        if await page.evaluate("(one) => one === document.activeElement", wanted):
            return
    pytest.fail(f"{key} does not lead to {to}")


async def press(page: Page, to: Locator, key: str = "Enter", by: str = "Tab") -> None:
    await go(page, to, by)
    await page.keyboard.press(key)


async def kept(page: Page) -> None:
    """Something has had the focus all the time, and was seen to have it."""
    assert await page.evaluate("[window.lost, window.rings]") == [[], []]
    assert await page.evaluate("document.activeElement !== document.body")


WAYS = [
    ("Approve", "Enter", "1"),
    ("Yes, and don't ask again", "Space", "2"),
    ("In your own words", "Enter", "only in /tmp"),
    ("Deny", "Space", "3"),
]


@pytest.mark.parametrize("device", [DESK, PHONE], ids=["desk", "phone"])
async def test_each_way_to_answer(devices: Devices, worker: Worker, device: dict[str, Any]):
    page = await opened(devices, **device)
    for number, (name, key, text) in enumerate(WAYS):
        task = await worker.ask("ann", question(f"Run {number}?", key=f"p{number}"), item=f"i{number}")
        card = page.locator(CARD).filter(has_text=f"Run {number}?")
        await expect(card).to_be_visible()
        await expect(page.locator(CARD)).to_have_count(1)  # what is settled goes, and moves the others
        await read(page)
        await press(page, card.get_by_role("button", name=name), key)
        if text.startswith("only"):
            await expect(card.locator("textarea")).to_be_focused()
            await page.keyboard.press("Escape")
            await expect(card.locator("textarea")).to_have_count(0)
            await expect(card).to_be_focused()
            await press(page, card.get_by_role("button", name=name), key)
            await page.keyboard.type(text)
            await page.keyboard.press("Enter")
        await expect(card.locator(".outcome")).to_contain_text("taken")
        await expect(card).to_be_focused()
        assert worker.answers[-1] == (task, text, f"p{number}")
        await kept(page)
        await worker.seen_to("ann", f"i{number}", task)
    await expect(page.locator(CARD)).to_have_count(0)
    await expect(page.locator(".inbox")).to_be_focused()
    await kept(page)


async def test_from_the_list_to_an_agent_its_terminal_and_back(devices: Devices, worker: Worker):
    page = await opened(devices)
    await press(page, page.get_by_role("button", name="Go past the list"))
    await expect(page.locator("main")).to_be_focused()
    await press(page, page.locator(".left .agents a").first, by="Shift+Tab")
    await expect(page.locator(".right .bar h2")).to_have_text("ann")
    await go(page, page.locator("#message"))
    await page.keyboard.type("Do it.")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("All of it.")
    await go(page, page.get_by_role("button", name="Send"))
    await page.keyboard.press("Space")
    await expect(page.locator(".task .said")).to_have_text("Do it.\nAll of it.")
    await expect(page.locator("#message")).to_be_focused()
    await kept(page)
    await press(page, page.locator("#terminal"), by="Shift+Tab")
    field = page.locator(".xterm-helper-textarea")
    await expect(field).to_be_focused()
    await expect(page.locator(".xterm-rows")).to_contain_text("screen")
    await page.keyboard.type("x")
    for key in ("Escape", "Escape", "Tab"):
        await page.keyboard.press(key)
    await expect(page.get_by_role("button", name="Search")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Search the terminal")).to_be_focused()
    await page.keyboard.type("screen")
    await expect(page.locator(".finding [role=status]")).to_have_text("1 of 1")
    await kept(page)
    await page.keyboard.press("Escape")
    await expect(field).to_be_focused()
    for key in ("Escape", "Escape", "Shift+Tab"):
        await page.keyboard.press(key)
    await press(page, page.locator("#terminal"), by="Shift+Tab")
    await expect(page.locator(".xterm")).to_have_count(0)
    await expect(page.locator("#terminal")).to_be_focused()
    await page.keyboard.press("t")
    await expect(field).to_be_focused()
    for key in ("Escape", "Escape", "Tab", "t"):  # closed from below it, where the button is not
        await page.keyboard.press(key)
    await expect(page.locator("main")).to_be_focused()
    await press(page, page.locator(".left .views a").first, by="Shift+Tab")
    await expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    await kept(page)
    typed = b"".join(data for one in worker.control.attachments for data in one.written)
    assert typed.replace(b"\x1b", b"") == b"x"


async def test_searches_settings_and_the_keys(devices: Devices, worker: Worker):
    page = await opened(devices)
    await go(page, page.locator("#find"))
    await page.keyboard.type("bob")
    await expect(page.locator(".left .agents .name")).to_have_text(["bob"])
    await page.keyboard.press("Escape")
    await expect(page.locator(".left .agents")).to_be_focused()
    await kept(page)
    await press(page, page.locator(".left .agents a").first)
    await expect(page.locator(".right .bar h2")).to_have_text("bob")
    await expect(page.locator("#message")).to_be_visible()
    await page.keyboard.press("m")
    await expect(page.locator("#message")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.locator("main")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.locator(".left .agents .name")).to_have_count(2)
    await page.keyboard.press("g")
    await page.keyboard.press("h")
    await go(page, page.get_by_label("Words"))
    await page.keyboard.type("a")
    await go(page, page.get_by_label("Kind"))
    await page.keyboard.press("ArrowDown")
    assert await page.get_by_label("Kind").input_value() == "message"
    await go(page, page.locator(".found"))
    for letter, heading in (("e", "Events"), ("u", "Usage")):
        await page.keyboard.press("g")
        await page.keyboard.press(letter)
        await expect(page.get_by_role("heading", name=heading)).to_be_visible()
        await kept(page)
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await kept(page)
    await press(page, page.locator(".left .views").get_by_role("link", name="Settings"), by="Shift+Tab")
    await go(page, page.get_by_label("as the system has them"))
    await page.keyboard.press("ArrowDown")
    assert await page.evaluate("document.documentElement.dataset.theme") == "light"
    await page.keyboard.press("ArrowUp")
    assert await page.evaluate("document.documentElement.dataset.theme") is None
    await kept(page)


VIEWS = ("", "agent/ann", "events", "history", "usage", "settings", "side/ann,bob", "start", "nowhere")
_PRESSABLE = """() => [
  ...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")
]
  .filter((one) => one.checkVisibility() && !one.disabled && !one.matches("[type=file]"))
  .filter((one) => one.type !== "radio" || one.checked)  // of those the arrows lead to the others
"""
_NAME = "(one) => `${one.tagName}.${one.className} ${one.getAttribute('aria-label') ?? one.textContent.slice(0, 40)}`"


@pytest.mark.timeout(400)
@pytest.mark.parametrize("device", [DESK, PHONE], ids=["desk", "phone"])
async def test_whatever_can_be_pressed_is_reached_and_seen(devices: Devices, worker: Worker, device: dict[str, Any]):
    done = await worker.ask("ann", question(key="p0"), item="i0", message="First.")
    await worker.control.complete(done, "Look:\n\n```sh\nls\n```\n\n[there](https://example.org)")
    await worker.seen_to("ann", "i0", done)
    for number in range(2):
        told = AttentionChanged(id=f"f{number}", state="opened", kind="finished", question="All is done.")
        await worker.control.tell("synapse-codex-8120", told)
    task = await worker.ask("ann", question("Edit it?", diff="@@ -1 +1 @@\n-a\n+b"))
    await worker.control.progress(task, "On the way.")
    page = await opened(devices, **device)
    for view in (*VIEWS, "agent/ann?talk"):
        where, _, tab = view.partition("?")
        await page.goto(f"{devices.url}/#/{where}")
        await expect(page.locator("h1, h2, .empty").first).to_be_visible()
        await expect(page.locator("[aria-busy=true]")).to_have_count(0)
        if tab and device is PHONE:
            await page.get_by_role("tab", name="Screen").focus()
            await page.keyboard.press("ArrowRight")  # a pointer's focus has no ring
            await expect(page.get_by_role("button", name="Copy answer")).to_be_visible()
        wanted = await page.evaluate(f"window.wanted = ({_PRESSABLE})(); window.wanted.map({_NAME})")
        assert wanted
        reached: set[int] = set()
        for _ in range(2 * STOPS_MOST):
            await page.keyboard.press("Tab")
            reached.add(await page.evaluate("window.wanted.indexOf(document.activeElement)"))
            if len(reached - {-1}) == len(wanted):
                break
        assert [name for number, name in enumerate(wanted) if number not in reached] == [], view
        assert await page.evaluate("window.rings.splice(0)") == [], view


async def test_several_side_by_side(devices: Devices, worker: Worker):
    page = await opened(devices, "/#/agent/ann")
    await press(page, page.get_by_role("link", name="Side by side"))
    await expect(page.locator("main")).to_be_focused()
    await go(page, page.get_by_label("Add an agent"))
    await page.keyboard.press("ArrowDown")
    await expect(page.locator(".pane")).to_have_count(2)
    await expect(page.locator("main")).to_be_focused()  # there is no other: the field is gone
    await press(page, page.locator(".pane").first.get_by_role("button", name="Terminal"), "Space")
    await expect(page.locator(".xterm-helper-textarea")).to_be_focused()
    for key in ("Escape", "Escape", "Shift+Tab"):
        await page.keyboard.press(key)
    await expect(page.get_by_role("button", name="Take ann away")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator(".pane")).to_have_count(1)
    await expect(page.locator("main")).to_be_focused()
    await kept(page)


async def test_what_is_finished_is_put_away(devices: Devices, worker: Worker):
    for number in range(3):
        told = AttentionChanged(id=f"f{number}", state="opened", kind="finished", question=f"Done {number}.")
        await worker.control.tell(ANN, told)
    page = await opened(devices)
    await read(page)
    await press(page, page.locator(CARD).first.get_by_role("button", name="Put away"))
    await expect(page.locator(CARD)).to_have_count(2)
    await expect(page.locator(".inbox")).to_be_focused()
    await press(page, page.get_by_role("button", name="Put away all"), "Space")
    await expect(page.locator(CARD)).to_have_count(0)
    await expect(page.locator(".inbox")).to_be_focused()
    await kept(page)


async def test_a_small_window_by_the_keyboard(devices: Devices, worker: Worker):
    """As a desk has it at 200 %, and a phone with a keyboard."""
    for number in range(5):
        worker.control.add(f"rests-{number}", "claude", 8140 + number)
    page = await opened(devices, **PHONE)
    row = page.locator(".agents a", has_text="ann")
    await press(page, page.locator(".agents button.fold"))  # all are at rest: it was open
    await page.keyboard.press("Space")
    await press(page, row)
    await expect(page.locator(".bar h1")).to_have_text("ann")
    await expect(page.locator("main")).to_be_focused()
    await go(page, page.get_by_role("tab", name="Screen"))
    await page.keyboard.press("ArrowRight")
    talk = page.get_by_role("tab", name="Conversation")
    await expect(talk).to_be_focused()
    await expect(talk).to_have_attribute("aria-selected", "true")
    await go(page, page.locator("#message"))
    await page.keyboard.type("Do it.")
    await page.keyboard.press("Control+Enter")
    await expect(page.locator(".task .said")).to_have_text("Do it.")
    await press(page, page.get_by_role("button", name="Cancel"), by="Shift+Tab")
    await expect(page.locator(".task .state")).to_have_text("canceled")
    await expect(page.locator(".talk")).to_be_focused()
    await press(page, page.get_by_role("link", name="Back"), by="Shift+Tab")
    await expect(row).to_be_focused()
    await kept(page)
    for name in ("Events", "History", "Usage", "Settings"):
        await press(page, page.locator(".phone > .views").get_by_role("link", name=name))
        await expect(page.get_by_role("heading", name=name)).to_be_visible()
        await expect(page.locator("[aria-busy=true]")).to_have_count(0)
        await kept(page)
        await go(page, page.locator(".phone > .views a").first, "Shift+Tab")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="synapsed")).to_be_visible()
    await kept(page)


async def test_an_agent_is_started_restarted_and_stopped(devices: Devices, worker: Worker):
    page = await opened(devices)
    page.on("dialog", lambda dialog: dialog.accept())
    await page.route("**/control/profiles", lambda route: route.fulfill(json=[{"name": "claude"}, {"name": "dummy"}]))
    await press(page, page.get_by_role("link", name="Start an agent"))
    await go(page, page.get_by_label("Profile"))
    await page.keyboard.press("ArrowDown")
    await go(page, page.get_by_label("Folder"))
    await page.keyboard.press("ArrowDown")
    await go(page, page.get_by_label("Name"))
    await page.keyboard.type("new")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="new")).to_be_visible()
    await expect(page.locator("main")).to_be_focused()
    await kept(page)
    ((_, started),) = [call for call in worker.control.calls if call[0] == "start"]
    assert (started.profile, started.name, started.cwd) == ("dummy", "new", "/home/me/shop/web")
    for name in ("Restart", "Stop"):
        await press(page, page.get_by_role("button", name=name, exact=True))
        await until(lambda name=name: any(call[0] == name.lower() for call in worker.control.calls))
        await expect(page.locator(".acts [aria-disabled]")).to_have_count(0)
        await kept(page)


async def test_what_goes_with_a_redraw_leaves_the_focus_where_it_was(devices: Devices, worker: Worker):
    await worker.does(ANN, Activity.BUSY, "works")
    page = await opened(devices, "/#/agent/ann")
    await go(page, page.get_by_role("button", name="Interrupt"))
    await worker.does(ANN, Activity.READY, "rests")
    await expect(page.get_by_role("button", name="Interrupt")).to_have_count(0)
    await expect(page.locator("main")).to_be_focused()
    await go(page, page.locator(".left .agents a").nth(1), "Shift+Tab")
    del worker.control.views["synapse-codex-8120"]
    await worker.control.tell("synapse-codex-8120", StateChanged(state=ProcessState.EXITED, reason=REMOVED))
    await expect(page.locator(".left .agents .name")).to_have_text(["ann"])
    await expect(page.locator(".left .agents")).to_be_focused()
    await kept(page)


async def test_a_pointer_that_led_away_is_not_called_back(devices: Devices, worker: Worker):
    task = await worker.ask("ann", question())
    page = await opened(devices)
    await read(page)
    await go(page, page.locator(CARD).get_by_role("button", name="Deny"))
    await page.mouse.click(900, 650)
    await worker.seen_to("ann", "i1", task)
    await expect(page.locator(CARD)).to_have_count(0)
    assert await page.evaluate("document.activeElement.matches('main')"), "it is where the pointer led"


async def test_a_terminal_that_comes_late_leaves_who_writes_alone(devices: Devices, worker: Worker):
    page = await opened(devices, "/#/agent/ann", **DESK, service_workers="block")  # which would have it already
    there = asyncio.Event()

    async def late(route: Route) -> None:
        await there.wait()
        await route.continue_()

    await page.route("**/js/terminal.js", late)
    await press(page, page.locator("#terminal"))
    await go(page, page.locator("#message"))
    await page.keyboard.type("not for")
    there.set()
    await expect(page.locator(".xterm-rows")).to_contain_text("screen")
    await page.keyboard.type(" it")
    await expect(page.locator("#message")).to_have_value("not for it")
    assert [one.written for one in worker.control.attachments] == [[]]


async def test_what_is_sent_on_a_slow_line_takes_the_focus_from_nobody(devices: Devices, worker: Worker):
    page = await opened(devices, "/#/agent/ann")
    sent, there = asyncio.Event(), asyncio.Event()

    async def slow(route: Route) -> None:
        sent.set()
        await there.wait()
        await route.continue_()

    await page.route("**/tasks/send", slow)
    await go(page, page.locator("#message"))
    await page.keyboard.type("Do it.")
    await press(page, page.get_by_role("button", name="Send"))
    await asyncio.wait_for(sent.wait(), 60)
    await expect(page.locator("#message")).to_be_focused()
    await go(page, page.locator("#find"), "Shift+Tab")
    there.set()
    await expect(page.locator("#message")).to_have_value("")
    await expect(page.get_by_text(re.compile("sending"))).to_have_count(0)
    await expect(page.locator("#find")).to_be_focused()
    await kept(page)
