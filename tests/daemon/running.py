"""A real daemon in a home of its own, as a child process; and the plainest of clients."""

import asyncio
import http.client
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from synapsed.paths import Paths

__all__ = ["DEADLINE", "Home", "eventually"]

DEADLINE = 60.0
"""Seconds for anything that takes a tenth of one; the machine may be busy."""


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=DEADLINE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(DEADLINE)
        self.sock.connect(str(self._path))


class Home:
    def __init__(self, root: Path, config: str = "") -> None:
        self.root = root
        (root / "config").mkdir()
        (root / "config" / "config.toml").write_text(f'[api]\nlisten = "127.0.0.1:0"\n{config}')
        self.environ = {
            **{key: value for key, value in os.environ.items() if not key.startswith("SYNAPSE")},
            "SYNAPSED_HOME": str(root),
            "SYNAPSED_A2A_HOME": str(root / "a2a"),
            "PYTHONDEVMODE": "0",
        }
        self.log = root / "daemon.log"
        self.processes: list[asyncio.subprocess.Process] = []

    @property
    def socket(self) -> Path:
        """The control socket, wherever a long path puts it."""
        return Paths.from_environ(self.environ).control_socket

    @property
    def process(self) -> asyncio.subprocess.Process:
        return self.processes[-1]

    async def spawn(self, *args: str) -> asyncio.subprocess.Process:
        with self.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "synapsed", *args, env=self.environ, stdout=log, stderr=log
            )
        self.processes.append(process)
        return process

    async def up(self, *args: str) -> None:
        """A daemon that answers."""
        process = await self.spawn("run", *args)

        def answers() -> bool:
            assert process.returncode is None, self.log.read_text()
            try:
                return self.get("/healthz")["status"] == "ok"
            except OSError:
                return False

        await eventually(answers, "the daemon answers")

    async def ended(self) -> int:
        return await asyncio.wait_for(self.process.wait(), DEADLINE)

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()

    async def down(self) -> None:
        """Whatever the test left: agents end with the daemon."""
        if not self.processes:
            return
        if self.process.returncode is not None:
            await self.up()
        self.process.send_signal(signal.SIGTERM)
        await self.ended()

    def get(self, path: str) -> Any:
        return self.request("GET", path)

    def post(self, path: str, body: Any = None) -> Any:
        return self.request("POST", path, {} if body is None else body)

    def request(self, method: str, path: str, body: Any = None) -> Any:
        connection = _Unix(self.socket)
        try:
            headers = {} if body is None else {"Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def agent(self, name: str = "dummy") -> dict[str, Any]:
        return next(agent for agent in self.get("/agents") if agent["name"] == name)

    async def start(self, **body: Any) -> dict[str, Any]:
        answer = await asyncio.to_thread(self.post, "/control/start", {"profile": "dummy", "cwd": "/", **body})
        assert "error" not in answer, answer
        await eventually(lambda: self.agent(answer["name"])["activity"] == "ready", "the agent is ready")
        return answer

    def send(self, text: str, agent: str = "dummy") -> str:
        message = {"role": "user", "parts": [{"type": "text", "text": text}]}
        answer = self.post(f"/agents/{agent}/tasks/send", {"message": message})
        return answer["task"]["id"]

    def task(self, task_id: str) -> dict[str, Any]:
        return self.get(f"/control/tasks/{task_id}")["task"]

    async def settled(self, task_id: str) -> dict[str, Any]:
        done = ("completed", "failed", "canceled", "rejected")
        await eventually(lambda: self.task(task_id)["status"] in done, f"task {task_id} ends")
        return self.task(task_id)


async def eventually(condition: Callable[[], Any], what: str) -> None:
    """Wait for what another process does; there is no event of ours to wait for."""
    deadline = time.monotonic() + DEADLINE
    while not await asyncio.to_thread(condition):
        assert time.monotonic() < deadline, f"it never happened that {what}"
        await asyncio.sleep(0.02)
