"""The scripted agent of the compatibility kit, in a PTY: what the kit's scenarios come to, on both bindings."""

import base64
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.parts.a2a.kit.house import kit_agent

URL = "https://example.com/output.txt"
RAW = base64.b64encode(b"Generated file content").decode()
V1 = {"A2A-Version": "1.0"}


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kit_agent(tmp_path_factory.mktemp("kit")) as (_, endpoint):
        yield endpoint


def send(endpoint: str, binding: str, message_id: str, **message: Any) -> dict[str, Any]:
    """The task that SendMessage gives."""
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": f"play {message_id}"}], **message}
    with httpx.Client(base_url=endpoint, headers=V1, timeout=60) as http:
        if binding == "rest":
            body = http.post("/a2a/rest/message:send", json={"message": message}).json()
        else:
            request = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
            body = http.post("/a2a", json=request).json()["result"]
    task: dict[str, Any] = body["task"]
    return task


@pytest.mark.parametrize("binding", ["rpc", "rest"])
@pytest.mark.parametrize(
    ("message_id", "part"),
    [
        ("tck-complete-task", {"text": "Hello from TCK", "mediaType": "text/plain"}),
        ("tck-artifact-text", {"text": "Generated text content", "mediaType": "text/plain"}),
        ("tck-artifact-file", {"filename": "output.txt", "mediaType": "text/plain", "raw": RAW}),
        ("tck-artifact-file-url", {"filename": "output.txt", "mediaType": "text/plain", "url": URL}),
        ("tck-artifact-data", {"data": {"key": "value", "count": 42}, "mediaType": "application/json"}),
    ],
)  # fmt: skip
def test_what_it_makes(endpoint: str, binding: str, message_id: str, part: dict[str, Any]) -> None:
    task = send(endpoint, binding, message_id)
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert task["artifacts"][0]["parts"] == [part]


@pytest.mark.parametrize("binding", ["rpc", "rest"])
def test_it_asks_and_goes_on_and_the_history_has_it_all(endpoint: str, binding: str) -> None:
    task = send(endpoint, binding, "tck-input-required")
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    again = send(endpoint, binding, "tck-input-required", taskId=task["id"])
    assert (again["status"]["state"], again["id"]) == ("TASK_STATE_INPUT_REQUIRED", task["id"])
    done = send(endpoint, binding, "tck-artifact-text", taskId=task["id"], contextId=task["contextId"])
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
    roles = [message["role"].removeprefix("ROLE_") for message in done["history"]]
    assert roles == ["USER", "AGENT", "USER", "AGENT", "USER"]
    assert [message["messageId"] for message in done["history"][::2]] == [
        "tck-input-required",
        "tck-input-required",
        "tck-artifact-text",
    ]
    with httpx.Client(base_url=endpoint, headers=V1) as http:
        last = http.get(f"/a2a/rest/tasks/{task['id']}", params={"historyLength": 2}).json()
    assert last["history"] == done["history"][-2:]


def test_who_leaves_a_question_open_does_not_block_the_next(endpoint: str) -> None:
    asking = send(endpoint, "rpc", "tck-input-required")
    assert send(endpoint, "rpc", "tck-complete-task")["status"]["state"] == "TASK_STATE_COMPLETED"
    with httpx.Client(base_url=endpoint, headers=V1) as http:
        left = http.get(f"/a2a/rest/tasks/{asking['id']}").json()
    assert left["status"]["state"] == "TASK_STATE_COMPLETED"
