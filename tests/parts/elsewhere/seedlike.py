"""An agent elsewhere that speaks as synapse-a2a does, and no A2A: `bare` has what every such agent has, `documents`
what the seed documents ask for, `real` the shapes of synapse-a2a 0.35.0."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from aiohttp import web

from tests.support.listening import listening

__all__ = ["KINDS", "Seedlike", "seedlike"]

KINDS = ("bare", "documents", "real")


@dataclass
class Seedlike:
    """`answer` is what a new task becomes at once; None leaves it working. `seen` are the requests, `bodies` what was
    posted to send something."""

    kind: str
    url: str = ""
    answer: dict[str, Any] | None = field(default_factory=lambda: {"status": "completed"})
    card: dict[str, Any] | None = None
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    refuse: list[web.Response] = field(default_factory=list)
    """Answers to the next sends."""
    cut: bool = False
    """A send is taken, and its connection is cut instead of an answer."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    over: bool = False

    def become(self, task_id: str, **changes: Any) -> None:
        self.tasks[task_id].update(changes)
        self.changed.set()
        self.changed = asyncio.Event()

    def output(self, text: str) -> dict[str, Any]:
        """An artifact in its words."""
        if self.kind == "real":
            return {"type": "text", "data": {"content": text}}
        return {"type": "text", "name": "output", "parts": [{"type": "text", "text": text}]}

    def make(self, body: dict[str, Any]) -> dict[str, Any]:
        text = body["message"]["parts"][0]["text"]
        self.bodies.append(body)
        metadata = {**body.get("metadata", {}), **({"_context_start": 8} if self.kind == "real" else {})}
        task = {
            "id": str(uuid4()),
            "status": "working",
            "message": {key: body["message"][key] for key in ("role", "parts")},
            "artifacts": [],
            "metadata": metadata,
        }
        self.tasks[task["id"]] = task
        if self.answer is not None:
            task.update({"artifacts": [self.output(f"echo: {text}")], **self.answer})
        return task

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._note])
        app.on_shutdown.append(self._end)
        app.router.add_post("/tasks/send", self._send)
        app.router.add_get("/tasks/{id}", self._get)
        if self.kind != "bare":
            app.router.add_get("/.well-known/agent.json", self._card)
            app.router.add_get("/tasks", self._list)
            app.router.add_post("/tasks/send-priority", self._send)
            app.router.add_post("/tasks/{id}/cancel", self._cancel)
            app.router.add_get("/tasks/{id}/subscribe", self._subscribe)
        if self.kind == "documents":
            app.router.add_post("/tasks/sendSubscribe", self._send_subscribe)
            app.router.add_post("/tasks/{id}/input", self._input)
        if self.kind == "real":
            app.router.add_post("/tasks/{id}/permission/{verb}", self._permission)
        return app

    async def _end(self, app: web.Application) -> None:
        """No stream goes on."""
        self.over = True
        self.changed.set()

    @web.middleware
    async def _note(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.seen.append(f"{request.method} {request.path_qs}")
        self.headers.append(dict(request.headers))
        response: web.StreamResponse = await handler(request)
        return response

    async def _card(self, request: web.Request) -> web.Response:
        return web.json_response(self.card)

    async def _taken(self, request: web.Request) -> dict[str, Any] | web.Response:
        body = await request.json()
        if not isinstance(body.get("message"), dict):
            return web.json_response({"detail": "message: Field required"}, status=422)
        if self.refuse:
            return self.refuse.pop(0)
        task = self.make(body)
        if self.cut:
            assert request.transport is not None
            request.transport.abort()
        return task

    async def _send(self, request: web.Request) -> web.Response:
        taken = await self._taken(request)
        return taken if isinstance(taken, web.Response) else web.json_response({"task": taken})

    async def _send_subscribe(self, request: web.Request) -> web.StreamResponse:
        taken = await self._taken(request)
        return taken if isinstance(taken, web.Response) else await self._tell(request, taken["id"])

    async def _get(self, request: web.Request) -> web.Response:
        task = self.tasks.get(request.match_info["id"])
        if task is None:
            return web.json_response({"detail": "Task not found"}, status=404)
        return web.json_response(task)

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response(list(self.tasks.values()))

    async def _cancel(self, request: web.Request) -> web.Response:
        if self.tasks[request.match_info["id"]]["status"] != "working":
            return web.json_response({"detail": "Cannot cancel"}, status=400)
        self.become(request.match_info["id"], status="canceled")
        return web.json_response({"status": "canceled"})

    async def _input(self, request: web.Request) -> web.Response:
        said = (await request.json())["input"]
        self.become(request.match_info["id"], status="completed", artifacts=[self.output(f"you said {said}")])
        return web.json_response({"status": "input_provided"})

    async def _permission(self, request: web.Request) -> web.Response:
        said = request.match_info["verb"]
        self.become(request.match_info["id"], status="completed", artifacts=[self.output(f"you said {said}")])
        return web.json_response({"status": said})

    async def _subscribe(self, request: web.Request) -> web.StreamResponse:
        if request.match_info["id"] not in self.tasks:
            return web.json_response({"detail": "Task not found"}, status=404)
        return await self._tell(request, request.match_info["id"])

    async def _tell(self, request: web.Request, task_id: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        task, told = self.tasks[task_id], ""
        while not self.over:
            changed = self.changed
            if self.kind == "real":
                await self._event(response, "", {"type": "output", "data": "what is on the screen"})
                await self._event(response, "", {"type": "status", "status": task["status"]})
            else:
                await self._event(response, "status", {"taskId": task_id, "state": task["status"]})
                said = task.get("said", "")
                if said != told:
                    piece = {"taskId": task_id, "artifact": self.output(said[len(told) :]), "append": True}
                    await self._event(response, "artifact", piece)
                    told = said
            if task["status"] in ("completed", "failed", "canceled", "input_required"):
                if self.kind == "real":
                    done = {"type": "done", "status": task["status"], "artifacts": task["artifacts"]}
                    await self._event(response, "", done)
                return response
            await changed.wait()
        return response

    @staticmethod
    async def _event(response: web.StreamResponse, name: str, data: dict[str, Any]) -> None:
        head = f"event: {name}\n" if name else ""
        await response.write(f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode())


@contextlib.asynccontextmanager
async def seedlike(kind: str) -> AsyncGenerator[Seedlike]:
    place = Seedlike(kind)
    async with listening(place.app()) as port:
        place.url = f"http://127.0.0.1:{port}"
        place.card = {
            "name": "Synapse Dummy",
            "description": "PTY-wrapped dummy CLI agent",
            "url": f"http://localhost:{port}",
            "version": "0.35.0",
            "capabilities": {"streaming": True, "pushNotifications": False, "multiTurn": True},
            "skills": [{"id": "chat", "name": "Chat", "description": "Send messages"}],
            "extensions": {"synapse": {"agent_id": "synapse-dummy-8190"}},
        }
        yield place
