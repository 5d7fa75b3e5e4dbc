"""A real daemon of a test's own: started, asked through synapsectl and its sockets, killed, started again."""

import contextlib
import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synapsed.config.paths import Paths
from synapsed.config.sockets import connect
from synapsed.supervisor.environment import agent_token
from tests.support import warm
from tests.support.patience import PATIENCE_S

__all__ = ["ANY_PORTS", "NO_PORTS", "PATIENCE_S", "Answer", "Ctl", "Daemon", "eventually"]

PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.1
"""Between two looks: a tenth of what has been waited, for each look costs the daemon some milliseconds of computing."""

LOG_TOLD = 3000
"""Characters of a daemon's log that a failure shows."""


def eventually[T](look: Callable[[], T | None], what: str, *, patience: float = PATIENCE_S) -> T:
    """The first true value of `look`, asked again and again; an AssertionError that says `what` never came."""
    began = time.monotonic()
    while True:
        value = look()
        if value:
            return value
        waited = time.monotonic() - began
        assert waited < patience, f"never happened: {what}"
        time.sleep(min(max(PAUSE_S, waited / 10), LONGEST_PAUSE_S))


@dataclass(frozen=True, slots=True)
class Ctl:
    """How a synapsectl ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connect(self.sock, str(self._path), PATIENCE_S)


NO_PORTS = '[api]\nlisten = "127.0.0.1:0"\nagent_ports = false\n'
"""Nothing at a port that another daemon of this machine, or another test, may want."""

ANY_PORTS = '[api]\nlisten = "127.0.0.1:0"\n'
"""Agents at ports of their own too: of their profile's range, whichever is free."""


@dataclass
class Daemon:
    """`home` is its SYNAPSED_HOME. `environ` is what programs started through it inherit.

    It need not be started here: the first `ctl("start", …)` starts one too, as it would a person's.
    """

    home: Path
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    config: str = NO_PORTS
    process: subprocess.Popen[bytes] | warm.Forked | None = None
    source: Path | None = None
    """The folder with the package that is run as the daemon; None: that of the tests."""
    python: str = sys.executable
    """The interpreter, and with it what is installed, of a daemon with a `source`."""

    def __post_init__(self) -> None:
        self.config_file.parent.mkdir(parents=True, exist_ok=True)
        self.config_file.write_text(self.config)

    @property
    def config_file(self) -> Path:
        return self.home / "config" / "config.toml"

    @property
    def env(self) -> dict[str, str]:
        # Compiled modules are kept, as an installed package has them: half of a daemon's start otherwise.
        kept_out = ("SYNAPSE", "XDG_", "PYTHONDONTWRITEBYTECODE")
        base = {k: v for k, v in self.environ.items() if not k.startswith(kept_out)}
        return {**base, "SYNAPSED_HOME": str(self.home), "SYNAPSED_A2A_HOME": str(self.home / "a2a")}

    @property
    def socket(self) -> Path:
        return Paths.from_environ(self.env).control_socket

    @property
    def port(self) -> int:
        """Of the main listener."""
        return int(self.get("/control/status").json["listen"][0].rpartition(":")[2])

    # --- life ---

    def start(self, *arguments: str) -> "Daemon":
        """Start it, and wait until it answers; one that does not answer is ended, as no fixture will do that."""
        self.process = self.run(*arguments)
        try:
            self._eventually(self._answers, "the daemon answers")
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        return self

    def run(self, *arguments: str) -> subprocess.Popen[bytes] | warm.Forked:
        """`synapsed run`, which may be refused; it writes to the log."""
        with (self.home / "daemon.log").open("ab") as log, Path(os.devnull).open("rb") as nothing:
            files = [one.fileno() for one in (nothing, log, log)]
            forked = None if self.source else warm.fork(["run", *arguments], self.env, files)
            return forked or subprocess.Popen(
                [self.python, "-m", "synapsed", "run", *arguments],
                env=self.env,
                cwd=self.source,
                stdin=nothing,
                stdout=log,
                stderr=log,
            )

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the daemon ended with {self.process.returncode}"
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.get("/healthz").status == 200
        return False

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def kill9(self) -> None:
        self.signal(signal.SIGKILL)

    def signal(self, number: int) -> int:
        """Send it a signal that ends it; its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def end(self) -> int:
        """Stop it and its agents, also those that it left behind when it was killed; its exit code."""
        started = self.process is not None
        if not started and (self.ctl("shutdown").code == 0 or not any(self.home.glob("state/agents/*"))):
            return 0
        if self.process is None or self.process.poll() not in (None, 0):
            self.start()
        return 0 if self.process.poll() == 0 else self.signal(signal.SIGTERM)

    def log(self) -> str:
        path = self.home / "daemon.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # --- asking ---

    def ctl(self, *arguments: str, stdin: str | None = None, env: Mapping[str, str] | None = None) -> Ctl:
        done = subprocess.run(
            [sys.executable, "-m", "synapsectl", *arguments],
            env={**self.env, **(env or {})},
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=4 * PATIENCE_S,
            check=False,
        )
        return Ctl(done.returncode, done.stdout, done.stderr)

    def spawn(self, *arguments: str) -> subprocess.Popen[str]:
        """A synapsectl that runs beside the test."""
        return subprocess.Popen(
            [sys.executable, "-m", "synapsectl", *arguments],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def request(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        connection = _UnixConnection(self.socket)
        try:
            payload = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
            head = {"Content-Type": "application/json"} if payload is not None else {}
            connection.request(method, path, payload, {**head, **(headers or {})})
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        return self.request("GET", path)

    def post(self, path: str, body: Any) -> Answer:
        return self.request("POST", path, body)

    @contextlib.contextmanager
    def sse(
        self,
        path: str,
        *,
        last_id: int | None = None,
        method: str = "GET",
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """The events of a stream: `id`, `event`, `data`."""
        connection = _UnixConnection(self.socket)
        head = {"Accept": "text/event-stream", **(headers or {})}
        if last_id is not None:
            head["Last-Event-ID"] = str(last_id)
        if body is not None:
            head["Content-Type"] = "application/json"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers=head)
            yield _events(connection.getresponse())
        finally:
            connection.close()

    def agent(self, name: str = "dummy") -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/agents/{name}/status?detail=1").json
        return found

    def start_agent(self, **wanted: Any) -> dict[str, Any]:
        """An agent, `dummy` if nothing else is said, once it is ready."""
        answer = self.post("/control/start", {"profile": "dummy", "cwd": "/", **wanted})
        assert answer.status == 200, answer.json
        return self.ready(answer.json["name"])

    def send(self, text: str, agent: str = "dummy") -> str:
        """The task's id."""
        message = {"role": "user", "parts": [{"type": "text", "text": text}]}
        answer = self.post(f"/agents/{agent}/tasks/send", {"message": message})
        assert answer.status == 200, answer.json
        return str(answer.json["task"]["id"])

    def ended(self, task_id: str) -> dict[str, Any]:
        """The task once it has ended, however it did."""
        return self.task_in(task_id, "completed", "failed", "canceled", "rejected")

    def ready(self, name: str = "dummy", *, patience: float = PATIENCE_S) -> dict[str, Any]:
        """The agent once it is ready."""

        def look() -> dict[str, Any] | None:
            agent = self.agent(name)
            return agent if agent.get("activity") == "ready" else None

        return self._eventually(look, f"{name} is ready", lambda: [self.agent(name)], patience=patience)

    def task(self, task_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/control/tasks/{task_id}").json["task"]
        return found

    def token_of(self, agent_id: str) -> str:
        """What the agent's program has in SYNAPSE_AGENT_TOKEN."""
        state = self.home / "state"
        with contextlib.closing(sqlite3.connect(f"file:{state / 'synapsed.db'}?mode=ro", uri=True)) as database:
            ((data,),) = database.execute("SELECT data FROM agents WHERE id = ?", (agent_id,)).fetchall()
        return agent_token((state / "token").read_text().strip(), agent_id, json.loads(data)["generation"])

    def task_in(self, task_id: str, *states: str, patience: float = PATIENCE_S) -> dict[str, Any]:
        """The task once it is in one of `states`."""

        def look() -> dict[str, Any] | None:
            task = self.task(task_id)
            return task if task["status"] in states else None

        def found() -> list[dict[str, Any]]:
            task = self.task(task_id)
            return [task, self.agent(task["agent_id"])]

        return self._eventually(look, f"task {task_id} is {states}", found, patience=patience)

    def _eventually[T](
        self,
        look: Callable[[], T | None],
        what: str,
        found: Callable[[], list[dict[str, Any]]] = list,
        *,
        patience: float = PATIENCE_S,
    ) -> T:
        """`eventually`; where it never happens, what is `found` instead is told, and the end of the log."""
        try:
            return eventually(look, what, patience=patience)
        except AssertionError as never:
            shown = [json.dumps(one, indent=1) for one in found()]
            raise AssertionError(
                "\n".join([str(never), *shown, f"the end of its log: {self.log()[-LOG_TOLD:]}"])
            ) from None


def _events(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    event: dict[str, Any] = {}
    for raw in response:
        line = raw.decode().rstrip("\r\n")
        if not line:
            yield from _single(event)
            event = {}
        elif not line.startswith(":"):
            key, _, value = line.partition(": ")
            event[key] = int(value) if key == "id" else json.loads(value) if key == "data" else value


def _single(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The event, or those that were sent together in it."""
    if event.get("event") == "batchEvents":
        for one in event["data"]["data"]:
            yield {"id": one["id"], "event": one["event"], "data": one}
    elif event:
        yield event
