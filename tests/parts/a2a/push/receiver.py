"""A webhook of a test's own on loopback: keeps what it is sent, and answers as it is told."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.support.listening import listening
from tests.support.patience import PATIENCE_S

__all__ = ["Receiver", "receiving", "state_of"]

DEADLINE_S = PATIENCE_S


@dataclass
class Receiver:
    """`answers` is asked for the n-th request (from 0); None is 200."""

    url: str = ""
    answers: Callable[[int], Awaitable[web.StreamResponse] | web.StreamResponse | int | None] = lambda _: None
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    taken: list[dict[str, Any]] = field(default_factory=list)
    """Those that were answered with 200."""
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        number = len(self.bodies)
        body = json.loads(await request.read())
        self.headers.append(dict(request.headers))
        self.bodies.append(body)
        answer = self.answers(number)
        async with self.arrived:
            self.arrived.notify_all()
        if isinstance(answer, Awaitable):
            answer = await answer
        if isinstance(answer, int):
            return web.Response(status=answer)
        if answer is not None:
            return answer
        self.taken.append(body)
        async with self.arrived:
            self.arrived.notify_all()
        return web.Response()

    async def silence(self) -> web.Response:
        """An answer that comes when the test ends."""
        await self.ended.wait()
        return web.Response()

    async def until(self, ready: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S), self.arrived:
            await self.arrived.wait_for(ready)

    @property
    def states(self) -> list[str]:
        """Of the status updates that were taken."""
        return [state_of(body) for body in self.taken if "statusUpdate" in body]


def state_of(body: dict[str, Any]) -> str:
    state: str = (body.get("statusUpdate") or body["task"])["status"]["state"]
    return state.removeprefix("TASK_STATE_")


@asynccontextmanager
async def receiving(port: int = 0) -> AsyncGenerator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.handle)
    async with listening(app, port) as port:
        receiver.url = f"http://127.0.0.1:{port}/hook"
        try:
            yield receiver
        finally:
            receiver.ended.set()
