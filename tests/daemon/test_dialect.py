"""The seeds' dialect, route by route, on a running daemon and the agent's own port: statuses, fields, events."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.support.daemon import ANY_PORTS, eventually
from tests.support.threaded import KINDS

PATIENCE_S = 60
TASK = {
    "id",
    "agent_id",
    "context_id",
    "status",
    "message",
    "artifacts",
    "metadata",
    "created_at",
    "updated_at",
    "priority",
    "error",
    "exact",
    "prompt",
}
EVENT_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}


def message(text: str) -> dict[str, Any]:
    return {"message": {"role": "user", "parts": [{"type": "text", "text": text}]}}


@pytest.fixture(scope="module", params=KINDS)
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    daemon = request.param(tmp_path_factory.mktemp("dialect"), config=ANY_PORTS).start()
    yield str(daemon.start_agent()["endpoint"])
    daemon.end()


def call(url: str, body: Any = None) -> tuple[int, Any]:
    """Status and JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"} if data is not None else {})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def stream(url: str, body: Any = None, **headers: str) -> list[tuple[int, str, dict[str, Any]]]:
    """(id, event, data) of a stream that ends."""
    data = None if body is None else json.dumps(body).encode()
    kind = {"Content-Type": "application/json"} if data is not None else {}
    request = urllib.request.Request(url, data, {**kind, **headers})
    events = []
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
        assert EVENT_HEADERS.items() <= dict(response.headers).items()
        assert "no-cache" in response.headers["Cache-Control"]
        blocks = response.read().decode().split("\n\n")
    assert blocks[0] == ": keepalive"
    for block in blocks[1:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        assert set(fields) == {"id", "event", "data"}
        events.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return events


def ended(base: str, task_id: str, *states: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        task: dict[str, Any] = call(f"{base}/tasks/{task_id}")[1]
        return task if task["status"] in (states or ("completed", "failed", "canceled")) else None

    return eventually(look, f"task {task_id} ends")


def test_send(base: str) -> None:
    """S10, S15: the README's own example."""
    status, answer = call(f"{base}/tasks/send", message("echo Hello!"))
    assert (status, set(answer)) == (200, {"task"})
    task = answer["task"]
    assert set(task) >= TASK
    assert task["status"] in {"submitted", "working", "completed"}
    assert task["message"]["role"] == "user"
    assert [(part["type"], part["text"]) for part in task["message"]["parts"]] == [("text", "echo Hello!")]
    done = ended(base, task["id"])
    assert (done["id"], done["status"], done["context_id"]) == (task["id"], "completed", task["context_id"])
    (artifact,) = done["artifacts"]
    assert (artifact["type"], artifact["name"]) == ("text", "output")
    assert [(part["type"], part["text"]) for part in artifact["parts"]] == [("text", "Hello!")]
    for key in ("created_at", "updated_at"):
        assert datetime.fromisoformat(done[key]).tzinfo is not None
        assert done[key].endswith("Z")
    assert call(f"{base}/tasks/send", {"message": "echo a text alone"})[0] == 200


def test_list_and_get(base: str) -> None:
    _, answer = call(f"{base}/tasks/send", {**message("echo 1"), "context_id": "mine", "metadata": {"k": {"v": 1}}})
    task = ended(base, answer["task"]["id"])
    assert (task["context_id"], task["metadata"]["k"]) == ("mine", {"v": 1})
    status, tasks = call(f"{base}/tasks?context_id=mine")
    assert (status, tasks) == (200, [task])
    assert call(f"{base}/tasks/nothing-of-mine")[0] == 404


def test_create_and_reply(base: str) -> None:
    """S20: what an agent expects an answer to is a task of its own, which the answer completes."""
    status, answer = call(f"{base}/tasks/create", {**message("analyse"), "metadata": {"response_expected": True}})
    assert (status, answer["task"]["status"]) == (200, "working")
    created = answer["task"]["id"]
    reply = {"message": {"role": "agent", "parts": [{"type": "text", "text": "the result"}]}}
    status, _ = call(f"{base}/tasks/send", {**reply, "metadata": {"in_reply_to": created[:8]}})
    assert status == 200
    done = ended(base, created)
    assert done["status"] == "completed"
    assert done["artifacts"][0]["parts"][0]["text"] == "the result"


def test_message_and_status(base: str) -> None:
    status, answer = call(f"{base}/message", {"content": "echo via message", "priority": 2})
    assert (status, answer["status"], answer["priority"], set(answer)) == (
        200,
        "sent",
        2,
        {"status", "priority", "task_id"},
    )
    ended(base, answer["task_id"])

    def idle() -> dict[str, Any] | None:
        _, told = call(f"{base}/status")
        return told if told["status"] == "IDLE" else None

    told = eventually(idle, "the agent is idle")
    assert "via message" in told["context"]
    assert len(told["context"]) <= 2000


def test_priorities(base: str) -> None:
    """S13: 5 interrupts."""
    running = call(f"{base}/tasks/send", message("busy 600"))[1]["task"]["id"]
    ended(base, running, "working")
    status, answer = call(f"{base}/tasks/send-priority?priority=5", message("echo Stop!"))
    assert (status, answer["task"]["priority"]) == (200, 5)
    assert ended(base, running)["status"] == "canceled"
    assert ended(base, answer["task"]["id"])["artifacts"][0]["parts"][0]["text"] == "Stop!"
    for wrong in ("0", "6", "x"):
        assert call(f"{base}/tasks/send-priority?priority={wrong}", message("x"))[0] == 400


def test_cancel(base: str) -> None:
    task_id = call(f"{base}/tasks/send", message("busy 600"))[1]["task"]["id"]
    ended(base, task_id, "working")
    status, answer = call(f"{base}/tasks/{task_id}/cancel", {})
    assert (status, answer["task"]["id"]) == (200, task_id)
    assert ended(base, task_id)["status"] == "canceled"
    assert call(f"{base}/tasks/{task_id}/cancel", {})[0] == 409
    assert call(f"{base}/tasks/nothing-of-mine/cancel", {})[0] == 404


def test_input(base: str) -> None:
    """S5: the document's flow."""
    task_id = call(f"{base}/tasks/send", message("ask y/n"))[1]["task"]["id"]
    waiting = ended(base, task_id, "input_required")
    prompt = waiting["prompt"]
    assert (prompt["type"], [option["key"] for option in prompt["options"]]) == ("confirmation", ["y", "n"])
    assert call(f"{base}/status")[1]["status"] == "INPUT_REQUIRED"
    answer = call(f"{base}/tasks/{task_id}/input", {"input": "y"})
    assert answer == (200, {"status": "input_provided", "task_id": task_id})
    assert ended(base, task_id)["status"] == "completed"
    assert call(f"{base}/tasks/{task_id}/input", {"input": "y"})[0] == 400
    assert call(f"{base}/tasks/nothing-of-mine/input", {"input": "y"})[0] == 404


@pytest.mark.parametrize("body", [message("echo streamed"), {"message": "echo streamed"}], ids=["parts", "text"])
def test_send_subscribe(base: str, body: dict[str, Any]) -> None:
    """S1, its shapes and nothing of A2A 1.0's."""
    events = stream(f"{base}/tasks/sendSubscribe", body, Accept="text/event-stream")
    ids = [number for number, _, _ in events]
    assert ids == sorted(set(ids))
    assert {event for _, event, _ in events} == {"status", "artifact"}
    statuses = [data for _, event, data in events if event == "status"]
    assert [data["state"] for data in statuses] == ["submitted", "working", "completed"]
    assert all(set(data) == {"taskId", "state", "timestamp"} for data in statuses)
    assert all(data["timestamp"].endswith("Z") for data in statuses)
    artifacts = [data for _, event, data in events if event == "artifact"]
    assert all(set(data) == {"taskId", "artifact", "append", "lastChunk"} for data in artifacts)
    assert {"type", "name", "parts"} <= set(artifacts[-1]["artifact"])
    parts = [part for data in artifacts for part in data["artifact"]["parts"]]
    assert {part["type"] for part in parts} == {"text"}
    assert "".join(part["text"] for part in parts) == "streamed"
    assert {data["taskId"] for _, _, data in events} == {statuses[0]["taskId"]}

    # Again, for who comes later, and from every place in it.
    path = f"{base}/tasks/{statuses[0]['taskId']}/subscribe"
    assert stream(path) == events
    for index, (number, _, _) in enumerate(events[:-1]):
        assert stream(path, **{"Last-Event-ID": str(number)}) == events[index + 1 :]
    with urllib.request.urlopen(f"{path}?lastEventId={ids[-1]}", timeout=PATIENCE_S) as response:
        assert (response.status, response.read()) == (204, b"")


def test_failures_are_told_with_code_and_message(base: str) -> None:
    (*_, (_, event, data)) = stream(f"{base}/tasks/sendSubscribe", message("fail no such thing"))
    assert (event, data["state"]) == ("status", "failed")
    assert {"code", "message"} <= set(data["error"])


def test_code_is_told_as_code(base: str) -> None:
    """S2 over S1: the document's end-to-end scenario."""
    events = stream(f"{base}/tasks/sendSubscribe", message("echo ```python\necho print(1)\necho ```"))
    (code,) = [data["artifact"] for _, event, data in events if data.get("artifact", {}).get("type") == "code"]
    assert code["metadata"] == {"language": "python", "mimeType": "text/x-python"}
    assert code["parts"] == [{"type": "text", "text": "print(1)"}]


@pytest.mark.parametrize("name", ["agent.json", "agent-card.json"])
def test_card(base: str, name: str) -> None:
    """S18."""
    status, card = call(f"{base}/.well-known/{name}")
    assert status == 200
    assert {"name", "description", "url", "capabilities", "skills", "extensions"} <= set(card)
    assert card["url"].startswith(base)
    assert {"streaming", "pushNotifications"} <= set(card["capabilities"])
    assert card["capabilities"]["multiTurn"] is True
    assert [skill["id"] for skill in card["skills"]][:2] == ["chat", "interrupt"]
    port = base.rpartition(":")[2]
    assert card["extensions"]["synapse"] == {
        "agent_id": f"synapse-dummy-{port}",
        "pty_wrapped": True,
        "priority_interrupt": True,
        "at_agent_syntax": True,
    }


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/tasks/send", {}),
        ("/tasks/send", {"message": ""}),
        ("/tasks/send", {"message": {"role": "user", "parts": []}}),
        ("/tasks/send", {"message": {"role": "user", "parts": [{"type": "x"}]}}),
        ("/tasks/sendSubscribe", {"message": {"role": "boss", "parts": [{"type": "text", "text": "x"}]}}),
        ("/message", {"content": "x", "priority": 6}),
        ("/message", {}),
    ],
)
def test_errors_have_one_shape(base: str, path: str, body: Any) -> None:
    status, answer = call(base + path, body)
    assert (status, set(answer)) == (400, {"error"})
    assert (answer["error"]["code"], set(answer["error"])) == ("INVALID_REQUEST", {"code", "message", "details"})
