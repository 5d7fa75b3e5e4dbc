"""SSE and WebSocket streams as views of the log: shapes, resuming, ending, leaving."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress

import pytest
from aiohttp import WSMsgType

from synapsed.api import sse
from synapsed.api.context import Streams
from synapsed.api.routes import control as control_routes
from synapsed.api.sse import SseFrame
from synapsed.clock import SystemClock
from synapsed.documents.budget import BUDGET
from synapsed.errors import QueueFull, TaskNotFound
from synapsed.model.agent import Activity
from synapsed.model.events import ActivityChanged, InputAnswered
from synapsed.model.task import Prompt, TaskState
from synapsed.store.store import SqliteStore
from tests.api.serving import Api, serving, sse_events
from tests.fakes.clock import until
from tests.fakes.control import FakeControl, hold
from tests.support.patience import PATIENCE_S

SEND = {"message": {"role": "user", "parts": [{"type": "text", "text": "hi"}]}}
PROMPT = Prompt(prompt_id="p1", type="confirmation", prompt="Go on? (y/n)")
OTHER = PROMPT.model_copy(update={"prompt_id": "p2"})


async def sent(api: Api) -> str:
    api.control.script = hold
    _, body = await api.json(api.agent, "POST", "/tasks/send", json=SEND)
    return body["task"]["id"]


def seen(events: list[dict[str, str]]) -> list[str]:
    """States and artifacts' texts."""
    data = [json.loads(event["data"]) for event in events]
    return [item["state"] if "state" in item else item["artifact"]["parts"][0]["text"] for item in data]


async def test_send_subscribe(api: Api):
    async with api.agent.post("/tasks/sendSubscribe", json=SEND) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        assert response.headers["X-Accel-Buffering"] == "no"
        assert response.headers["Cache-Control"] == "no-cache, no-store"
        events = await sse_events(response)
    assert [event["event"] for event in events] == ["status", "status", "artifact", "status"]
    assert [int(event["id"]) for event in events] == [1, 2, 3, 4]
    status, artifact = json.loads(events[0]["data"]), json.loads(events[2]["data"])
    assert set(status) == {"taskId", "state", "timestamp"}
    assert set(artifact) == {"taskId", "artifact", "append", "lastChunk"}
    assert (artifact["append"], artifact["lastChunk"]) == (False, True)
    assert artifact["artifact"] | {"artifact_id": "answer"} == {
        "artifact_id": "answer",
        "type": "text",
        "name": "output",
        "parts": [{"type": "text", "text": "echo: hi"}],
    }


async def test_failures_and_prompts(api: Api):
    task_id = await sent(api)
    await api.control.ask(task_id, PROMPT)
    await api.control.tell("synapse-claude-8100", InputAnswered(prompt_id="p1", answer="y"), task_id)
    await api.control.fail(task_id)
    async with api.agent.get(f"/tasks/{task_id}/subscribe") as response:
        events = [json.loads(event["data"]) for event in await sse_events(response)]
    assert [event["state"] for event in events] == ["submitted", "input_required", "failed"]
    assert events[1]["prompt"] == PROMPT.model_dump(mode="json")
    assert events[2]["error"] == {"code": "AGENT_EXITED", "message": "exit code 7", "details": {}}


@asynccontextmanager
async def said_to(api: Api, *requests: bytes) -> AsyncGenerator[asyncio.StreamReader]:
    """What comes on a connection on which the requests were sent."""
    reader, writer = await asyncio.open_unix_connection(str(api.path))
    try:
        for request in requests:
            writer.write(request + b" HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        async with asyncio.timeout(30):
            yield reader
    finally:
        writer.close()


async def test_a_fault_in_a_stream_cuts_its_connection(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer to it would stand among the events, and the connection would go on behind it."""
    task_id = await sent(api)

    async def breaking(*_: object) -> AsyncGenerator[SseFrame]:
        yield SseFrame({"n": 1}, event="status", event_id=1)
        raise TaskNotFound("it is gone")

    monkeypatch.setattr(control_routes, "frames_until_settled", breaking)
    came = b""
    async with said_to(api, f"GET /control/tasks/{task_id}/wait".encode()) as answer:
        with suppress(ConnectionError):
            while piece := await answer.read(65536):
                came += piece
    assert came.count(b"HTTP/1.1 200") == came.count(b"HTTP/1.1") == 1
    assert b'{"n":1}' in came
    assert not came.endswith(b"0\r\n\r\n"), "the stream has no end that would be one of the task"


@pytest.mark.parametrize("path", ["/events", "/agents/claude/tasks/{}/subscribe", "/control/tasks/{}/wait"])
async def test_head_of_a_stream_is_its_head_alone(api: Api, path: str) -> None:
    """A proxy asks so, on a connection that it keeps for others."""
    asked = path.format(await sent(api)).encode()
    async with said_to(api, b"HEAD " + asked, b"GET /healthz") as answer:
        head = await answer.readuntil(b"\r\n\r\n")
        following = await answer.readuntil(b"\r\n\r\n")
    assert (b" 200 " in head, b"text/event-stream" in head) == (True, True)
    assert following.startswith(b"HTTP/1.1 200 ")
    assert api.servers.context.streams.open == 0


@pytest.mark.parametrize("way", ["header", "query", "after"])
async def test_resuming_at_every_event(api: Api, way):
    task_id = await sent(api)
    await api.control.work(task_id)
    for number in range(5):
        await api.control.progress(task_id, f"p{number}")
    await api.control.complete(task_id, "done")
    whole = ["submitted", "working", "p0", "p1", "p2", "p3", "p4", "done", "completed"]
    path = f"/tasks/{task_id}/subscribe"
    async with api.agent.get(path) as response:
        events = await sse_events(response)
    assert seen(events) == whole
    for index, event in enumerate(events):
        cursor = event["id"]
        options = {"headers": {"Last-Event-ID": cursor}} if way == "header" else {}
        query = {"header": "", "query": f"?lastEventId={cursor}", "after": f"?after={cursor}"}[way]
        async with api.agent.get(path + query, **options) as response:
            assert response.status == (204 if index == len(events) - 1 else 200)
            assert seen(await sse_events(response)) == whole[index + 1 :]


async def test_a_cursor_that_is_none_beside_one_that_counts(api: Api):
    _, body = await api.json(api.agent, "POST", "/tasks/send", json=SEND)
    path = f"/tasks/{body['task']['id']}/subscribe"
    for query, headers in (
        ("?lastEventId=x", {"Last-Event-ID": "0"}),
        ("?lastEventId=0&after=99999", {}),
        ("?after=", {"Last-Event-ID": "0"}),
        ("", {"Last-Event-ID": ""}),
    ):
        status, body = await api.json(api.agent, "GET", path + query, headers=headers)
        assert (status, body["error"]["code"]) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "99999", "9" * 100, " ", ""])
async def test_a_cursor_that_is_none(api: Api, cursor):
    task_id = await sent(api)
    status, body = await api.json(api.agent, "GET", f"/tasks/{task_id}/subscribe?lastEventId={cursor}")
    assert (status, body["error"]["code"]) == (400, "INVALID_REQUEST")


async def test_following_live_over_a_break(api: Api):
    """Two subscribers; one leaves in the middle and resumes: the same events, each once."""
    task_id = await sent(api)
    path = f"/tasks/{task_id}/subscribe"
    async with api.agent.get(path) as stays, api.http.get(f"/agents/claude{path}") as leaves:
        whole = asyncio.create_task(sse_events(stays))
        await api.control.work(task_id)
        await api.control.progress(task_id, "one")
        before = await sse_events(leaves, 3)
        leaves.close()
        for text in ("two", "three"):
            await api.control.progress(task_id, text)
        async with api.http.get(f"/agents/claude{path}", headers={"Last-Event-ID": before[-1]["id"]}) as again:
            after = asyncio.create_task(sse_events(again))
            await api.control.complete(task_id, "done")
            assert before + await after == await whole
    assert seen(await whole) == ["submitted", "working", "one", "two", "three", "done", "completed"]


async def test_a_client_that_leaves_stops_nothing(api: Api):
    api.control.script = hold
    async with api.agent.post("/tasks/sendSubscribe", json=SEND) as response:
        (first,) = await sse_events(response, 1)
    task_id = json.loads(first["data"])["taskId"]
    await api.control.complete(task_id, "done")
    assert (await api.control.tasks.find(task_id)).status is TaskState.COMPLETED


async def test_resuming_over_a_restart(tmp_path):
    """The id is the log's: another daemon on the same database goes on after it."""

    @asynccontextmanager
    async def daemon():
        store = await SqliteStore.open(tmp_path / "log.db", clock=SystemClock())
        control = FakeControl(hold)
        control.store = store
        control.add("claude", "claude", 8100)
        try:
            async with serving(control, tmp_path) as api:
                yield api
        finally:
            await store.close()

    async with daemon() as api:
        task_id = await sent(api)
        async with api.agent.get(f"/tasks/{task_id}/subscribe") as response:
            await api.control.work(task_id)
            await api.control.progress(task_id, "one")
            before = await sse_events(response, 2)
            await api.servers.close()
            before += await sse_events(response)
    async with daemon() as api:
        await api.control.progress(task_id, "two")
        await api.control.complete(task_id, "done")
        options = {"headers": {"Last-Event-ID": before[-1]["id"]}}
        async with api.agent.get(f"/tasks/{task_id}/subscribe", **options) as response:
            after = await sse_events(response)
    assert seen(before + after) == ["submitted", "working", "one", "two", "done", "completed"]
    ids = [int(event["id"]) for event in before + after]
    assert ids == sorted(set(ids))


async def test_keepalives(control, tmp_path):
    async with serving(control, tmp_path, keepalive=0.01) as api:
        task_id = await sent(api)
        async with api.agent.get(f"/tasks/{task_id}/subscribe") as response:
            lines = []
            async for line in response.content:
                lines.append(line)
                if lines.count(b": keepalive\n") == 4:
                    await api.control.complete(task_id, "done")
        assert lines[-2].startswith(b"data: ")
        assert lines[-1] == b"\n"


async def test_wait_ends_where_a_person_is_asked_now(api: Api):
    task_id = await sent(api)
    await api.control.ask(task_id, PROMPT)
    await api.control.work(task_id)
    await api.control.ask(task_id, OTHER)
    path = f"/control/tasks/{task_id}/wait"
    async with api.unix.get(path) as response:
        events = await sse_events(response)
    assert seen(events) == ["submitted", "input_required", "working", "input_required"]
    again = f"{path}?after={events[-1]['id']}"
    for options in ({}, {"headers": {"Last-Event-ID": events[-1]["id"]}}):
        async with asyncio.timeout(30), api.unix.get(again, **options) as response:
            assert await sse_events(response) == [], "it waits still, as after a break of the line"
    await api.control.complete(task_id, "done")
    async with api.unix.get(again) as response:
        assert seen(await sse_events(response)) == ["done", "completed"]


async def test_a_wait_goes_on_past_a_question_that_is_answered(api: Api):
    task_id = await sent(api)
    await api.control.ask(task_id, PROMPT)
    path = f"/control/tasks/{task_id}/wait"
    async with api.unix.get(path) as response:
        events = await sse_events(response)
    await api.control.work(task_id)
    async with api.unix.get(f"{path}?after={events[-1]['id']}") as response:
        await api.control.complete(task_id, "done")
        assert seen(await sse_events(response)) == ["working", "done", "completed"]


async def test_events_of_all_and_of_one(api: Api):
    def busy(agent: str) -> tuple[str, ActivityChanged]:
        return agent, ActivityChanged(activity=Activity.BUSY, evidence="hook")

    async with (
        api.http.get("/events", headers={"Accept": "text/event-stream"}) as everyone,
        api.http.get("/agents/codex/events?stream=sse") as codex,
        api.http.ws_connect("/events") as socket,
    ):
        await api.control.tell(*busy("synapse-claude-8100"))
        await api.control.tell(*busy("synapse-codex-8120"))
        first, second = await sse_events(everyone, 2)
        assert (first["event"], first["id"], second["id"]) == ("activity", "1", "2")
        event = json.loads(second["data"])
        assert event == {
            "id": 2,
            "event": "activity",
            "data": {"activity": "busy", "evidence": "hook", "prompt": None, "background": None},
            "time": event["time"],
            "agent": "synapse-codex-8120",
            "task": None,
            "context": None,
        }
        assert await sse_events(codex, 1) == [second]
        assert json.loads(await socket.receive_str(timeout=30)) == json.loads(first["data"])
        assert json.loads(await socket.receive_str(timeout=30)) == event
    async with api.http.ws_connect("/agents/codex/events?after=0") as socket:
        assert await socket.receive_json(timeout=30) == event


async def test_events_up_to_the_newest(api: Api):
    for agent in ("synapse-claude-8100", "synapse-codex-8120"):
        await api.control.tell(agent, ActivityChanged(activity=Activity.BUSY, evidence="hook"))
    async with api.http.get("/events?stream=sse&after=0&until=newest") as everyone:
        assert [event["id"] for event in await sse_events(everyone)] == ["1", "2"]
    async with api.http.get("/agents/codex/events?stream=sse&after=0&until=newest") as codex:
        assert [event["id"] for event in await sse_events(codex)] == ["2"]
    async with api.http.get("/events?stream=sse&until=newest") as none:
        assert await sse_events(none) == []


async def test_events_asked_for_in_no_way_that_is_there(api: Api):
    status, body = await api.json(api.http, "GET", "/events")
    assert (status, body["error"]["code"]) == (400, "INVALID_REQUEST")


async def test_streams_end_when_the_daemon_goes(api: Api):
    task_id = await sent(api)
    async with (
        api.agent.get(f"/tasks/{task_id}/subscribe") as task,
        api.http.get("/events?stream=sse") as events,
        api.http.ws_connect("/events") as socket,
    ):
        assert len(await sse_events(task, 1)) == 1
        async with asyncio.timeout(PATIENCE_S):
            await api.servers.close()
            assert await sse_events(task) == []
            assert await sse_events(events) == []
            message = await socket.receive()
    assert (message.type, message.data) == (WSMsgType.CLOSE, 1001)


async def stalled(api: Api, path: str, headers: str = ""):
    """A client that has read the head of the response, and nothing of what follows."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", api.agent_port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=1024)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


@pytest.mark.slow
async def test_a_client_that_reads_too_slowly_is_told_and_goes_on_by_its_cursor(control, tmp_path, monkeypatch):
    given_up = asyncio.Event()

    async def truncate(*args):
        given_up.set()
        await truncated(*args)

    truncated = sse._truncate
    monkeypatch.setattr(sse, "_truncate", truncate)
    # It begins to read when everything is said, which may take a slow machine more than a minute, and when the daemon
    # has given it up, which may take longer than that on a fast one.
    async with serving(control, tmp_path, write_stall=1.0, keepalive=3600.0) as api:
        task_id = await sent(api)
        path = f"/tasks/{task_id}/subscribe"
        async with api.agent.get(path) as quick:
            reader, writer = await stalled(api, path)
            for number in range(100):
                await api.control.progress(task_id, f"{number} " + "x" * 200_000)
                await sse_events(quick, 1)  # the other one is not kept waiting
            async with asyncio.timeout(600):
                await given_up.wait()
                raw = await reader.read(-1)
            await api.control.complete(task_id, "done")
            writer.close()
        text = raw.decode()
        assert text.rstrip("0\r\n").endswith('data: {"reason": "read too slowly; go on after the last id"}')
        assert "event: truncated" in text
        last = int(re.findall(r"^id: (\d+)", text, re.MULTILINE)[-1])
        had = set(map(int, re.findall(r"^id: (\d+)", text, re.MULTILINE)))
        assert 0 < len(had) < 101
        async with api.agent.get(path, headers={"Last-Event-ID": str(last)}) as response:
            rest = [int(event["id"]) for event in await sse_events(response)]
        assert had | set(rest) == set(range(1, api.control.events.last_id + 1))
        assert not had & set(rest)


async def test_a_client_that_never_reads_again_is_cut_off(control, tmp_path):
    async with serving(control, tmp_path, write_stall=0.2, keepalive=0.2) as api:
        task_id = await sent(api)
        _, writer = await stalled(api, f"/tasks/{task_id}/subscribe")
        for _ in range(20):
            await api.control.progress(task_id, "x" * 1_000_000)
        await api.streams(0)
        assert (await api.json(api.agent, "GET", "/status"))[0] == 200
        writer.close()


async def numbers(count: int, pause: asyncio.Event | None = None):
    for number in range(count):
        yield number
    if pause is not None:
        await pause.wait()
        yield count


async def test_items_ticks_lose_nothing():
    streams, pause = Streams(1), asyncio.Event()
    got = []
    async with aclosing(streams.items(numbers(3, pause), 0.001)) as items:
        async for item in items:
            got.append(item)
            if got.count(None) == 3:
                pause.set()
    assert [item for item in got if item is not None] == [0, 1, 2, 3]


async def test_items_end_on_closing_and_pass_errors_on():
    streams = Streams(1)
    async with aclosing(streams.items(numbers(1, asyncio.Event()), 60)) as items:
        assert await anext(items) == 0
        asyncio.get_running_loop().call_soon(streams.closing.set)
        assert [item async for item in items] == []
    assert [item async for item in streams.items(numbers(5), 60)] == []

    async def broken():
        yield 1
        raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        assert [item async for item in Streams(1).items(broken(), 60)]


def test_opened_counts():
    streams = Streams(1)
    with streams.opened():
        with pytest.raises(QueueFull), streams.opened():
            pass
        assert streams.open == 1
    assert streams.open == 0


@pytest.mark.parametrize("path", ["/events", "/agents/codex/events"])
async def test_who_resumes_where_events_are_gone_is_told(api: Api, path: str):
    """And goes on with what there is."""
    for evidence in ("a", "b", "c"):
        await api.control.tell("synapse-codex-8120", ActivityChanged(activity=Activity.READY, evidence=evidence))
    api.control.events.removed = 2
    async with api.http.get(f"{path}?after=1&stream=sse") as response:
        gap, *rest = await sse_events(response, 3)
    assert gap["event"] == "gap"
    assert "id" not in gap
    assert json.loads(gap["data"])["data"] == {"from": 2, "to": 2}
    assert [int(event["id"]) for event in rest] == [2, 3]
    async with api.http.ws_connect(f"{path}?after=0") as socket:
        assert (await socket.receive_json())["data"] == {"from": 1, "to": 2}
        assert (await socket.receive_json())["id"] == 1
    async with api.http.get(f"{path}?after=2&stream=sse") as response:
        assert [event["id"] for event in await sse_events(response, 1)] == ["3"]


async def test_a_large_answer_for_which_there_is_no_room_is_refused(api: Api):
    """In every dialect, before anything is done; small answers are given."""
    small = await sent(api)
    message = {"role": "user", "parts": [{"type": "text", "text": "x" * 100_000}]}
    _, body = await api.json(api.agent, "POST", "/tasks/send", json={"message": message})
    large = body["task"]["id"]
    room = api.control.events.room
    held = room.take_now("held", BUDGET)
    assert held is not None
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": large}}
    headers = {"A2A-Version": "1.0"}
    for client, method, path, body in (
        (api.agent, "GET", f"/tasks/{large}", None),
        (api.agent, "GET", "/tasks", None),
        (api.agent, "POST", f"/tasks/{large}/cancel", None),
        (api.unix, "GET", f"/control/tasks/{large}", None),
        (api.unix, "GET", "/control/tasks", None),
        (api.agent, "GET", f"/a2a/rest/tasks/{large}", None),
        (api.agent, "GET", "/a2a/rest/tasks?includeArtifacts=true", None),
        (api.agent, "POST", "/a2a", rpc),
        (api.agent, "POST", "/a2a", rpc | {"method": "ListTasks", "params": {}}),
        (api.agent, "POST", "/a2a", rpc | {"method": "SubscribeToTask"}),
    ):
        async with client.request(method, path, json=body, headers=headers) as response:
            assert (response.status, response.headers.get("Retry-After")) == (503, "5"), path
            assert "BUSY" in await response.text(), path
    async with api.agent.post("/a2a", json=rpc | {"method": "tasks/get"}, headers={"A2A-Version": "0.3"}) as response:
        assert (response.status, response.headers["Retry-After"]) == (503, "5")
    assert room.used == BUDGET, "what was refused holds nothing"
    assert (await api.control.tasks.find(large)).status is TaskState.SUBMITTED
    assert (await api.json(api.agent, "GET", f"/tasks/{small}"))[0] == 200
    held.release()
    assert (await api.json(api.agent, "GET", f"/tasks/{large}"))[0] == 200
    async with api.agent.get(f"/tasks/{large}/subscribe") as stream:
        assert len(await sse_events(stream, 1)) == 1
        await until(lambda: room.used == 0, "a stream has nothing of the task that it began with")


LARGE_TEXT = "x" * 100_000


@pytest.mark.parametrize(
    ("path", "version", "body"),
    [
        ("/tasks/send", "", {"message": {"role": "user", "parts": [{"type": "text", "text": LARGE_TEXT}]}}),
        ("/a2a", "1.0", "SendMessage"),
        ("/a2a", "1.0", "SendStreamingMessage"),
        ("/a2a", "0.3", "message/send"),
        (
            "/a2a/rest/message:send",
            "1.0",
            {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": LARGE_TEXT}]}},
        ),
    ],
)
async def test_what_is_sent_is_accepted_at_once_and_its_large_answer_waits_for_room(
    api: Api, path: str, version: str, body
):
    if isinstance(body, str):
        kind = {"kind": "text"} if version == "0.3" else {}
        message = {"messageId": "m1", "role": "user" if kind else "ROLE_USER", "parts": [{**kind, "text": LARGE_TEXT}]}
        body = {"jsonrpc": "2.0", "id": 1, "method": body, "params": {"message": message}}
    room = api.control.events.room
    held = room.take_now("held", BUDGET)
    assert held is not None
    asking = asyncio.create_task(asked(api, path, version, body))
    await until(lambda: any(call[0] == "send" for call in api.control.calls), "it is in the mailbox")
    await until(lambda: room.waiting == 1, "its answer waits")
    assert not asking.done()
    held.release()
    assert LARGE_TEXT in await asking
    await until(lambda: room.used == 0, "it is given back")


async def asked(api: Api, path: str, version: str, body) -> str:
    async with api.agent.post(path, json=body, headers={"A2A-Version": version} if version else {}) as response:
        assert response.status == 200
        return await response.text()
