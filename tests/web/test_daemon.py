"""The page in front of a real daemon: screens of the four programs, a terminal, a daemon that is killed over a tap."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import ClientSession, ClientWebSocketResponse
from playwright.async_api import Browser, Page, expect

from tests.support.daemon import Daemon, eventually
from tests.web.conftest import DESK, FLAGS, PATIENCE_MS, PHONE, Devices
from tests.web.programs import chromium

pytestmark = pytest.mark.night

RECORDINGS = Path(__file__).parents[1] / "recordings"
PLAYED = sorted(
    path
    for program in ("claude", "codex", "gemini", "opencode")
    for path in (
        *RECORDINGS.glob(f"{program}-[0-9]*/accept.raw"),
        *RECORDINGS.glob(f"{program}-[0-9]*/menu.raw"),
        *RECORDINGS.glob(f"{program}-[0-9]*/long.raw"),
    )
)
PLAYER = "stty raw -echo; cat '{path}'; exec sleep 1000"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path).start()
    yield daemon
    daemon.end()


@pytest_asyncio.fixture(loop_scope="module")
async def devices(browser: Browser, daemon: Daemon) -> AsyncGenerator[Devices]:
    token = next(daemon.home.rglob("token")).read_text().strip()
    devices = Devices(browser, f"http://127.0.0.1:{daemon.port}", token)
    yield devices
    await devices.check()


async def shown(page: Page) -> list[str]:
    rows: list[str] = await page.evaluate("[...document.querySelectorAll('.r')].map((row) => row.textContent)")
    return rows


def screen(daemon: Daemon, agent: str) -> list[str]:
    lines: list[str] = daemon.get(f"/agents/{agent}/screen?format=json").json["lines"]
    return [line.rstrip(" ") for line in lines]


async def test_screens_of_the_four_programs(daemon: Daemon, devices: Devices):
    assert len({path.parent.name.partition("-")[0] for path in PLAYED}) == 4
    names = []
    for path in PLAYED:
        name = f"{path.parent.name.partition('-')[0]}-{path.stem}"
        args = ["sh", "-c", PLAYER.format(path=path)]
        wanted = {"profile": "generic", "name": name, "args": args, "cols": 120, "rows": 40}
        assert daemon.request("POST", "/control/start", wanted).status == 200
        names.append(name)
    page = await devices.open("/", **PHONE)
    for name in names:
        eventually(lambda name=name: any(screen(daemon, name)), f"{name} draws")  # type: ignore[misc]
        await page.goto(f"{devices.url}/#/agent/{name}")
        await expect(page.locator(".bar h1")).to_have_text(name)
        await expect(page.locator(".under")).to_contain_text("120 × 40")
        wanted = screen(daemon, name)
        async with asyncio.timeout(PATIENCE_MS / 1000):
            while [row.rstrip(" ") for row in await shown(page)] != wanted:
                await asyncio.sleep(0.1)
                wanted = screen(daemon, name)
        text = daemon.ctl("screen", name).out.rstrip("\n")
        assert text.replace("\n", "").replace(" ", "") == "".join(wanted).replace(" ", "")
    assert daemon.agent(names[0])["state"] == "running"


async def test_a_real_terminal(daemon: Daemon, devices: Devices):
    daemon.start_agent(
        profile="generic",
        name="shell",
        args=["bash", "--norc"],
        env={"PS1": "$ ", "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
    )
    page = await devices.open("/#/agent/shell", **DESK)
    await expect(page.locator(".r").first).to_contain_text("$")
    assert not await page.evaluate("performance.getEntriesByType('resource').some((one) => one.name.includes('xterm'))")
    await page.locator("#terminal").click()
    await expect(page.locator(".xterm-rows")).to_be_visible()
    await expect(page.locator(".xterm-rows")).to_contain_text("$")
    await page.keyboard.type("printf 'a%s\\n' 'bc日本'; tput cols\n")
    await expect(page.locator(".xterm-rows")).to_contain_text(re.compile("abc *日 *本"))
    columns = await page.evaluate("Math.round(document.querySelector('.xterm-rows').clientWidth)")
    assert columns > 300
    eventually(lambda: re.search(r"abc日本", "\n".join(screen(daemon, "shell"))), "the program wrote it")
    size = daemon.get("/agents/shell/screen?format=json").json
    assert (size["cols"], size["rows"]) != (120, 40)


async def _read(socket: ClientWebSocketResponse) -> None:
    """Who reads nothing answers no ping, and is dropped."""
    async for _ in socket:
        pass


def size_of(daemon: Daemon, agent: str) -> tuple[int, int]:
    told = daemon.get(f"/agents/{agent}/screen?format=json").json
    return told["cols"], told["rows"]


@pytest.mark.parametrize("killed", [False, True], ids=["closed", "killed"])
async def test_a_terminal_of_the_page_leaves_a_window_that_is_in_use(daemon: Daemon, browser: Browser, *, killed: bool):
    daemon.start_agent(profile="generic", name="shell", args=["bash", "--norc"], env={"PS1": "$ "})
    token = next(daemon.home.rglob("token")).read_text().strip()
    url = f"http://127.0.0.1:{daemon.port}"
    headers = {"Authorization": f"Bearer {token}"}
    own = await browser.browser_type.launch(executable_path=chromium(), args=FLAGS)
    async with ClientSession(headers=headers) as client:
        attached = await client.ws_connect(f"{url}/agents/shell/terminal?cols=193&rows=49")
        reading = asyncio.create_task(_read(attached))
        eventually(lambda: size_of(daemon, "shell") == (193, 49), "the window is that of who is attached")
        page = await Devices(own, url, token).open("/#/agent/shell", **DESK)
        await page.locator("#terminal").click()
        await expect(page.locator(".terminal [role=status]").first).to_contain_text("You type here")
        await page.set_viewport_size({"width": 1200, "height": 700})
        assert size_of(daemon, "shell") == (193, 49)
        await page.locator(".xterm-helper-textarea").focus()
        await page.keyboard.type("typed here\n")
        await expect(page.locator(".xterm-rows")).to_contain_text("typed here")
        taken = size_of(daemon, "shell")
        assert taken[0] < 193
        if killed:
            crash = await own.new_browser_cdp_session()
            with contextlib.suppress(Exception):  # it is gone before it answers
                await asyncio.wait_for(crash.send("Browser.crash"), 30)
        else:
            await page.close()
        await asyncio.to_thread(
            eventually, lambda: size_of(daemon, "shell") == (193, 49), "who is attached has the window again"
        )
        reading.cancel()
        await attached.close()
        await asyncio.to_thread(
            eventually, lambda: size_of(daemon, "shell") == (120, 40), "the program has its own size again"
        )
    with contextlib.suppress(Exception):
        await own.close()


async def test_a_daemon_killed_between_a_tap_and_its_answer_under_five_pages(daemon: Daemon, devices: Devices):
    port = daemon.port
    daemon.end()
    daemon.config_file.write_text(f'[api]\nlisten = "127.0.0.1:{port}"\nagent_ports = false\n')
    daemon.start()
    daemon.start_agent(profile="generic", name="shell", args=["bash", "--norc"], env={"PS1": "$ "})
    task = daemon.send("read -rp 'Really? (y/n) ' it; echo \"=$it=\" | tee -a log", "shell")
    page = await devices.open("/", **PHONE)
    others = [await devices.open("/", **DESK)]
    others += [await others[0].context.new_page() for _ in range(3)]
    for other in others[1:]:
        await other.goto(devices.url)
    for one in (page, *others):
        await expect(one.locator(".card .question")).to_contain_text("Really?")
    held: list[str] = []

    async def hold(route: object) -> None:
        if not held:
            held.append("tap")
            daemon.kill9()
        await route.continue_()  # type: ignore[attr-defined]

    await page.route("**/input", hold)
    await page.get_by_role("button", name="y", exact=True).or_(page.get_by_role("button", name="Yes")).first.tap()
    await expect(page.locator(".outcome")).to_contain_text("sent again")
    daemon.start()
    await expect(page.locator(".outcome")).to_contain_text(re.compile("taken|no longer asked"))
    done = daemon.ended(task)
    assert done["status"] == "completed"
    assert json.dumps(done["artifacts"]).count("=y=") >= 1
    assert "=y==y=" not in json.dumps(done)
    log = "\n".join(screen(daemon, "shell"))
    assert log.count("=y=") == 1
    for one in (page, *others):
        await expect(one.locator(".line")).to_have_count(0)
        await expect(one.locator(".choices")).to_have_count(0)
        await expect(one.locator(".agents .name")).to_have_text(["shell"])
