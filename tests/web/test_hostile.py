"""Markup and scripts in every text that an agent can set: nothing runs, and each stands there as what it is."""

import json
from typing import Any

import pytest
from playwright.async_api import expect

from synapsed.model.agent import Activity
from synapsed.model.events import (
    ActivityChanged,
    AgentAlert,
    AgentReported,
    DiffUpdated,
    PlanStep,
    PlanUpdated,
    ToolExecution,
)
from tests.web.conftest import CARD, DESK, PHONE, Devices, Worker, question

pytestmark = pytest.mark.night

EVIL = "\"'><img src=x onerror=ran()><script>ran()</script>"
LINKS = "[a](javascript:ran()) [b](data:text/html,<script>ran()</script>) <javascript:ran()> [c](//evil.example/x)"
MARKDOWN = "\n\n".join(
    (
        f"# {EVIL}",
        f"{EVIL} **{EVIL}** `{EVIL}` [{EVIL}](https://example.org/{'%22'}onmouseover=ran())",
        LINKS,
        f"| {EVIL} | b |\n|---|---|\n| {EVIL} | 2 |",
        f"```html\n{EVIL}\n```",
        f"- {EVIL}\n  - {EVIL}",
        f"> {EVIL}",
        "![x](javascript:ran())",
    )
)

_RAN = "window.ran = () => { window.hasRun = true; };"


async def opened(devices: Devices, path: str, **options: Any):
    page = await devices.open("/web/icons/icon.svg", **options)
    await page.add_init_script(_RAN)
    await page.goto(devices.url + path)
    return page


async def is_clean(page) -> None:
    assert await page.evaluate("window.hasRun === undefined")
    assert await page.evaluate("document.querySelectorAll('#app img, #app script, #app iframe, #app svg').length") == 0
    targets = await page.evaluate("[...document.querySelectorAll('#app a')].map((a) => a.protocol)")
    assert set(targets) <= {"http:", "https:"}


async def full(worker: Worker) -> str:
    """The agent `evil` has set all that an agent can set; its task."""
    worker.control.add(EVIL[:60], "claude", 8101, cwd=f"/tmp/{EVIL}", evidence=EVIL, held=EVIL, doing=EVIL)
    (evil,) = [view for view in worker.control.views.values() if view.port == 8101]
    worker.control.views[evil.id] = evil.model_copy(update={"name": "evil"})
    prompt = question(EVIL, own_words=True)
    prompt = prompt.model_copy(
        update={"options": [option.model_copy(update={"label": f"{option.label} {EVIL}"}) for option in prompt.options]}
    )
    task = await worker.ask("evil", prompt, message=MARKDOWN)
    for data in (
        ActivityChanged(activity=Activity.BUSY, evidence=EVIL),
        AgentAlert(code=EVIL, message=EVIL, details={EVIL: EVIL}),
        AgentReported(kind=EVIL, message=EVIL),
        PlanUpdated(steps=[PlanStep(text=EVIL, status="completed")], note=EVIL),
        DiffUpdated(diff=f"--- a/{EVIL}\n+++ b/{EVIL}\n@@ -1 +1 @@\n-{EVIL}\n+{EVIL}"),
    ):
        await worker.control.tell(evil.id, data)
    call = {"tool_name": EVIL, "input": {"file_path": EVIL, "old_string": EVIL, "new_string": EVIL}, "call_id": "c1"}
    await worker.control.tell(evil.id, ToolExecution(status="started", **call), task)
    await worker.control.tell(evil.id, ToolExecution(status="failed", error=EVIL, output={"text": EVIL}, **call), task)
    return task


OTHER = f"{EVIL[:40]}@{EVIL}"
HOSTS = {
    "items": [
        {"id": OTHER, "agent": OTHER, "agent_id": OTHER, "host": EVIL, "cwd": EVIL, "kind": EVIL, "question": EVIL}
        | {"command": EVIL, "options": [{"key": EVIL, "label": EVIL}], "since": EVIL, "task": None, "prompt_id": None}
        | {"prompt_type": EVIL, "own_words": False, "until": None, "looked_at": False}
    ],
    "hosts": [
        {"name": EVIL, "state": "up", "items": 1, "left_out": 2, "error": None},
        {"name": f"2{EVIL}", "state": "down", "items": 0, "left_out": 0, "error": EVIL},
    ],
}


async def test_on_the_phone(devices: Devices, worker: Worker):
    task = await full(worker)
    page = await opened(devices, "/web/icons/icon.svg", **PHONE)
    await page.route("**/inbox?hosts=1", lambda route: route.fulfill(json=HOSTS))
    await page.goto(devices.url)
    await expect(page.locator(".silent")).to_have_text([f"{EVIL}: 2 more are not shown", f"2{EVIL}: {EVIL}"])
    far, near = page.locator(CARD).filter(has_text=OTHER), page.locator(CARD).filter(has_not_text=OTHER)
    await expect(far.locator(".noright")).to_have_text(f"This is seen to on {EVIL}.")
    await expect(near.locator(".question")).to_have_text(EVIL)
    await expect(page.get_by_role("button", name="Yes, and don't ask again \"'><img")).to_be_visible()
    await is_clean(page)
    await worker.seen_to("evil", "i1", task, by="person", who=EVIL, where="http")
    await expect(near.locator(".outcome")).to_contain_text(f"answered by {EVIL}")
    await is_clean(page)


async def test_at_the_desk(devices: Devices, worker: Worker):
    task = await full(worker)
    colours = '"red;background:url(//evil.example)","expression(ran())"'
    worker.control.rows = [f"[[{len(EVIL)},{json.dumps(EVIL)},{colours}]]"]
    page = await opened(devices, "/#/agent/evil", **DESK)
    await expect(page.locator(".asked .said")).to_have_text(MARKDOWN)
    await expect(page.locator(".r")).to_have_text([EVIL])
    await worker.control.complete(task, MARKDOWN)
    await expect(page.locator(".answer h3")).to_have_text(EVIL)
    await expect(page.locator(".answer pre")).to_have_text(EVIL)
    links = await page.evaluate("[...document.querySelectorAll('.answer a')].map((a) => [a.href, a.rel, a.target])")
    assert [link[0].split("/")[2] for link in links] == ["example.org"]
    assert all(rel == "noopener noreferrer nofollow" and target == "_blank" for _, rel, target in links)
    await page.locator(".calls summary").first.click()
    await page.locator(".call summary").click()
    await expect(page.locator(".call b")).to_have_text(EVIL)
    await is_clean(page)
    who = {"device": {"id": EVIL, "name": EVIL}, "rights": ["look", EVIL], "push_key": None, "version": EVIL}
    await page.route("**/web/me", lambda route: route.fulfill(json=who))
    await page.goto(f"{devices.url}/#/settings")
    await page.reload()
    await expect(page.locator(".settings").get_by_text(EVIL, exact=True)).to_be_visible()
    await is_clean(page)
    await page.unroute("**/web/me")
    await page.reload()
    for view in ("events", "history", "usage", "side/evil"):
        await page.goto(f"{devices.url}/#/{view}")
        await expect(page.locator(".bar h2")).to_be_visible()
        await is_clean(page)
    await page.goto(f"{devices.url}/#/events")
    for said in (f"✓ {EVIL}", f"--- a/{EVIL}"):
        await expect(page.locator(".events .says").filter(has_text=said).first).to_be_visible()
    await is_clean(page)


async def test_a_script_of_another_place_is_not_taken(devices: Devices, worker: Worker):
    """What the policy is for: were there ever a hole, nothing would run through it."""
    page = await opened(devices, "/", **PHONE)
    await expect(page.locator(".agents .name")).to_have_count(2)
    tried = await page.evaluate(
        """() => {
          const tried = [];
          for (const act of [
            () => { document.body.innerHTML = "<img src=x onerror=ran()>"; },
            () => {
              const made = document.createElement("script");
              made.textContent = "ran()";
              document.body.append(made);
            },
            () => trustedTypes.createPolicy("other", { createHTML: (text) => text }),
          ]) {
            try { act(); tried.push("done"); } catch (error) { tried.push(error.name); }
          }
          return tried;
        }"""
    )
    assert tried[0] == tried[2] == "TypeError"
    assert await page.evaluate("window.hasRun === undefined")
    assert await page.evaluate("window.violations.length") >= 3
    await page.close()
    devices.complaints.clear()
