"""A daemon of another version comes: a browser has all of the page before it or all of the new one, and nobody loses
what is half written."""

import re
from functools import cache

import pytest
from playwright.async_api import Page, expect

from synapsed.parts.web import page_files as files
from synapsed.parts.web.page_files import Pages, together
from tests.web.conftest import DESK, PHONE, Devices

pytestmark = pytest.mark.night

BAR = "synapsed was updated."
USAGE = "js/usage.js"


def other(than: Pages, missing: str = "") -> Pages:
    """Another installation: its HTML says so, and each of its modules is another one."""
    found = {name: (file.body, file.brotli) for name, file in than.files.items()}
    for name, (body, _) in found.items():
        if name.startswith("js/"):
            found[name] = (body + b"/* another */", None)
    index, _ = found["index.html"]
    unversioned = re.sub(rb'"web/[0-9a-f]{16}/', b'"web/', index)
    found["index.html"] = (unversioned.replace(b"<html ", b"<html data-other "), None)
    found["sw.js"] = (found["sw.js"][0].partition(b";\n")[2], None)
    pages = together(found)
    return Pages(pages.version, {name: file for name, file in pages.files.items() if name != missing})


class Installed:
    """What the server has, and changes."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.first = files.page_files()
        self.second = other(self.first)

    def update(self, *, missing: str = "") -> None:
        found = other(self.first, missing)
        self._patch.setattr(files, "page_files", cache(lambda: found))


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Installed:
    installed = Installed(monkeypatch)
    assert installed.first.version != installed.second.version
    return installed


async def kept(page: Page) -> None:
    """Until the page is kept by its worker."""
    await page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    await page.wait_for_function("() => navigator.serviceWorker.controller")


async def line_lost_and_back(page: Page) -> None:
    """As when the daemon is begun again."""
    await page.context.set_offline(True)
    await expect(page.get_by_text("Offline.")).to_be_visible()
    await page.context.set_offline(False)


async def untouched(page: Page) -> None:
    """Playwright's `evaluate` counts as a touch."""
    never = "Object.defineProperty(Navigator.prototype, 'userActivation', { value: { hasBeenActive: false } })"
    await page.context.add_init_script(never)
    await page.evaluate(f"() => void {never}")


async def versions(page: Page) -> set[str]:
    """Of all scripts and styles that the page has asked for."""
    names: list[str] = await page.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
    return {found[1] for name in names if (found := re.search(r"/web/([^/]+)/.*\.(?:m?js|css)$", name))}


async def is_new(page: Page, installed: Installed) -> None:
    await page.wait_for_function("() => document.documentElement.dataset.other !== undefined")
    await expect(page.locator(".agents .name").first).to_have_text("ann")
    assert await versions(page) == {installed.second.version}


async def test_what_is_half_written_stays_in_the_page_that_is_open(devices: Devices, installed: Installed):
    page = await devices.open("/#/agent/ann", **DESK)
    await kept(page)
    await page.locator("#message").fill("half wri")
    installed.update()
    await line_lost_and_back(page)
    await expect(page.get_by_text(BAR)).to_be_visible()
    await page.get_by_role(
        "link", name="Usage"
    ).click()  # a part that it has not had yet, and that the daemon has no more
    await expect(page.get_by_role("heading", name="Usage")).to_be_visible()
    assert await versions(page) == {installed.first.version}
    await page.get_by_role("link", name="ann").first.click()
    await expect(page.locator("#message")).to_have_value("half wri")
    await page.locator("#message").fill("")
    assert await page.evaluate("document.documentElement.dataset.other") is None
    await page.get_by_role("link", name="Usage").click()
    await is_new(page, installed)
    await expect(page.get_by_role("heading", name="Usage")).to_be_visible()
    await expect(page.get_by_text(BAR)).to_have_count(0)


async def test_an_update_while_a_phone_has_no_line(devices: Devices, installed: Installed):
    page = await devices.open("/", **PHONE)
    await kept(page)
    await untouched(page)
    await page.context.set_offline(True)
    installed.update()
    await page.reload()
    await expect(page.locator(".line")).to_contain_text("Offline.")
    await page.evaluate(f"import('{address(installed.first, USAGE)}').then(() => true)")
    assert await versions(page) == {installed.first.version}
    await page.context.set_offline(False)
    await is_new(page, installed)  # nobody has touched it
    await page.context.set_offline(True)
    await page.reload()
    await page.wait_for_function("() => document.documentElement.dataset.other !== undefined")
    assert await versions(page) == {installed.second.version}


def address(pages: Pages, name: str) -> str:
    return f"/web/{pages.version}/{name}"


async def test_an_update_that_is_cut_off_half_way(devices: Devices, installed: Installed):
    page = await devices.open("/", **PHONE)
    await kept(page)
    installed.update(missing=USAGE)
    answers: list[str] = []
    page.context.on("response", lambda answer: answers.append(f"{answer.status} {answer.url}"))
    await line_lost_and_back(page)
    cut = f"404 {devices.url}{address(installed.second, USAGE)}"
    while cut not in answers:
        await page.context.wait_for_event("response")
    await page.reload()
    await expect(page.locator(".agents .name").first).to_have_text("ann")
    await page.get_by_role("link", name="Usage").tap()
    await expect(page.get_by_role("heading", name="Usage")).to_be_visible()
    assert await versions(page) == {installed.first.version}
    await page.get_by_role("link", name="Back").tap()
    installed.update()
    await line_lost_and_back(page)
    await expect(page.get_by_text(BAR)).to_be_visible()
    await page.get_by_role("button", name="Load the new page").tap()
    await is_new(page, installed)


async def test_an_update_where_nothing_is_kept(devices: Devices, installed: Installed):
    """A private window, or a certificate that was not trusted: no worker."""
    page = await devices.open("/#/agent/ann", **PHONE, service_workers="block")
    await page.locator("#message").fill("half wri")
    installed.update()
    await line_lost_and_back(page)
    await expect(page.get_by_text(BAR)).to_be_visible()
    await page.locator("#message").fill("")
    await page.get_by_role("link", name="Back").tap()
    await is_new(page, installed)


async def test_a_part_that_is_missing_is_not_asked_for_again_and_again(devices: Devices, installed: Installed):
    installed.update(missing=USAGE)
    page = await devices.open("/", **PHONE, service_workers="block")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.get_by_role("link", name="Usage").tap()
    await expect(page.get_by_text("This part could not be loaded.")).to_be_visible()
    await page.evaluate("fetch('/web/me').then(() => true)")
    first = [url for url in asked if url.endswith(USAGE)]
    await line_lost_and_back(page)
    await expect(page.get_by_text("Offline.")).to_have_count(0)
    await page.evaluate("fetch('/web/me').then(() => true)")
    assert len(first) <= 2
    assert len([url for url in asked if url.endswith(USAGE)]) <= 4
