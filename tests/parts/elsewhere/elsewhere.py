"""An agent elsewhere, for tests of what is sent there: a card that says what the test wants, before a served API."""

import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.support.listening import listening

__all__ = ["Elsewhere", "card_03", "card_10", "elsewhere"]


@dataclass
class Elsewhere:
    """`card` may be changed; `seen` are the headers of the requests for it."""

    url: str = ""
    card: dict[str, Any] | bytes = field(default_factory=dict)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    seen: list[dict[str, str]] = field(default_factory=list)

    async def serve(self, request: web.Request) -> web.Response:
        self.seen.append(dict(request.headers))
        body = self.card if isinstance(self.card, bytes) else json.dumps(self.card).encode()
        return web.Response(body=body, status=self.status, content_type="application/json", headers=self.headers)


@contextlib.asynccontextmanager
async def elsewhere(card: dict[str, Any] | bytes) -> AsyncGenerator[Elsewhere]:
    place = Elsewhere(card=card)
    app = web.Application()
    app.router.add_get("/.well-known/agent-card.json", place.serve)
    async with listening(app) as port:
        place.url = f"http://127.0.0.1:{port}"
        yield place


def card_10(endpoint: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": "far",
        "description": "An agent elsewhere",
        "version": "1",
        "supportedInterfaces": [{"url": endpoint, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "chat", "name": "Chat", "description": "Chats", "tags": ["chat"]}],
        **changes,
    }


def card_03(endpoint: str, **changes: Any) -> dict[str, Any]:
    card = card_10(endpoint, protocolVersion="0.3.0", preferredTransport="JSONRPC", url=endpoint)
    del card["supportedInterfaces"]
    return {**card, **changes}
