"""In a narrow window, and at 200 %, everything has room below each other: nothing is scrolled sideways but what is wide
by nature, and nothing is cut."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from synapsed.model.agent import Activity
from synapsed.model.attention import AttentionKind
from synapsed.model.events import AttentionChanged
from tests.web.conftest import CARD, Devices, Worker, question

pytestmark = pytest.mark.night

LONG = "payments-api-of-the-shop-in-the-north-that-is-moved-to-2027"
WIDTHS = {"320": 320, "900": 900, "1400 at 200 %": 700, "768 at 200 %": 384, "390 at 200 %": 195, "320 at 200 %": 160}
VIEWS = (
    "",
    f"agent/{LONG}",
    f"agent/{LONG}?talk",
    "events",
    "history",
    "usage",
    "settings",
    f"side/ann,{LONG}",
    "start",
)
_SIDEWAYS = """() => {
  const wide = ".rows, .rows *, pre, .table, .xterm *";
  const root = document.documentElement;
  const scrolls = (one) => one === root || ["auto", "scroll"].includes(getComputedStyle(one).overflowX);
  const name = (one) => `${one.tagName}.${one.className} ${one.scrollWidth} > ${one.clientWidth}`;
  const sideways = [root, ...document.body.querySelectorAll("*")]
    .filter((one) => one.scrollWidth > one.clientWidth + 1 && scrolls(one) && !one.matches(wide)).map(name);
  const short = "button, .button, .views a, h1, h2, .kind, .when, .state";
  const cut = [...document.querySelectorAll(short)].filter((one) => {
    const box = one.getBoundingClientRect();
    return box.width && !one.closest(wide) && (box.right > innerWidth + 1 || box.left < -1);
  }).map((one) => `${one.tagName} ${one.textContent} is beside the window`);
  return [...sideways, ...cut];
}"""


async def _full(worker: Worker) -> None:
    """Whatever is long or has much beside it."""
    control = worker.control
    agent = control.add(LONG, "claude", 8140, cwd="/home/me/customers/of-a-name-that-is-long")
    kinds: tuple[AttentionKind, ...] = ("unreadable", "sign_in", "crash_loop", "finished", "finished")
    for number, kind in enumerate(kinds):
        told = AttentionChanged(id=f"u{number}", state="opened", kind=kind, question=f"It says something. {'x' * 200}")
        await control.tell(agent.id, told)
    task = await worker.ask(LONG, question("Run it?", command="find . -name '*.py' | xargs sed -i s/a/b/" * 4))
    await control.progress(task, "On the way.")
    await worker.does(agent.id, Activity.BUSY, "hook: a tool runs for a long time, and says so in many words")
    other = await worker.ask("ann", question(key="p2"), item="i2", message="x" * 300)
    await control.complete(other, "```\n" + "x" * 500 + "\n```\n" + "| a " * 60 + "|\n" + "|---" * 60 + "|\n")
    control.rows = [f'[[120,"{"─" * 120}"]]'] * 40


async def _opened(page: Page, url: str, view: str) -> None:
    where, _, tab = view.partition("?")
    await page.goto(f"{url}/#/{where}")
    await expect(page.locator("h1, h2").first).to_be_visible()
    await expect(page.locator("[aria-busy=true]")).to_have_count(0)
    if tab:
        await page.get_by_role("tab", name="Conversation").tap()
        await expect(page.locator(".task").first).to_be_visible()


@pytest.mark.timeout(600)
async def test_nothing_is_scrolled_sideways(devices: Devices, worker: Worker):
    await _full(worker)
    options: dict[str, Any] = {"viewport": {"width": 320, "height": 640}, "has_touch": True}
    page = await devices.open("/", **options)
    await expect(page.locator(CARD)).to_have_count(7)
    found: list[str] = []
    for view in VIEWS:
        await _opened(page, devices.url, view)
        for name, width in WIDTHS.items():
            await page.set_viewport_size({"width": width, "height": 640 if width < 700 else 450})
            found += [f"{view or 'home'} at {name}: {what}" for what in await page.evaluate(_SIDEWAYS)]
    assert "\n".join(found) == ""


async def test_an_answer_in_ones_own_words_is_seen_whole(devices: Devices, worker: Worker):
    """Also at 320 and 200 %: it grows with its rows, and nothing of its question is beside the window."""
    await worker.ask("ann", question("Run it?", command="ls"))
    page = await devices.open("/", viewport={"width": 160, "height": 320}, has_touch=True)
    await page.get_by_role("button", name="In your own words").click()
    await page.get_by_label("Your answer").fill("Only in the header, and leave the margins as they are.")
    for width in (160, 195, 320):
        await page.set_viewport_size({"width": width, "height": 640})
        assert await page.evaluate(_SIDEWAYS) == []
        beside = await page.evaluate(
            """() => [...document.querySelectorAll(".card *")].filter((one) => {
              const [box, card] = [one, one.closest(".card")].map((each) => each.getBoundingClientRect());
              return box.width && (box.right > card.right || box.left < card.left);
            }).map((one) => one.outerHTML.slice(0, 80))"""
        )
        assert beside == [], width
        cut = "document.querySelector('.words textarea').scrollHeight > document.querySelector('.words').clientHeight"
        assert not await page.evaluate(cut), width


async def test_what_is_written_stays_in_the_window_below_a_question(devices: Devices, worker: Worker):
    """Also where there is little room: at 320 × 640, and on a desk at 200 %."""
    await _full(worker)
    for width, height in ((320, 640), (700, 450)):
        page = await devices.open(f"/#/agent/{LONG}", viewport={"width": width, "height": height}, has_touch=True)
        for there in (page.locator("#message"), page.locator(".rows"), page.locator(".here .question")):
            await there.scroll_into_view_if_needed()
            box = await there.bounding_box()
            assert box is not None
            assert box["height"] >= 20
            assert 0 <= box["y"] < box["y"] + min(box["height"], 40) <= height, (width, box)


@pytest.mark.parametrize("view", ["settings", "start", "events"])
async def test_what_is_below_does_not_lie_on_the_bar(devices: Devices, worker: Worker, view: str):
    page = await devices.open(f"/#/{view}", viewport={"width": 700, "height": 300}, has_touch=True)
    await expect(page.locator("h1, h2").first).to_be_visible()
    await expect(page.locator("[aria-busy=true]")).to_have_count(0)
    over = await page.evaluate(
        "() => { const main = document.querySelector('main'); return main.scrollHeight - main.clientHeight; }"
    )
    assert over <= 0
    await page.set_viewport_size({"width": 195, "height": 422})
    covered = await page.evaluate(
        """() => {
          const [bar, next] = document.querySelectorAll("main .list-view > *");
          return bar.querySelector("h1").getBoundingClientRect().bottom - next.getBoundingClientRect().top;
        }"""
    )
    assert covered <= 0, "the heading is on what is below it"
