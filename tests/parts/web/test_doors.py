"""Who may what, over all routes: each visitor, the status that the gate gives it, and nothing else of the answer."""

import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, TCPConnector, web

from synapsed.api.rights import Peer, Rights, Standing
from synapsed.api.route_rights import AGENT, needs_of
from synapsed.api.security import is_public
from synapsed.interfaces import RIGHTS, Grant
from synapsed.parts.web.book import AccessBook
from synapsed.parts.web.records import DESK
from synapsed.parts.web.visitors import Visitors, cookie_name
from tests.api.serving import TOKEN, Api, serving
from tests.fakes.clock import until
from tests.fakes.control import FakeControl

PAGE = {"Synapsed-Page": "1"}
PHONE = frozenset({"look", "answer"})
FILLED = {
    "agent": "claude", "task": "no-such-task", "item": "no", "event": "1", "path": "tasks", "file": "no.js",
    "schedule": "no", "host": "no", "alias": "no", "device": "no", "token": "no", "row": "1",
}  # fmt: skip


def visitors_of(api: Api) -> Visitors:
    visitors = api.servers.context.security.bearers
    assert isinstance(visitors, Visitors)
    return visitors


def book_of(api: Api) -> AccessBook:
    return visitors_of(api).book


def routes_of(api: Api) -> dict[tuple[str, str], object]:
    """Every route of the main listener, `(method, pattern)`, and its handler."""
    found = {}
    for route in api.servers._main.app.router.routes():
        assert route.resource is not None
        methods = ["GET", "POST", "DELETE"] if route.method == "*" else [route.method]
        found |= {(method, route.resource.canonical): route.handler for method in methods if method != "HEAD"}
    return found


@dataclass
class Visitor:
    """`rights` None: nobody who is let in."""

    rights: frozenset[str] | None
    headers: dict[str, str] = field(default_factory=dict)
    agents: frozenset[str] | None = None
    cookie: bool = False

    def expects(self, method: str, pattern: str, handler: object) -> set[int] | None:
        """The statuses with which it is turned away; None where it is let in."""
        if is_public(handler):
            return None
        if self.rights is None:
            return {401, 403}
        needs = needs_of(method, pattern, handler)
        if needs is None or not needs & self.rights:
            return {403}
        if pattern == "/web/push" and "Authorization" in self.headers:
            return {403}  # a script has no browser
        own = pattern in {"/whoami", "/web/me", "/web/session", "/web/push", "/events/schema", "/openapi.json"}
        if self.agents is not None and not own and (AGENT not in pattern or "claude" not in self.agents):
            return {403}
        return None


@pytest.fixture
async def doors(control: FakeControl, tmp_path: Path) -> AsyncGenerator[Api]:
    """From elsewhere: nothing is known of a process, so that every right comes of what is shown."""
    async with serving(control, tmp_path, streams=0) as api:  # a stream is refused where it would begin
        security = api.servers.context.security
        visitors_of(api).book._kept = visitors_of(api).book._kept.model_copy(update={"served": ["box.example.net"]})
        assert security.forwarded is not None
        yield api


ELSEWHERE = {"Host": "box.example.net", "X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https"}
ORIGIN = {"Origin": "https://box.example.net"}


async def visitor_of(api: Api, who: str) -> Visitor:
    book = book_of(api)

    async def paired(rights: Any) -> str:
        _, session = await book.pair("a browser", frozenset(rights))
        return f"__Host-synapsed-443={session}"

    async def token(rights: Any, agents: list[str] | None = None) -> dict[str, str]:
        _, value = await book.make_token("script", frozenset(rights), agents=agents, days=None)
        return {"Authorization": f"Bearer {value}"}

    page = PAGE | ORIGIN
    match who:
        case "nobody":
            return Visitor(None, page)
        case "look" | "answer" | "type" | "manage":
            return Visitor(frozenset({who}), page | {"Cookie": await paired({who})})
        case "desk":
            return Visitor(DESK, page | {"Cookie": await paired(DESK)})
        case "phone":
            return Visitor(PHONE, page | {"Cookie": await paired(PHONE)})
        case "removed":
            device, session = await book.pair("lost", DESK)
            await book.remove_device(device.id)
            return Visitor(None, page | {"Cookie": f"__Host-synapsed-443={session}"})
        case "foreign origin":
            return Visitor(None, PAGE | {"Cookie": await paired(DESK), "Origin": "https://evil.example"})
        case "http origin":
            return Visitor(None, PAGE | {"Cookie": await paired(DESK), "Origin": "http://box.example.net"})
        case "no origin":
            return Visitor(None, {"Cookie": await paired(DESK)})
        case "same site":
            return Visitor(None, {"Cookie": await paired(DESK), "Sec-Fetch-Site": "same-site"})
        case "cookie of http":
            _, session = await book.pair("a browser", DESK)
            return Visitor(None, page | {"Cookie": f"synapsed-80={session}; synapsed-box.example.net={session}"})
        case "token":
            return Visitor(frozenset(RIGHTS), await token(RIGHTS))
        case "send token":
            return Visitor(frozenset({"send"}), await token({"send"}))
        case "token of claude":
            rights = set(RIGHTS)
            return Visitor(frozenset(rights), await token(rights, ["claude"]), frozenset({"claude"}))
        case "token of codex":
            rights = set(RIGHTS)
            return Visitor(frozenset(rights), await token(rights, ["codex"]), frozenset({"codex"}))
        case _:
            raise AssertionError(who)


VISITORS = (
    "nobody", "look", "answer", "type", "manage", "desk", "phone", "removed", "foreign origin", "http origin",
    "no origin", "same site", "cookie of http", "token", "send token", "token of claude", "token of codex",
)  # fmt: skip


@pytest.mark.parametrize("who", VISITORS)
async def test_every_route_by_everyone(doors: Api, who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synapsed.parts.web.lockout.FAILURES_MAX", 10_000)
    monkeypatch.setattr("synapsed.parts.web.lockout.ALL_MAX", 10_000)
    visitor, wrong = await visitor_of(doors, who), []
    routes = routes_of(doors)
    assert len(routes) > 80
    for (method, pattern), handler in routes.items():
        if (method, pattern) in (("DELETE", "/web/session"), ("POST", "/web/session")):
            continue  # by tests of their own: they change who the visitor is
        path = pattern
        for name, value in FILLED.items():
            path = path.replace(f"{{{name}}}", value)
        body = {"json": {}} if method == "POST" else {}
        async with doors.http.request(method, path, headers=ELSEWHERE | visitor.headers, **body) as answer:
            status = answer.status
            text = (await answer.read()).decode(errors="replace")
        expected = visitor.expects(method, pattern, handler)
        turned_away = status in (401, 403) or (status == 429 and "LOCKED_OUT" in text)
        if (expected is None) == turned_away or (expected is not None and status not in expected):
            # A public page of another origin is refused for its origin alone.
            if is_public(handler) and who in ("foreign origin", "http origin") and status == 403:
                continue
            wrong.append((method, pattern, status, expected, text[:120]))
    assert not wrong, "\n".join(map(str, wrong))


async def test_the_table_names_no_route_that_is_not_there(doors: Api) -> None:
    from synapsed.api import route_rights

    there = {f"{method} {pattern}" for method, pattern in routes_of(doors)}
    there |= {f"{method} {AGENT}/a2a/rest/{{path}}" for method in ("PUT", "PATCH", "HEAD")}
    told = set(route_rights._OTHERS) | {f"{key.split()[0]} {AGENT}{key.split()[1]}" for key in route_rights._OF_AGENTS}
    assert told <= there, told - there


@pytest.mark.parametrize(
    ("rights", "query", "status"),
    [
        ("look", "", 403),
        ("look", "?read_only=1", 101),
        ("answer", "", 403),
        ("type", "", 101),
        ("type", "?read_only=1", 101),
    ],
)
async def test_keys_at_a_terminal_need_the_right(
    control: FakeControl, tmp_path: Path, rights: str, query: str, status: int
) -> None:
    async with serving(control, tmp_path) as api:
        _, session = await book_of(api).pair("a browser", frozenset({rights}))  # type: ignore[arg-type]
        headers = {"Cookie": f"synapsed-{api.port}={session}", "Origin": api.url}
        try:
            async with api.http.ws_connect(f"/agents/claude/terminal{query}", headers=headers):
                got = 101
        except Exception as error:
            got = getattr(error, "status", 0)
        assert got == status


@pytest.mark.parametrize(
    "origin", [None, "http://localhost:1", "https://127.0.0.1:{port}", "null", "http://evil.example"]
)
async def test_a_websocket_with_a_cookie_needs_the_exact_origin(api: Api, origin: str | None) -> None:
    _, session = await book_of(api).pair("a browser", DESK)
    headers = {"Cookie": f"synapsed-{api.port}={session}"}
    if origin is not None:
        headers["Origin"] = origin.replace("{port}", str(api.port))
    with pytest.raises(Exception, match="403"):
        async with api.http.ws_connect("/events", headers=headers):
            pass


async def code_of(api: Api, rights: list[str] | None = None) -> str:
    body = {"rights": rights or ["look", "answer"]}
    status, made = await api.json(api.unix, "POST", "/control/web/code", json=body)
    assert status == 200
    assert made["addresses"]
    return str(made["code"])


async def enter(api: Api, code: str, **headers: str) -> tuple[int, Any, Mapping[str, Any]]:
    sent = {"Origin": api.url, **PAGE, **headers}
    async with (
        ClientSession(connector=TCPConnector()) as browser,
        browser.post(f"{api.url}/web/session", json={"code": code}, headers=sent) as answer,
    ):
        return answer.status, await answer.json(), dict(answer.cookies.items())


async def test_a_code_pairs_one_browser_once(api: Api) -> None:
    code = await code_of(api)
    status, me, cookies = await enter(api, code)
    assert status == 200
    assert me["rights"] == ["answer", "look"]
    cookie = cookies[f"synapsed-{api.port}"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Strict"
    assert not cookie["secure"], "it is http, on loopback"
    headers = {"Cookie": f"{cookie.key}={cookie.value}", "Sec-Fetch-Site": "same-origin"}
    status, told = await api.json(api.http, "GET", "/web/me", headers=headers)
    assert (status, told["device"]) == (200, me["device"])
    assert (await enter(api, code))[0] == 401, "replayed"
    assert len(book_of(api).devices) == 1
    kept = book_of(api)._path.read_text()
    assert cookie.value.partition(".")[2] not in kept
    assert oct(book_of(api)._path.stat().st_mode & 0o777) == "0o600"


async def test_two_browsers_with_one_code(api: Api) -> None:
    import asyncio

    code = await code_of(api)
    statuses = sorted(one[0] for one in await asyncio.gather(*(enter(api, code) for _ in range(4))))
    assert statuses == [200, 401, 401, 401]


async def test_a_code_for_this_machine_is_good_here_only(doors: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `synapsectl web` gives to a browser, every user of the machine can read (`ps`)."""
    body = {"rights": ["look"], "here": True}
    code = (await doors.json(doors.unix, "POST", "/control/web/code", json=body))[1]["code"]
    headers = ELSEWHERE | ORIGIN | PAGE
    status, told = await doors.json(doors.http, "POST", "/web/session", json={"code": code}, headers=headers)
    assert (status, told["error"]["code"]) == (401, "UNAUTHORIZED")
    peers = doors.servers.context.security._peers
    look_up = peers.tcp

    async def of_another(*args: Any, **kwargs: Any) -> Peer:
        return replace(await look_up(*args, **kwargs), uid=4242, settled=False)

    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(peers, "tcp", of_another)
        assert (await enter(doors, code))[0] == 403
    assert book_of(doors).devices == []
    assert (await enter(doors, code))[0] == 200, "and it is not used up by that"


async def test_a_code_grows_old(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    code = await code_of(api)
    later = api.servers.context.clock.boot() + 121
    monkeypatch.setattr(visitors_of(api)._clock, "boot", lambda: later)
    assert (await enter(api, code))[0] == 401


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.example"}, {"Origin": "http://localhost:1"}, {"Synapsed-Page": "0"}]
)
async def test_no_other_page_pairs_a_browser(api: Api, headers: dict[str, str]) -> None:
    code = await code_of(api)
    assert (await enter(api, code, **headers))[0] == 403
    assert (await enter(api, code))[0] == 200, "and the code is not used up by that"


async def test_over_plain_http_from_elsewhere_no_device_is_let_in(doors: Api) -> None:
    code = await code_of(doors)
    plain = ELSEWHERE | {"X-Forwarded-Proto": "http", "Origin": "http://box.example.net"} | PAGE
    status, told = await doors.json(doors.http, "POST", "/web/session", json={"code": code}, headers=plain)
    assert status == 403
    assert "TLS" in told["error"]["message"]
    _, session = await book_of(doors).pair("a browser", DESK)
    cookies = {"Cookie": f"synapsed-80={session}; __Host-synapsed-443={session}; synapsed-box.example.net={session}"}
    assert (await doors.json(doors.http, "GET", "/inbox", headers=plain | cookies))[0] == 401


async def test_over_tls_the_cookie_is_of_this_host_and_secure(doors: Api) -> None:
    code = await code_of(doors)
    headers = ELSEWHERE | ORIGIN | PAGE
    async with doors.http.post("/web/session", json={"code": code}, headers=headers) as answer:
        assert answer.status == 200
        said = answer.headers["Set-Cookie"]
    assert said.startswith("__Host-synapsed-443=")
    assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"} <= set(said.split("; "))


def test_every_port_has_a_cookie_of_its_own() -> None:
    """Browsers send the cookies of one host to all its ports: two daemons would sign each other's browsers out."""
    names = [cookie_name("https", f"box.lan{port}") for port in (":443", "", ":8443", ":9443")]
    assert (names[0], len(set(names))) == (names[1], 3)
    assert cookie_name("https", "[fd00::1]:8443") == names[2]
    clear = [cookie_name("http", host) for host in ("localhost", "[::1]", "[::1]:80", "localhost:80", "[::1]:8090")]
    assert clear == ["synapsed-80"] * 4 + ["synapsed-8090"]


async def test_a_session_under_the_name_without_a_port_goes_on_under_the_new_one(doors: Api) -> None:
    """The cookie of another daemon of this host had that name too; it is no failed attempt."""
    headers = ELSEWHERE | ORIGIN | PAGE
    for _ in range(12):
        other = headers | {"Cookie": "__Host-synapsed=00000000.of-another"}
        assert (await doors.json(doors.http, "GET", "/web/me", headers=other))[0] == 401
    _, session = await book_of(doors).pair("a browser", DESK)
    former = headers | {"Cookie": f"__Host-synapsed={session}"}
    async with doors.http.get("/web/me", headers=former) as answer:
        assert answer.status == 200
        assert answer.headers["Set-Cookie"].startswith(f"__Host-synapsed-443={session};")


async def test_identity_headers_prove_nothing(doors: Api) -> None:
    headers = ELSEWHERE | ORIGIN | PAGE | {"Tailscale-User-Login": "ann@example.com", "Remote-User": "ann"}
    assert (await doors.json(doors.http, "GET", "/inbox", headers=headers))[0] == 401


async def test_failures_shut_out_an_address_but_not_who_is_proved(doors: Api) -> None:
    headers = ELSEWHERE | ORIGIN | PAGE
    _, session = await book_of(doors).pair("a browser", DESK)
    seen = []
    for _ in range(12):
        status, _ = await doors.json(doors.http, "POST", "/web/session", json={"code": "wrong"}, headers=headers)
        seen.append(status)
    assert seen == [401] * 10 + [429] * 2
    wrong = headers | {"Cookie": "__Host-synapsed-443=00000000.no"}
    assert (await doors.json(doors.http, "GET", "/inbox", headers=wrong))[0] == 429
    assert (await doors.json(doors.http, "GET", "/inbox", headers=headers | {"Authorization": "Bearer no"}))[0] == 429
    good = headers | {"Cookie": f"__Host-synapsed-443={session}"}
    assert (await doors.json(doors.http, "GET", "/inbox", headers=good))[0] == 200
    async with doors.http.post("/web/session", json={"code": "wrong"}, headers=headers) as answer:
        assert answer.status == 429
        assert int(answer.headers["Retry-After"]) > 0
    code = await code_of(doors)
    assert (await doors.json(doors.http, "POST", "/web/session", json={"code": code}, headers=headers))[0] == 200
    assert (await doors.json(doors.http, "POST", "/web/session", json={"code": code}, headers=headers))[0] == 429
    other = headers | {"X-Forwarded-For": "192.0.2.8"}
    assert (await doors.json(doors.http, "POST", "/web/session", json={"code": code}, headers=other))[0] == 401


async def test_what_a_removed_device_has_open_ends_at_once(api: Api) -> None:
    device, session = await book_of(api).pair("a browser", DESK)
    headers = {"Cookie": f"synapsed-{api.port}={session}", "Origin": api.url, "Accept": "text/event-stream"}
    async with (
        api.http.ws_connect("/agents/claude/terminal", headers=headers) as terminal,
        api.http.get("/events", headers=headers) as stream,
    ):
        await api.streams(2)
        status, removed = await api.json(api.unix, "DELETE", f"/control/devices/{device.id}")
        assert (status, removed["id"]) == (200, device.id)
        async for _ in terminal:
            pass
        with suppress(Exception):  # aiohttp has several for a connection that is cut
            while await stream.content.readany():
                pass
        await until(lambda: api.servers.context.streams.open == 0, "both have ended")
    headers |= PAGE
    assert (await api.json(api.http, "GET", "/inbox", headers=headers))[0] == 401


async def test_a_device_forgets_itself(api: Api) -> None:
    _, session = await book_of(api).pair("a browser", PHONE)
    headers = {"Cookie": f"synapsed-{api.port}={session}", "Origin": api.url, **PAGE}
    async with api.http.delete("/web/session", headers=headers) as answer:
        assert answer.status == 200
        assert "Max-Age=0" in answer.headers["Set-Cookie"]
    assert book_of(api).devices == []


async def test_a_browser_of_this_machine_has_no_more_than_its_device(api: Api) -> None:
    """The process is the person's own: without the cookie it may everything."""
    _, session = await book_of(api).pair("a browser", frozenset({"look"}))
    headers = {"Cookie": f"synapsed-{api.port}={session}", "Origin": api.url, **PAGE}
    assert (await api.json(api.http, "GET", "/inbox", headers=headers))[0] == 200
    path = "/agents/claude/tasks/send"
    assert (await api.json(api.http, "POST", path, json={"message": "hi"}, headers=headers))[0] == 403
    assert (await api.json(api.http, "POST", path, json={"message": "hi"}))[0] == 200


@pytest.mark.parametrize(
    ("rights", "body", "status"),
    [
        ({"send"}, {"message": "hi"}, 200),
        ({"answer"}, {"message": "hi"}, 200),
        ({"look", "type"}, {"message": "hi"}, 403),
        ({"send"}, {"message": "hi", "priority": 5}, 403),
        ({"send", "answer"}, {"message": "hi", "priority": 5}, 200),
        ({"send", "answer"}, {"message": "/quit", "command": True}, 403),
        ({"send", "type"}, {"message": "/quit", "command": True}, 200),
        ({"send"}, {"message": "hi", "metadata": {"new_conversation": True}}, 403),
    ],
)
async def test_what_the_body_asks_for_needs_its_right(api: Api, rights: set[Any], body: Any, status: int) -> None:
    _, value = await book_of(api).make_token("script", frozenset(rights), agents=["claude"], days=1)
    headers = {"Authorization": f"Bearer {value}"}
    got, told = await api.json(api.http, "POST", "/agents/claude/tasks/send", json=body, headers=headers)
    assert got == status, told


async def test_a_token_grows_old_and_is_revoked(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"name": "ci", "rights": ["look"], "agents": ["codex"], "days": 30}
    status, made = await api.json(api.unix, "POST", "/control/tokens", json=body)
    assert status == 200
    headers = {"Authorization": f"Bearer {made['token']}"}
    assert (await api.json(api.http, "GET", "/agents/codex/status", headers=headers))[0] == 200
    assert made["token"] not in json.dumps(await api.json(api.unix, "GET", "/control/tokens"))
    wall = book_of(api)._clock.wall()
    with monkeypatch.context() as later:
        later.setattr(book_of(api)._clock, "wall", lambda: wall + 31 * 86_400)
        assert (await api.json(api.http, "GET", "/agents/codex/status", headers=headers))[0] == 401
    assert (await api.json(api.unix, "DELETE", "/control/tokens/ci"))[0] == 200
    assert (await api.json(api.http, "GET", "/agents/codex/status", headers=headers))[0] == 401


async def test_what_an_expired_token_has_open_ends_with_it(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    wall = book_of(api)._clock.wall()
    _, value = await book_of(api).make_token("ci", frozenset({"look"}), agents=None, days=1)
    headers = {"Authorization": f"Bearer {value}", "Accept": "text/event-stream"}
    with monkeypatch.context() as later:
        later.setattr(visitors_of(api)._clock, "wall", lambda: wall + 86_399.5)
        async with api.http.get("/events", headers=headers) as stream:
            assert stream.status == 200
            began = time.monotonic()
            later.setattr(visitors_of(api)._clock, "wall", lambda: wall + 86_399.5 + time.monotonic() - began)
            with suppress(Exception):  # aiohttp has several for a connection that is cut
                while await stream.content.readany():
                    pass
            await until(lambda: api.servers.context.streams.open == 0, "it has ended")


async def test_an_expiry_follows_the_time_of_day(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set forward, or after a sleep: the loop's own clock knows nothing of it."""
    monkeypatch.setattr("synapsed.parts.web.visitors.EXPIRY_LOOK_S", 0.02)
    _, value = await book_of(api).make_token("ci", frozenset({"look"}), agents=None, days=1)
    headers = {"Authorization": f"Bearer {value}", "Accept": "text/event-stream"}
    wall = book_of(api)._clock.wall()
    async with api.http.get("/events", headers=headers) as stream:
        assert stream.status == 200
        await api.streams(1)
        monkeypatch.setattr(visitors_of(api)._clock, "wall", lambda: wall + 86_401.0)
        await until(lambda: api.servers.context.streams.open == 0, "it has ended")


@pytest.mark.parametrize(
    ("rights", "agents", "reach"),
    [
        ({"type"}, None, frozenset()),
        ({"type", "look"}, ["claude"], frozenset()),
        ({"type", "send"}, ["claude"], frozenset({"claude"})),
        ({"type", "answer"}, None, None),
    ],
)
async def test_whom_a_terminal_may_write_to(
    api: Api, control: FakeControl, rights: Any, agents: Any, reach: Any
) -> None:
    """`@agent message` there is a person's message."""
    _, value = await book_of(api).make_token("script", frozenset(rights), agents=agents, days=1)
    async with api.http.ws_connect("/agents/claude/terminal", headers={"Authorization": f"Bearer {value}"}):
        assert control.attachments[-1].reach == reach
    async with api.unix.ws_connect("/agents/claude/terminal"):
        assert control.attachments[-1].reach is None


@pytest.mark.parametrize("rights", [{"look"}, {"look", "answer"}])
async def test_who_only_looks_does_not_say_what_programs_are_seen_in(
    api: Api, control: FakeControl, rights: Any
) -> None:
    _, session = await book_of(api).pair("a browser", frozenset(rights))
    headers = {"Cookie": f"synapsed-{api.port}={session}", "Origin": api.url}
    async with api.http.ws_connect("/agents/claude/terminal?read_only=1", headers=headers) as terminal:
        await terminal.send_json({"type": "terminal", "background": [255, 255, 255]})
        told = await anext(json.loads(one.data) async for one in terminal if one.type.name == "TEXT")
    assert (told["type"], told["error"]["code"]) == ("error", "FORBIDDEN")
    assert control.attachments[-1].outer is None


async def test_a_sender_that_a_script_claims_is_no_agent(api: Api) -> None:
    made, value = await book_of(api).make_token("ci", frozenset({"send", "answer"}), agents=["codex"], days=1)
    headers = {"Authorization": f"Bearer {value}"}

    async def send(**said: Any) -> tuple[int, Any]:
        return await api.json(
            api.http, "POST", "/agents/codex/tasks/send", json={"message": "hi"} | said, headers=headers
        )

    for claim in ("claude", "synapse-claude-8100", "@claude", {"sender_id": "claude", "tier": "agent"}, "nobody"):
        status, told = await send(metadata={"sender": claim})
        assert status == 200, told
        name = (claim["sender_id"] if isinstance(claim, dict) else claim).removeprefix("@")
        assert told["task"]["metadata"]["sender"] == {
            "sender_id": f"{name}@token-{made.id}", "verified": False, "tier": "external"
        }  # fmt: skip
        assert (await send(metadata={"sender": claim}, priority=5))[0] == 403, "it says that it is no person"
    for claim in ("claude@box", "synapse-system"):
        assert (await send(metadata={"sender": claim}))[0] == 403
    assert (await send(metadata={"sender": "x" * 120}))[0] == 400
    status, told = await send()
    assert (status, "sender" in told["task"]["metadata"]) == (200, False), "the person's own"
    for key in ("in_reply_to", "sender_task_id"):
        assert (await send(metadata={key: "0" * 36}))[0] == 403


def _addresses(name: str) -> list[str]:
    """Of an agent `name`, and as many of none."""
    return [name, f"@synapse-{name}-8100", f"{name}-8100", f"synapse-no{name}-8100"]


async def test_a_token_for_one_agent_learns_nothing_of_others(api: Api, control: FakeControl) -> None:
    """By no route: what there is, and what is not, are told in the same words."""
    _, value = await book_of(api).make_token("ci", frozenset(RIGHTS), agents=["codex"], days=1)
    theirs = (await api.json(api.unix, "POST", "/agents/claude/tasks/send", json={"message": "hi"}))[1]["task"]["id"]
    headers = {"Authorization": f"Bearer {value}"}
    heard: dict[tuple[str, str], set[tuple[int, str]]] = {}
    for (method, pattern), handler in routes_of(api).items():
        if is_public(handler) and AGENT in pattern:
            continue  # a card is anybody's who knows the name
        for address in _addresses("claude"):
            path = pattern
            for name, filled in (FILLED | {"agent": address, "task": theirs}).items():
                path = path.replace(f"{{{name}}}", filled)
            body = {"json": {}} if method == "POST" else {}
            async with api.http.request(method, path, headers=headers, **body) as answer:
                text = (await answer.read()).decode(errors="replace")
            if AGENT in pattern:
                heard.setdefault((method, pattern), set()).add((answer.status, text))
            if pattern not in ("/openapi.json", "/events/schema") and not pattern.startswith("/web/"):
                assert "claude" not in text.replace(address, ""), (method, path, text)
    assert not {route: said for route, said in heard.items() if len(said) > 1}
    for method, path in (
        ("GET", f"/events?stream=sse&tasks={theirs}"),
        ("GET", f"/events?stream=sse&tasks={theirs[:8]}"),
        ("GET", f"/tasks/{theirs}"),
        ("GET", f"/tasks/{theirs[:8]}/subscribe"),
        ("POST", f"/tasks/{theirs}/cancel"),
        ("GET", f"/a2a/rest/tasks/{theirs}"),
        ("POST", f"/a2a/rest/tasks/{theirs}:cancel"),
    ):
        body = {"json": {}} if method == "POST" else {}
        versioned = headers | {"A2A-Version": "1.0"}
        status, told = await api.json(api.http, method, f"/agents/codex{path}", headers=versioned, **body)
        assert (status, "claude" in json.dumps(told)) == (404, False), told


async def test_a_token_for_an_agent_that_is_gone_says_so(api: Api) -> None:
    _, value = await book_of(api).make_token("ci", frozenset({"look"}), agents=["old"], days=1)
    headers = {"Authorization": f"Bearer {value}"}
    assert (await api.json(api.http, "GET", "/agents/old/status", headers=headers))[0] == 404
    assert (await api.json(api.http, "GET", "/agents/older/status", headers=headers))[0] == 403


async def test_addresses_that_somebody_makes_up_fill_his_own_count(doors: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of another user's on this machine says that it is the proxy."""
    monkeypatch.setattr("synapsed.parts.web.lockout.ALL_MAX", 20)

    async def guess(number: int) -> int:
        headers = ELSEWHERE | ORIGIN | PAGE | {"X-Forwarded-For": f"198.51.100.{number}"}
        return (await doors.json(doors.http, "POST", "/web/session", json={"code": "no"}, headers=headers))[0]

    assert [await guess(number) for number in range(22)] == [401] * 20 + [429] * 2
    look_up = doors.servers.context.security._peers.tcp

    async def of_another(*args: Any, **kwargs: Any) -> Peer:
        return replace(await look_up(*args, **kwargs), uid=4242)

    monkeypatch.setattr(doors.servers.context.security._peers, "tcp", of_another)
    doors.servers.context.security._known.clear()
    assert await guess(23) == 401, "the real one, which another user runs"


async def test_a_device_may_not_invite_others(api: Api) -> None:
    _, session = await book_of(api).pair("a browser", DESK)
    headers = {"Cookie": f"synapsed-{api.port}={session}", "Origin": api.url, **PAGE}
    for method, path, body in (
        ("POST", "/control/web/code", {"rights": ["type"]}),
        ("POST", "/control/tokens", {"name": "x", "rights": ["type"]}),
        ("POST", "/control/web/serve", {"name": "evil.example.net"}),
        ("GET", "/control/devices", None),
    ):
        assert (await api.json(api.http, method, path, json=body, headers=headers))[0] == 403
        assert (await api.json(api.http, method, path, json=body))[0] == 403, "nor without a session, by TCP"
    control = {"Authorization": f"Bearer {TOKEN}"}
    assert (await api.json(api.http, "GET", "/control/devices", headers=control))[0] == 200


def test_rights_of_a_grant() -> None:
    rights = Rights(Standing.PERSON, grant=Grant("device", "1", "x", frozenset({"look"})))
    assert rights.may("look")
    assert not rights.may_answer("claude")
    assert web is not None
