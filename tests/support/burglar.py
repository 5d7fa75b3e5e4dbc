"""A program of an agent's that tries every way to answer its own agent's prompt. Standard library only.

    python burglar.py AGENT RESULTS

It waits until the agent asks something, tries, and writes what came of it to RESULTS, a JSON array of `{way, outcome}`.
The outcome of an HTTP request is its status and the code of its error, that of a command its exit code.
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

AGENT, RESULTS = sys.argv[1], Path(sys.argv[2])
SOCKET = os.environ["SYNAPSE_CONTROL_SOCKET"]
TOKEN = os.environ["SYNAPSE_AGENT_TOKEN"]
HOME = os.environ["SYNAPSED_HOME"]
CONTROL_TOKEN = (Path(HOME) / "state" / "token").read_text().strip()
PATIENCE_S = 60.0


class Unix(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(SOCKET)


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """The status, and the document."""
    payload = None if body is None else json.dumps(body)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if payload is not None:
        given["Content-Type"] = "application/json"
    try:
        connection.request(method, path, payload, given)
        answer = connection.getresponse()
        raw = answer.read()
    finally:
        connection.close()
    try:
        return answer.status, json.loads(raw)
    except ValueError:
        return answer.status, {}


def waiting() -> dict[str, Any]:
    """The agent's state once it asks something."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        _, state = ask(Unix("localhost"), "GET", f"/agents/{AGENT}/status?detail=1")
        if state.get("activity") == "waiting" and state.get("task") and state.get("prompt"):
            return dict(state)
        time.sleep(0.05)
    raise TimeoutError("the agent asks nothing")


def commands(task: str, key: str) -> Iterator[tuple[str, Any]]:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("SYNAPSE")}
    bare["SYNAPSED_HOME"] = HOME
    for verb in (["approve", AGENT], ["approve", task], ["input", AGENT, key], ["input", task, "--", key]):
        for name, env in (("as itself", dict(os.environ)), ("as a person", bare)):
            command = [sys.executable, "-m", "synapsectl", *verb]
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            yield f"synapsectl {verb[0]} {name}", done.returncode
            orphan = ["setsid", "--fork", "--wait", *command]
            done = subprocess.run(orphan, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            yield f"synapsectl {verb[0]} {name}, in a session of its own", done.returncode


def requests(task: str, key: str) -> Iterator[tuple[str, str, Any]]:
    """Method, path and body of what answers a prompt, on the main listener and the Unix socket."""
    text = {"message": {"parts": [{"type": "text", "text": key}]}, "task_id": task}
    yield "POST", f"/agents/{AGENT}/tasks/{task}/input", {"input": key}
    yield "POST", f"/agents/{AGENT}/tasks/send", text
    yield "POST", f"/agents/{AGENT}/tasks/send-priority?priority=4", text
    yield "POST", f"/agents/{AGENT}/tasks/sendSubscribe", text
    yield "POST", f"/control/tasks/{task}/input", {"input": key}
    yield "POST", f"/control/agents/{AGENT}/input", {"input": key}
    yield "POST", f"/agents/{AGENT}/a2a", rpc(task, key)
    yield "POST", f"/agents/{AGENT}/a2a", rpc_03(task, key)
    yield "POST", f"/agents/{AGENT}/a2a/rest/message:send", rpc(task, key)["params"]


def rpc(task: str, key: str) -> dict[str, Any]:
    message = {"messageId": "m", "role": "ROLE_USER", "taskId": task, "parts": [{"text": key}]}
    return {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}


def rpc_03(task: str, key: str) -> dict[str, Any]:
    message = {"kind": "message", "messageId": "m", "role": "user", "taskId": task}
    message["parts"] = [{"kind": "text", "text": key}]  # type: ignore[assignment]
    return {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}


def outcome(answer: tuple[int, Any]) -> list[Any]:
    status, document = answer
    error = document.get("error") if isinstance(document, dict) else None
    return [status, error.get("code") if isinstance(error, dict) else None]


def tries(state: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    task, key = state["task"], state["prompt"]["options"][0]["key"] if state["prompt"]["options"] else "y"
    listening = ask(Unix("localhost"), "GET", "/control/status")[1]["listen"][0].rpartition(":")
    bearers = {"no token": {}, "its token": {"Authorization": f"Bearer {TOKEN}"}}
    bearers["the control token"] = {"Authorization": f"Bearer {CONTROL_TOKEN}"}
    for name, headers in bearers.items():
        for method, path, body in requests(task, key):
            version = {} if body.get("method") == "message/send" else {"A2A_Version": "1.0"}
            for where, connection in (
                ("socket", Unix("localhost")),
                ("TCP", http.client.HTTPConnection("127.0.0.1", int(listening[2]))),
            ):
                yield (
                    f"{where}, {name}: {method} {path}",
                    outcome(ask(connection, method, path, body, **headers, **version)),
                )
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
        upgrade["Sec_WebSocket_Key"] = "dGhlIHNhbXBsZSBub25jZQ=="
        path = f"/agents/{AGENT}/terminal"
        yield f"socket, {name}: terminal", outcome(ask(Unix("localhost"), "GET", path, **headers, **upgrade))
        tcp = http.client.HTTPConnection("127.0.0.1", int(listening[2]))
        yield f"TCP, {name}: terminal", outcome(ask(tcp, "GET", path, **headers, **upgrade))
    yield from commands(task, key)


def main() -> None:
    results = [{"way": way, "outcome": came} for way, came in tries(waiting())]
    written = RESULTS.with_suffix(".tmp")
    written.write_text(json.dumps(results, indent=1))
    written.replace(RESULTS)


main()
