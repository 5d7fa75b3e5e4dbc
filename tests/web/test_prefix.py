"""The page behind a reverse proxy that has it under a path of its own (`X-Forwarded-Prefix`)."""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from http.cookies import Morsel, SimpleCookie
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType, web
from playwright.async_api import Browser, expect

from synapsed.api.security import Proxies
from synapsed.clock import SystemClock
from synapsed.interfaces import RIGHTS
from synapsed.parts.web.certificates import make_authority, make_server
from synapsed.parts.web.page_files import page_files
from synapsed.parts.web.records import DESK
from synapsed.parts.web.visitors import cookie_name
from tests.api.serving import TOKEN, Api, serving
from tests.fakes.clock import until
from tests.fakes.control import FakeControl, hold
from tests.parts.web.test_doors import book_of, visitors_of
from tests.web.conftest import DESK as DESK_SIZE
from tests.web.conftest import PATIENCE_MS, Devices, Worker, question, read

UNDER = "/team/lab"
FORWARDED = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "localhost", "X-Forwarded-Prefix": UNDER}


@pytest.fixture
def trusted(api: Api) -> Api:
    """A server that believes this machine's proxies."""
    api.servers.context.security._proxies = Proxies(["127.0.0.1"])
    return api


async def html_of(api: Api, path: str = "/", **headers: str) -> tuple[int, str]:
    async with api.http.get(path, headers=headers) as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize("said", [UNDER, f"{UNDER}/"])
async def test_links_stand_below_the_path(trusted: Api, said: str):
    version = page_files().version
    for path in ("/", f"/web/{version}/index.html"):
        status, html = await html_of(trusted, path, **FORWARDED | {"X-Forwarded-Prefix": said})
        linked = re.findall(r'(?:href|src)="([^"]+)"', html)
        assert status == 200
        assert all(link.startswith(f"{UNDER}/web/") for link in linked)
        assert f"{UNDER}/web/{version}/js/main.js" in linked
    one, other = [(await trusted.http.get("/", headers=headers)).headers for headers in ({}, FORWARDED)]
    assert one["ETag"] != other["ETag"]
    assert "X-Forwarded-Prefix" in one["Vary"]


async def test_who_is_no_proxy_says_nothing_of_the_path(api: Api):
    status, html = await html_of(api, **{"X-Forwarded-Prefix": "/evil"})
    assert (status, "evil" in html) == (200, False)


async def test_a_served_name_has_no_path(api: Api):
    book = book_of(api)
    book._kept = book._kept.model_copy(update={"served": ["box.example.net"]})
    headers = {"Host": "box.example.net", "X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/evil"}
    status, html = await html_of(api, **headers)
    assert (status, "evil" in html) == (200, False)


@pytest.mark.parametrize(
    "said",
    [
        "//evil.example", "/a//b", "/..", "/a/../b", "/a/..", "/.", "/./a", "lab", "/a b", "/a%2f..", '/"><script>',
        "/a\\b", "/a?b", "/a#b", "https://evil.example/", "/" + "a" * 65, "/a" * 9, "/ä",
    ],
)  # fmt: skip
async def test_what_is_no_path_is_refused(trusted: Api, said: str):
    status, told = await trusted.json(trusted.http, "GET", "/", headers=FORWARDED | {"X-Forwarded-Prefix": said})
    assert (status, told["error"]["code"]) == (400, "INVALID_REQUEST")
    assert "X-Forwarded-Prefix" in told["error"]["message"]


@pytest.mark.parametrize("said", ["/...", "/.well", "/a.b/~c", "/-", "/"])
async def test_what_looks_odd_and_is_a_path_is_taken(trusted: Api, said: str):
    status, _ = await html_of(trusted, **FORWARDED | {"X-Forwarded-Prefix": said})
    assert status == 200


PAGE_OF_HTTPS = {"Synapsed-Page": "1", "Origin": "https://localhost"}


async def me(api: Api, cookie: str, **headers: str) -> tuple[int, Morsel[str] | None]:
    """Returns the status of `/web/me` with these cookies, and the cookie that is set."""
    asked = FORWARDED | PAGE_OF_HTTPS | {"Cookie": cookie} | headers
    async with api.http.get("/web/me", headers=asked) as answer:
        return answer.status, next(iter(SimpleCookie(answer.headers.get("Set-Cookie", "")).values()), None)


async def test_the_cookie_is_sent_to_nothing_else_there(trusted: Api):
    _, session = await book_of(trusted).pair("a browser", DESK)
    status, said = await me(trusted, f"{cookie_name('https', 'localhost', UNDER)}={session}")
    assert status == 200
    assert said is not None
    assert (said.key.rpartition("-")[0], said["path"]) == ("__Secure-synapsed", UNDER)
    assert (said.value, said["secure"], said["httponly"]) == (session, True, True)


async def test_a_session_under_the_former_name_goes_on_under_the_new_one(trusted: Api):
    """The cookie of another daemon, at a shorter path of the same address, had that name too, and comes along."""
    _, session = await book_of(trusted).pair("a browser", DESK)
    former = "__Secure-synapsed"
    status, said = await me(trusted, f"{former}={session}; {former}=00000000.of-another")
    assert status == 200
    assert said is not None
    assert (said.key, said.value) == (cookie_name("https", "localhost", UNDER), session)
    status, said = await me(trusted, f"{former}=00000000.of-another; {said.key}={said.value}")
    assert (status, said and said.value) == (200, session)


async def test_a_cookie_of_another_daemon_at_the_address_is_no_failed_attempt(trusted: Api):
    for _ in range(12):
        status, _ = await me(trusted, "__Secure-synapsed=00000000.of-another")
        assert status == 401


def test_each_prefix_has_a_cookie_of_its_own():
    names = {cookie_name("https", "localhost", prefix) for prefix in ("", "/lab", "/lab/b", "/lab-b", "/lab.b")}
    assert len(names) == 5


async def test_the_next_page_of_a_list_is_below_the_path(trusted: Api):
    for number in range(2):
        await trusted.json(trusted.unix, "POST", "/agents/ann/tasks/send", json={"message": f"say {number}"})
    headers = FORWARDED | {"Authorization": f"Bearer {TOKEN}"}
    async with trusted.http.get("/agents/ann/tasks?limit=1", headers=headers) as answer:
        assert answer.headers["Link"].startswith(f"<{UNDER}/agents/ann/tasks?limit=1")


# --- in a browser ----------------------------------------------------------------------------------------------------


class Proxy:
    """Has a server under a path: takes the path away, and says so, or (`silent`) not."""

    def __init__(self, to: str, under: str, client: ClientSession) -> None:
        self.to, self.under, self.client = to, under, client
        self.silent = not under
        self.missed: list[str] = []
        """What was asked for beside the path."""

    def _headers(self, request: web.Request) -> dict[str, str]:
        kept = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in ("connection", "upgrade") and not name.lower().startswith("sec-websocket")
        }
        told = {} if self.silent else {"X-Forwarded-Prefix": self.under}
        return kept | {"X-Forwarded-Host": request.host, "X-Forwarded-Proto": request.scheme} | told

    async def take(self, request: web.Request) -> web.StreamResponse:
        if request.raw_path != self.under and not request.raw_path.startswith(f"{self.under}/"):
            self.missed.append(request.raw_path)
            return web.Response(status=404)
        path = request.raw_path.removeprefix(self.under) or "/"
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._socket(request, path)
        body = await request.read()
        async with self.client.request(
            request.method, self.to + path, headers=self._headers(request), data=body or None, allow_redirects=False
        ) as answer:
            headers = {name: value for name, value in answer.headers.items() if name not in _OF_ONE_HOP}
            return web.Response(status=answer.status, headers=headers, body=await answer.read())

    async def _socket(self, request: web.Request, path: str) -> web.StreamResponse:
        async with self.client.ws_connect(self.to + path, headers=self._headers(request)) as inner:
            outer = web.WebSocketResponse()
            await outer.prepare(request)
            ways = [asyncio.create_task(_carry(outer, inner)), asyncio.create_task(_carry(inner, outer))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await outer.close()
            return outer


_OF_ONE_HOP = {"Transfer-Encoding", "Connection", "Content-Length", "Keep-Alive"}


async def _carry(
    one: web.WebSocketResponse | ClientWebSocketResponse, other: web.WebSocketResponse | ClientWebSocketResponse
) -> None:
    with suppress(ConnectionError):
        async for message in one:
            if message.type is WSMsgType.TEXT:
                await other.send_str(message.data)
            elif message.type is WSMsgType.BINARY:
                await other.send_bytes(message.data)


@asynccontextmanager
async def listening(
    take: Callable[[web.Request], Awaitable[web.StreamResponse]], tls: ssl.SSLContext | None = None
) -> AsyncGenerator[str]:
    """An address of this machine at which `take` answers."""
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", take)
    runner = web.AppRunner(app, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest_asyncio.fixture(loop_scope="module")
async def proxy(trusted: Api) -> AsyncGenerator[tuple[Proxy, str]]:
    async with ClientSession(auto_decompress=False) as client:
        proxy = Proxy(trusted.url, UNDER, client)
        async with listening(proxy.take) as url:
            yield proxy, url


@pytest.mark.night
@pytest.mark.parametrize("slash", ["/", ""])
async def test_the_page_works_under_a_path(browser: Browser, proxy: tuple[Proxy, str], worker: Worker, slash: str):
    taken, url = proxy
    devices = Devices(browser, url)
    page = await devices.open(f"{UNDER}{slash}", **DESK_SIZE)
    await expect(page.locator(".agents .name")).to_have_text(["ann", "bob"])
    assert await page.evaluate("location.pathname") == f"{UNDER}/"
    task = await worker.ask("ann", question("Run it?"))
    await expect(page.locator(".card .question")).to_have_text("Run it?")
    await read(page)
    await page.get_by_role("button", name="Approve").click()
    await expect(page.locator(".outcome")).to_contain_text("Yes")
    await until(lambda: worker.answers == [(task, "1", "p1")])  # the page says so at once
    await page.goto(f"{url}{UNDER}/#/agent/ann")
    await expect(page.locator(".r")).to_have_text(["the screen"])
    await page.locator("#terminal").click()
    await expect(page.locator(".xterm-rows")).to_contain_text("screen")
    kept = await page.wait_for_function(  # `ready` is of the address at which the page was opened, without its slash
        """async () => {
          const one = await navigator.serviceWorker.getRegistration(location.href);
          return one?.active && [one.scope, one.active.scriptURL];
        }"""
    )
    scope, script = await kept.json_value()
    assert (scope, script) == (f"{url}{UNDER}/", f"{url}{UNDER}/web/sw.js")
    manifest: Any = await page.evaluate(
        """async () => {
          const address = document.querySelector("link[rel=manifest]").href;
          const told = await (await fetch(address)).json();
          const at = (path) => new URL(path, address).href;
          return [at(told.scope), at(told.start_url), (await fetch(at(told.icons[0].src))).status, told.id];
        }"""
    )
    assert manifest == [f"{url}{UNDER}/", f"{url}{UNDER}/", 200, None]
    assert taken.missed == []
    await devices.check()


@pytest.mark.night
async def test_without_a_line_it_opens_under_its_path(browser: Browser, proxy: tuple[Proxy, str], worker: Worker):
    taken, url = proxy
    taken.silent = True  # links of the page stand beside it, too
    devices = Devices(browser, url)
    page = await devices.open(f"{UNDER}/")
    await expect(page.locator(".agents .name")).to_have_text(["ann", "bob"])
    await page.evaluate("navigator.serviceWorker.ready")
    await page.wait_for_function("() => navigator.serviceWorker.controller !== null")
    await page.context.set_offline(True)
    await page.reload()
    await expect(page.get_by_text("Offline.")).to_be_visible()
    kept = await page.evaluate("caches.keys()")
    assert kept == [f"synapsed{UNDER}/{page_files().version}"]
    assert [path for path in taken.missed if path != "/favicon.ico"] == []


def certified(folder: Path) -> ssl.SSLContext:
    """A server's TLS with a certificate for loopback."""
    now = datetime.now(UTC)
    pair = make_server(make_authority("here", [], now=now), ["127.0.0.1"], now=now)
    file = folder / "proxy.pem"
    file.write_text(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@pytest.mark.night
async def test_two_daemons_at_one_address_have_a_browser_each(
    browser: Browser, trusted: Api, worker: Worker, tmp_path: Path
):
    """One at `/`, the other below it: what a browser has of the first goes to the other, too."""
    other = FakeControl(hold)
    other.add("zoe", "claude", 8100)
    (tmp_path / "lab").mkdir()
    async with serving(other, tmp_path / "lab") as lab, ClientSession(auto_decompress=False) as client:
        lab.servers.context.security._proxies = Proxies(["127.0.0.1"])
        ways = [Proxy(lab.url, "/lab", client), Proxy(trusted.url, "", client)]

        async def take(request: web.Request) -> web.StreamResponse:
            return await ways[0 if request.path == "/lab" or request.path.startswith("/lab/") else 1].take(request)

        async with listening(take, certified(tmp_path)) as url:
            context = await browser.new_context(ignore_https_errors=True, **DESK_SIZE)
            context.set_default_timeout(PATIENCE_MS)
            pages = {}
            for at, api, names in (("/lab/", lab, ["zoe"]), ("/", trusted, ["ann", "bob"])):
                code = visitors_of(api).codes.make(frozenset(RIGHTS), None, now=SystemClock().boot())
                pages[at] = await context.new_page()
                await pages[at].goto(f"{url}{at}#code={code}")
                await expect(pages[at].locator(".agents .name")).to_have_text(names)
            for at, names in (("/lab/", ["zoe"]), ("/", ["ann", "bob"]), ("/lab/", ["zoe"])):
                await pages[at].reload()
                await expect(pages[at].locator(".agents .name")).to_have_text(names)
            cookies = [one for one in await context.cookies([f"{url}/lab/"]) if "synapsed" in one.get("name", "")]
            assert len({one.get("name") for one in cookies}) == len(cookies) == 2
            assert {one.get("path") for one in cookies} == {"/", "/lab"}
            tasks = [
                await one.ask("zoe" if one is not worker else "ann", question()) for one in (Worker(other, lab), worker)
            ]
            for at, control, task in zip(("/lab/", "/"), (other, worker.control), tasks, strict=True):
                await read(pages[at])
                await pages[at].get_by_role("button", name="Approve").click()
                await expect(pages[at].locator(".outcome")).to_contain_text("taken")
                assert [call[1] for call in control.calls if call[0] == "input"] == [task]
            (device,) = book_of(lab).devices
            await book_of(lab).remove_device(device.id)
            await pages["/lab/"].reload()
            await expect(pages["/lab/"].get_by_text("This device is not let in")).to_be_visible()
            await pages["/"].reload()
            await expect(pages["/"].locator(".agents .name")).to_have_text(["ann", "bob"])
            assert [path for way in ways for path in way.missed if path != "/favicon.ico"] == []
