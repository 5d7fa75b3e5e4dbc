"""What waits on other hosts, on the page: two daemons, and a program in place of ssh between them."""

from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from tests.parts.elsewhere.test_hosts_of_daemons import Box, box, here, host
from tests.support.daemon import Daemon, eventually
from tests.web.conftest import CARD, DESK, PHONE, Devices, Worker, question, read

pytestmark = pytest.mark.night

__all__ = ["box", "here"]


@pytest.fixture
def kind() -> type[Daemon]:
    """A page is served by a process, at whose port a browser of its own asks."""
    return Daemon


@pytest_asyncio.fixture(loop_scope="module")
async def two_hosts(browser: Browser, here: Daemon) -> AsyncGenerator[Devices]:
    token = next(here.home.rglob("token")).read_text().strip()
    devices = Devices(browser, f"http://127.0.0.1:{here.port}", token)
    yield devices
    await devices.check()


async def test_what_another_host_asks_is_answered_here_once(two_hosts: Devices, here: Daemon, box: Box):
    phone, desk = await two_hosts.open("/", **PHONE), await two_hosts.open("/", **DESK)
    task = box.daemon.send("ask y/n")
    box.daemon.task_in(task, "input_required")
    for page in (phone, desk):
        await expect(page.locator(f"{CARD} .who")).to_have_text("dummy@box")
        await expect(page.locator(f"{CARD} .question")).to_have_text("Proceed? (y/n)")
        await expect(page).to_have_title("(1) synapsed")
    await phone.get_by_role("button", name="Yes").or_(phone.get_by_role("button", name="y", exact=True)).first.tap()
    await expect(phone.locator(".outcome")).to_contain_text("taken")
    await expect(desk.locator(".outcome")).to_contain_text("no longer asked")
    box.daemon.task_in(task, "completed")
    again = box.daemon.send("ask y/n")
    box.daemon.task_in(again, "input_required")
    await expect(desk.locator(".outcome")).to_have_count(0)  # the card of the first one is gone: `j` would go there
    await expect(desk.locator(CARD)).to_have_count(1)
    await read(desk)
    await desk.keyboard.press("j")
    await desk.keyboard.press("n")
    await expect(desk.locator(".outcome")).to_contain_text("taken")
    box.daemon.task_in(again, "completed")
    for page in (phone, desk):
        await expect(page.locator(CARD)).to_have_count(0)


async def test_a_host_that_falls_asleep_over_a_tap(two_hosts: Devices, here: Daemon, box: Box):
    page = await two_hosts.open("/", **PHONE)
    task = box.daemon.send("ask y/n")
    box.daemon.task_in(task, "input_required")
    await expect(page.locator(CARD)).to_have_count(1)
    box.sleep()
    eventually(lambda: host(here)["state"] != "up", "the host is away")
    await expect(page.locator(".silent")).to_contain_text("box: ")
    await page.get_by_role("button", name="Yes").or_(page.get_by_role("button", name="y", exact=True)).first.tap()
    await expect(page.locator(".outcome")).to_contain_text("sent again")
    box.wake()
    await expect(page.locator(".outcome")).to_contain_text("taken")
    box.daemon.task_in(task, "completed")
    await expect(page.locator(".silent")).to_have_count(0)


async def test_what_asks_nothing_there_is_put_away_there(two_hosts: Devices, here: Daemon, box: Box):
    page = await two_hosts.open("/", **PHONE)
    task = box.daemon.send("hello")
    eventually(lambda: box.daemon.get("/inbox").json, f"{task} is finished, and nobody waited for it")
    await expect(page.locator(f"{CARD} .kind")).to_have_text("finished")
    await page.get_by_role("button", name="Put away").tap()
    await expect(page.locator(CARD)).to_have_count(0)
    assert box.daemon.get("/inbox").json == []


async def test_what_a_host_of_a_fleet_asks_in_a_task_of_ours_is_answered_here(devices: Devices, worker: Worker):
    task = await worker.ask("ann", question("Which one?", type="question"))
    about = {"agent_id": "far@box", "host": "box", "cwd": "", "command": None, "options": [], "prompt_id": None}
    row = about | {"since": "2026-01-02T11:00:00Z", "own_words": False, "until": None, "looked_at": False}
    ours = row | {"id": "i7@box", "agent": "far@box", "kind": "question", "question": "it is not told here"}
    theirs = row | {"id": "i8@box", "agent": "near@box", "kind": "permission", "question": "it is not told here"}
    items = [ours | {"task": task, "prompt_type": "selection"}, theirs | {"task": None, "prompt_type": "permission"}]
    told = {"items": items, "hosts": [{"name": "box", "state": "up", "items": 2, "left_out": 3, "error": None}]}
    context = await devices.context(**PHONE)
    await context.route("**/inbox?hosts=1", lambda route: route.fulfill(json=told))
    page = await context.new_page()
    await page.goto(devices.url)
    far, near = (page.locator(CARD).filter(has_text=name) for name in ("far@box", "near@box"))
    await expect(far.locator(".question")).to_have_text("Which one?")
    await expect(near.locator(".noright")).to_have_text("This is seen to on box.")
    await expect(near.get_by_role("button")).to_have_count(0)
    await expect(page.locator(".silent")).to_have_text("box: 3 more are not shown")
    await far.get_by_role("button", name="Yes", exact=True).tap()
    await expect(far.locator(".outcome")).to_contain_text("taken")
    assert worker.answers == [(task, "1", "p1")]


async def test_an_agent_elsewhere_of_the_name_of_one_here_is_answered_by_its_task(devices: Devices, worker: Worker):
    task = await worker.ask("ann", question("Which one?", type="question"))
    context = await devices.context(**PHONE)

    async def inbox(route: Route) -> None:
        items = await (await route.fetch()).json()
        await route.fulfill(
            json=[item | {"agent": "bob", "agent_id": "external:bob", "terminal": False} for item in items]
        )

    await context.route("**/inbox", inbox)
    page = await context.new_page()
    await page.goto(devices.url)
    card = page.locator(CARD).filter(has_text="bob")
    await card.get_by_role("button", name="Approve").tap()
    await expect(card.locator(".outcome")).to_contain_text("taken")
    assert worker.answers == [(task, "1", "p1")]
