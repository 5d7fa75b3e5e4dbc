"""How the page looks: what is large, what stands apart, what is coloured, and what a finger finds."""

import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from synapsed.model.agent import Activity
from synapsed.model.events import AttentionChanged, ToolExecution
from synapsed.model.task import PromptOption
from tests.fakes.clock import until
from tests.web.conftest import CARD, DESK, PHONE, Devices, Worker, question, read

pytestmark = pytest.mark.night

SMALL: dict[str, Any] = {"viewport": {"width": 320, "height": 640}, "has_touch": True}


async def sizes(page: Page, within: str) -> dict[str, float]:
    """The size of the letters of each text in there."""
    found: dict[str, float] = await page.evaluate(
        """(within) => {
          const sizes = {};
          const walk = document.createTreeWalker(document.querySelector(within), NodeFilter.SHOW_TEXT);
          while (walk.nextNode()) {
            const text = walk.currentNode.textContent.trim();
            if (text) sizes[text] = parseFloat(getComputedStyle(walk.currentNode.parentElement).fontSize);
          }
          return sizes;
        }""",
        within,
    )
    return found


@pytest.mark.parametrize("device", [PHONE, DESK], ids=["phone", "desk"])
async def test_the_question_is_the_largest_and_a_refusal_the_last(
    devices: Devices, worker: Worker, device: dict[str, Any]
):
    options = [
        PromptOption(key="1", label="Yes"),
        PromptOption(key="2", label="No, and tell it what to do"),
        PromptOption(key="3", label="Yes, and don't ask again  for this folder <b>"),
    ]
    await worker.ask("ann", question("Run it?", options=options, command="ls -l"))
    page = await devices.open("/", **device)
    await read(page)
    found = await sizes(page, CARD)
    assert found.pop("Run it?") > max(found.values())
    keys = await page.evaluate("[...document.querySelectorAll('.card [data-key]')].map((one) => one.dataset.key)")
    assert keys == ["1", "3", "2"]
    await expect(page.locator(".card small")).to_have_text("for this folder <b>")


async def test_an_edit_is_coloured(devices: Devices, worker: Worker):
    change = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-old <b>\n+new\u202e"
    await worker.ask("ann", question("Edit x.py?", diff=change))
    page = await devices.open()
    await expect(page.locator(".command .d-del")).to_have_text("-old <b>\n")
    await expect(page.locator(".command .d-add")).to_have_text("+new\\u202e\n")
    await expect(page.locator(".command .d-hunk")).to_have_count(1)
    await expect(page.locator(".command .d-sum")).to_have_text("+1 −1")
    await expect(page.locator(".command .d-add")).to_have_css("display", "block")  # its rules come a moment later
    looks = await page.evaluate(
        """['add', 'del', 'hunk'].map((one) => {
          const { color, backgroundColor, width } = getComputedStyle(document.querySelector('.command .d-' + one));
          return [color, backgroundColor, width];
        })"""
    )
    colors, bands, widths = zip(*looks, strict=True)
    assert [len(set(each)) for each in (colors, bands, widths)] == [3, 3, 1]


async def test_a_band_is_as_wide_as_what_is_scrolled_beside_it(devices: Devices, worker: Worker):
    task = await worker.ask("ann", question())
    await worker.control.complete(task, f"```diff\n-{'x' * 400}\n+y\n```")
    page = await devices.open("/#/agent/ann", **DESK)
    await expect(page.locator(".code .d-add")).to_be_visible()
    wide, window = await page.evaluate(
        "['.code .d-del', '.code pre'].map((one) => document.querySelector(one).getBoundingClientRect().width)"
    )
    assert wide > window


async def test_an_answer_and_its_code_are_copied_as_they_are(devices: Devices, worker: Worker):
    answer = "Do **this**:\n\n```sh\nls <b>\n```"
    task = await worker.ask("ann", question())
    await worker.control.complete(task, answer)
    page = await devices.open("/#/agent/ann", **DESK)
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for name, text in (("Copy answer", answer), ("Copy", "ls <b>")):
        await page.get_by_role("button", name=name, exact=True).click()
        await expect(page.locator(".toast")).to_have_text("Copied.")
        assert await page.evaluate("navigator.clipboard.readText()") == text
        await page.evaluate("navigator.clipboard.writeText('')")


async def test_what_is_finished_stands_apart_and_is_put_away_at_once(devices: Devices, worker: Worker):
    for number, agent in enumerate(("ann", "bob")):
        told = AttentionChanged(id=f"f{number}", state="opened", kind="finished", question="All is done.")
        await worker.control.tell(worker.control.directory.resolve(agent), told)
    page = await devices.open()
    await expect(page.get_by_role("heading", name="Finished")).to_be_visible()
    await expect(page.get_by_text("Nobody needs you.")).to_be_visible()
    await worker.ask("ann", question("Run it?"))
    lists = page.locator(".inbox .cards")
    await expect(lists).to_have_count(2)
    await expect(lists.first.locator(".question")).to_have_text(["Run it?"])
    await expect(lists.last.locator(".question")).to_have_text(["All is done.", "All is done."])
    put_away: list[str] = []
    await page.route("**/seen", lambda route: (put_away.append(route.request.url), route.continue_())[1])
    await page.get_by_role("button", name="Put away all").tap()
    await expect(page.get_by_role("heading", name="Finished")).to_have_count(0)
    assert sorted(url.split("/")[-2] for url in put_away) == ["f0", "f1"]
    await expect(page.locator(".question")).to_have_text(["Run it?"])


async def test_where_nobody_asks_it_says_who_works_on_what(devices: Devices, worker: Worker):
    await worker.does("synapse-codex-8120", Activity.BUSY, "hook: a tool runs")
    view = worker.control.views["synapse-codex-8120"]
    worker.control.views["synapse-codex-8120"] = view.model_copy(update={"doing": "Mend the <b>build</b>"})
    page = await devices.open()
    await expect(page.locator(".working li")).to_have_text(["bob works on Mend the <b>build</b>"])


@pytest.mark.parametrize("device", [PHONE, DESK], ids=["phone", "desk"])
async def test_agents_of_one_project_stand_together(devices: Devices, worker: Worker, device: dict[str, Any]):
    worker.control.add("cid", "claude", 8130, cwd="/home/me/shop/web")
    worker.control.add("dan", "claude", 8131, cwd="/home/me/shop/web.worktrees/fix")
    page = await devices.open("/", **device)
    await expect(page.locator(".project")).to_have_text(["…/shop/api", "…/shop/web"])
    await expect(page.locator(".agents .name")).to_have_text(["ann", "bob", "cid", "dan"])
    await expect(page.locator(".agents .where >> visible=true")).to_have_text(["…/web.worktrees/fix"])
    await worker.ask("bob", question())
    await expect(page.locator(".project")).to_have_text(["…/shop/web", "…/shop/api"])


async def test_a_folder_is_shown_by_its_end(devices: Devices, worker: Worker):
    worker.control.add("long", "claude", 8130, cwd="/srv/" + "customers-" * 12 + "/of-a-long-name-that-ends-in-END")
    page = await devices.open()
    await expect(page.locator(".agents .name")).to_have_count(3)
    cut = await page.evaluate(
        """() => {
          const all = [...document.querySelectorAll(".agents .where")];
          const where = all.find((one) => one.textContent.endsWith("END"));
          const range = document.createRange();
          const text = where.querySelector("bdi").firstChild;
          range.setStart(text, text.length - 3);
          range.setEnd(text, text.length);
          const [end, box] = [range.getBoundingClientRect(), where.getBoundingClientRect()];
          return [where.scrollWidth > where.clientWidth, end.left >= box.left - 1 && end.right <= box.right + 1];
        }"""
    )
    assert cut == [True, True]


@pytest.mark.parametrize(("device", "cols"), [(DESK, 80), (DESK, 160), (PHONE, 54)])
async def test_the_screen_fits_the_pane(devices: Devices, worker: Worker, device: dict[str, Any], cols: int):
    worker.control.cols = cols
    worker.control.rows = [f'[[{cols},"{"x" * cols}"]]'] * 60
    page = await devices.open("/#/agent/ann", **device)
    await expect(page.locator(".under .quiet")).to_contain_text(f"{cols} ×")
    fits = "() => { const box = document.querySelector('.rows'); return box.scrollWidth <= box.clientWidth; }"
    await page.wait_for_function(fits)
    size = "parseFloat(document.querySelector('.rows').style.fontSize)"
    fitted = await page.evaluate(size)
    await page.get_by_role("button", name="A+ larger").click()
    assert await page.evaluate(size) > fitted
    await page.reload()
    await expect(page.locator(".r").first).to_be_visible()
    assert await page.evaluate(size) > fitted
    await page.get_by_role("button", name="Fit all columns").click()
    await page.wait_for_function(fits)
    assert await page.evaluate(size) == fitted


HISTORY = {"items": [], "next": None, "complete": True}


async def test_tools_by_their_names_and_only_where_some_were_used(devices: Devices, worker: Worker):
    without, used = [await worker.ask("ann", question(key=key), item=key) for key in ("p1", "p2")]
    for task in (without, used):
        await worker.control.complete(task, "Done.")
    items = [{"task": used, "tool": tool, "time": "2026-01-01T00:00:00Z"} for tool in ("Bash", "Edit", "Bash")]
    page = await devices.open("/", **DESK)
    await page.route("**/control/history?kind=tool*", lambda route: route.fulfill(json=HISTORY | {"items": items}))
    await page.goto(f"{devices.url}/#/agent/ann")
    await expect(page.locator(f"[data-task='{used}'] .calls summary")).to_have_text("Tool calls · Bash ×2, Edit")
    await expect(page.locator(f"[data-task='{without}'] .answer")).to_be_visible()
    await expect(page.locator(f"[data-task='{without}'] .calls")).to_have_count(0)
    call = ToolExecution(tool_name="Read", status="started", call_id="c", input={"file_path": "a.py"})
    await worker.control.tell(worker.control.directory.resolve("ann"), call, task_id=without)
    await expect(page.locator(f"[data-task='{without}'] .calls summary")).to_have_text("Tool calls (1) · Read")


async def test_instructions_are_one_line(devices: Devices, worker: Worker):
    text = "[Synapse A2A Protocol Instructions]\n\nYou are ann."
    task = await worker.ask("ann", question(), message=text)
    await worker.control.complete(task, "OK.")
    page = await devices.open("/", **DESK)

    async def sent_by_the_daemon(route: Any) -> None:
        answer = await route.fetch()
        told = await answer.json()
        for one in told:
            one["metadata"]["sender"] = {"sender_id": "synapse-system", "sender_type": "system"}
        await route.fulfill(response=answer, json=told)

    await page.route("**/agents/ann/tasks?*", sent_by_the_daemon)
    await page.goto(f"{devices.url}/#/agent/ann")
    line = page.locator(".told summary")
    await expect(line).to_have_text(re.compile("^Instructions were sent · "))
    await expect(page.locator(".bubble.asked")).to_have_count(0)
    assert await line.evaluate("(line) => line.getBoundingClientRect().height") < 40
    await line.click()
    await expect(page.locator(".told .said")).to_have_text(text)


async def test_instructions_are_never_the_first_of_a_conversation(devices: Devices, worker: Worker):
    told = await worker.ask("ann", question(key="p1"), item="p1", message="You are ann.")
    await worker.control.complete(told, "OK.")
    first = await worker.ask("ann", question(key="p2"), item="p2", message="hello")
    await worker.control.complete(first, "Hello.")
    page = await devices.open("/", **DESK)

    async def sent_by_the_daemon(route: Any) -> None:
        answer = await route.fetch()
        tasks = await answer.json()
        for one in tasks:
            if one["id"] == told:
                one["metadata"]["sender"] = {"sender_id": "synapse-system", "sender_type": "system"}
        await route.fulfill(response=answer, json=tasks)

    await page.route("**/agents/ann/tasks?*", sent_by_the_daemon)
    await page.goto(f"{devices.url}/#/agent/ann")
    shown = page.locator(".talk article")
    await expect(shown).to_have_count(2)
    assert [await shown.nth(n).get_attribute("data-task") for n in range(2)] == [first, told]


async def test_code_is_coloured_and_stays_as_it_is(devices: Devices, worker: Worker):
    code = 'def f(x):  # why <b>\n    return "it\'s" + str(1.5)\n'
    task = await worker.ask("ann", question())
    await worker.control.complete(task, f"```python\n{code}```\n\n```\nplain return\n```")
    page = await devices.open("/#/agent/ann", **DESK)
    block = page.locator(".code pre").first
    await expect(block.locator(".y-word")).to_have_text(["def", "return", "str"])
    await expect(block.locator(".y-remark")).to_have_text(["# why <b>"])
    await expect(block.locator(".y-text")).to_have_text(['"it\'s"'])
    await expect(block.locator(".y-number")).to_have_text(["1.5"])
    assert await block.text_content() == code.rstrip("\n")
    await expect(page.locator(".code pre").last.locator("span")).to_have_count(0)


USED: dict[str, Any] = {
    "agent": "synapse-claude-8100", "day": None, "turns": 12, "input_tokens": 123_456, "cache_read_tokens": 9_876_543,
    "cache_write_tokens": 12_345, "output_tokens": 54_321, "cost_usd": 1.5,
}  # fmt: skip


@pytest.mark.parametrize("device", [PHONE, SMALL], ids=["390", "320"])
async def test_usage_can_be_read_on_a_phone(devices: Devices, worker: Worker, device: dict[str, Any]):
    page = await devices.open("/", **device)
    told = {"rows": [USED], "total": USED, "complete": True}
    await page.route("**/control/usage?*", lambda route: route.fulfill(json=told))
    await page.goto(f"{devices.url}/#/usage")
    await expect(page.locator("tbody th")).to_have_text("ann")
    width = device["viewport"]["width"]
    beside = await page.evaluate(
        """(width) => [...document.querySelectorAll("td, th")].filter((cell) => {
          const box = cell.getBoundingClientRect();
          return box.width && (box.right > width || box.left < 0 || cell.scrollWidth > cell.clientWidth + 1);
        }).map((cell) => cell.textContent)""",
        width,
    )
    assert beside == []
    assert await page.evaluate("document.querySelector('.list-view .table').scrollWidth") <= width
    shown = await page.locator("tbody td").first.evaluate("(cell) => getComputedStyle(cell, '::before').content")
    assert shown == '"turns"'


_SMALL_ONES = """() => {
  const least = 43.5;
  const all = [...document.querySelectorAll("button, a, select, summary, input, textarea, label:has(input)")];
  const alone = all.filter((one) => one.checkVisibility() && !one.matches("label input, .md a, p a"));
  return alone.map((one) => [one, one.getBoundingClientRect()])
    .filter(([, box]) => box.width && (box.height < least || box.width < least))
    .map(([one, box]) => [one.tagName, one.className, one.textContent, one.ariaLabel, box.width, box.height].join(" "));
}"""

_ZOOMING = """() => [...document.querySelectorAll("input:not([type=radio], [type=checkbox]), select, textarea")]
  .filter((one) => one.checkVisibility() && parseFloat(getComputedStyle(one).fontSize) < 16)
  .map((one) => one.ariaLabel ?? one.id)"""
"""Fields at which an iPhone would zoom into the page."""


async def test_on_a_phone_all_that_is_tapped_is_large_enough(devices: Devices, worker: Worker):
    for number in range(5):
        worker.control.add(f"rests-{number}", "claude", 8140 + number)
    task = await worker.ask("ann", question("Run it?", command="ls"))
    told = AttentionChanged(id="f1", state="opened", kind="finished", question="All is done.")
    for number in range(2):
        await worker.control.tell(worker.control.directory.resolve("bob"), told.model_copy(update={"id": f"f{number}"}))
    await worker.control.progress(task, "On the way.")
    before = await worker.ask("ann", question("Before?", key="p2"), item="i2")
    await worker.control.complete(before, "```sh\nls\n```")
    await worker.seen_to("ann", "i2", before)
    page = await devices.open("/", **SMALL)
    for view in ("", "agent/ann", "events", "history", "usage", "settings", "start", "side/ann,bob"):
        await page.goto(f"{devices.url}/#/{view}")
        await expect(page.locator("h1, h2").first).to_be_visible()
        await expect(page.locator("[aria-busy=true]")).to_have_count(0)
        if view == "agent/ann":
            await page.get_by_role("tab", name="Conversation").tap()
            await expect(page.locator(".steps summary").first).to_be_visible()
            await expect(page.get_by_role("button", name="Copy answer")).to_be_visible()
        assert await page.evaluate(_SMALL_ONES) == [], view
        assert await page.evaluate(_ZOOMING) == [], view
        bar = page.locator(".phone > .views")
        if view.startswith(("agent", "side")):
            await expect(page.get_by_role("link", name="Back")).to_be_visible()
        else:
            box = await bar.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] >= 639, "the bar is at the bottom"
        assert await page.evaluate("document.documentElement.scrollWidth") <= 320


async def test_who_may_manage_starts_stops_and_restarts(devices: Devices, worker: Worker):
    page = await devices.open("/", **DESK)
    await page.route("**/control/profiles", lambda route: route.fulfill(json=[{"name": "claude"}, {"name": "dummy"}]))
    page.on("dialog", lambda dialog: dialog.accept())
    await page.get_by_role("link", name="Start an agent").click()
    await page.get_by_label("Profile").select_option("dummy")
    await page.get_by_label("Folder").select_option("/home/me/shop/web")
    await page.get_by_role("button", name="Start", exact=True).click()
    await expect(page.get_by_role("heading", name="dummy")).to_be_visible()
    ((_, started),) = [call for call in worker.control.calls if call[0] == "start"]
    assert (started.profile, started.name, started.cwd) == ("dummy", "dummy", "/home/me/shop/web")
    await page.get_by_role("button", name="Stop", exact=True).click()
    await until(lambda: any(call[0] == "stop" for call in worker.control.calls))
    await page.goto(f"{devices.url}/#/agent/ann")
    await page.get_by_role("button", name="Restart", exact=True).click()
    await until(lambda: ("restart", "synapse-claude-8100") in worker.control.calls)


async def test_who_may_not_manage_is_shown_nothing_of_it(devices: Devices, worker: Worker):
    page = await devices.open("/", **DESK)
    me = {"device": {"id": "d", "name": "x", "push": False}, "rights": ["look", "answer", "type"], "push_key": None}
    await page.route("**/web/me", lambda route: route.fulfill(json=me | {"version": "1", "page": ""}))
    await page.goto(f"{devices.url}/#/agent/ann")
    await page.reload()
    await expect(page.get_by_label("Message to ann")).to_be_visible()
    for name in ("Restart", "Stop"):
        await expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
    await expect(page.get_by_role("link", name="Start an agent")).to_have_count(0)
