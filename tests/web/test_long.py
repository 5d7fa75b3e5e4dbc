"""Much of everything: what has not changed is not drawn again, and a long answer comes in pieces."""

import asyncio

import pytest
import pytest_asyncio
from playwright.async_api import Route, expect

from synapsed.model.agent import Activity
from synapsed.model.task import TaskState
from tests.web.conftest import DESK, PATIENCE_MS, Devices, Worker, module

pytestmark = pytest.mark.night

SECTION = "\n\n".join(
    (
        "Some **bold** words and `code`, a [link](https://example.org/x).",
        "- one\n- two\n\n  of it\n\n- three",
        "```python\ndef f(x):\n\nreturn x\n```",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "1. first\n\n   ```\n   - no item\n\n   ```\n2. second",
        "> quoted\n\n> and again",
        "    indented\n\n    code",
        "# A heading\nwith words",
    )
)
LONG = "\n\n".join(f"## Part {number}\n\n{SECTION}" for number in range(100))

_SAME = """async ([text, sizes, markdownModule, preactModule]) => {
  const { markdown, pieces } = await import(markdownModule);
  const { h, render } = await import(preactModule);
  const drawn = (nodes) => {
    const box = document.createElement("div");
    render(h("div", null, nodes), box);
    return box.firstChild.innerHTML;
  };
  const whole = drawn(markdown(text));
  return sizes.map((size) => {
    const parts = pieces(text, size);
    return [parts.length, parts.join("\\n") === text, drawn(parts.flatMap((part) => markdown(part))) === whole];
  });
}"""


async def test_pieces_of_a_text_mean_what_they_mean_together(devices: Devices, worker: Worker):
    page = await devices.open()
    modules = (module("js/markdown.js"), module("vendor/preact.mjs"))
    told = await page.evaluate(_SAME, [LONG, [1, 100, 1500, 1_000_000], *modules])
    assert [one[1:] for one in told] == [[True, True]] * 4
    assert told[0][0] >= 500
    assert told[-1][0] == 1
    unended = await page.evaluate(_SAME, ["a\n\n```\n" + "x\n\n" * 500, [1], *modules])
    assert unended == [[2, True, True]]


_ORDER = """() => {
  window.order = [];
  new MutationObserver((all) => window.order.push(all.flatMap((one) => [...one.addedNodes])
    .flatMap((node) => [...(node.querySelectorAll?.("[data-task]") ?? []), node])
    .map((node) => node.dataset?.task).filter(Boolean)))
    .observe(document.querySelector(".desk"), { childList: true, subtree: true });
}"""
"""In which order tasks are drawn: a list for each time."""


@pytest_asyncio.fixture(loop_scope="module")
async def told(worker: Worker) -> list[str]:
    tasks = []
    for answer in (LONG, "short", "and more", "and more", LONG):
        status, sent = await worker.api.json(
            worker.api.unix, "POST", "/agents/ann/tasks/send", json={"message": "Do it."}
        )
        assert status == 200
        tasks.append(sent["task"]["id"])
        await worker.control.complete(tasks[-1], answer)
    return tasks


async def test_a_long_conversation_is_drawn_once(devices: Devices, worker: Worker, told: list[str]):
    page = await devices.open("/#/agent/bob", **DESK)
    await expect(page.get_by_text("Nothing was said yet.")).to_be_visible()
    await page.evaluate(_ORDER)
    await page.evaluate("location.hash = '#/agent/ann'")
    first, second, *_, newest = (page.locator(f"[data-task='{task}']") for task in told)
    await expect(newest.locator("h4").last).to_have_text("Part 99")
    await expect(first.locator("h4").last).not_to_have_text("Part 99")
    await expect(page.locator(".task")).to_have_count(5)
    at_once, *later = [tasks for tasks in await page.evaluate("window.order") if tasks]
    assert at_once == told[2:], "a window of the newest comes first"
    assert [task for tasks in later for task in tasks] in ([told[1], told[0]], told[:2])
    await page.wait_for_function(
        "() => { const talk = document.querySelector('.talk'); "
        "return talk.scrollHeight - talk.scrollTop - talk.clientHeight < 4; }"
    )
    await page.evaluate(
        """() => {
          window.drawn = [];
          new MutationObserver((all) => window.drawn.push(...all.map((one) => one.target)))
            .observe(document.querySelector(".talk"), { childList: true, subtree: true, characterData: true });
        }"""
    )
    status, sent = await worker.api.json(worker.api.unix, "POST", "/agents/ann/tasks/send", json={"message": "More."})
    assert status == 200
    for number in range(30):
        await worker.control.say(sent["task"]["id"], f"## Piece {number}\n\n{SECTION}\n\n", append=number > 0)
        await worker.does("synapse-codex-8120", Activity.BUSY, f"step {number}")
    await expect(page.locator(f"[data-task='{sent['task']['id']}'] h4").last).to_have_text("Piece 29")
    elsewhere = """(task) => window.drawn.filter(
      (node) => node.closest?.(".answer") && node.closest("[data-task]").dataset.task !== task).length"""
    assert await page.evaluate(elsewhere, sent["task"]["id"]) == 0, "answers that stand are not drawn again"
    await first.get_by_role("button", name="Show the rest").click()
    await expect(first.locator("h4").last).to_have_text("Part 99")
    await expect(second.locator(".answer")).to_have_text("short")


async def test_what_is_told_while_the_list_is_read_is_not_lost(devices: Devices, worker: Worker):
    """The list is of the moment before: of one task it says less than the page has heard, and another it lacks."""
    _, one = await worker.api.json(worker.api.unix, "POST", "/agents/ann/tasks/send", json={"message": "One."})
    page = await devices.open("/", **DESK)
    await expect(page.locator(".left .agents .name")).not_to_have_count(0)
    asked, goes_on = asyncio.Event(), asyncio.Event()

    async def held(route: Route) -> None:
        answer = await route.fetch()
        asked.set()
        await goes_on.wait()
        await route.fulfill(response=answer)

    await page.route("**/agents/ann/tasks?limit=*", held)
    await page.evaluate("location.hash = '#/agent/ann'")
    async with asyncio.timeout(PATIENCE_MS / 1000):
        await asked.wait()
    _, two = await worker.api.json(worker.api.unix, "POST", "/agents/ann/tasks/send", json={"message": "Two."})
    for task, text in ((one["task"]["id"], "Said of one."), (two["task"]["id"], "Said of two.")):
        await worker.control.change(task, TaskState.WORKING)
        await worker.control.say(task, text, append=False)
    await worker.does("synapse-codex-8120", Activity.BUSY, "the last of it")
    await expect(page.locator(".left .says").filter(has_text="the last of it")).to_have_count(1)
    goes_on.set()
    await expect(page.locator(".answer")).to_have_text(["Said of one.", "Said of two."])


async def test_a_page_that_is_opened_while_an_answer_is_written_has_all_of_it(devices: Devices, worker: Worker):
    status, sent = await worker.api.json(worker.api.unix, "POST", "/agents/ann/tasks/send", json={"message": "Go."})
    assert status == 200
    task = sent["task"]["id"]
    await worker.control.change(task, TaskState.WORKING)
    await worker.control.say(task, "The beginning, ", append=False)
    await worker.control.say(task, "the middle, ", append=True)
    page = await devices.open("/#/agent/ann", **DESK)
    await expect(page.locator(".answer")).to_have_text("The beginning, the middle,")
    await worker.control.say(task, "the end.", append=True)
    await expect(page.locator(".answer")).to_have_text("The beginning, the middle, the end.")
