"""A2A 0.3 on the URL of 1.0: what its methods do, what they refuse, and the SDK's own client on a card of 0.3."""

import json

import httpx
import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import parse_agent_card
from a2a.compat.v0_3 import types as v03
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError

from synapsed.a2a_types.extensions import PRIORITY
from synapsed.model.task import Prompt, PromptOption
from tests.api.serving import Api, sse_events
from tests.fakes.control import FakeControl, hold

MESSAGE = {"kind": "message", "messageId": "m1", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
PROMPT = Prompt(
    prompt_id="p1", type="permission", prompt="Run ls?", options=[PromptOption(key="1", label="Yes")], default="1"
)
VERSIONS = pytest.mark.parametrize("headers", [{}, {"A2A-Version": "0.3"}], ids=["no version", "0.3"])


async def call(api: Api, method: str, headers: dict[str, str] | None = None, **params) -> dict:
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    streams = method in {"message/stream", "tasks/resubscribe"}
    async with api.agent.post("/a2a", json=body, headers=headers or {}) as response:
        assert response.status == 200
        assert response.content_type == ("text/event-stream" if streams else "application/json")
        if streams:
            (event,) = await sse_events(response)
            answer = json.loads(event["data"])
        else:
            answer = await response.json()
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", 7)
    return answer


async def stream(api: Api, method: str, **params) -> list[dict]:
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    async with api.agent.post("/a2a", json=body) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        events = [json.loads(event["data"]) for event in await sse_events(response)]
    assert all((event["jsonrpc"], event["id"]) == ("2.0", 7) for event in events)
    return [event["result"] for event in events]


async def ask(control: FakeControl, task) -> None:
    await control.work(task.id)
    await control.ask(task.id, PROMPT)


@VERSIONS
async def test_send_blocks_unless_told_not_to(api: Api, headers):
    task = (await call(api, "message/send", headers, message=MESSAGE))["result"]
    assert (task["kind"], task["status"]["state"]) == ("task", "completed")
    assert task["artifacts"][0]["parts"] == [{"kind": "text", "text": "echo: hi"}]
    assert task["history"][0] == MESSAGE | {"contextId": task["contextId"], "taskId": task["id"]}
    api.control.script = hold
    waiting = (await call(api, "message/send", headers, message=MESSAGE, configuration={"blocking": False}))["result"]
    assert waiting["status"]["state"] == "submitted"


async def test_stream_ends_with_what_is_final(api: Api):
    task, *rest = await stream(api, "message/stream", message=MESSAGE)
    assert task["kind"] == "task"
    assert task["status"]["state"] in {"submitted", "completed"}
    assert all(event["kind"] in {"status-update", "artifact-update"} for event in rest)
    api.control.script = ask
    told = await stream(api, "message/stream", message=MESSAGE)
    assert told[-1]["status"]["state"] == "input-required"
    if told[-1]["kind"] == "status-update":
        assert [event["final"] for event in told if event["kind"] == "status-update"][-1] is True


async def test_a_question_is_answered_by_task_id(api: Api):
    api.control.script = ask
    task = (await call(api, "message/send", message=MESSAGE))["result"]
    told = task["status"]["message"]
    assert (task["status"]["state"], told["kind"], told["role"]) == ("input-required", "message", "agent")
    assert [part["kind"] for part in told["parts"]] == ["text", "data"]
    done = (await call(api, "message/send", message=MESSAGE | {"taskId": task["id"]}))["result"]
    assert (done["id"], done["status"]["state"]) == (task["id"], "completed")


async def test_resubscribe_get_and_cancel(api: Api):
    api.control.script = hold
    task = (await call(api, "message/send", message=MESSAGE, configuration={"blocking": False}))["result"]
    body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/resubscribe", "params": {"id": task["id"]}}
    async with api.agent.post("/a2a", json=body) as response:
        (first,) = await sse_events(response, 1)
        assert json.loads(first["data"])["result"]["kind"] == "task"
        assert (await call(api, "tasks/get", id=task["id"], historyLength=1))["result"] == task
        assert (await call(api, "tasks/cancel", id=task["id"]))["result"]["status"]["state"] == "canceled"
        last = json.loads((await sse_events(response))[-1]["data"])["result"]
    assert (last["kind"], last["status"]["state"], last["final"]) == ("status-update", "canceled", True)


async def test_parts_arrive_as_they_are(api: Api):
    parts = [
        {"kind": "text", "text": "看て"},
        {"kind": "data", "data": {"n": 1, "deep": [1.5, None, True]}},
        {"kind": "file", "file": {"name": "a.txt", "mimeType": "text/plain", "bytes": "aGk="}},
        {"kind": "file", "file": {"uri": "https://x/y"}, "metadata": {"k": 2}},
    ]
    message = MESSAGE | {"parts": parts, "metadata": {"m": 1}}
    task = (await call(api, "message/send", message=message, metadata={"synapsed": {"priority": 4}}))["result"]
    assert task["history"][0]["parts"] == parts
    assert api.control.calls[-1][2].priority == 4


@pytest.mark.parametrize(
    ("method", "params", "code", "field"),
    [
        ("message/send", {}, -32602, "message"),
        ("message/send", {"": "x"}, -32602, "message"),
        ("message/send", {"message": {"parts": "x"}}, -32602, "message.messageId"),
        ("message/send", {"message": MESSAGE | {"role": "boss"}}, -32602, "message.role"),
        ("message/send", {"message": MESSAGE | {"role": "agent"}}, -32602, "message.role"),
        ("message/send", {"message": MESSAGE | {"parts": []}}, -32602, "message.parts"),
        ("message/send", {"message": MESSAGE | {"parts": [{"kind": "x"}]}}, -32602, "message.parts[0].kind"),
        (
            "message/send",
            {"message": MESSAGE | {"parts": [{"kind": "file", "file": {"bytes": "a!"}}]}},
            -32602,
            "message.parts[0].file.bytes",
        ),
        ("message/send", {"message": MESSAGE, "configuration": {"historyLength": -1}}, -32602, "historyLength"),
        ("message/send", {"message": MESSAGE | {"taskId": "nope"}}, -32001, None),
        ("message/stream", {"message": MESSAGE | {"taskId": "nope"}}, -32001, None),
        ("tasks/get", {}, -32602, "id"),
        ("tasks/get", {"id": "nope"}, -32001, None),
        ("tasks/cancel", {"id": "nope"}, -32001, None),
        ("tasks/resubscribe", {"id": "nope"}, -32001, None),
        ("tasks/list", {}, -32601, None),
        ("nonsense", {}, -32601, None),
    ],
)
async def test_refusals(api: Api, method, params, code, field):
    error = (await call(api, method, **params))["error"]
    assert error["code"] == code
    if field is not None:
        assert error["data"][1]["fieldViolations"][0]["field"] == field


async def test_a_task_that_is_over(api: Api):
    task = (await call(api, "message/send", message=MESSAGE))["result"]
    assert (await call(api, "tasks/cancel", id=task["id"]))["error"]["code"] == -32002
    body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/resubscribe", "params": {"id": task["id"]}}
    async with api.agent.post("/a2a", json=body) as response:
        (only,) = await sse_events(response)
    told = json.loads(only["data"])["result"]
    assert (told["kind"], told["id"], told["status"]["state"]) == ("task", task["id"], "completed")
    assert told["artifacts"] == task["artifacts"], "whoever lost the stream just before its end has the answer"


async def test_what_only_json_rpc_forbids_is_looked_over(api: Api):
    for method, code in (("message/ssend", -32601), ("message/send", -32602), ({"jsonrpc": "2.0"}, -32601)):
        async with api.agent.post("/a2a", json={"jsonrpc": "2.0", "method": method, "params": {}}) as response:
            answer = await response.json()
        assert (answer["id"], answer["error"]["code"]) == (None, code)


async def test_extensions_by_their_old_name(api: Api):
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": MESSAGE}}
    headers = {"X-A2A-Extensions": f"urn:other, {PRIORITY}"}
    async with api.agent.post("/a2a", json=body, headers=headers) as response:
        assert response.headers["X-A2A-Extensions"] == PRIORITY
        assert "A2A-Extensions" not in response.headers


async def test_the_extended_card(api: Api):
    card = (await call(api, "agent/getAuthenticatedExtendedCard"))["result"]
    assert v03.AgentCard.model_validate(card).name == "claude"
    assert card["extensions"]["synapse"]["cwd"] == "/tmp"


# --- the SDK's client ------------------------------------------------------------------------------------------------


@pytest.fixture
async def connect(api: Api):
    """A client of the SDK that was given a card with nothing but 0.3 in it."""
    async with api.agent.get("/.well-known/agent-card.json") as response:
        document = await response.json()
    document["supportedInterfaces"] = [
        each for each in document["supportedInterfaces"] if each["protocolVersion"] == "0.3"
    ]
    card = parse_agent_card(document)
    async with httpx.AsyncClient() as http:
        yield lambda streaming: ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create(card)


def request(text: str, **configuration) -> SendMessageRequest:
    message = Message(message_id="m1", role=Role.ROLE_USER, parts=[Part(text=text)])
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(**configuration))


async def test_the_sdks_client_sends_and_streams(connect):
    (answer,) = [event async for event in connect(False).send_message(request("看て ```x```"))]
    assert answer.task.status.state == TaskState.TASK_STATE_COMPLETED
    assert answer.task.artifacts[0].parts[0].text == "echo: 看て ```x```"
    events = [event async for event in connect(True).send_message(request("hi"))]
    assert events[0].HasField("task")
    assert events[-1].task.status.state == TaskState.TASK_STATE_COMPLETED


async def test_the_sdks_client_gets_cancels_and_subscribes(connect, api: Api):
    api.control.script = hold
    client = connect(False)
    (answer,) = [event async for event in client.send_message(request("hi", return_immediately=True))]
    task_id = answer.task.id
    assert (await client.get_task(GetTaskRequest(id=task_id))).id == task_id
    events = connect(True).subscribe(SubscribeToTaskRequest(id=task_id))
    assert (await anext(events)).task.id == task_id
    assert (await client.cancel_task(CancelTaskRequest(id=task_id))).status.state == TaskState.TASK_STATE_CANCELED
    rest = [event async for event in events]
    assert rest[-1].status_update.status.state == TaskState.TASK_STATE_CANCELED
    with pytest.raises(TaskNotCancelableError):
        await client.cancel_task(CancelTaskRequest(id=task_id))
    with pytest.raises(TaskNotFoundError):
        await client.get_task(GetTaskRequest(id="nope"))
