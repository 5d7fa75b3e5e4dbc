"""The page over TLS of the daemon's own, in a real browser, from the code to the terminal."""

import json
import re
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, expect

from tests.support.daemon import Daemon
from tests.web.conftest import DESK, PATIENCE_MS

pytestmark = pytest.mark.night


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(
        tmp_path, config='[api]\nlisten = "127.0.0.1:0"\nagent_ports = false\ntls_listen = "127.0.0.1:0"\n'
    ).start()
    yield daemon
    daemon.end()


@pytest_asyncio.fixture(loop_scope="module")
async def context(browser: Browser) -> AsyncGenerator[BrowserContext]:
    """A person who has told the browser to go on."""
    context = await browser.new_context(ignore_https_errors=True, **DESK)
    context.set_default_timeout(PATIENCE_MS)
    yield context
    await context.close()


async def test_from_the_code_to_the_terminal(daemon: Daemon, context: BrowserContext, tmp_path: Path) -> None:
    daemon.start_agent(profile="generic", name="shell", args=["bash", "--norc"], env={"PS1": "$ "})
    made = json.loads(daemon.ctl("web", "--json").out)
    address = made["addresses"][0]
    assert re.match(r"https://localhost:\d+/#code=", address), made
    page = await context.new_page()
    warnings: list[str] = []
    page.on("console", lambda said: warnings.append(said.text) if said.type == "error" else None)
    await page.goto(address)
    await expect(page.get_by_text("shell").first).to_be_visible()
    (cookie,) = await context.cookies()
    assert (cookie["name"], cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (
        f"__Host-synapsed-{urlsplit(address).port}", True, True, "Strict",
    )  # fmt: skip
    await page.goto(f"{address.partition('#')[0]}#/agent/shell")
    await expect(page.locator(".r").first).to_contain_text("$")
    await page.locator("#terminal").click()
    await expect(page.locator(".xterm-rows")).to_contain_text("$")
    await page.keyboard.type("echo over-$((40 + 2))\n")
    await expect(page.locator(".xterm-rows")).to_contain_text("over-42")
    assert await page.evaluate("isSecureContext")
    assert not [one for one in warnings if "Content Security" in one or "TypeError" in one], warnings

    clear = await context.new_page()
    await clear.goto(address.partition("#")[0].replace("https:", "http:"))
    assert clear.url.startswith("https://"), "an address that was typed without its https"

    assert address.partition("#")[0] in daemon.ctl("status").out
    assert daemon.ctl("web", "--phone").code == 2, "no other device reaches loopback"

    own = daemon.home / "state" / "tls" / "server.pem"  # and the same as somebody's own
    for name, text in zip(("cert", "key"), own.read_text().split("-----BEGIN PRIVATE"), strict=True):
        (tmp_path / f"{name}.pem").write_text(f"-----BEGIN PRIVATE{text}" if name == "key" else text)
    daemon.end()
    given = f'tls_cert = "{tmp_path}/cert.pem"\ntls_key = "{tmp_path}/key.pem"\n'
    daemon.config_file.write_text(daemon.config + given)
    daemon.start()
    status = daemon.get("/control/status").json
    assert (status["alerts"], [one[:18] for one in status["secure"]]) == (
        [],
        ["https://localhost:", "https://127.0.0.1:"],
    )
