"""The JSON-RPC endpoint over HTTP: envelopes, versions, errors, whatever is sent."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.api.rights import Rights, Standing
from synapsed.errors import StoreError
from synapsed.model.task import TaskState
from synapsed.parts.a2a.endpoint_types import MessageReply, StreamReply
from synapsed.parts.a2a.endpoints import Endpoints
from tests.api.serving import TOKEN, Api, serving
from tests.fakes.control import FakeControl, hold
from tests.parts.a2a.rpc import AGENT, MESSAGE, PROMPT, V1, a_request, check_error, error, post, result
from tests.support.patience import PATIENCE_S


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"", -32700),
        (b"\xff", -32700),
        (b'{"jsonrpc": "2.0", "id": NaN}', -32700),
        (b"[" * 5000, -32700),
        ([], -32600),
        (None, -32600),
        ("x", -32600),
        ([{"jsonrpc": "2.0", "id": 1, "method": "GetTask"}], -32600),
        ({"id": 1, "method": "GetTask"}, -32600),
        ({"jsonrpc": "1.0", "id": 1, "method": "GetTask"}, -32600),
        ({"jsonrpc": "2.0", "method": "GetTask"}, -32600),
        ({"jsonrpc": "2.0", "id": True, "method": "GetTask"}, -32600),
        ({"jsonrpc": "2.0", "id": {}, "method": "GetTask"}, -32600),
        ({"jsonrpc": "2.0", "id": 1}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": 5}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": ""}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": []}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": 5}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "Sing"}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "message/send"}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "CreateTaskPushNotificationConfig"}, -32003),
        ({"jsonrpc": "2.0", "id": 1, "method": "ListTaskPushNotificationConfigs"}, -32003),
    ],
    ids=range(23),
)
async def test_envelopes(api: Api, body, code):
    answer = await post(api, body)
    check_error(answer["error"])
    assert answer["error"]["code"] == code
    good_id = isinstance(body, dict) and type(body.get("id")) is int
    assert answer["id"] == (1 if good_id else None)
    assert set(answer) == {"jsonrpc", "id", "error"}


@pytest.mark.parametrize("request_id", [None, 0, -5, "", "x", 1.5])
async def test_ids_come_back(api: Api, request_id):
    answer = await post(api, {"jsonrpc": "2.0", "id": request_id, "method": "ListTasks"})
    assert answer["id"] == request_id
    assert "result" in answer


@pytest.mark.parametrize(
    ("headers", "query", "code"),
    [
        ({"A2A-Version": "1.0"}, "", None),
        ({"a2a-version": "1.0.1"}, "", None),
        ({}, "?A2A-Version=1.0", None),
        ({}, "", -32601),  # 0.3 then, which has no such method
        ({"A2A-Version": ""}, "", -32601),
        ({"A2A-Version": "0.3"}, "", -32601),
        ({"A2A-Version": "0.3.0"}, "", -32601),
        ({"A2A-Version": "0.2"}, "", -32009),
        ({"A2A-Version": "1.1"}, "", -32009),
        ({"A2A-Version": "2.0"}, "", -32009),
        ({"A2A-Version": "one"}, "", -32009),
        ({"A2A-Version": "1"}, "", -32009),
    ],
)
async def test_versions(api: Api, headers, query, code):
    answer = await post(api, {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}, headers, f"/a2a{query}")
    assert ("result" in answer) is (code is None)
    if code is not None:
        check_error(answer["error"])
        assert answer["error"]["code"] == code
        assert "send 'A2A-Version: 1.0'" in answer["error"]["message"]


async def test_a_method_of_0_3_is_none_of_1_0(api: Api):
    bad = await error(api, "message/send", message=MESSAGE)
    assert (bad["code"], "send 'A2A-Version: 0.3'" in bad["message"]) == (-32601, True)


@pytest.mark.parametrize(
    ("params", "code", "field"),
    [
        ({}, -32602, "message.messageId"),
        ({"message": "hi"}, -32602, "message"),
        ({"message": MESSAGE | {"role": "ROLE_BOSS"}}, -32602, "message.role"),
        ({"message": MESSAGE | {"role": "user"}}, -32602, "message.role"),
        ({"message": MESSAGE | {"parts": []}}, -32602, "message.parts"),
        ({"message": MESSAGE | {"parts": [{}]}}, -32602, "message.parts[0]"),
        ({"message": MESSAGE | {"parts": [{"text": 5}]}}, -32602, "message.parts[0].text"),
        ({"message": MESSAGE, "configuration": []}, -32602, "configuration"),
        ({"message": MESSAGE, "configuration": {"historyLength": -1}}, -32602, "historyLength"),
        ({"message": MESSAGE, "metadata": {"synapsed": {"priority": 9}}}, -32602, "metadata.synapsed.priority"),
        ({"message": MESSAGE | {"parts": [{"text": " "}]}}, -32005, None),
        ({"message": MESSAGE, "configuration": {"taskPushNotificationConfig": {"url": "http://x"}}}, -32003, None),
        ({"message": MESSAGE | {"taskId": "nope"}}, -32001, None),
    ],
    ids=range(13),
)
async def test_sends_that_are_refused(api: Api, params, code, field):
    bad = await error(api, "SendMessage", **params)
    assert bad["code"] == code, bad
    if field is not None:
        assert bad["data"][1]["@type"] == "type.googleapis.com/google.rpc.BadRequest"
        assert bad["data"][1]["fieldViolations"][0]["field"] == field
    assert api.control.calls == []


def _nested(levels: int) -> list:
    value: list = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"message": MESSAGE | {"parts": [{"text": 5}]}}, "message.parts[0].text: must be a string"),
        ({"message": MESSAGE | {"parts": ["hi"]}}, "message.parts[0]: must be an object"),
        (
            {"message": MESSAGE | {"parts": [{"text": "a", "url": "b"}]}},
            "message.parts[0]: must have only one of text, raw, url, data, not text and url",
        ),
        ({"message": MESSAGE | {"parts": [{"raw": "?"}]}}, "message.parts[0].raw: must be base64"),
        ({"message": MESSAGE | {"message_id": "m2"}}, "message.messageId: is given twice, also as message_id"),
        ({"message": MESSAGE | {"extensions": [None]}}, "message.extensions[0]: must be a string"),
        ({"message": MESSAGE | {"metadata": []}}, "message.metadata: must be an object"),
        ({"message": MESSAGE, "configuration": {"returnImmediately": "yes"}}, "must be true or false"),
        ({"message": MESSAGE, "configuration": {"historyLength": 1.5}}, "must be a whole number"),
        ({"message": MESSAGE, "configuration": {"historyLength": 1 << 40}}, "is too large a number"),
        ({"message": MESSAGE, "metadata": {"deep": _nested(80)}}, "is nested deeper than 60 levels"),
    ],
)
async def test_what_is_wrong_is_said_in_our_words(api: Api, params, said):
    """And names the field; the SDK's parser has words for its own."""
    bad = await error(api, "SendMessage", **params)
    assert (bad["code"], said in bad["message"]) == (-32602, True), bad["message"]
    assert "parse" not in bad["message"]
    assert api.control.calls == []


@pytest.mark.parametrize("params", [{"statusTimestampAfter": "yesterday"}, {"statusTimestampAfter": 5}])
async def test_a_time_that_is_none(api: Api, params):
    bad = await error(api, "ListTasks", **params)
    assert bad["message"] == "statusTimestampAfter: must be a time such as 2026-01-31T12:00:00Z"


async def test_unknown_fields_are_ignored(api: Api):
    message = MESSAGE | {"kind": "message", "parts": [{"text": "hi", "kind": "text", "new": 1}]}
    assert "task" in await result(api, "SendMessage", message=message, configuration={"new": 1}, new=[])


async def test_our_own_errors(api: Api, capsys):
    api.control.queue_max = 0
    bad = await error(api, "SendMessage", message=MESSAGE)
    assert (bad["code"], bad["data"][0]["reason"], bad["data"][0]["domain"]) == (-32000, "QUEUE_FULL", "synapsed")
    api.control.queue_max = 100

    async def broken(control: FakeControl, task) -> None:
        raise RuntimeError("a secret inside")

    api.control.script = broken
    bad = await error(api, "SendMessage", message=MESSAGE)
    assert bad["code"] == -32603
    assert "secret" not in json.dumps(bad)
    capsys.readouterr()  # the log of it

    async def full(control: FakeControl, task) -> None:
        raise StoreError("disk full")

    api.control.script = full
    assert (await error(api, "SendMessage", message=MESSAGE))["code"] == -32603


async def test_answering_needs_a_person(api: Api):
    async def ask(control: FakeControl, task) -> None:
        await control.ask(task.id, PROMPT)

    api.control.script = ask
    api.control.tokens["codex-token"] = "synapse-codex-8120"
    headers = V1 | {"Authorization": "Bearer codex-token"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": MESSAGE}}
    task = (await post(api, body, headers))["result"]["task"]
    assert task["metadata"]["sender"]["sender_id"] == "synapse-codex-8120"
    body["params"] = {"message": MESSAGE | {"taskId": task["id"]}}
    async with api.agent.post("/a2a", json=body, headers=headers) as response:
        answer = await response.json()
        assert (response.status, answer["error"]["data"][0]["reason"]) == (403, "FORBIDDEN")
    async with api.agent.post("/a2a", json=body, headers=V1 | {"Authorization": "Bearer nobody"}) as response:
        assert response.status == 401
    async with api.agent.post("/a2a", json=body, headers=V1 | {"Authorization": f"Bearer {TOKEN}"}) as response:
        assert (await response.json())["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_an_agents_own_list(api: Api):
    api.control.tokens["codex-token"] = "synapse-codex-8120"
    headers = V1 | {"Authorization": "Bearer codex-token"}
    await api.control.tasks.send(AGENT, a_request())
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": MESSAGE}}
    task = (await post(api, body, headers))["result"]["task"]
    listed = (await post(api, {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}, headers))["result"]
    assert [item["id"] for item in listed["tasks"]] == [task["id"]]


async def test_media_types(api: Api):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ListTasks"})
    headers = V1 | {"Content-Type": "application/a2a+json"}
    async with api.agent.post("/a2a/", data=body, headers=headers) as response:
        assert (response.status, response.content_type) == (200, "application/a2a+json")
    async with api.agent.post("/a2a", data=body, headers=V1 | {"Content-Type": "text/plain"}) as response:
        assert response.status == 415


async def test_a_client_that_leaves_a_blocking_send(control, tmp_path):
    """Its wait ends, its task does not."""
    async with serving(control, tmp_path, keepalive=0.01) as api:
        control.script = hold
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": MESSAGE}}
        asking = asyncio.create_task(api.agent.post("/a2a", json=body, headers=V1))
        async with asyncio.timeout(PATIENCE_S):
            while control.events.last_id == 0:
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            me = asyncio.current_task()
            while any("_settled" in str(task.get_stack()) or _waits(task) for task in asyncio.all_tasks() - {me}):
                await asyncio.sleep(0.01)
        ((_, _, _),) = control.calls
        task = (await control.store.open_tasks())[0]
        assert task.status is TaskState.SUBMITTED


def _waits(task: asyncio.Task) -> bool:
    return "JsonRpc.handle" in repr(task.get_coro())


# --- anything at all -------------------------------------------------------------------------------------------------

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
names = st.sampled_from(
    ["message", "configuration", "metadata", "id", "parts", "role", "text", "data", "raw", "url", "messageId", "status",
     "taskId", "contextId", "historyLength", "pageSize", "pageToken", "returnImmediately", "statusTimestampAfter"]
)  # fmt: skip
params = st.recursive(values, lambda inner: st.dictionaries(names, inner, max_size=5) | st.lists(inner, max_size=3))
methods = st.sampled_from(
    ["SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask"]
)
envelopes = values | st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": methods, "params": st.dictionaries(names, params, max_size=5)},
    optional={"id": values},
)


class Anybody:
    """A person's caller without HTTP."""

    rights = Rights(Standing.PERSON)

    def __init__(self, control: FakeControl) -> None:
        self.control = control
        self.scope = None
        self.extensions = frozenset()
        self.may_answer = True
        self.require_cancel = self.rights.require_cancel
        self.require_list = self.rights.require_list
        self.may_read = self.rights.may_read

    async def reserve_task(self, task_id): ...

    async def reserve_page(self, which): ...

    async def with_room(self, act):
        return await act

    async def send(self, request):
        return await self.control.tasks.send(AGENT, request)

    def extended_card(self):
        return {"name": "claude"}

    def require_notify(self, task):
        """A person may."""

    def require_notify_own(self):
        """A person may."""


@given(envelopes, st.none() | st.sampled_from(["1.0", "0.3"]) | st.text(max_size=10))
def test_any_request_is_answered(body, version):
    async def run() -> None:
        control = FakeControl()
        control.add("claude", "claude", 8100)
        answer = await Endpoints(control.tasks, control.events).rpc.handle(AGENT, Anybody(control), body, version)
        bodies = [item async for item in answer.bodies] if isinstance(answer, StreamReply) else [answer.body]
        for item in bodies:
            assert item["jsonrpc"] == "2.0"
            assert ("result" in item) != ("error" in item)
            assert item.get("error", {}).get("code") != -32603
        assert isinstance(answer, MessageReply | StreamReply)

    asyncio.run(run())
