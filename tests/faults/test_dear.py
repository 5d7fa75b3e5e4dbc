"""Fault 18: JSON that is dear to read, through every door: refused as each dialect refuses, and nobody waits for it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.house import House
from tests.faults.test_readers import MB, SPARE, STANDS_S, watched
from tests.support.daemon import NO_PORTS

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
