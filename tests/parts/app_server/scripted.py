"""A server that speaks as the real one was recorded to, and what the tests of the app-server adapter do with it."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiohttp import web

from synapsed.interfaces import Submitted
from synapsed.model.facts import PromptAccepted
from synapsed.parts.app_server.channel import AppServerChannel
from tests.channels.conftest import Launch
from tests.parts.session_server.test_channel import DEADLINE, Facts

THREAD = "thread-1"


class AppServer:
    """One thread on a Unix socket, and its turns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.answers: list[dict[str, Any]] = []
        self.turns: list[dict[str, Any]] = []
        self.threads: dict[str, dict[str, Any]] = {THREAD: {"id": THREAD, "createdAt": 1, "ephemeral": False}}
        self.status = "idle"
        self.refuses: dict[str, str] = {}
        self.odd: dict[str, Any] = {}
        """Results of another shape, by method."""
        self.begins_in: str | None = None
        self.deaf = False
        self.resumable = True
        self.rests_after_resume = False
        self.speaks_first = ""
        """What it says before its first answer over a connection."""
        self._sockets: list[web.WebSocketResponse] = []

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        await web.UnixSite(self._runner, str(self.path)).start()

    async def stop(self) -> None:
        for socket in self._sockets:
            await socket.close()
        await self._runner.cleanup()

    async def tell(self, method: str, **params: Any) -> None:
        for socket in self._sockets:
            await socket.send_str(json.dumps({"method": method, "params": {"threadId": THREAD, **params}}))

    async def ask(self, id_: int, method: str, **params: Any) -> None:
        told = {"id": id_, "method": method, "params": {"threadId": THREAD, **params}}
        for socket in self._sockets:
            await socket.send_str(json.dumps(told))

    async def item(self, item: dict[str, Any], turn: str = "turn-1", *, started: bool = False) -> None:
        await self.tell("item/started" if started else "item/completed", item=item, turnId=turn)

    async def says(self, text: str, id_: str, turn: str = "turn-1") -> None:
        await self.item({"type": "agentMessage", "id": id_, "text": text}, turn)

    async def ends(self, status: str = "completed", turn: str = "turn-1", **more: Any) -> None:
        self.status = "idle"
        await self.tell("thread/status/changed", status={"type": "idle"})
        await self.tell("turn/completed", turn={"id": turn, "status": status, "itemsView": "notLoaded", **more})

    def called(self, method: str) -> list[dict[str, Any]]:
        return [params for name, params in self.calls if name == method]

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self._sockets.append(socket)
        async for message in socket:
            told = json.loads(message.data)
            if self.speaks_first and told.get("method") == "initialize":
                await socket.send_str(self.speaks_first)
            if "method" not in told:
                self.answers.append(told)
            elif "id" in told:
                self.calls.append((told["method"], told["params"]))
                if not self.deaf:
                    await self._answer(socket, told)
        self._sockets.remove(socket)
        return socket

    async def _answer(self, socket: web.WebSocketResponse, told: dict[str, Any]) -> None:
        method, params = told["method"], told["params"]
        if (why := self.refuses.get(method)) or (method == "thread/resume" and not self.resumable):
            error = {"code": -32600, "message": why or "no rollout found"}
            await socket.send_str(json.dumps({"id": told["id"], "error": error}))
            return
        results: dict[str, Callable[[], Any]] = {
            "thread/loaded/list": lambda: {"data": list(self.threads)},
            "thread/read": lambda: {"thread": {**self.threads[params["threadId"]], "status": {"type": self.status}}},
            "thread/resume": lambda: {"thread": {"id": params["threadId"], "status": {"type": self.status}}},
            "thread/turns/list": lambda: {"data": list(reversed(self.turns))[: params["limit"]], "nextCursor": None},
            "turn/start": lambda: {"turn": {"id": self.begins_in or "turn-1", "status": "inProgress"}},
        }
        result = self.odd.get(method) or results.get(method, dict)()
        await socket.send_str(json.dumps({"id": told["id"], "result": result}))
        if method == "thread/resume" and self.rests_after_resume:
            await self.tell("thread/status/changed", status={"type": "idle"})


def made(launch: Launch) -> AppServerChannel:
    context = replace(launch.context, companion=True)
    context.launch_dir.mkdir(parents=True, exist_ok=True)
    return AppServerChannel(name="server", channel=launch.profile.channels["server"], context=context)


async def reached(channel: AppServerChannel, *words: str) -> None:
    changed = asyncio.Event()
    channel.watch(changed.set)
    async with asyncio.timeout(DEADLINE):
        while channel.reach() not in words:
            changed.clear()
            await changed.wait()


async def until(found: Callable[[], Any]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not found():
            await asyncio.sleep(0)


async def begun(it: AppServerChannel, server: AppServer, facts: Facts, text: str = "do it") -> str:
    key = it.key("task-1", 0)
    assert await it.submit(key, text) == Submitted(turn="turn-1")
    server.status = "active"
    await server.tell("thread/status/changed", status={"type": "active"})
    await server.tell("turn/started", turn={"id": "turn-1"})
    content = [{"type": "text", "text": text}]
    await server.item({"type": "userMessage", "id": "u1", "clientId": key, "content": content})
    await facts.until(PromptAccepted)
    return key
