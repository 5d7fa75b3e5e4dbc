"""Notifications of a paired browser, in front of a real daemon: turned on by the page, shown by the service worker,
answered in it, taken back. The push service is a stand-in; what it was sent is given to the browser as a push."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, Worker, expect

from tests.daemon.test_menus import answer_of, asked
from tests.support.daemon import Daemon, eventually
from tests.support.pushservice import PushService, telling_daemon
from tests.web.conftest import PATIENCE_MS, PHONE

pytestmark = pytest.mark.night

STAND_IN = """
(() => {
  const given = GIVEN;
  let made = JSON.parse(localStorage.getItem("stand-in") ?? "null");
  const as = (key) => ({
    endpoint: given.endpoint,
    options: { applicationServerKey: Uint8Array.from(key).buffer },
    toJSON: () => given,
    unsubscribe: async () => { made = null; localStorage.removeItem("stand-in"); return true; },
  });
  PushManager.prototype.subscribe = async function (options) {
    if (!options.userVisibleOnly) throw new Error("every push has to be shown");
    made = [...new Uint8Array(options.applicationServerKey)];
    localStorage.setItem("stand-in", JSON.stringify(made));
    return as(made);
  };
  PushManager.prototype.getSubscription = async () => (made ? as(made) : null);
})();
"""
"""A browser's push service is on the Internet: what the browser says of it is what the test's own would have it say."""

SHOWN = """async () => (await inTurn(() => registration.getNotifications())).map((one) => ({
  title: one.title, body: one.body, tag: one.tag, silent: one.silent,
  actions: (one.actions ?? []).map((action) => [action.action, action.title]), data: one.data,
}))"""
"""Asked in the worker's own turn: Chromium takes away a notification that it is about to show when it is asked."""


@pytest.fixture
def service() -> Iterator[PushService]:
    with PushService() as service:
        yield service


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with telling_daemon(tmp_path) as daemon:
        yield daemon


class Phone:
    """A paired browser whose page is open."""

    def __init__(self, context: BrowserContext, page: Page, url: str) -> None:
        self.context = context
        self.page = page
        self.url = url

    async def start(self) -> None:
        await self.page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        cdp = await self.context.new_cdp_session(self.page)
        registrations: list[str] = []
        cdp.on(
            "ServiceWorker.workerRegistrationUpdated",
            lambda told: registrations.extend(one["registrationId"] for one in told["registrations"]),
        )
        await cdp.send("ServiceWorker.enable")
        while not registrations:
            await self.page.wait_for_timeout(20)
        self._cdp, self._registration = cdp, registrations[0]

    @property
    def worker(self) -> Worker:
        (worker,) = self.context.service_workers
        return worker

    async def push(self, said: Any) -> None:
        """As its push service would give it."""
        data = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        where = {"origin": self.url, "registrationId": self._registration}
        await self._cdp.send("ServiceWorker.deliverPushMessage", {**where, "data": data})

    async def shown(self, count: int) -> list[dict[str, Any]]:
        """The notifications, once there are so many."""
        for _ in range(PATIENCE_MS // 50):
            found: list[dict[str, Any]] = await self.worker.evaluate(SHOWN)
            if len(found) == count:
                return found
            await self.page.wait_for_timeout(50)
        raise AssertionError(found)


@pytest_asyncio.fixture(loop_scope="module")
async def phone(browser: Browser, daemon: Daemon, service: PushService) -> AsyncGenerator[Phone]:
    code = daemon.post("/control/web/code", {"rights": ["look", "answer"], "name": "phone"}).json["code"]
    context = await browser.new_context(**PHONE, permissions=["notifications"])
    context.set_default_timeout(PATIENCE_MS)
    await context.add_init_script(STAND_IN.replace("GIVEN", json.dumps(service.subscribe())))
    page = await context.new_page()
    url = f"http://localhost:{daemon.port}"
    await page.goto(f"{url}/#code={code}")
    await expect(page.locator(".agents .name")).to_have_text(["shell"])
    phone = Phone(context, page, url)
    await phone.start()
    yield phone
    await context.close()


async def turn_on(phone: Phone) -> None:
    await phone.page.goto(f"{phone.url}/#/settings")
    switch = phone.page.get_by_role("switch")
    await expect(switch).not_to_be_checked()
    await switch.tap()
    await expect(switch).to_be_checked()


async def test_turned_on_told_answered_and_taken_back(daemon: Daemon, service: PushService, phone: Phone):
    await turn_on(phone)
    assert daemon.get("/control/devices").json[0]["push"] is True
    task = asked(daemon, "Run the tool?", "Yes", "Yes, always", "No")["id"]
    (said,) = eventually(lambda: service.said("opened"), "the push service has it")
    await phone.push(said)
    (shown,) = await phone.shown(1)
    assert shown["title"] == "shell asks for a permission"
    assert "Run the tool?" in shown["body"]
    assert shown["actions"] == [["answer:1", "Approve"], ["answer:3", "Deny"]]
    await phone.push(said)
    assert len(await phone.shown(1)) == 1, "the same again is the same"
    # What the browser does when Deny is tapped: no event that a test makes may be waited for, so its handler is called.
    await phone.worker.evaluate("told => give(told, told.options[1].key)", said)
    assert answer_of(daemon, daemon.task(task)) == "chosen: No"
    await phone.worker.evaluate("told => give(told, told.options[0].key)", said)
    assert len(await phone.shown(1)) == 1, "another answer comes too late, and nothing is said of it"
    await phone.push({"id": said["id"], "state": "gone"})
    await phone.shown(0)


async def test_answered_elsewhere(daemon: Daemon, service: PushService, phone: Phone):
    await turn_on(phone)
    asked(daemon, "Run the tool?", "Yes", "Yes, always", "No")
    (said,) = eventually(lambda: service.said("opened"), "the push service has it")
    await phone.push(said)
    await phone.shown(1)
    assert daemon.ctl("deny", "shell").code == 0
    (gone,) = eventually(lambda: service.said("gone"), "the push service is told that it is over")
    await phone.push(gone)
    await phone.shown(0)


async def test_what_comes_at_once_is_shown_and_taken_back(phone: Phone):
    """Twenty questions, each settled as the next one comes: the last stands, and no other."""
    for number in range(20):
        said = {"state": "opened", "title": f"{number}", "body": "Run it?", "agent": "shell"}
        await asyncio.gather(
            phone.push({"id": f"i{number}", **said}), phone.push({"id": f"i{number - 1}", "state": "gone"})
        )
    # All of them are in the worker's hands once a push that comes behind them is.
    await phone.push({"id": "end", "state": "opened", "title": "end", "agent": "shell"})
    found = await phone.shown(2)
    assert {one["tag"] for one in found} == {"i19", "end"}


async def test_an_answer_that_cannot_be_given_is_told(daemon: Daemon, phone: Phone):
    said = {"id": "i", "state": "opened", "agent": "nobody", "task": "t", "prompt_id": "p"}
    await phone.worker.evaluate("told => give(told, '1')", said)
    (shown,) = await phone.shown(1)
    assert shown["title"] == "nobody: not answered"
    assert "nobody" in shown["body"]


async def test_whatever_comes_is_text(phone: Phone):
    evil = "<img src=x onerror=alert(1)>"
    for wrong in ("", "{", "[1]", "null", '"text"', "12"):
        await phone.push(wrong)
    await phone.shown(1)
    await phone.push({"id": "e", "state": "opened", "title": evil, "body": evil * 100, "agent": evil, "options": "x"})
    found = {one["tag"]: one for one in await phone.shown(2)}
    assert found["e"]["title"] == evil
    assert len(found["e"]["body"]) == 400
    assert found["e"]["actions"] == []


async def test_a_browser_that_counts_silent_pushes_is_shown_that_it_is_over(phone: Phone):
    """Safari takes a subscription away after three pushes without a notification; it has no `maxActions`."""
    await phone.push({"id": "i", "state": "opened", "title": "shell asks", "body": "Run it?", "agent": "shell"})
    await phone.shown(1)
    told = await phone.worker.evaluate(
        """async () => {
          const asked = [], show = ServiceWorkerRegistration.prototype.showNotification;
          delete Notification.maxActions;
          ServiceWorkerRegistration.prototype.showNotification = function (title, options) {
            asked.push([title, options.body, options.silent, options.tag]);
            return show.call(this, title, options);
          };
          await takeBack({ id: "i", state: "gone" });
          return ["maxActions" in Notification, asked];
        }"""
    )
    assert told == [False, [["shell asks", "This is settled.", True, "i"]]]
    await phone.shown(0)


async def test_turned_off_and_a_key_that_changed(daemon: Daemon, service: PushService, phone: Phone):
    await turn_on(phone)
    switch = phone.page.get_by_role("switch")
    await phone.page.reload()
    await expect(switch).to_be_checked()
    await switch.tap()
    await expect(switch).not_to_be_checked()
    assert daemon.get("/control/devices").json[0]["push"] is False
    await switch.tap()
    await expect(switch).to_be_checked()
    daemon.end()
    (daemon.home / "state" / "push-key.pem").unlink()
    daemon.start()
    await phone.page.reload()
    await expect(switch).not_to_be_checked()
    await switch.tap()
    await expect(switch).to_be_checked()
    key = daemon.get("/web/me").json["push_key"]
    assert daemon.ctl("notify", "test").code == 0
    assert service.taken[-1]["key"] == key
    await phone.page.reload()
    await expect(switch).to_be_checked()
