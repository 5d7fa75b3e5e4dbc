"""Calls over JSON-RPC, and what every answer must be like."""

import json

from synapsed.model.task import Prompt
from tests.api.serving import Api, sse_events

V1 = {"A2A-Version": "1.0"}
PROMPT = Prompt(prompt_id="p1", type="permission", prompt="Run ls?")
AGENT = "synapse-claude-8100"
MESSAGE = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
NOW = {"returnImmediately": True}


async def post(api: Api, body, headers=V1, path="/a2a") -> dict:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with api.agent.post(path, data=raw, headers={"Content-Type": "application/json", **headers}) as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "application/json"
        return await response.json()


async def call(api: Api, method: str, **params) -> dict:
    answer = await post(api, {"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", 7)
    return answer


async def result(api: Api, method: str, **params) -> dict:
    return (await call(api, method, **params))["result"]


async def error(api: Api, method: str, **params) -> dict:
    answer = (await call(api, method, **params))["error"]
    check_error(answer)
    return answer


def check_error(answer: dict) -> None:
    info = answer["data"][0]
    assert set(answer) == {"code", "message", "data"}
    assert info["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    assert info["reason"]
    assert all(isinstance(value, str) for value in info["metadata"].values())


async def stream(api: Api, method: str, **params):
    """The stream's results; a plain JSON answer's error."""
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    async with api.agent.post("/a2a", json=body, headers=V1) as response:
        if response.content_type == "application/json":
            return (await response.json())["error"]
        assert response.headers["Content-Type"].startswith("text/event-stream")
        events = await sse_events(response)
    assert all(set(event) == {"data"} for event in events)
    return [json.loads(event["data"])["result"] for event in events]


def kinds(results: list[dict]) -> list[str]:
    """`task`, artifacts' texts, states."""
    told = []
    for item in results:
        if "statusUpdate" in item:
            told.append(item["statusUpdate"]["status"]["state"].removeprefix("TASK_STATE_"))
        elif "artifactUpdate" in item:
            told.append(item["artifactUpdate"]["artifact"]["parts"][0]["text"])
        else:
            told.append("task")
    return told


def a_request(**options):
    from synapsed.interfaces import SendRequest
    from synapsed.model.task import Message

    return SendRequest(message=Message.of("hi"), **options)
