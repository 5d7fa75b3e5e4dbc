"""Every route's shape, over TCP as a person of this machine; the seeds' paths on an agent's own port."""

import io
import json
import sys

import pytest

from synapsed.model.agent import Activity, ProcessState
from synapsed.model.task import Artifact, Prompt, PromptOption, Task, TextPart
from tests.api.serving import Api
from tests.fakes.control import FakeControl, hold

SEND = {"message": {"role": "user", "parts": [{"type": "text", "text": "hi"}]}}
PROMPT = Prompt(
    prompt_id="p1", type="selection", prompt="Run it?", options=[PromptOption(key="1", label="Yes")], default="1"
)


async def test_health(api: Api):
    assert await api.json(api.http, "GET", "/healthz") == (200, {"status": "ok", "version": "1.2.3"})


async def test_agents(api: Api):
    status, agents = await api.json(api.http, "GET", "/agents")
    assert status == 200
    assert [agent["name"] for agent in agents] == ["claude", "codex"]
    assert list(agents[0]) == [
        "name", "id", "type", "port", "pid", "state", "activity", "since", "evidence", "held", "queue", "task",
        "restarts", "cwd", "endpoint", "until", "version", "verified", "drift", "withheld", "settings", "background",
        "background_tasks", "host", "asks", "doing",
    ]  # fmt: skip


async def test_send_and_read(api: Api):
    status, body = await api.json(api.http, "POST", "/agents/claude/tasks/send", json=SEND)
    task = body["task"]
    assert status == 200
    assert {"id", "context_id", "status", "message", "artifacts", "metadata", "created_at", "updated_at"} <= set(task)
    assert (task["status"], task["exact"], task["error"], task["prompt"]) == ("completed", True, None, None)
    assert task["message"]["parts"][0] == {"type": "text", "text": "hi", "metadata": None}
    assert task["artifacts"][0]["parts"][0]["text"] == "echo: hi"
    for path in (f"/agents/claude/tasks/{task['id']}", f"/agents/@claude/tasks/{task['id'][:8]}"):
        assert await api.json(api.http, "GET", path) == (200, task)
    assert await api.json(api.http, "GET", "/agents/claude/tasks") == (200, [task])
    assert await api.json(api.http, "GET", "/agents/codex/tasks") == (200, [])


async def test_a_task_below_the_cards_url(api: Api):
    """Where clients of synapse-a2a look for it; what the endpoint of A2A does is left as it is."""
    below = "/agents/claude/a2a/tasks"
    for path in ("send", "send-priority?priority=3"):
        status, body = await api.json(api.http, "POST", f"{below}/{path}", json=SEND)
        task = body["task"]
        assert (status, task["status"]) == (200, "completed")
        assert await api.json(api.http, "GET", f"{below}/{task['id']}") == (200, task)
    status, body = await api.json(api.http, "POST", f"{below}/{task['id']}/cancel")
    assert (status, body["error"]["code"]) == (409, "TASK_NOT_CANCELABLE")
    status, body = await api.json(api.http, "POST", f"{below}/send", json={})
    assert (status, body["error"]["code"]) == (400, "INVALID_REQUEST")
    assert (await api.json(api.http, "GET", "/agents/claude/a2a"))[0] == 200


async def test_the_answer_in_the_words_of_synapse_a2a(api: Api):
    """To its clients alone, and not what the answer is made of: they print all that there is."""

    async def answered(control: FakeControl, task: Task) -> None:
        await control.complete(task.id, "so: ls", blocks=[Artifact.block(1, type="code", parts=[TextPart(text="ls")])])

    api.control.script = answered
    for metadata, told in (({"response_mode": "wait"}, [("answer", "so: ls")]), ({}, [])):
        _, sent = await api.json(api.agent, "POST", "/tasks/send", json=SEND | {"metadata": metadata})
        _, read = await api.json(api.agent, "GET", f"/tasks/{sent['task']['id']}")
        assert read == sent["task"]
        assert [one["artifact_id"] for one in read["artifacts"]] == ["answer", "answer.1"]
        assert [(one["artifact_id"], one["text"]) for one in read["artifacts"] if "text" in one] == told


async def test_send_with_everything(api: Api):
    body = {
        "message": {
            "role": "user",
            "message_id": "m1",
            "metadata": {"k": [1, None]},
            "parts": [
                {"type": "text", "text": "看て 👀"},
                {"type": "file", "file": {"name": "a.txt", "mimeType": "text/plain", "bytes": "aGk="}},
                {"type": "data", "data": {"n": 1}},
            ],
        },
        "metadata": {"sender": {"sender_id": "me"}},
        "priority": 4,
        "context_id": "c1",
        "command": True,
    }
    status, answer = await api.json(api.http, "POST", "/agents/codex/tasks/send", json=body)
    task = answer["task"]
    assert (status, task["context_id"], task["priority"]) == (200, "c1", 4)
    assert task["metadata"] == {"sender": {"sender_id": "me", "verified": False, "tier": "claimed"}}
    assert task["message"]["message_id"] == "m1"
    assert task["message"]["parts"][1]["file"]["mimeType"] == "text/plain"
    assert api.control.calls[-1][2].command is True


@pytest.mark.parametrize(("query", "body", "expected"), [("?priority=5", {}, 5), ("", {"priority": 3}, 3), ("", {}, 1)])
async def test_send_priority(api: Api, query, body, expected):
    status, answer = await api.json(api.agent, "POST", f"/tasks/send-priority{query}", json=SEND | body)
    assert (status, answer["task"]["priority"]) == (200, expected)


async def test_message(api: Api):
    status, body = await api.json(api.agent, "POST", "/message", json={"content": "hi", "priority": 2})
    assert (status, body["status"], body["priority"]) == (200, "sent", 2)
    assert (await api.control.tasks.find(body["task_id"])).answer == "echo: hi"


async def test_status(api: Api):
    agent_id = next(iter(api.control.views))
    api.control.prompts[agent_id] = PROMPT
    api.control.views[agent_id] = api.control.views[agent_id].model_copy(update={"activity": Activity.WAITING})
    status, body = await api.json(api.agent, "GET", "/status")
    assert status == 200
    assert body == {
        "status": "INPUT_REQUIRED",
        "context": "the screen",
        "activity": "waiting",
        "since": body["since"],
        "evidence": "screen: prompt",
        "held": None,
        "queue": 0,
        "background": 0,
        "task": None,
        "prompt": PROMPT.model_dump(mode="json"),
    }
    assert "explain" not in body
    status, body = await api.json(api.agent, "GET", "/status?explain=1")
    assert [(row["channel"], row["decides"]) for row in body["explain"]] == [("process", False), ("composer", True)]
    status, detail = await api.json(api.http, "GET", "/agents/claude/status?detail=1")
    assert (detail["name"], detail["screen"], detail["prompt"]["prompt_id"]) == ("claude", "the screen", "p1")


@pytest.mark.parametrize(
    ("fmt", "expected"),
    [
        ("", b"the screen"),
        ("text", b"the screen"),
        ("coloured", b"the \x1b[0;1mscreen\x1b[m\n"),
        ("ansi", b"\x1b[1mthe screen"),
    ],
)
async def test_screen(api: Api, fmt, expected):
    async with api.agent.get("/screen" + (f"?format={fmt}" if fmt else "")) as response:
        assert (response.status, await response.read()) == (200, expected)


async def test_screen_as_json(api: Api):
    assert await api.json(api.agent, "GET", "/screen?format=json") == (200, {"lines": ["the screen"]})


async def test_screen_in_a_form_not_offered(api: Api):
    status, body = await api.json(api.agent, "GET", "/screen?format=gif")
    assert (status, body["error"]["code"]) == (400, "INVALID_REQUEST")
    assert body["error"]["details"]["offered"] == ["text", "coloured", "ansi", "json", "html", "svg", "png"]


@pytest.mark.parametrize(
    ("fmt", "media", "begins"),
    [
        ("html", "text/html", b"<!doctype html>"),
        ("svg", "image/svg+xml", b"<svg "),
        ("png", "image/png", b"\x89PNG\r\n\x1a\n"),
    ],
)
async def test_screen_as_a_picture(api: Api, fmt: str, media: str, begins: bytes):
    async with api.agent.get(f"/screen?format={fmt}") as response:
        body = await response.read()
        assert (response.status, response.content_type, body[: len(begins)]) == (200, media, begins)
        assert "script" not in response.headers["Content-Security-Policy"]
        assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_png_names_the_extra_that_it_takes(api: Api, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "synapsed.parts.pictures.png", raising=False)
    monkeypatch.setitem(sys.modules, "PIL", None)
    status, body = await api.json(api.agent, "GET", "/screen?format=png")
    assert (status, body["error"]["code"]) == (503, "NOT_READY")
    assert "synapsed[pictures]" in body["error"]["message"]


async def test_cancel(api: Api):
    api.control.script = hold
    _, sent = await api.json(api.agent, "POST", "/tasks/send", json=SEND)
    path = f"/tasks/{sent['task']['id']}/cancel"
    status, body = await api.json(api.agent, "POST", path)
    assert (status, body["task"]["status"]) == (200, "canceled")
    status, body = await api.json(api.agent, "POST", path)
    assert (status, body["error"]["code"]) == (409, "TASK_NOT_CANCELABLE")


async def test_input(api: Api):
    api.control.script = hold
    _, sent = await api.json(api.agent, "POST", "/tasks/send", json=SEND)
    task_id = sent["task"]["id"]
    path = f"/tasks/{task_id}/input"
    status, body = await api.json(api.agent, "POST", path, json={"input": "1"})
    assert (status, body["error"]["code"]) == (400, "NOT_WAITING")
    await api.control.ask(task_id, PROMPT)
    status, body = await api.json(api.agent, "POST", path, json={"input": "1", "prompt_id": "old"})
    assert (status, body["error"]["code"]) == (409, "PROMPT_CHANGED")
    status, body = await api.json(api.agent, "POST", path, json={"input": "1"})
    assert (status, body) == (200, {"status": "input_provided", "task_id": task_id})


async def test_tasks_by_state(api: Api):
    await api.json(api.agent, "POST", "/tasks/send", json=SEND)
    for state, count in (("completed", 1), ("failed", 0), ("failed,completed", 1)):
        status, tasks = await api.json(api.agent, "GET", f"/tasks?status={state}")
        assert (status, len(tasks)) == (200, count)
    status, body = await api.json(api.agent, "GET", "/tasks?status=done")
    assert (status, body["error"]["details"]["field"]) == (400, "status")


async def test_an_agents_limit_counts_its_own_tasks(api: Api):
    codex = next(view.id for view in api.control.views.values() if view.name == "codex")
    api.control.tokens["codex-token"] = codex
    await api.json(api.http, "POST", "/agents/codex/tasks/send", json=SEND)
    await api.json(api.http, "POST", "/agents/claude/tasks/send", json=SEND)
    headers = {"Authorization": "Bearer codex-token"}
    status, tasks = await api.json(api.unix, "GET", "/control/tasks?limit=1", headers=headers)
    assert (status, [task["agent_id"] for task in tasks]) == (200, [codex])
    _, tasks = await api.json(api.http, "GET", "/agents/claude/tasks?limit=1", headers=headers)
    assert tasks == []


async def test_a_task_of_another_agent(api: Api):
    _, sent = await api.json(api.http, "POST", "/agents/codex/tasks/send", json=SEND)
    task_id = sent["task"]["id"]
    for method, path in (("GET", ""), ("GET", "/subscribe"), ("POST", "/cancel")):
        status, body = await api.json(api.http, method, f"/agents/claude/tasks/{task_id}{path}")
        assert (status, body["error"]["code"]) == (404, "TASK_NOT_FOUND")


async def test_an_agents_port_after_its_stop(api: Api):
    agent_id = next(iter(api.control.views))
    api.control.views[agent_id] = api.control.views[agent_id].model_copy(update={"state": ProcessState.STOPPED})
    for method, path, body in (("GET", "/status", None), ("POST", "/tasks/send", SEND)):
        async with api.agent.request(method, path, json=body) as response:
            assert (response.status, response.headers["Connection"]) == (404, "close")
            assert (await response.json())["error"]["code"] == "UNKNOWN_AGENT"
    status, _ = await api.json(api.http, "GET", "/agents/claude/status")
    assert status == 200


async def test_a_port_that_is_closed(api: Api):
    await api.json(api.agent, "GET", "/status")
    await api.servers.close_agent_port(api.agent_port)
    await api.servers.close_agent_port(api.agent_port)
    api.control.ports.clear()
    async with api.agent.get("/status") as response:  # by the connection that was open
        assert (response.status, response.headers["Connection"]) == (404, "close")


async def test_what_an_agent_made_is_handed_over(api: Api):
    api.control.script = hold
    api.control.tokens |= {"claude-token": "synapse-claude-8100", "codex-token": "synapse-codex-8120"}
    _, sent = await api.json(
        api.agent, "POST", "/tasks/send", json={"message": {"parts": [{"type": "text", "text": "hi"}]}}
    )
    path = f"/tasks/{sent['task']['id']}/artifacts"
    body = {"parts": [{"type": "data", "data": {"a": 1}}], "name": "numbers", "artifact_id": "n"}

    async def give(token: str, given: dict) -> tuple[int, dict]:
        return await api.json(api.agent, "POST", path, json=given, headers={"Authorization": f"Bearer {token}"})

    status, answer = await give("claude-token", body)
    assert (status, answer["task"]["artifacts"][0]["name"]) == (200, "numbers")
    made = api.control.calls[-1][2]
    assert (made.type, made.artifact_id) == ("data", "n")
    assert (await give("codex-token", body))[0] == 403
    for wrong in ({"artifact_id": "answer"}, {"artifact_id": "answer.1"}, {"parts": []}, {"name": ""}):
        assert (await give("claude-token", body | wrong))[0] == 400
    await api.control.complete(sent["task"]["id"], "done")
    assert (await give("claude-token", body))[1]["error"]["code"] == "NOT_WAITING"


async def test_a_reply_is_asked_for_and_given(api: Api):
    """S20, in the shapes of the seeds."""
    own = {"message": {"role": "user", "parts": [{"type": "text", "text": "分析して"}]}, "metadata": {"k": 1}}
    status, made = await api.json(api.http, "POST", "/agents/claude/tasks/create", json=own)
    assert (status, made["task"]["status"], made["task"]["agent_id"]) == (200, "working", "synapse-claude-8100")
    assert made["task"]["metadata"]["sender"]["sender_id"] == "synapse-claude-8100"
    verb, agent, request, limit = api.control.calls[-1]
    assert (verb, agent, request.wait, limit) == ("expect", "synapse-claude-8100", False, None)
    await api.json(api.http, "POST", "/agents/claude/tasks/create", json=own | {"wait": True, "limit": 9.5})
    assert (api.control.calls[-1][2].wait, api.control.calls[-1][3]) == (True, 9.5)
    for wrong in ({"limit": 0}, {"limit": 1e9}, {"wait": 1}, {"priority": 1}, {"message": {"parts": []}}):
        status, body = await api.json(api.http, "POST", "/agents/claude/tasks/create", json=own | wrong)
        assert (status, body["error"]["code"]) == (400, "INVALID_REQUEST")
    blank = {"message": {"parts": [{"type": "text", "text": " "}]}}
    for path in ("create", "reply"):
        assert (await api.json(api.http, "POST", f"/agents/claude/tasks/{path}", json=blank))[0] == 400
    reply = {"message": {"role": "agent", "parts": [{"type": "text", "text": "結果です"}]}}
    named = reply | {"metadata": {"in_reply_to": made["task"]["id"]}}
    status, done = await api.json(api.http, "POST", "/agents/codex/tasks/reply", json=named)
    assert (status, done["task"]["status"]) == (200, "completed")
    assert api.control.calls[-1][2].metadata["sender"]["sender_id"] == "synapse-codex-8120"
    status, body = await api.json(api.http, "POST", "/agents/codex/tasks/reply", json=reply)
    assert (status, body["error"]["code"]) == (400, "NOT_WAITING")
    status, _ = await api.json(api.unix, "POST", f"/control/tasks/{made['task']['id']}/collected")
    assert (status, api.control.calls[-1]) == (200, ("collected", made["task"]["id"]))


@pytest.mark.slow
async def test_a_list_of_large_tasks_ends_early_and_says_where_it_goes_on(api: Api):
    """Pages end by size, one task at least; the cursor of `Link` goes on, up to the end."""
    for number in range(3):
        message = {"parts": [{"type": "text", "text": str(number) + "x" * 8_400_000}]}
        body = io.BytesIO(json.dumps({"message": message}).encode())
        status, _ = await api.json(
            api.agent, "POST", "/tasks/send", data=body, headers={"Content-Type": "application/json"}
        )
        assert status == 200
    seen, path = [], "/tasks"
    while path:
        async with api.agent.get(path) as response:
            tasks = await response.json()
            path = str(response.links["next"]["url"].relative()) if "next" in response.links else ""
        assert len(tasks) == 1
        seen.append(tasks[0]["message"]["parts"][0]["text"][0])
    assert sorted(seen) == ["0", "1", "2"]
