"""The same doors at agents' own ports; and a second request hidden in a first one, which no proxy would have seen."""

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from synapsed.api.route_rights import needs_of
from synapsed.api.security import is_public
from synapsed.interfaces import RIGHTS
from tests.api.serving import Api, serving
from tests.fakes.control import FakeControl
from tests.parts.web.test_doors import FILLED, PAGE, book_of, code_of
from tests.support.patience import PATIENCE_S

OF_THE_CALLER = {"/openapi.json"}


@pytest.fixture
async def ports(control: FakeControl, tmp_path: Path) -> AsyncGenerator[Api]:
    """The port is that of claude."""
    async with serving(control, tmp_path, streams=0) as api:
        yield api


@pytest.mark.parametrize(
    ("rights", "agents"),
    [(set(RIGHTS), ["codex"]), (set(RIGHTS), ["claude"]), ({"look"}, None), ({"send"}, ["claude"]), ({"type"}, None)],
)
async def test_every_route_of_an_agents_port(ports: Api, rights: set[str], agents: list[str] | None) -> None:
    _, value = await book_of(ports).make_token("ci", frozenset(rights), agents=agents, days=1)  # type: ignore[arg-type]
    headers, wrong = {"Authorization": f"Bearer {value}"}, []
    for route in ports.servers._agents.app.router.routes():
        assert route.resource is not None
        pattern = route.resource.canonical
        for method in ("GET", "POST", "DELETE") if route.method == "*" else (route.method,):
            path = pattern
            for name, filled in FILLED.items():
                path = path.replace(f"{{{name}}}", filled)
            body = {"json": {}} if method == "POST" else {}
            async with ports.agent.request(method, path, headers=headers, **body) as answer:
                turned_away = answer.status in (401, 403)
            needs = needs_of(method, pattern, route.handler, agent_port=True)
            may = needs is not None and bool(needs & rights)
            may = may and (agents is None or "claude" in agents or pattern in OF_THE_CALLER)
            if turned_away is (may or is_public(route.handler)):
                wrong.append((method, pattern, answer.status))
    assert not wrong


async def test_a_cookie_is_for_the_page_of_its_own_port(ports: Api) -> None:
    """An agent's port is another origin, though a browser sends the same cookies there."""
    _, session = await book_of(ports).pair("a browser", frozenset(RIGHTS))
    for name in (f"synapsed-{ports.port}", f"synapsed-{ports.agent_port}"):
        headers = PAGE | {"Cookie": f"{name}={session}", "Origin": ports.url}
        assert (await ports.json(ports.agent, "GET", "/status", headers=headers))[0] == 403
    assert (await ports.json(ports.agent, "POST", "/web/session", json={"code": await code_of(ports)}))[0] == 404


HIDDEN = b"DELETE /control/devices/%s HTTP/1.1\r\nHost: localhost\r\n\r\n"
FORMS = {
    "length and chunked": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked and length": b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 0\r\nContent-Length: 4\r\n\r\n",
    "lengths in one": b"Content-Length: 0, 4\r\n\r\n",
    "a signed length": b"Content-Length: +0\r\n\r\n",
    "a length in hex": b"Content-Length: 0x0\r\n\r\n",
    "chunked, hidden": b"Transfer-Encoding: xchunked\r\n\r\n",
    "chunked twice": b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "chunked is not last": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "a space before the colon": b"Content-Length : 0\r\n\r\n",
    "a folded header": b"X: y\r\n Content-Length: 0\r\n\r\n",
    "a chunk's length with a sign": b"Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n",
    "a chunk's length in words": b"Transfer-Encoding: chunked\r\n\r\n0_0\r\n\r\n",
    "a bare line feed": b"Transfer-Encoding: chunked\r\n\r\n0\n\n",
    "a zero in a name": b"Content\x00-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("form", FORMS)
async def test_nothing_is_hidden_in_a_request(api: Api, form: str) -> None:
    """What is unclear about where a request ends is refused, and what follows on that connection is not read."""
    device, _ = await book_of(api).pair("a browser", frozenset(RIGHTS))
    reader, writer = await asyncio.open_unix_connection(api.path)
    head = b"POST /agents/claude/message HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    writer.write(head + FORMS[form] + HIDDEN % device.id.encode())
    writer.write_eof()
    async with asyncio.timeout(PATIENCE_S):
        said = await reader.read()
    writer.close()
    assert re.match(rb"HTTP/1\.[01] 4", said), said[:200]
    assert len(re.findall(rb"HTTP/1\.[01] ", said)) == 1, said
    assert [one.id for one in book_of(api).devices] == [device.id]
