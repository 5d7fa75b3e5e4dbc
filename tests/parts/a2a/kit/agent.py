"""A scripted agent for A2A's compatibility kits, whose scenarios are told apart by the id of the message.

    python -S -E -I tests/parts/a2a/kit/agent.py

A terminal program like any other: what is typed into it is the message's text, which does not have the id. So it asks
the daemon which task it is working on, as every agent may, with the token of its environment. What is no text it hands
over (`POST …/tasks/{id}/artifacts`).
"""

import base64
import http.client
import json
import os
import select
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "examples"))

from dummy_agent import Ended, Terminal

PROMPT = "kit> "
LOOK_S = 0.25
PATIENCE_S = 60.0
LONG_S = 6.0
"""How long the scenario of resubscription works."""


class GaveUp(Exception):
    """Somebody else waits, and nobody answers."""


class Daemon:
    """The control socket, with this agent's rights."""

    def __init__(self) -> None:
        self._socket = os.environ["SYNAPSE_CONTROL_SOCKET"]
        self._agent = f"/agents/{os.environ['SYNAPSE_AGENT_ID']}"
        self._token = os.environ["SYNAPSE_AGENT_TOKEN"]

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection("localhost", timeout=PATIENCE_S)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(PATIENCE_S)
        connection.sock.connect(self._socket)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        payload = None if body is None else json.dumps(body)
        connection.request(method, self._agent + path, payload, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {answer.status} {text}")
        return json.loads(text)

    def current(self) -> dict[str, Any] | None:
        """The task that this agent works on; None when a person typed."""
        found = self.ask("GET", "/tasks?status=working,input_required&limit=1")
        return found[0] if found else None

    def others_wait(self) -> bool:
        return bool(self.ask("GET", "/tasks?status=submitted&limit=1"))

    def hand_over(self, task: dict[str, Any], part: dict[str, Any], **options: Any) -> None:
        self.ask("POST", f"/tasks/{task['id']}/artifacts", {"parts": [part], **options})


class KitTerminal(Terminal):
    """While it asks, it looks whether another message waits: a kit leaves questions open behind it."""

    def __init__(self, daemon: Daemon) -> None:
        super().__init__()
        self._daemon = daemon
        self.asking = False

    def _fill(self) -> None:
        while self.asking and not select.select([0], [], [], LOOK_S)[0]:
            if self._daemon.others_wait():
                raise GaveUp
        super()._fill()


class Kit:
    def __init__(self) -> None:
        self.daemon = Daemon()
        self.terminal = KitTerminal(self.daemon)
        self.questions = 0

    def run(self) -> None:
        with self.terminal:
            self.terminal.write("kit agent; Ctrl-D ends it\n")
            while True:
                try:
                    if self.terminal.read(PROMPT).strip():
                        self.turn()
                except KeyboardInterrupt:
                    self.terminal.asking = False
                    self.terminal.write("\n[interrupted]\n")
                except Ended:
                    return

    def turn(self) -> None:
        task = self.daemon.current()
        if task is None:
            self.say("nothing of mine")
        else:
            self.play(task, task["message"]["message_id"])

    def play(self, task: dict[str, Any], message_id: str) -> None:
        act = next(act for prefix, act in SCENARIOS if message_id.startswith(prefix))
        act(self, task)

    def say(self, text: str) -> None:
        self.terminal.write(text + "\n")

    def work(self, task: dict[str, Any]) -> None:
        time.sleep(LONG_S)
        self.say("Resubscribed")

    def ask_on(self, task: dict[str, Any]) -> None:
        """Ask, and play the scenario of the message that answers."""
        self.questions += 1
        self.terminal.asking = True
        try:
            self.terminal.read(f"? What next, question {self.questions}> ")
        except GaveUp:
            self.say("\nGoing on without an answer")
            return
        finally:
            self.terminal.asking = False
        self.say("Thank you")
        self.play(task, self.answer_to(task))

    def answer_to(self, task: dict[str, Any]) -> str:
        """The id of the message that was just typed, which the daemon records once it has typed it."""
        known = len(task["exchange"])
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            now = self.daemon.ask("GET", f"/tasks/{task['id']}")
            if len(now["exchange"]) > known:
                task.update(now)
                return str(now["exchange"][-1]["message_id"])
            time.sleep(0.02)
        return ""


type Act = Callable[[Kit, dict[str, Any]], None]


def saying(text: str) -> Act:
    return lambda kit, task: kit.say(text)


def making(*parts: dict[str, Any], name: str = "output") -> Act:
    """Hand `parts` over, as the chunks of one artifact."""

    def act(kit: Kit, task: dict[str, Any]) -> None:
        for number, part in enumerate(parts, 1):
            last = number == len(parts)
            kit.daemon.hand_over(task, part, artifact_id="made", name=name, append=number > 1, last_chunk=last)
        kit.say("Done")

    return act


FILE = {"type": "file", "file": {"name": "output.txt", "mimeType": "text/plain"}}
BYTES = {**FILE, "file": {**FILE["file"], "bytes": base64.b64encode(b"Generated file content").decode()}}
ADDRESS = {**FILE, "file": {**FILE["file"], "uri": "https://example.com/output.txt"}}
CHUNKS = ({"type": "text", "text": "chunk-1 "}, {"type": "text", "text": "chunk-2"})

SCENARIOS: tuple[tuple[str, Act], ...] = (
    ("tck-artifact-text", saying("Generated text content")),
    ("tck-artifact-file-url", making(ADDRESS)),
    ("tck-artifact-file", making(BYTES)),
    ("tck-artifact-data", making({"type": "data", "data": {"key": "value", "count": 42}})),
    ("tck-message-response", saying("Direct message response")),
    ("tck-input-required", Kit.ask_on),
    ("tck-reject-task", saying("!! rejected")),
    ("tck-stream-001", saying("Stream hello from TCK")),
    ("tck-stream-003", saying("Stream task lifecycle")),
    ("tck-stream-ordering-001", saying("Ordered output")),
    ("tck-stream-artifact-text", saying("Streamed text content")),
    ("tck-stream-artifact-file", making(BYTES)),
    ("tck-stream-artifact-chunked", making(*CHUNKS)),
    ("test-resubscribe-message-id", Kit.work),
    ("tck-", saying("Hello from TCK")),
    ("", Kit.ask_on),  # the kit of 0.3, which goes on with every task or cancels it
)
"""By the beginning of the message's id; the first that fits."""

if __name__ == "__main__":
    Kit().run()
