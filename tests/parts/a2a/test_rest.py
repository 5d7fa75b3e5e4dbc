"""The HTTP+JSON endpoint over HTTP: paths, queries, media types, refusals, streams."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.model.task import TaskState
from synapsed.parts.a2a.endpoint_types import RestRequest, StreamReply
from synapsed.parts.a2a.endpoints import Endpoints
from tests.api.serving import Api, sse_events
from tests.fakes.control import FakeControl, hold
from tests.parts.a2a.rpc import AGENT, MESSAGE, NOW, V1, kinds
from tests.parts.a2a.test_rpc_envelope import Anybody

REST = "/a2a/rest"


async def ask(api: Api, verb: str, path: str, status: int = 200, **options):
    headers = V1 | options.pop("headers", {})
    async with api.agent.request(verb, f"{REST}{path}", headers=headers, **options) as response:
        assert response.status == status, await response.text()
        return await response.json(content_type=None)


async def refusal(api: Api, verb: str, path: str, status: int = 400, **options) -> dict:
    """The error, which is google.rpc.Status with an ErrorInfo."""
    body = await ask(api, verb, path, status, **options)
    error = body["error"]
    assert set(body) == {"error"}
    assert set(error) == {"code", "status", "message", "details"}
    assert error["code"] == status
    assert error["details"][0]["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    assert all(isinstance(value, str) for value in error["details"][0]["metadata"].values())
    return error


def reason(error: dict) -> str:
    return error["details"][0]["reason"]


async def sent(api: Api, prefix: str = "", **message) -> dict:
    body = {"message": MESSAGE | message, "configuration": NOW}
    return (await ask(api, "POST", f"{prefix}/message:send", json=body))["task"]


# --- operations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "/anybody"])
async def test_operations(api: Api, prefix):
    done = (await ask(api, "POST", f"{prefix}/message:send", json={"message": MESSAGE}))["task"]
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
    api.control.script = hold
    task = await sent(api, prefix)
    assert await ask(api, "GET", f"{prefix}/tasks/{task['id']}?historyLength=1&unknown=1") == task
    page = await ask(api, "GET", f"{prefix}/tasks?pageSize=1&includeArtifacts=true&status=TASK_STATE_COMPLETED")
    assert [item["id"] for item in page["tasks"]] == [done["id"]]
    assert page["tasks"][0]["artifacts"]
    canceled = await ask(api, "POST", f"{prefix}/tasks/{task['id']}:cancel", json={"id": "another", "metadata": {}})
    assert (canceled["id"], canceled["status"]["state"]) == (task["id"], "TASK_STATE_CANCELED")
    error = await refusal(api, "POST", f"{prefix}/tasks/{task['id']}:cancel")
    assert (reason(error), error["status"]) == ("TASK_NOT_CANCELABLE", "FAILED_PRECONDITION")


async def test_the_main_listener_serves_it_below_the_agent(api: Api):
    async with api.http.post("/agents/codex/a2a/rest/message:send", json={"message": MESSAGE}, headers=V1) as response:
        assert (await response.json())["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert api.control.calls[-1][1] == "synapse-codex-8120"


@pytest.mark.parametrize("verb", ["GET", "POST"])
async def test_streams_are_bare(api: Api, verb):
    api.control.script = hold
    headers = V1 | {"Content-Type": "application/a2a+json"}
    body = json.dumps({"message": MESSAGE})
    async with api.agent.post(f"{REST}/message:stream", data=body, headers=headers) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        (first,) = [json.loads(event["data"]) for event in await sse_events(response, 1)]
        task_id = first["task"]["id"]
        async with api.agent.request(verb, f"{REST}/tasks/{task_id}:subscribe", headers=V1) as subscribed:
            await api.control.work(task_id)
            await api.control.complete(task_id, "done")
            events = [json.loads(event["data"]) for event in await sse_events(response)]
            again = [json.loads(event["data"]) for event in await sse_events(subscribed)]
    assert kinds(events) == ["WORKING", "done", "COMPLETED"]
    assert all(len(event) == 1 for event in [first, *events])
    assert kinds(again)[-2:] == ["done", "COMPLETED"]
    error = await refusal(api, verb, f"/tasks/{task_id}:subscribe")
    assert reason(error) == "UNSUPPORTED_OPERATION"


async def test_a_stream_that_fails_says_so(api: Api, capsys):
    api.control.script = hold

    class Broken:
        last_id = 0

        def follow(self, *args, **options):
            raise RuntimeError("a secret inside")

    async with api.agent.post(f"{REST}/message:stream", json={"message": MESSAGE}, headers=V1) as response:
        (first,) = await sse_events(response, 1)
    task_id = json.loads(first["data"])["task"]["id"]
    real = api.control.events.follow
    api.control.events.follow = Broken().follow
    async with api.agent.post(f"{REST}/tasks/{task_id}:subscribe", headers=V1) as response:
        _, failure = await sse_events(response)
    api.control.events.follow = real
    assert failure["event"] == "error"
    assert json.loads(failure["data"])["error"]["code"] == 500
    assert "secret" not in failure["data"]
    capsys.readouterr()  # the log of it


@pytest.mark.parametrize("state", [TaskState.AUTH_REQUIRED, TaskState.REJECTED])
async def test_what_waits_for_a_login_or_is_rejected_ends_the_wait_and_the_stream(api: Api, state):
    async def stop(control: FakeControl, task) -> None:
        await control.change(task.id, state)

    api.control.script = stop
    told = f"TASK_STATE_{state.value.upper()}"
    task = (await ask(api, "POST", "/message:send", json={"message": MESSAGE}))["task"]
    assert task["status"]["state"] == told
    async with api.agent.post(f"{REST}/message:stream", json={"message": MESSAGE}, headers=V1) as response:
        events = [json.loads(event["data"]) for event in await sse_events(response)]
    assert [event["task"]["status"]["state"] for event in events] == [told]
    page = await ask(api, "GET", f"/tasks?status={told}")
    assert page["totalSize"] == 2


# --- what is refused -------------------------------------------------------------------------------------------------


async def test_queries_that_are_refused_name_all_that_is_wrong(api: Api):
    error = await refusal(api, "GET", "/tasks?pageSize=x&includeArtifacts=yes&status=TASK_STATE_RUNNING&pageSize=2")
    violations = error["details"][1]["fieldViolations"]
    assert {fault["field"] for fault in violations} == {"pageSize", "includeArtifacts", "status"}
    assert "TASK_STATE_WORKING" in next(fault["description"] for fault in violations if fault["field"] == "status")
    for query in (
        "pageSize=0",
        "pageSize=101",
        "pageSize=99999999999",
        "pageSize=1.5",
        "historyLength=-1",
        "statusTimestampAfter=now",
        "status=0",
        "pageToken=junk",
    ):
        error = await refusal(api, "GET", f"/tasks?{query}")
        assert error["details"][1]["fieldViolations"], query
        assert (reason(error), error["status"]) == ("INVALID_PARAMS", "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    ("verb", "path", "status", "told"),
    [
        ("GET", "/", 404, "METHOD_NOT_FOUND"),
        ("GET", "/sing", 404, "METHOD_NOT_FOUND"),
        ("GET", "/a/b/tasks", 404, "METHOD_NOT_FOUND"),
        ("GET", "/tasks/x:sing", 404, "METHOD_NOT_FOUND"),
        ("GET", "/message:send", 405, "METHOD_NOT_FOUND"),
        ("GET", "/tasks/x:cancel", 405, "METHOD_NOT_FOUND"),
        ("DELETE", "/tasks/x", 405, "METHOD_NOT_FOUND"),
        ("GET", "/tasks/nope", 404, "TASK_NOT_FOUND"),
        ("GET", "/tasks/nope/", 404, "TASK_NOT_FOUND"),
        ("GET", "/tenant/tasks/nope", 404, "TASK_NOT_FOUND"),
        ("POST", "/tasks/nope:cancel", 404, "TASK_NOT_FOUND"),
        ("POST", "/tasks/nope%3Acancel", 404, "TASK_NOT_FOUND"),
        ("POST", "/tasks/nope:subscribe", 404, "TASK_NOT_FOUND"),
        ("POST", "/message:send", 400, "INVALID_PARAMS"),
        ("POST", "/tasks/x/pushNotificationConfigs", 400, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        ("DELETE", "/t/tasks/x/pushNotificationConfigs/c", 400, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
    ],
)
async def test_paths_that_are_refused(api: Api, verb, path, status, told):
    assert reason(await refusal(api, verb, path, status)) == told


async def test_what_a_path_takes_is_told(api: Api):
    async with api.agent.delete(f"{REST}/tasks/x:subscribe", headers=V1) as response:
        assert (response.status, response.headers["Allow"]) == (405, "POST, GET")


@pytest.mark.parametrize("version", ["", "0.3", "1.1", "2.0", "one"])
async def test_versions(api: Api, version):
    error = await refusal(api, "GET", "/tasks", headers={"A2A-Version": version})
    assert reason(error) == "VERSION_NOT_SUPPORTED"
    assert "tasks" in await ask(api, "GET", "/tasks?A2A-Version=1.0", headers={"A2A-Version": ""})


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[]", b"5", b'{"message": "hi"}', b'{"message": {"role": "user"}}'])
async def test_bodies_that_are_refused(api: Api, body):
    headers = {"Content-Type": "application/json"}
    error = await refusal(api, "POST", "/message:send", data=body, headers=headers)
    assert error["status"] == "INVALID_ARGUMENT"


async def test_the_gate_refuses_in_the_same_form(api: Api):
    error = await refusal(api, "POST", "/message:send", 415, data=b"hi", headers={"Content-Type": "text/plain"})
    assert reason(error) == "CONTENT_TYPE_NOT_SUPPORTED"
    error = await refusal(api, "GET", "/tasks", 401, headers={"Authorization": "Bearer nobody"})
    assert (reason(error), error["status"]) == ("UNAUTHORIZED", "UNAUTHENTICATED")
    error = await refusal(api, "GET", "/tasks", 403, headers={"Origin": "http://evil.example"})
    assert error["status"] == "PERMISSION_DENIED"
    async with api.http.get("/agents/nobody/a2a/rest/tasks", headers=V1) as response:
        assert (await response.json())["error"]["details"][0]["reason"] == "UNKNOWN_AGENT"
        assert response.status == 404
    api.control.queue_max = 0
    async with api.agent.post(f"{REST}/message:send", json={"message": MESSAGE}, headers=V1) as response:
        error = (await response.json())["error"]
        assert (response.status, error["status"], reason(error)) == (429, "RESOURCE_EXHAUSTED", "QUEUE_FULL")


async def test_media_types(api: Api):
    """The one that the client sent; without a body the one that it accepts, A2A's own otherwise."""
    body = json.dumps({"message": MESSAGE})
    for kind in ("application/json", "application/a2a+json"):
        headers = V1 | {"Content-Type": kind}
        async with api.agent.post(f"{REST}/message:send", data=body, headers=headers) as response:
            assert (response.status, response.content_type) == (200, kind)
        async with api.agent.get(f"{REST}/tasks", headers=V1 | {"Accept": kind}) as response:
            assert response.content_type == kind
    async with api.agent.get(f"{REST}/tasks/nope", headers=V1) as response:
        assert response.content_type == "application/a2a+json"


# --- anything at all -------------------------------------------------------------------------------------------------

segments = st.sampled_from(["tasks", "message:send", "message:stream", "x:cancel", "x:subscribe", "x", "",
                            "pushNotificationConfigs", "extendedAgentCard"]) | st.text(max_size=4)  # fmt: skip
names = st.sampled_from(
    ["id", "taskId", "task_id", "tenant", "pageSize", "status", "historyLength", "includeArtifacts"]
)
values = st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.lists(st.integers(), max_size=2)
requests = st.builds(
    RestRequest,
    st.sampled_from(["GET", "POST", "DELETE", "PUT"]),
    st.lists(segments, max_size=4).map(lambda parts: "/" + "/".join(parts)),
    st.lists(st.tuples(names, st.text(max_size=4)), max_size=3),
    st.dictionaries(names, values, max_size=3) | values,
)


@given(requests)
def test_any_request_is_answered(request_):
    async def run() -> None:
        control = FakeControl()
        control.add("claude", "claude", 8100)
        answer = await Endpoints(control.tasks, control.events).rest.handle(AGENT, Anybody(control), request_, "1.0")
        if isinstance(answer, StreamReply):
            assert [item async for item in answer.bodies]
        else:
            assert answer.status < 500, answer

    asyncio.run(run())
