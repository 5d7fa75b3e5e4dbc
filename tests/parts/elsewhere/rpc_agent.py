"""A JSON-RPC agent of any version, as a test tells it: `methods` answer by their names, and the card is given."""

import contextlib
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.support.listening import listening

__all__ = ["RpcAgent", "rpc_agent"]


@dataclass
class RpcAgent:
    """`calls` are the requests that came, and `seen` their headers and queries; whoever it does not `let_in` gets
    401."""

    card: dict[str, Any]
    methods: dict[str, Callable[[dict[str, Any]], Any]]
    url: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    seen: list[tuple[dict[str, str], dict[str, str]]] = field(default_factory=list)
    let_in: Callable[[web.Request], bool] = lambda request: True

    def count(self, method: str) -> int:
        return sum(1 for name, _ in self.calls if name == method)

    async def serve_card(self, request: web.Request) -> web.Response:
        self.seen.append((dict(request.headers), dict(request.query)))
        return web.json_response({"url": f"{self.url}/", **self.card})

    async def serve(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        self.seen.append((dict(request.headers), dict(request.query)))
        if not self.let_in(request):
            return web.Response(status=401, text=f"not let in: {request.url}")
        method, params = asked["method"], asked.get("params") or {}
        self.calls.append((method, params))
        if (answer := self.methods.get(method)) is None:
            return web.json_response(
                {"id": asked.get("id"), "jsonrpc": "2.0", "error": {"code": -32601, "message": "?"}}
            )
        told = answer(params)
        if isinstance(told, web.Response):
            return told
        if not isinstance(told, list):
            error = isinstance(told, dict) and set(told) == {"code", "message"}
            body = {"error" if error else "result": told}
            return web.json_response({"jsonrpc": "2.0", "id": asked["id"], **body})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for one in told:
            frame = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": one})
            await response.write(f"data: {frame}\r\n\r\n".encode())
        return response


@contextlib.asynccontextmanager
async def rpc_agent(card: dict[str, Any], **methods: Callable[[dict[str, Any]], Any]) -> AsyncGenerator[RpcAgent]:
    """`methods` with `__` in the place of `/`."""
    agent = RpcAgent(card, {name.replace("__", "/"): answer for name, answer in methods.items()})
    app = web.Application()
    for path in ("/.well-known/agent-card.json", "/.well-known/agent.json"):
        app.router.add_get(path, agent.serve_card)
    app.router.add_post("/", agent.serve)
    async with listening(app) as port:
        agent.url = f"http://127.0.0.1:{port}"
        yield agent
