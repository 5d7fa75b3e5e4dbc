"""The streams of events: what is chosen, what is sent together, what is too large, what is not there any more."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import WSCloseCode, WSMsgType

from synapsed.documents.budget import BUDGET
from synapsed.model.agent import Activity
from synapsed.model.events import ActivityChanged, AgentReported, EventData, TaskArtifactAdded, ToolExecution
from synapsed.model.events.wire import EVENT_MAX
from synapsed.model.task import Artifact
from tests.api.serving import Api, sse_events
from tests.api.test_streams import sent
from tests.fakes.clock import until

CLAUDE, CODEX = "synapse-claude-8100", "synapse-codex-8120"


def busy(evidence: str = "hook") -> ActivityChanged:
    return ActivityChanged(activity=Activity.BUSY, evidence=evidence)


async def had(api: Api, query: str, path: str = "/events") -> list[dict[str, Any]]:
    """What the stream has up to the newest event, as SSE; a WebSocket sends the same."""
    query = f"after=0&until=newest&{query}"
    async with api.http.get(f"{path}?stream=sse&{query}") as response:
        events = await sse_events(response)
    bodies = [json.loads(event["data"]) for event in events]
    assert [(event["event"], event.get("id")) for event in events] == [
        (body["event"], None if body["id"] is None else str(body["id"])) for body in bodies
    ]
    async with api.http.ws_connect(f"{path}?{query}") as socket:
        again = [message.json() async for message in socket]
    assert [{**body, "time": None} for body in again] == [{**body, "time": None} for body in bodies]
    return bodies


async def tell(api: Api, *told: tuple[str, EventData]) -> None:
    for agent, data in told:
        await api.control.tell(agent, data)


async def test_filters(api: Api):
    await tell(api, (CLAUDE, busy()), (CODEX, busy()), (CODEX, AgentReported(kind="k", message="m")))
    task = await sent(api)
    last = api.control.events.last_id

    async def ids(query: str, path: str = "/events") -> list[int]:
        return [event["id"] for event in await had(api, query, path)]

    assert await ids("") == list(range(1, last + 1))
    assert await ids("types=activity") == [1, 2]
    assert await ids("types=agentReported,activity&agents=codex") == [2, 3]
    assert await ids("agents=claude,synapse-codex-8120&types=agentReported") == [3]
    assert await ids(f"tasks={task}") == await ids(f"tasks={task[:8]}") == list(range(4, last + 1))
    assert await ids("types=agentReported", "/agents/codex/events") == [3]
    assert await ids("types=usage") == []


@pytest.mark.parametrize(
    ("query", "status", "code", "words"),
    [
        ("types=activity,nonsense", 400, "INVALID_REQUEST", "types: must be of activity, "),
        ("types=", 400, "INVALID_REQUEST", "types: must be of"),
        ("agents=claud", 404, "UNKNOWN_AGENT", "did you mean 'claude'"),
        ("agents=", 400, "INVALID_REQUEST", "agents: must be 1 to 100 names"),
        ("agents=" + ",".join("a" * 101), 400, "INVALID_REQUEST", "agents: must be 1 to 100 names"),
        ("tasks=deadbeef", 404, "TASK_NOT_FOUND", "deadbeef"),
        ("batch=50", 400, "INVALID_REQUEST", "batch: must be a time such as 50ms"),
        ("batch=11s", 400, "INVALID_REQUEST", "at most 10s"),
        ("after=9", 400, "INVALID_REQUEST", "there is no event 9 yet"),
        ("type=activity", 400, "INVALID_REQUEST", "type: this path has no such parameter"),
    ],
)
async def test_what_is_asked_for_wrongly(api: Api, query: str, status: int, code: str, words: str):
    found, body = await api.json(api.http, "GET", f"/events?stream=sse&{query}")
    assert (found, body["error"]["code"]) == (status, code)
    assert words in body["error"]["message"]


async def test_only_the_main_port_has_several_agents(api: Api):
    status, body = await api.json(api.http, "GET", "/agents/codex/events?stream=sse&agents=claude")
    assert (status, body["error"]["code"]) == (400, "INVALID_REQUEST")


async def test_who_lags_is_sent_batches(api: Api):
    for number in range(100):
        await api.control.tell(CLAUDE, busy(str(number)))
    batches = await had(api, "")
    assert {event["event"] for event in batches} == {"batchEvents"}
    events = [event for body in batches for event in body["data"]]
    assert [event["id"] for event in events] == list(range(1, 101))
    assert [body["id"] for body in batches] == [body["data"][-1]["id"] for body in batches]
    assert (events[7]["event"], events[7]["agent"], events[7]["data"]["evidence"]) == ("activity", CLAUDE, "7")


async def test_who_wants_batches_gets_them(api: Api):
    async with api.http.ws_connect("/events?batch=50ms") as socket:
        await tell(api, (CLAUDE, busy("1")), (CODEX, busy("2")), (CLAUDE, busy("3")))
        got: list[dict[str, Any]] = []
        while len(got) < 3:
            body = await socket.receive_json(timeout=30)
            got += body["data"] if body["event"] == "batchEvents" else [body]
        await api.control.tell(CLAUDE, busy("alone"))
        alone = await socket.receive_json(timeout=30)
    assert [event["data"]["evidence"] for event in got] == ["1", "2", "3"]
    assert (alone["event"], alone["id"]) == ("activity", 4)


async def test_a_socket_whose_stream_fails_is_closed(api: Api, monkeypatch: pytest.MonkeyPatch):
    """One that stayed open would look as if nothing happened any more."""

    async def faulty(*_: object, **__: object) -> None:
        raise RuntimeError("a defect")

    async with api.http.ws_connect("/events") as socket:
        await tell(api, (CLAUDE, busy("1")))
        assert (await socket.receive_json(timeout=30))["id"] == 1
        monkeypatch.setattr(type(api.control.events), "page", faulty)
        await tell(api, (CLAUDE, busy("2")))
        told = await socket.receive(timeout=30)
    assert (told.type, told.data) == (WSMsgType.CLOSE, WSCloseCode.INTERNAL_ERROR)


async def test_a_large_event_is_cut_and_read_by_its_id(api: Api):
    output = {"text": "ü" * 1_000_000}
    whole = ToolExecution(tool_name="Bash", status="completed", input={"command": "cat it"}, output=output)
    artifact = TaskArtifactAdded(artifact=Artifact.answer("x" * 20_000))
    await tell(api, (CLAUDE, whole), (CLAUDE, artifact), (CLAUDE, busy("y" * 30_000)))
    async with api.http.get("/events?stream=sse&after=0") as response:
        events = await sse_events(response, 3)
    assert all(len(event["data"].encode()) <= EVENT_MAX for event in events)
    tool, task, long = (json.loads(event["data"]) for event in events)
    assert tool["data"]["input"] == {"command": "cat it"}
    assert tool["data"]["output"] == {"truncated": True, "size": 1_000_014}
    assert task["data"]["artifact"]["truncated"] is True
    assert task["data"]["artifact"]["size"] > 20_000
    assert long["data"]["evidence"].startswith("yyyy")
    status, body = await api.json(api.http, "GET", f"/events/{tool['id']}")
    assert (status, body["data"]["output"], body["event"]) == (200, output, "toolExecution")
    assert (await api.json(api.http, "GET", "/events/3"))[1]["data"]["evidence"] == "y" * 30_000


async def test_a_large_event_is_read_when_there_is_room(api: Api):
    text = "x" * 200_000
    await tell(api, (CLAUDE, TaskArtifactAdded(artifact=Artifact.answer(text))), (CLAUDE, busy()))
    room = api.control.events.room
    held = room.take_now("held", BUDGET)
    assert held is not None
    waits = [asyncio.create_task(api.json(api.http, "GET", "/events/1")) for _ in range(2)]
    assert (await api.json(api.http, "GET", "/events/2"))[0] == 200, "a small one needs none"
    assert not any(each.done() for each in waits)
    held.release()
    for each in waits:
        status, body = await each
        assert (status, body["data"]["artifact"]["parts"][0]["text"]) == (200, text)
    await until(lambda: room.used == 0, "what is written is given back")


@pytest.mark.parametrize("event", ["0", "5", "99999999999999999999999999", "-1", "first"])
async def test_an_event_that_there_is_not(api: Api, event: str):
    await tell(api, (CLAUDE, busy()))
    status, body = await api.json(api.http, "GET", f"/events/{event}")
    assert (status, body["error"]["code"]) == (404, "EVENT_NOT_FOUND")


async def test_what_cannot_be_encoded_is_a_gap_and_stops_nothing(api: Api, monkeypatch: pytest.MonkeyPatch):
    from synapsed.api import event_stream

    encode = event_stream.encoded

    def fails_at_2(event: Any) -> bytes:
        if event.id == 2:
            raise ValueError("this cannot be said")
        return encode(event)

    monkeypatch.setattr(event_stream, "encoded", fails_at_2)
    await tell(api, *((CLAUDE, busy(str(number))) for number in range(3)))
    first, gap, third = await had(api, "")
    assert (first["id"], third["id"], gap["id"]) == (1, 3, None)
    assert (gap["event"], gap["data"]) == ("gap", {"from": 2, "to": 2})


async def test_what_is_removed_while_a_subscriber_lags_is_told(api: Api):
    for number in range(5):
        await api.control.tell(CLAUDE, busy(str(number)))
    async with api.http.ws_connect("/events?after=4") as socket:
        assert (await socket.receive_json(timeout=30))["id"] == 5
        api.control.events.removed = 8
        for number in range(5):
            await api.control.tell(CLAUDE, busy(str(number)))
        told = [await socket.receive_json(timeout=30) for _ in range(3)]
    assert [body["data"] for body in told if body["event"] == "gap"] == [{"from": 6, "to": 8}]


TOOL = {"tool_name": "Bash", "status": "completed", "output": {"text": "ok"}, "duration_ms": 12}
MOOD = {"emotion_type": "joy", "level": 4, "detected_from": "voice_tone"}


async def test_what_is_reported_is_marked(api: Api):
    for body in (
        {"event": "toolExecution", "data": TOOL},
        {"event": "agentTransition", "data": {"to_agent": "synapse-claude-8100", "reason": "asked"}},
        {"event": "emotionUpdate", "data": MOOD},
        {"kind": "milestone", "message": "all is green"},
        {"event": "agentReported", "data": {"kind": "k", "message": "m"}},
    ):
        status, answer = await api.json(api.http, "POST", "/agents/codex/events", json=body)
        assert (status, answer) == (200, {"status": "reported"}), answer
    events = await had(api, "")
    names = ["toolExecution", "agentTransition", "emotionUpdate", "agentReported", "agentReported"]
    assert [event["event"] for event in events] == names
    assert {event["data"]["reported_by"] for event in events} == {"person"}
    assert {event["agent"] for event in events} == {CODEX}
    assert events[2]["data"] == {**MOOD, "evidence": None, "reported_by": "person"}


async def test_of_a_long_name_of_a_tool_the_name_is_cut_and_nothing_beside_it(api: Api):
    name = "x" * 12_000
    body = {"event": "toolExecution", "data": {**TOOL, "tool_name": name}}
    assert (await api.json(api.http, "POST", "/agents/codex/events", json=body))[0] == 200
    (event,) = await had(api, "types=toolExecution")
    assert event["data"] == {**event["data"], **TOOL, "tool_name": f"{name[:500]}…", "input": None, "error": None}
    whole = await api.json(api.http, "GET", f"/events/{event['id']}")
    assert whole[1]["data"] == {**event["data"], "tool_name": name}


async def test_a_task_of_the_agent_can_be_named(api: Api):
    task = await sent(api)
    body = {"event": "toolExecution", "data": TOOL, "task": task[:8]}
    agent = (await api.control.tasks.find(task)).agent_id
    other = next(name for name in (CLAUDE, CODEX) if name != agent)
    assert (await api.json(api.http, "POST", f"/agents/{agent}/events", json=body))[0] == 200
    assert (await had(api, "types=toolExecution"))[0]["task"] == task
    status, answer = await api.json(api.http, "POST", f"/agents/{other}/events", json=body)
    assert (status, answer["error"]["code"]) == (404, "TASK_NOT_FOUND")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "give 'kind' and 'message', or 'event' and 'data'"),
        ({"kind": "k"}, "give 'kind' and 'message'"),
        ({"kind": "k", "message": "m", "event": "toolExecution", "data": TOOL}, "give 'kind' and 'message'"),
        ({"kind": "k", "data": TOOL}, "give 'kind' and 'message'"),
        ({"event": "toolExecution", "data": {}}, "data.tool_name: Field required"),
        ({"event": "toolExecution", "data": {**TOOL, "status": "done"}}, "data.status: Input should be 'started'"),
        ({"event": "toolExecution", "data": {**TOOL, "outputs": {}}}, "data.outputs: toolExecution has no such field"),
        ({"event": "toolExecution", "data": {**TOOL, "reported_by": "me"}}, "data.reported_by: toolExecution has no"),
        ({"event": "toolExecution", "data": {**TOOL, "type": "usage"}}, "data.type: toolExecution has no such"),
        ({"event": "emotionUpdate", "data": {**MOOD, "level": 6}}, "data.level: Input should be less than"),
        ({"event": "agentReported", "data": {"kind": "K K", "message": "m"}}, "data.kind: "),
        ({"event": "agentState", "data": {"state": "failed"}}, "event: "),
    ],
)
async def test_what_is_reported_wrongly(api: Api, body: dict[str, Any], words: str):
    status, answer = await api.json(api.http, "POST", "/agents/codex/events", json=body)
    assert (status, answer["error"]["code"]) == (400, "INVALID_REQUEST")
    assert words in answer["error"]["message"]
    assert api.control.events.last_id == 0


async def test_the_schema_is_served(api: Api):
    status, schema = await api.json(api.http, "GET", "/events/schema")
    assert (status, schema["title"]) == (200, "SynapsedEvent")
