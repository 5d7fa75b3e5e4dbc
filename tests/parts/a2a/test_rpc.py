"""The JSON-RPC endpoint over HTTP: methods and their semantics."""

import asyncio
import json

import pytest

from synapsed.model.task import Artifact, Prompt, TextPart
from tests.api.serving import Api, serving, sse_events
from tests.fakes.control import FakeControl, hold
from tests.parts.a2a.rpc import AGENT, MESSAGE, NOW, PROMPT, V1, a_request, error, kinds, result, stream


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
    other = await api.control.tasks.send("synapse-codex-8120", a_request())
    mine = await api.control.tasks.send(AGENT, a_request())
    for task_id in ("nope", "0" * 36, other.id, mine.id[:8]):
        bad = await error(api, method, id=task_id)
        assert (bad["code"], bad["data"][0]["reason"]) == (-32001, "TASK_NOT_FOUND")
        assert bad["data"][0]["domain"] == "a2a-protocol.org"
    assert (await error(api, method))["code"] == -32602


async def test_no_task_is_read_to_know_whether_there_are_more(api: Api, monkeypatch: pytest.MonkeyPatch):
    read = []

    async def tasks(which):
        found = await api.control.store.tasks(which)
        read.append(len(found[0]))
        return found

    monkeypatch.setattr(api.control.tasks, "page", tasks)
    for _ in range(3):
        await api.control.tasks.send(AGENT, a_request())
    page = await result(api, "ListTasks", pageSize=2)
    assert page["nextPageToken"]
    assert not (await result(api, "ListTasks", pageSize=2, pageToken=page["nextPageToken"]))["nextPageToken"]
    assert read == [2, 1]
    async with api.agent.get("/tasks?limit=2") as response:
        assert "next" in response.links
    async with api.agent.get(str(response.links["next"]["url"].relative())) as response:
        assert "next" not in response.links
    assert read == [2, 1, 2, 1]


async def test_list_tasks(api: Api):
    sent = [await api.control.tasks.send(AGENT, a_request()) for _ in range(5)]
    await api.control.tasks.send("synapse-codex-8120", a_request())
    api.control.script = hold
    waiting = await api.control.tasks.send(AGENT, a_request(context_id="c1"))
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
        ({"status": "TASK_STATE_UNSPECIFIED"}, 6),
        ({"status": 0}, 6),
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
        {"status": False},
        {"historyLength": -1},
        {"statusTimestampAfter": "yesterday"},
    ],
)
async def test_lists_that_are_refused(api: Api, params):
    assert (await error(api, "ListTasks", **params))["code"] == -32602
