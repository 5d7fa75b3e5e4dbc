"""The routes of parts: their modules are loaded beside the event loop; where they are, and how they tell errors."""

import threading
from importlib import import_module

import pytest
from aiohttp import web

from synapsed.api import part_routes
from synapsed.api.context import agent_of
from synapsed.api.problems import refusing_as
from synapsed.errors import InvalidRequest, SynapsedError
from synapsed.kernel import Face, Route, Running
from synapsed.parts.openapi.document import operations
from synapsed.parts.openapi.face import FACE as OPENAPI
from tests.api import serving as served
from tests.api.serving import Api, serving
from tests.fakes.control import FakeControl


def in_words(request: web.Request, error: SynapsedError, status: int) -> web.Response:
    return web.Response(text=f"{error.code} at {request.path}", status=status)


@refusing_as(in_words)
async def greet(request: web.Request) -> web.Response:
    """Writes its answer itself."""
    if request.method == "PUT":
        raise InvalidRequest("nothing is kept here")
    return web.Response(text=f"{request.method}: hello of {agent_of(request).name}")


FACE = Face(
    name="greetings",
    opens="",
    routes=[Route(method="*", path="/greeting", handler="greet", at="agent", needs=frozenset(), described=False)],
    routes_in=__name__,
)


async def test_a_route_at_the_agents(control: FakeControl, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "faces", lambda: (FACE, OPENAPI))
    running = {"greetings": Running()}
    async with serving(control, tmp_path, running=running) as api:
        for client, path in ((api.http, "/agents/claude/greeting"), (api.agent, "/greeting")):
            async with client.delete(path) as answer:
                assert await answer.text() == "DELETE: hello of claude"
            async with client.put(path) as answer:
                assert (answer.status, await answer.text()) == (400, f"INVALID_REQUEST at {path}")
        async with api.http.get("/agents/nobody/greeting") as answer:
            assert (answer.status, await answer.text()) == (404, "UNKNOWN_AGENT at /agents/nobody/greeting")
        _, document = await api.json(api.http, "GET", "/openapi.json")
        assert not [path for path in document["paths"] if "greeting" in path]
        assert not [one for one in operations(api.servers._main.app) if "greeting" in one.path]


async def test_a_module_is_loaded_in_a_thread(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[threading.Thread] = []

    def load(name: str) -> object:
        loaded.append(threading.current_thread())
        return import_module(name)

    monkeypatch.setattr(part_routes, "import_module", load)
    for _ in range(2):
        async with api.http.get("/web/me") as answer:
            assert answer.status == 401
    assert len(loaded) == 1, "once"
    assert loaded[0] is not threading.current_thread()
