"""An editor that speaks ACP to `synapsectl acp`: requests by name, updates as they came, permissions as it likes."""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from tests.support.daemon import PATIENCE_S, Daemon

__all__ = ["Editor", "Refused", "answer_in", "editor"]

type Choose = Callable[[dict[str, Any]], str | None]
"""The id of the option that is chosen of a `session/request_permission`; None: it is left open."""


class Refused(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error))
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: dict[str, Any] = error.get("data") or {}


class Editor:
    """`messages` is every line that came, in order."""

    def __init__(self, command: list[str], env: Mapping[str, str], cwd: Path) -> None:
        self.process = subprocess.Popen(
            command, env=dict(env), cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.messages: list[dict[str, Any]] = []
        self.choose: Choose = lambda request: None
        self.on_request: Callable[[dict[str, Any]], None] = lambda message: None
        self.session = ""
        self._number = 0
        self._changed = threading.Condition()
        self._closed = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE_S)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]

    def _read(self) -> None:
        for line in self.process.stdout or ():
            message = json.loads(line)
            with self._changed:
                self.messages.append(message)
                self._changed.notify_all()
            if message.get("method") == "session/request_permission":
                self.on_request(message)
                if key := self.choose(message["params"]):
                    self.select(message, key)
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def raw(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def write(self, message: dict[str, Any]) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def select(self, request: dict[str, Any], key: str | None) -> None:
        outcome = {"outcome": "cancelled"} if key is None else {"outcome": "selected", "optionId": key}
        self.write({"id": request["id"], "result": {"outcome": outcome}})

    def ask(self, method: str, params: dict[str, Any]) -> int:
        self._number += 1
        self.write({"id": self._number, "method": method, "params": params})
        return self._number

    def see[T](self, look: Callable[[list[dict[str, Any]]], T | None], what: str) -> T:
        """The first true value of `look` at all messages."""
        found: T | None = None

        def seen() -> bool:
            nonlocal found
            found = look(self.messages)
            return bool(found) or self._closed

        with self._changed:
            assert self._changed.wait_for(seen, PATIENCE_S * 2), f"never came: {what}; {self.messages[-8:]}"
        assert found, f"it ended before: {what}; {self.messages[-8:]} {self.stderr()}"
        return found

    def stderr(self) -> str:
        self.process.kill()
        return self.process.stderr.read().decode() if self.process.stderr else ""

    def answer(self, id_: int | None) -> dict[str, Any]:
        """The result of request `id_`. Raises Refused."""

        def look(messages: list[dict[str, Any]]) -> dict[str, Any] | None:
            return next((m for m in messages if "method" not in m and m.get("id") == id_), None)

        told = self.see(look, f"the answer to {id_}")
        if "error" in told:
            raise Refused(told["error"])
        result: dict[str, Any] = told["result"]
        return result

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.answer(self.ask(method, params))

    def initialize(self, version: int = 1) -> dict[str, Any]:
        return self.call("initialize", protocolVersion=version, clientCapabilities={})

    def new(self, cwd: Path | str) -> str:
        self.session = self.call("session/new", cwd=str(cwd), mcpServers=[])["sessionId"]
        return self.session

    def prompting(self, *blocks: str | dict[str, Any]) -> int:
        content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        return self.ask("session/prompt", {"sessionId": self.session, "prompt": content})

    def prompt(self, *blocks: str | dict[str, Any]) -> tuple[dict[str, Any], str]:
        """The result of a prompt, and all text of the agent's that came before it."""
        start = len(self.messages)
        id_ = self.prompting(*blocks)
        result = self.answer(id_)
        until = next(n for n, m in enumerate(self.messages) if m.get("id") == id_ and "method" not in m)
        return result, answer_in(self.messages[start:until])

    def updates(self, kind: str | None = None) -> list[dict[str, Any]]:
        found = [m["params"]["update"] for m in self.messages if m.get("method") == "session/update"]
        return [update for update in found if kind is None or update["sessionUpdate"] == kind]

    def requests(self) -> list[dict[str, Any]]:
        return [m for m in self.messages if m.get("method") == "session/request_permission"]

    def withdrawn(self) -> list[str]:
        return [m["params"]["requestId"] for m in self.messages if m.get("method") == "$/cancel_request"]


def answer_in(messages: list[dict[str, Any]]) -> str:
    """All text of the agent's in `messages`, as an editor joins it that knows nothing of messages' ids."""
    updates = [m["params"]["update"] for m in messages if m.get("method") == "session/update"]
    return "".join(u["content"]["text"] for u in updates if u["sessionUpdate"] == "agent_message_chunk")


@contextlib.contextmanager
def editor(daemon: Daemon, *arguments: str, cwd: Path | None = None, greet: bool = True) -> Iterator[Editor]:
    """`synapsectl acp ARGUMENT…` beside `daemon`."""
    command = [sys.executable, "-m", "synapsectl", "acp", *arguments]
    env = {**daemon.env, "PYTHONPATH": str(Path.cwd())}
    with Editor(command, env, cwd or Path.cwd()) as one:
        if greet:
            one.initialize()
        yield one
