"""Fault 18: JSON that is dear to read, through every door: refused as each dialect refuses, and nobody waits for it."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import WSCloseCode, WSMsgType

from synapsed.api.context import RequestLimits
from tests.faults.house import House
from tests.faults.test_readers import MB, SPARE, STANDS_S, watched
from tests.support.daemon import NO_PORTS, PATIENCE_S

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

TEXTS = {
    "500,000 keys": "{" + ",".join(f'"{number}":1' for number in range(500_000)) + "}",
    "a million arrays": "[" + ",".join(["[]"] * 1_000_000) + "]",
    "a key of 9 MB": '{"' + "k" * (9 * MB) + '":1}',
    "100,000 levels": "[" * 100_000 + "]" * 100_000,
    "a million digits": "9" * 1_000_000,
}
MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
OLD = {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
HERE = {"here": "DEAR"}
"""What a text is put in place of."""


def rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


DOORS: dict[str, tuple[str, dict[str, Any], str]] = {
    "seeds": (
        "/agents/{agent}/tasks/send",
        {"message": {"role": "user", "parts": [{"type": "text", "text": "hi"}]}, "metadata": HERE},
        "",
    ),
    "control": ("/control/start", {"profile": "flooder", "cwd": "/", "env": HERE}, ""),
    "report": ("/agents/{agent}/events", {"type": "agentTransition", "data": HERE}, ""),
    "1.0": ("/agents/{agent}/a2a", rpc("SendMessage", {"message": MESSAGE | {"metadata": HERE}}), "1.0"),
    "0.3": ("/agents/{agent}/a2a", rpc("message/send", {"message": OLD | {"metadata": HERE}}), "0.3"),
    "rest": ("/agents/{agent}/a2a/rest/message:send", {"message": MESSAGE | {"metadata": HERE}}, "1.0"),
    "push": (
        "/agents/{agent}/a2a",
        rpc("CreateTaskPushNotificationConfig", {"taskId": "t", "url": "https://example.org", "metadata": HERE}),
        "1.0",
    ),
    "0.3 push": (
        "/agents/{agent}/a2a",
        rpc(
            "tasks/pushNotificationConfig/set",
            {"taskId": "t", "pushNotificationConfig": {"url": "https://example.org"}, "metadata": HERE},
        ),
        "0.3",
    ),
}
FRAMES = TEXTS | {
    "90,000 keys": "{" + ",".join(f'"{number}":1' for number in range(90_000)) + "}",
    "300,000 arrays": "[" + ",".join(["[]"] * 300_000) + "]",
}


@pytest.mark.parametrize("door", DOORS)
def test_dear_json_is_refused_and_nobody_waits(house: Callable[..., House], door: str):
    home = house("18", f"JSON that is dear to read ({door})", config=NO_PORTS)
    daemon = home.daemon.start()
    (agent,) = home.start_agents(1)
    path, body, version = DOORS[door]
    around = json.dumps(body)
    headers = {"A2A-Version": version} if version else {}
    for name, text in TEXTS.items():
        payload = around.replace(json.dumps(HERE), text).encode()
        with watched(daemon) as watch:
            answer = daemon.request("POST", path.format(agent=agent), payload, headers)
        home.fault()
        home.row.figures[name] = f"{answer.status}, {watch.grew / MB:.0f} MB, {watch.lag * 1000:.0f} ms"
        told = answer.json["error"]
        if "jsonrpc" in body:
            assert answer.status == 200
            assert told["code"] in (-32700, -32600, -32602), (name, told)
        elif door == "rest":
            assert answer.status == told["code"] == 400, (name, told)
        else:
            assert (answer.status, told["code"]) == (400, "INVALID_REQUEST"), (name, told)
        assert len(answer.body) < 16_384, "what is wrong is not given back whole"
        assert watch.grew <= 2 * len(payload) + SPARE, home.row.figures
        assert watch.lag <= STANDS_S, home.row.figures
    assert [task["id"] for task in daemon.get("/control/tasks").json] == [], "nothing was done"


async def test_dear_frames_are_refused_and_nobody_waits(house: Callable[..., House]):
    """One that is larger than a frame may be ends its own connection, as soon as its size is told."""
    home = house("18", "JSON that is dear to read (frames)", config=NO_PORTS)
    daemon = home.daemon.start()
    (agent,) = home.start_agents(1)
    largest = RequestLimits().ws_message
    for name, text in FRAMES.items():
        frame = json.dumps({"type": "resize", "cols": 80, "rows": 24, "more": HERE}).replace(json.dumps(HERE), text)
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(daemon.socket))) as client:
            with watched(daemon) as watch:
                async with client.ws_connect(f"http://localhost/agents/{agent}/terminal") as socket:
                    with contextlib.suppress(ConnectionError):  # it is refused before it is read
                        await socket.send_str(frame)
                    told = await _text(socket)
                    if len(frame) > largest:
                        assert told is None, name
                        assert socket.close_code in (WSCloseCode.MESSAGE_TOO_BIG, WSCloseCode.ABNORMAL_CLOSURE), name
                    else:
                        assert told is not None
                        assert len(told) < 16_384, "what is wrong is not given back whole"
                        assert json.loads(told)["error"]["code"] == "INVALID_REQUEST", name
                        await socket.send_str('{"type": "detach"}')
                        assert await _text(socket) is None
        home.fault()
        home.row.figures[name] = f"{watch.grew / MB:.0f} MB, {watch.lag * 1000:.0f} ms"
        assert watch.grew <= 2 * len(frame) + SPARE, home.row.figures
        assert watch.lag <= STANDS_S, home.row.figures


async def _text(socket: aiohttp.ClientWebSocketResponse) -> str | None:
    """The next text; None where the connection ends before one."""
    while True:
        message = await socket.receive(timeout=PATIENCE_S)
        if message.type is WSMsgType.TEXT:
            return str(message.data)
        if message.type is not WSMsgType.BINARY:
            return None


def test_dear_calls_of_a_tool_are_refused_and_nobody_waits(house: Callable[..., House]):
    """The tools' server is a process of the program's: it goes on, and the daemon never sees what it refuses."""
    home = house("18", "JSON that is dear to read (MCP)", config=NO_PORTS)
    daemon = home.daemon.start()
    home.start_agents(1)
    server = subprocess.Popen(
        [sys.executable, "-m", "synapsectl", "mcp"],
        env=daemon.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    _say(server, json.dumps(rpc("initialize", info)))
    assert "result" in _answer(server, 1)
    _say(server, json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    number = 1
    for name, text in TEXTS.items():
        arguments = {"name": "report_event", "arguments": {"type": "agentTransition", "data": HERE}}
        with watched(daemon) as watch:
            _say(server, json.dumps(rpc("tools/call", arguments) | {"id": number + 1}).replace(json.dumps(HERE), text))
            number += 2
            _say(server, json.dumps(rpc("tools/list", {}) | {"id": number}))
            assert "result" in _answer(server, number), "it goes on"
        home.fault()
        home.row.figures[name] = f"{watch.grew / MB:.0f} MB, {watch.lag * 1000:.0f} ms"
        assert watch.grew <= 2 * len(text) + SPARE, home.row.figures
        assert watch.lag <= STANDS_S, home.row.figures
    server.communicate(timeout=PATIENCE_S)
    assert server.returncode == 0
    with daemon.sse("/events?stream=sse&after=0&until=newest&types=agentTransition") as events:
        assert list(events) == [], "nothing was reported"


def _say(server: "subprocess.Popen[str]", line: str) -> None:
    assert server.stdin is not None
    server.stdin.write(line + "\n")
    server.stdin.flush()


def _answer(server: "subprocess.Popen[str]", number: int) -> dict[str, Any]:
    assert server.stdout is not None
    for line in server.stdout:
        told: dict[str, Any] = json.loads(line)
        if told.get("id") == number:
            return told
    raise AssertionError("it has ended")
