"""A real Chromium on the page, in front of the fake control or of a real daemon. Without a browser these tests are
skipped, and say so."""

import contextlib
import os
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from synapsed.interfaces import NewEvent
from synapsed.model.agent import Activity
from synapsed.model.attention import AttentionKind
from synapsed.model.events import ActivityChanged, AttentionChanged, InputRequired
from synapsed.model.task import Prompt, PromptOption
from synapsed.parts.web.page_files import page_files
from tests.api.serving import TOKEN, Api, serving
from tests.fakes.control import FakeControl, hold
from tests.web.programs import chromium

__all__ = ["CARD", "DESK", "FLAGS", "PATIENCE_MS", "PHONE", "Devices", "Worker", "module", "question", "read"]

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True}
DESK: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}}
PATIENCE_MS = 60_000
CARD = ".card:not(.ghost)"
"""A question; until the page has its list, an empty one stands in its place."""
expect.set_options(timeout=PATIENCE_MS)

FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--font-render-hinting=none"]
"""In a container there is no sandbox for a browser of root's; nothing but the page under test is opened."""

_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`);
});
"""

_EXPECTED = re.compile(
    r"Failed to load resource|Service Worker registration blocked by Playwright|WebSocket connection to|"
    r"ERR_INTERNET_DISCONNECTED|ERR_CONNECTION|net::ERR"
)
"""What a browser writes of a line that goes away, and of answers that say no."""


def module(name: str) -> str:
    """The address of one of the page's modules, by which a test has the same one as the page."""
    return f"/web/{page_files().version}/{name}"


def question(text: str = "Run ls?", *, key: str = "p1", **more: Any) -> Prompt:
    options = [
        PromptOption(key="1", label="Yes"),
        PromptOption(key="2", label="Yes, and don't ask again"),
        PromptOption(key="3", label="No"),
    ]
    given = {"prompt_id": key, "type": "permission", "prompt": text, "options": options, "own_words": True} | more
    return Prompt(**given)


async def read(page: Page) -> None:
    """Returns when every question has stood there long enough to be answered."""
    await expect(page.locator(CARD).first).to_be_visible()
    await expect(page.locator(".card [aria-disabled=true]")).to_have_count(0)


@dataclass
class Devices:
    """Browsers' windows at one server. What they complain of is kept, and fails the test at its end."""

    browser: Browser
    url: str
    token: str = TOKEN
    complaints: list[str] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)

    async def context(self, **options: Any) -> BrowserContext:
        headers = {"Authorization": f"Bearer {self.token}"}
        context = await self.browser.new_context(extra_http_headers=headers, **options)
        context.set_default_timeout(PATIENCE_MS)
        await context.add_init_script(_WATCH)
        return context

    async def open(self, path: str = "/", **options: Any) -> Page:
        """A page in a context of its own, once it has its lists."""
        page = await (await self.context(**(options or PHONE))).new_page()
        page.on("console", lambda said: self._said(said.type, said.text))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.pages.append(page)
        await page.goto(self.url + path)
        return page

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not _EXPECTED.search(text):
            self.complaints.append(f"{kind}: {text}")

    async def check(self) -> None:
        for page in self.pages:
            if not page.is_closed():
                with contextlib.suppress(Exception):  # one that was closed by its test
                    self.complaints += await page.evaluate("window.violations")
        assert self.complaints == []


@dataclass
class Worker:
    """What agents do, at the fake control."""

    control: FakeControl
    api: Api

    async def ask(
        self,
        agent: str,
        prompt: Prompt,
        item: str = "i1",
        message: str = "Please do it.",
        kind: AttentionKind = "permission",
    ) -> str:
        """The agent asks that, in a task; the task's id."""
        body = {"message": message}
        status, told = await self.api.json(self.api.unix, "POST", f"/agents/{agent}/tasks/send", json=body)
        assert status == 200, told
        task: str = told["task"]["id"]
        await self.control.ask(task, prompt)
        agent_id = self.control.directory.resolve(agent)
        opened = AttentionChanged(
            id=item, state="opened", kind=kind, question=prompt.prompt[:100], prompt_id=prompt.prompt_id
        )
        events = [NewEvent(agent_id, data, task) for data in (InputRequired(prompt=prompt), opened)]
        await self.control.store.commit(events=events)
        return task

    async def does(self, agent_id: str, activity: Activity, evidence: str) -> None:
        """The agent does that, as the list of agents and the event both say."""
        view = self.control.views[agent_id]
        self.control.views[agent_id] = view.model_copy(update={"activity": activity, "evidence": evidence})
        await self.control.tell(agent_id, ActivityChanged(activity=activity, evidence=evidence))

    async def seen_to(self, agent: str, item: str, task: str, **how: Any) -> None:
        """It is not asked any more."""
        closed = AttentionChanged(id=item, state="answered", kind="permission", question="", prompt_id="p1", **how)
        await self.control.store.commit(events=[NewEvent(self.control.directory.resolve(agent), closed, task)])

    @property
    def answers(self) -> list[Any]:
        """Answers that reached a program: task, text, prompt."""
        return [call[1:] for call in self.control.calls if call[0] == "input"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a module here share a browser, so they share an event loop."""
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here) and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browsers() -> AsyncGenerator[Browser]:
    path = chromium()
    if path is None:
        pytest.skip("*** THE PAGE NOT TRIED IN A BROWSER: no chromium (apt-get install chromium) ***")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="module")
async def browser(browsers: Browser) -> AsyncGenerator[Browser]:
    """The module's one, without windows; what a test opens is closed at its end."""
    yield browsers
    for context in browsers.contexts:
        await context.close()


@pytest.fixture
def control() -> FakeControl:
    control = FakeControl(hold)
    control.add("ann", "claude", 8100, cwd="/home/me/shop/api")
    control.add("bob", "codex", 8120, cwd="/home/me/shop/web")
    return control


@pytest_asyncio.fixture(loop_scope="module")
async def api(control: FakeControl, tmp_path: Path) -> AsyncGenerator[Api]:
    async with serving(control, tmp_path) as api:
        yield api


@pytest_asyncio.fixture(loop_scope="module")
async def worker(control: FakeControl, api: Api) -> Worker:
    return Worker(control, api)


@pytest_asyncio.fixture(loop_scope="module")
async def devices(browser: Browser, api: Api) -> AsyncGenerator[Devices]:
    devices = Devices(browser, api.url)
    yield devices
    await devices.check()
