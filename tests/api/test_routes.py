"""Every route's shape, over TCP as a person of this machine."""

import pytest

from tests.api.serving import Api, sse_events

pytestmark = pytest.mark.asyncio

SEND = {"message": {"role": "user", "parts": [{"type": "text", "text": "hi"}]}}


async def test_health_and_agents(api: Api):
    assert await api.json(api.http, "GET", "/healthz") == (200, {"status": "ok", "version": "1.2.3"})
    status, agents = await api.json(api.http, "GET", "/agents")
    assert status == 200
    assert [agent["name"] for agent in agents] == ["claude", "codex"]
    assert list(agents[0]) == [
        "name", "id", "type", "port", "pid", "state", "activity", "since", "evidence", "held", "queue", "task",
        "restarts", "cwd", "endpoint",
    ]  # fmt: skip


async def test_send_and_read_a_task(api: Api):
    status, body = await api.json(api.http, "POST", "/agents/claude/tasks/send", json=SEND)
    assert status == 200
    task = body["task"]
    assert task["status"] == "completed"
    assert task["message"]["parts"][0]["text"] == "hi"
    assert task["artifacts"][0]["parts"][0]["text"] == "echo: hi"
    assert await api.json(api.http, "GET", f"/agents/claude/tasks/{task['id']}") == (200, task)
    assert await api.json(api.http, "GET", f"/agents/claude/tasks/{task['id'][:8]}") == (200, task)
    assert await api.json(api.agent, "GET", "/tasks") == (200, [task])


async def test_send_subscribe(api: Api):
    async with api.http.post("/agents/claude/tasks/sendSubscribe", json=SEND) as response:
        assert response.headers["X-Accel-Buffering"] == "no"
        assert response.headers["Cache-Control"] == "no-store"
        events = await sse_events(response)
    assert [event["event"] for event in events] == ["status", "status", "artifact", "status"]
    assert [int(event["id"]) for event in events] == [1, 2, 3, 4]
