"""The JSON-RPC endpoint over HTTP: envelopes, versions, methods, errors, semantics."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.a2a.endpoints import Endpoints
from synapsed.a2a.replies import Reply, Stream
from synapsed.api.rights import Rights, Standing
from synapsed.errors import StoreError
from synapsed.model.task import Artifact, Prompt, TaskState, TextPart
from tests.api.serving import TOKEN, Api, serving, sse_events
from tests.fakes.control import FakeControl, hold

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


# --- methods ---------------------------------------------------------------------------------------------------------


async def test_send_blocks_until_the_end(api: Api):
    async def soon(control: FakeControl, task) -> None:
        tasks.append(asyncio.create_task(later(control, task)))

    async def later(control: FakeControl, task) -> None:
        await control.work(task.id)
        await control.progress(task.id, "thinking")
        await control.complete(task.id, "done")

    tasks: list = []
    api.control.script = soon
    task = (await result(api, "SendMessage", message=MESSAGE, configuration={}))["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert [artifact["name"] for artifact in task["artifacts"]] == ["progress", "output"]
    assert task["history"][0]["messageId"] == "m1"
    assert task["metadata"]["synapsed"] == {"priority": 1, "exact": True}


async def test_send_returns_immediately(api: Api):
    api.control.script = hold
    message = MESSAGE | {"contextId": "mine", "metadata": {"a": 1}}
    task = (
        await result(
            api,
            "SendMessage",
            message=message,
            configuration=NOW | {"historyLength": 0},
            metadata={"b": [1.5], "synapsed": {"priority": 4}},
        )
    )["task"]
    assert (task["status"]["state"], task["contextId"]) == ("TASK_STATE_SUBMITTED", "mine")
    assert "history" not in task
    request = api.control.calls[-1][2]
    assert (request.metadata, request.priority) == ({"a": 1, "b": [1.5]}, 4)
    assert await result(api, "GetTask", id=task["id"], historyLength=0) == task
    assert len((await result(api, "GetTask", id=task["id"]))["history"]) == 1


async def test_input_required_ends_the_wait_and_goes_on_by_task_id(api: Api):
    async def ask(control: FakeControl, task) -> None:
        await control.ask(task.id, PROMPT)

    api.control.script = ask
    task = (await result(api, "SendMessage", message=MESSAGE))["task"]
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert task["status"]["message"]["parts"][0]["text"] == "Run ls?"
    again = MESSAGE | {"taskId": task["id"], "messageId": "m2"}
    bad = await error(api, "SendMessage", message=again | {"contextId": "another"})
    assert (bad["code"], bad["data"][1]["fieldViolations"][0]["field"]) == (-32602, "message.contextId")
    done = (await result(api, "SendMessage", message=again))["task"]
    assert (done["id"], done["contextId"]) == (task["id"], task["contextId"])
    assert done["artifacts"][0]["parts"][0]["text"] == "answered: hi"
    assert (await error(api, "SendMessage", message=again))["code"] == -32004


async def test_an_answer_may_name_the_prompt_that_it_is_for(api: Api):
    async def ask(control: FakeControl, task) -> None:
        await control.ask(task.id, PROMPT)

    api.control.script = ask
    task = (await result(api, "SendMessage", message=MESSAGE))["task"]
    again = MESSAGE | {"taskId": task["id"]}
    for named, reason in (("another", "PROMPT_CHANGED"), (7, "INVALID_PARAMS")):
        bad = await error(api, "SendMessage", message=again | {"metadata": {"synapsed": {"prompt_id": named}}})
        assert bad["data"][0]["reason"] == reason
    named = task["metadata"]["synapsed"]["prompt"]["prompt_id"]
    done = await result(api, "SendMessage", message=again, metadata={"synapsed": {"prompt_id": named}})
    assert done["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


def _asks(**prompt) -> Prompt:
    given = {
        "prompt_id": "p1",
        "type": "permission",
        "prompt": "Run ls?",
        "options": [{"key": "1", "label": "Yes"}],
    } | prompt
    return Prompt.model_validate(given)


@pytest.mark.parametrize(
    ("prompt", "text", "answers"),
    [
        (_asks(), "1", True),
        (_asks(), " YES ", True),
        (_asks(), "and now do something else", False),
        (_asks(own_words=True), "and now do something else", False),
        (_asks(type="question", own_words=True), "a colour of my own", True),
        (_asks(type="text", options=[]), "any words", True),
        (_asks(type="password", options=[]), "any words", False),
        (_asks(type="confirmation", options=[]), "any words", False),
    ],
)
async def test_a_message_of_the_context_answers_where_it_can_be_nothing_else(api: Api, prompt, text, answers):
    async def ask(control: FakeControl, task) -> None:
        await control.ask(task.id, prompt)

    api.control.script = ask
    task = (await result(api, "SendMessage", message=MESSAGE))["task"]
    api.control.script = hold
    again = {"messageId": "m2", "role": "ROLE_USER", "parts": [{"text": text}], "contextId": task["contextId"]}
    then = (await result(api, "SendMessage", message=again, configuration=NOW))["task"]
    assert (then["id"] == task["id"]) is answers
    assert then["contextId"] == task["contextId"]


@pytest.mark.parametrize(
    "other",
    [
        {"contextId": "another"},
        {"metadata": {"sender": {"sender_id": "somebody"}}},
        {"metadata": {"synapsed": {"priority": 5}}},
        {"metadata": {"in_reply_to": "that"}},
        {"parts": [{"data": {"a": 1}}]},
    ],
)
async def test_a_message_that_may_be_another_one_is_a_task_of_its_own(api: Api, other):
    async def ask(control: FakeControl, task) -> None:
        await control.ask(task.id, _asks(type="text", options=[]))

    api.control.script = ask
    task = (await result(api, "SendMessage", message=MESSAGE | {"contextId": "c"}))["task"]
    api.control.script = hold
    again = {"messageId": "m2", "role": "ROLE_USER", "parts": [{"text": "words"}], "contextId": "c"} | other
    then = (await result(api, "SendMessage", message=again, configuration=NOW))["task"]
    assert then["id"] != task["id"]


async def test_of_two_tasks_that_wait_none_is_guessed(api: Api):
    async def ask(control: FakeControl, task) -> None:
        await control.ask(task.id, _asks(type="text", options=[]))

    api.control.script = ask
    message = MESSAGE | {"contextId": "c"}
    first = (await result(api, "SendMessage", message=message | {"parts": [{"data": 1}]}))["task"]
    second = (await result(api, "SendMessage", message=message | {"parts": [{"data": 2}]}))["task"]
    api.control.script = hold
    third = (await result(api, "SendMessage", message=message, configuration=NOW))["task"]
    assert len({first["id"], second["id"], third["id"]}) == 3


async def test_a_task_that_works_takes_no_message(api: Api):
    api.control.script = hold
    task = (await result(api, "SendMessage", message=MESSAGE, configuration=NOW))["task"]
    bad = await error(api, "SendMessage", message=MESSAGE | {"taskId": task["id"]})
    assert (bad["code"], bad["data"][0]["reason"]) == (-32004, "UNSUPPORTED_OPERATION")


async def test_streaming(api: Api):
    api.control.script = hold
    body = {"jsonrpc": "2.0", "id": "x", "method": "SendStreamingMessage", "params": {"message": MESSAGE}}
    async with api.agent.post("/a2a", json=body, headers=V1) as response:
        first = json.loads((await sse_events(response, 1))[0]["data"])
        assert (first["id"], first["result"]["task"]["status"]["state"]) == ("x", "TASK_STATE_SUBMITTED")
        task_id = first["result"]["task"]["id"]
        subscribed = asyncio.create_task(stream(api, "SubscribeToTask", id=task_id))
        await api.streams(2)
        await api.control.work(task_id)
        await api.control.progress(task_id, "one")
        await api.control.complete(task_id, "done")
        events = [json.loads(event["data"])["result"] for event in await sse_events(response)]
    assert kinds(events) == ["WORKING", "one", "done", "COMPLETED"]
    assert events[1]["artifactUpdate"]["lastChunk"] is True
    assert kinds(await subscribed) == ["task", *kinds(events)]


BLOCKS = [Artifact.block(1, parts=[TextPart(text="a")]), Artifact.block(2, type="code", parts=[TextPart(text="b")])]


async def test_an_answer_s_blocks_are_not_told_again(api: Api):
    """A client that joins the text of all artifacts gets the answer."""

    async def complete(control: FakeControl, task) -> None:
        await control.complete(task.id, "a\n```\nb\n```", blocks=BLOCKS)

    api.control.script = complete
    task = (await result(api, "SendMessage", message=MESSAGE, configuration={}))["task"]
    assert [artifact["artifactId"] for artifact in task["artifacts"]] == ["answer"]
    page = await result(api, "ListTasks", includeArtifacts=True)
    assert [artifact["artifactId"] for artifact in page["tasks"][0]["artifacts"]] == ["answer"]
    _, body = await api.json(api.agent, "GET", f"/tasks/{task['id']}")
    assert [artifact["artifact_id"] for artifact in body["artifacts"]] == ["answer", "answer.1", "answer.2"]


async def test_streams_leave_an_answer_s_blocks_out(api: Api):
    api.control.script = hold
    task_id = (await result(api, "SendMessage", message=MESSAGE, configuration={"returnImmediately": True}))["task"][
        "id"
    ]
    subscribed = asyncio.create_task(stream(api, "SubscribeToTask", id=task_id))
    await api.streams(1)
    await api.control.complete(task_id, "a\n```\nb\n```", blocks=BLOCKS)
    assert kinds(await subscribed) == ["task", "a\n```\nb\n```", "COMPLETED"]


@pytest.mark.parametrize("end", ["Hello you there", "Hello **you**", "Hello you"])
async def test_text_streams_and_the_answer_is_its_end(api: Api, end: str):
    """Who comes late begins with all that was told. Only what was told and is not so is taken back."""
    api.control.script = hold
    task_id = (await result(api, "SendMessage", message=MESSAGE, configuration={"returnImmediately": True}))["task"][
        "id"
    ]

    def watch() -> asyncio.Task:
        return asyncio.create_task(stream(api, "SubscribeToTask", id=task_id))

    first = watch()
    await api.streams(1)
    await api.control.work(task_id)
    await api.control.say(task_id, "Hel", append=True)
    await api.control.say(task_id, "lo", append=True)
    late = watch()
    await api.streams(2)
    await api.control.say(task_id, " you", append=True)
    await api.control.complete(task_id, end)

    def pieces(results: list[dict]) -> list[tuple[str, bool, bool]]:
        updates = [item["artifactUpdate"] for item in results if "artifactUpdate" in item]
        assert {update["artifact"]["artifactId"] for update in updates} == {"answer"}
        return [(u["artifact"]["parts"][0]["text"], u["append"], u["lastChunk"]) for u in updates]

    last = (end.removeprefix("Hello you"), True, True) if end.startswith("Hello you") else (end, False, True)
    assert pieces(await first) == [("Hel", False, False), ("lo", True, False), (" you", True, False), last]
    assert pieces(await late) == [("Hello you", False, False), last]
    task = await result(api, "GetTask", id=task_id)
    assert [part["text"] for artifact in task["artifacts"] for part in artifact["parts"]] == [end]


async def test_streams_end_where_input_is_required(api: Api):
    async def ask(control: FakeControl, task) -> None:
        await control.ask(task.id, PROMPT)

    api.control.script = ask
    (only,) = await stream(api, "SendStreamingMessage", message=MESSAGE)
    assert only["task"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    task_id = only["task"]["id"]

    async def later(control: FakeControl, task) -> None:
        turns.append(asyncio.create_task(turn(control, task.id)))

    async def turn(control: FakeControl, task_id: str) -> None:
        await control.work(task_id)
        await control.complete(task_id, "done")

    turns: list = []
    api.control.after_input = later
    results = await stream(api, "SendStreamingMessage", message=MESSAGE | {"taskId": task_id})
    assert kinds(results) == ["task", "WORKING", "done", "COMPLETED"]


async def test_a_stream_of_one_that_is_over(api: Api):
    results = await stream(api, "SendStreamingMessage", message=MESSAGE)
    assert kinds(results) == ["task"]
    assert (await stream(api, "SubscribeToTask", id=results[0]["task"]["id"]))["code"] == -32004
    assert (await stream(api, "SubscribeToTask", id="nope"))["code"] == -32001
    assert (await stream(api, "SendStreamingMessage", message={}))["code"] == -32602


async def test_no_comments_in_streams(control, tmp_path):
    async with serving(control, tmp_path, keepalive=0.005) as api:
        control.script = hold
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": MESSAGE}}
        async with api.agent.post("/a2a", json=body, headers=V1) as response:
            task_id = json.loads((await sse_events(response, 1))[0]["data"])["result"]["task"]["id"]
            for _ in range(5):
                await asyncio.sleep(0.005)
            await control.complete(task_id, "x")
            assert b":" not in {line[:1] async for line in response.content}


async def test_cancel(api: Api):
    api.control.script = hold
    task = (await result(api, "SendMessage", message=MESSAGE, configuration=NOW))["task"]
    assert (await result(api, "CancelTask", id=task["id"]))["status"]["state"] == "TASK_STATE_CANCELED"
    bad = await error(api, "CancelTask", id=task["id"])
    assert (bad["code"], bad["data"][0]["metadata"]["taskId"]) == (-32002, task["id"])


@pytest.mark.parametrize("method", ["GetTask", "CancelTask", "SubscribeToTask"])
async def test_unknown_tasks(api: Api, method):
    other = await api.control.send("synapse-codex-8120", _request())
    mine = await api.control.send(AGENT, _request())
    for task_id in ("nope", "0" * 36, other.id, mine.id[:8]):
        bad = await error(api, method, id=task_id)
        assert (bad["code"], bad["data"][0]["reason"]) == (-32001, "TASK_NOT_FOUND")
        assert bad["data"][0]["domain"] == "a2a-protocol.org"
    assert (await error(api, method))["code"] == -32602


async def test_list_tasks(api: Api):
    sent = [await api.control.send(AGENT, _request()) for _ in range(5)]
    await api.control.send("synapse-codex-8120", _request())
    api.control.script = hold
    waiting = await api.control.send(AGENT, _request(context_id="c1"))
    newest_first = [waiting.id, *(task.id for task in reversed(sent))]
    whole = await result(api, "ListTasks")
    assert [task["id"] for task in whole["tasks"]] == newest_first
    assert (whole["pageSize"], whole["totalSize"], whole["nextPageToken"]) == (50, 6, "")
    assert all("artifacts" not in task for task in whole["tasks"])
    ids, token = [], ""
    while True:
        page = await result(api, "ListTasks", pageSize=2, pageToken=token, includeArtifacts=True)
        ids += [task["id"] for task in page["tasks"]]
        if not (token := page["nextPageToken"]):
            break
    assert ids == newest_first
    assert "artifacts" in page["tasks"][0]
    for params, count in (
        ({"contextId": "c1"}, 1),
        ({"status": "TASK_STATE_COMPLETED"}, 5),
        ({"status": "TASK_STATE_FAILED"}, 0),
        ({"statusTimestampAfter": waiting.updated_at}, 1),
        ({"historyLength": 0}, 6),
    ):
        assert len((await result(api, "ListTasks", **params))["tasks"]) == count


@pytest.mark.parametrize(
    "params",
    [
        {"pageSize": 0},
        {"pageSize": 101},
        {"pageSize": "x"},
        {"pageToken": "junk"},
        {"status": "TASK_STATE_DONE"},
        {"status": 99},
        {"historyLength": -1},
        {"statusTimestampAfter": "yesterday"},
    ],
)
async def test_lists_that_are_refused(api: Api, params):
    assert (await error(api, "ListTasks", **params))["code"] == -32602


# --- envelope, version, errors ---------------------------------------------------------------------------------------


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
    await api.control.send(AGENT, _request())
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
        async with asyncio.timeout(30):
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

    async def send(self, request):
        return await self.control.send(AGENT, request)

    def extended_card(self):
        return {"name": "claude"}

    def require_notify(self, task):
        """A person may."""


@given(envelopes, st.none() | st.sampled_from(["1.0", "0.3"]) | st.text(max_size=10))
def test_any_request_is_answered(body, version):
    async def run() -> None:
        control = FakeControl()
        control.add("claude", "claude", 8100)
        answer = await Endpoints(control).rpc.handle(AGENT, Anybody(control), body, version)
        bodies = [item async for item in answer.bodies] if isinstance(answer, Stream) else [answer.body]
        for item in bodies:
            assert item["jsonrpc"] == "2.0"
            assert ("result" in item) != ("error" in item)
            assert item.get("error", {}).get("code") != -32603
        assert isinstance(answer, Reply | Stream)

    asyncio.run(run())


def _request(**options):
    from synapsed.interfaces import SendRequest
    from synapsed.model.task import Message

    return SendRequest(message=Message.of("hi"), **options)
