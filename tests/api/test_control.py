"""The person's verbs on the Unix socket, and who else gets them."""

import asyncio
import json
import os
import stat
from urllib.parse import quote

import pytest

from synapsed.errors import ConfigError
from synapsed.interfaces import SendRequest
from synapsed.model.task import Message, Prompt, PromptOption
from tests.api.serving import TOKEN, Api, serving, sse_events
from tests.fakes.control import FakeControl, hold
from tests.support.patience import PATIENCE_S

CLAUDE = "synapse-claude-8100"
PROMPT = Prompt(prompt_id="p1", type="trust", prompt="Trust this folder?")
OWN = {"message": {"parts": [{"type": "text", "text": "x"}]}}
SEND = {"message": {"role": "user", "parts": [{"type": "text", "text": "hi"}]}}
PERSONS = [
    ("POST", "/control/start", {"profile": "dummy"}),
    ("POST", "/control/agents/codex/stop", None),
    ("POST", "/control/agents/codex/restart", None),
    ("POST", "/control/agents/codex/environment", {"env": {"SSH_AUTH_SOCK": "/a"}}),
    ("POST", "/control/agents/codex/park", None),
    ("POST", "/control/agents/codex/kill", None),
    ("POST", "/control/agents/codex/interrupt", None),
    ("POST", "/control/agents/codex/input", {"input": "1"}),
    ("POST", "/control/agents/codex/keys", {"keys": ["Enter"]}),
    ("GET", "/control/agents/codex/history", None),
    ("GET", "/control/agents/codex/recording", None),
    ("POST", "/agents/codex/tasks/send", {**SEND, "metadata": {"new_conversation": True}}),
    ("GET", "/control/conversations", None),
    ("POST", "/control/reload", None),
    ("POST", "/control/shutdown", None),
    ("GET", "/agents/codex/screen", None),
    ("GET", "/agents/codex/events?stream=sse", None),
    ("GET", "/events?stream=sse", None),
]


async def test_the_socket(api: Api):
    info = api.path.stat()
    assert stat.S_ISSOCK(info.st_mode)
    assert stat.S_IMODE(info.st_mode) == 0o600
    assert stat.S_IMODE(api.path.parent.stat().st_mode) == 0o700
    await api.servers.close()
    assert not api.path.exists()


async def test_a_stale_socket_is_replaced_and_a_foreign_directory_is_not(control, tmp_path):
    run = tmp_path / "run"
    run.mkdir(mode=0o755)
    (run / "control.sock").touch()
    async with serving(control, tmp_path) as api:
        assert (await api.json(api.unix, "GET", "/healthz"))[0] == 200
        assert stat.S_IMODE(run.stat().st_mode) == 0o700
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(ConfigError, match="directory of your own"):
            await api.servers.start_unix(tmp_path / "link" / "control.sock")
        with pytest.raises(ConfigError, match="cannot bind"):
            await api.servers.start_unix(tmp_path / ("x" * 120) / "control.sock")


async def test_a_port_in_use(api: Api):
    with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{api.port}"):
        await api.servers.start_main("127.0.0.1", api.port)


async def test_start(api: Api):
    body = {
        "profile": "dummy", "name": "d", "port": 8195, "cwd": "/tmp", "args": ["-x", ""], "env": {"A": "1"},
        "extra_env": {"B": "="}, "cols": 100, "rows": 30,
        "attributes": {"umask": 63, "nice": 10.0, "cpus": [0.0], "limits": {"NOFILE": {"soft": 16.0, "hard": None}}},
    }  # fmt: skip
    status, view = await api.json(api.unix, "POST", "/control/start", json=body)
    assert (status, view["name"], view["port"]) == (200, "d", 8195)
    ((_, request),) = api.control.calls
    assert (request.args, request.env, request.extra_env) == (("-x", ""), {"A": "1"}, {"B": "="})
    assert (request.cols, request.rows) == (100, 30)
    assert request.attributes.model_dump(exclude_none=True) == body["attributes"] | {"limits": {"NOFILE": {"soft": 16}}}
    status, error = await api.json(api.unix, "POST", "/control/start", json=body)
    assert (status, error["error"]["code"]) == (409, "NAME_TAKEN")
    status, error = await api.json(api.unix, "POST", "/control/start", json={"profile": "nope"})
    assert (status, error["error"]["code"]) == (404, "UNKNOWN_PROFILE")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"profile": ""}, "profile"),
        ({"profile": None}, "profile"),
        ({"port": 0}, "port"),
        ({"args": "x"}, "args"),
        ({"args": ["a\0b"]}, "args.0"),
        ({"cwd": "/a\0b"}, "cwd"),
        ({"env": {"A=B": "x"}}, "env.A=B.[key]"),
        ({"env": {"": "x"}}, "env..[key]"),
        ({"extra_env": {"A": 1}}, "extra_env.A"),
        ({"cols": 0}, "cols"),
        ({"rows": 100_000}, "rows"),
        ({"naem": "x"}, "naem"),
        ({"attributes": {"umask": 512}}, "attributes.umask"),
        ({"attributes": {"umask": "077"}}, "attributes.umask"),
        ({"attributes": {"colour": "blue"}}, "attributes.colour"),
        ({"attributes": {"limits": {"NOFILE": {"soft": 2, "hard": 1}}}}, "attributes.limits.NOFILE"),
    ],
)
async def test_a_start_that_is_wrong(api: Api, change, field):
    status, body = await api.json(api.unix, "POST", "/control/start", json={"profile": "dummy"} | change)
    assert (status, body["error"]["code"], body["error"]["details"]["field"]) == (400, "INVALID_REQUEST", field)
    assert api.control.calls == []


async def test_lifecycle(api: Api):
    status, view = await api.json(api.unix, "POST", "/control/agents/claude/stop")
    assert (status, view["state"]) == (200, "stopped")
    status, view = await api.json(api.unix, "POST", "/control/agents/claude/restart", json={})
    assert (status, view["state"], view["pid"]) == (200, "running", 4243)
    assert (await api.json(api.unix, "POST", f"/control/agents/{CLAUDE}/kill"))[0] == 200
    assert await api.json(api.unix, "POST", "/control/agents/claude/interrupt") == (200, {"interrupted": False})
    assert (await api.json(api.unix, "POST", "/control/agents/claude/stop", json={"remove": True}))[0] == 200
    assert [call[:2] for call in api.control.calls] == [
        (verb, CLAUDE) for verb in ("stop", "restart", "kill", "interrupt", "stop")
    ]
    status, body = await api.json(api.unix, "POST", "/control/agents/claude/stop")
    assert (status, body["error"]["code"]) == (404, "UNKNOWN_AGENT")


async def test_only_a_person_gives_an_agent_an_environment(api: Api):
    path, env = "/control/agents/claude/environment", {"SSH_AUTH_SOCK": "/a"}
    assert await api.json(api.unix, "POST", path, json={"env": env}) == (200, {"names": ["SSH_AUTH_SOCK"]})
    assert api.control.calls == [("bring", CLAUDE, env, "connection")]
    for wrong in ({}, {"env": {"A=B": "x"}}, {"env": {"A": "x\0"}}, {"env": env, "bring": "some"}):
        status, body = await api.json(api.unix, "POST", path, json=wrong)
        assert (status, body["error"]["code"]) == (400, "INVALID_REQUEST")
        assert "/a" not in json.dumps(body)


async def test_answering_a_prompt_outside_any_task(api: Api):
    path = "/control/agents/claude/input"
    status, body = await api.json(api.unix, "POST", path, json={"input": "1"})
    assert (status, body["error"]["code"]) == (400, "NOT_WAITING")
    api.control.prompts[CLAUDE] = PROMPT
    answer = {"input": "1", "prompt_id": "p1"}
    assert await api.json(api.unix, "POST", path, json=answer) == (200, {"status": "input_provided"})
    assert api.control.calls[-1] == ("answer", CLAUDE, "1", "p1")


async def test_history(api: Api):
    for query, expected in (("", b"raw \x1b[0m\xff output"), ("?bytes=6", b"output"), ("?bytes=0", b"")):
        async with api.unix.get(f"/control/agents/claude/history{query}") as response:
            assert response.content_type == "application/octet-stream"
            assert await response.read() == expected
    status, body = await api.json(api.unix, "GET", "/control/agents/claude/history?bytes=-1")
    assert (status, body["error"]["details"]["field"]) == (400, "bytes")


async def test_history_from_an_offset_on(api: Api):
    for query, offset, expected, ended in (("after=4&bytes=3", 4, b"\x1b[0", "0"), ("after=99&wait=5", 16, b"", "1")):
        async with api.unix.get(f"/control/agents/claude/history?{query}") as response:
            told = response.headers["Synapsed-Offset"], response.headers["Synapsed-Ended"]
            assert (told, await response.read()) == ((str(offset), ended), expected)
    async with api.unix.get("/control/agents/claude/recording") as response:
        assert response.content_type == "application/x-asciicast"
        assert await response.text() == '{"version": 3}\n'


async def test_profiles_and_status(api: Api):
    status, profiles = await api.json(api.unix, "GET", "/control/profiles")
    assert (status, profiles[0]["name"]) == (200, "dummy")
    status, body = await api.json(api.unix, "GET", "/control/status")
    assert status == 200
    assert (body["version"], body["pid"], body["agents"]) == ("1.2.3", os.getpid(), 2)
    assert body["uptime"] >= 0
    assert body["paths"]["state"].endswith("/state")


async def test_tasks(api: Api):
    api.control.script = hold
    _, sent = await api.json(api.unix, "POST", "/agents/claude/tasks/send", json=SEND)
    task = sent["task"]
    assert await api.json(api.unix, "GET", "/control/tasks") == (200, [task])
    assert await api.json(api.unix, "GET", "/control/tasks?agent=codex") == (200, [])
    assert await api.json(api.unix, "GET", f"/control/tasks/{task['id'][:8]}") == (200, {"task": task})
    assert (await api.json(api.unix, "GET", "/control/tasks/deadbeef"))[0] == 404
    await api.control.ask(task["id"], PROMPT)
    async with api.unix.get(f"/control/tasks/{task['id'][:8]}/wait") as response:
        assert [event["event"] for event in await sse_events(response)] == ["status", "status"]
    path = f"/control/tasks/{task['id'][:8]}"
    status, body = await api.json(api.unix, "POST", f"{path}/input", json={"input": "1"})
    assert (status, body) == (200, {"status": "input_provided", "task_id": task["id"]})
    status, body = await api.json(api.unix, "POST", f"{path}/cancel")
    assert (status, body["error"]["code"]) == (409, "TASK_NOT_CANCELABLE")


async def test_shutdown(api: Api):
    assert (await api.json(api.unix, "POST", "/control/shutdown", json={"keep_agents": True}))[0] == 200
    async with asyncio.timeout(PATIENCE_S):
        await api.control.shut_down.wait()
    assert api.control.calls == [("shutdown", True)]


@pytest.mark.parametrize(("method", "path", "body"), PERSONS)
async def test_over_tcp_control_wants_the_token(api: Api, method, path, body):
    if not path.startswith("/control/"):
        return
    status, answer = await api.json(api.http, method, path, json=body)
    assert (status, answer["error"]["code"]) == (403, "FORBIDDEN")
    assert api.control.calls == []
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with api.http.request(method, path, json=body, headers=headers) as response:
        assert response.status in (200, 400)  # 400: codex waits for nothing
    status, _ = await api.json(api.agent, method, path, json=body, headers=headers)
    assert status == 404


@pytest.mark.parametrize(("method", "path", "body"), PERSONS)
@pytest.mark.parametrize("way", ["token", "process"])
async def test_what_an_agent_may_not(control: FakeControl, tmp_path, method, path, body, way):
    headers = {}
    if way == "token":
        control.tokens["agents-token"] = CLAUDE
        headers["Authorization"] = "Bearer agents-token"
    else:
        control.pids[os.getpid()] = CLAUDE
    async with serving(control, tmp_path) as api:
        status, answer = await api.json(api.unix, method, path, json=body, headers=headers)
    assert (status, answer["error"]["code"]) == (403, "FORBIDDEN")
    assert control.calls == []


async def test_what_an_agent_may(control: FakeControl, tmp_path):
    control.pids[os.getpid()] = CLAUDE
    control.script = hold
    async with serving(control, tmp_path) as api:
        assert len((await api.json(api.http, "GET", "/agents"))[1]) == 2
        claimed = SEND | {"metadata": {"sender": {"sender_id": "synapse-codex-8120"}}}
        for forged in (claimed, SEND | {"command": True}):
            status, body = await api.json(api.http, "POST", "/agents/codex/tasks/send", json=forged)
            assert (status, body["error"]["code"]) == (403, "FORBIDDEN")
        assert control.calls == []
        named = SEND | {"metadata": {"sender": {"sender_id": "claude", "verified": False}, "k": 1}}
        _, sent = await api.json(api.http, "POST", "/agents/codex/tasks/send", json=named)
        task = sent["task"]
        assert task["metadata"] == {
            "k": 1,
            "sender": {
                "sender_id": CLAUDE,
                "sender_type": "claude",
                "sender_endpoint": "http://localhost:8100",
                "verified": True,
                "tier": "agent",
            },
        }
        others = await control.tasks.send("synapse-codex-8120", SendRequest(message=Message.of("of a person")))
        assert await api.json(api.http, "GET", "/agents/codex/tasks") == (200, [task])
        assert (await api.json(api.http, "GET", f"/agents/codex/tasks/{task['id']}"))[0] == 200
        for path in ("", "/subscribe"):
            status, body = await api.json(api.http, "GET", f"/agents/codex/tasks/{others.id}{path}")
            assert (status, body["error"]["code"]) == (403, "FORBIDDEN")
        assert (await api.json(api.http, "POST", f"/agents/codex/tasks/{others.id}/cancel"))[0] == 403
        for agent, context in (("claude", "the screen"), ("codex", "")):
            status, body = await api.json(api.http, "GET", f"/agents/{agent}/status")
            assert (status, body["context"]) == (200, context)
        _, detail = await api.json(api.http, "GET", "/agents/codex/status?detail=1")
        assert detail["screen"] == ""
        for name in ("claude", "codex"):
            found = control.views[f"synapse-{name}-{8100 if name == 'claude' else 8120}"]
            control.views[found.id] = found.model_copy(update={"asks": "Run rm?", "doing": "a secret plan"})
        _, listed = await api.json(api.http, "GET", "/agents")
        assert [(one["asks"], one["doing"]) for one in listed] == [("Run rm?", "a secret plan"), (None, None)]
        _, detail = await api.json(api.http, "GET", "/agents/codex/status?detail=1")
        assert (detail["asks"], detail["doing"]) == (None, None)
        rows = Prompt(prompt_id="s", type="screen", prompt="what stands there")
        api.control.prompts["synapse-codex-8120"] = rows
        for path in ("/agents/codex/status?detail=1", "/agents/codex/status"):
            _, seen = await api.json(api.http, "GET", path)
            assert (seen["prompt"]["type"], seen["prompt"]["prompt"]) == ("screen", "")
        asked = Prompt(
            prompt_id="q",
            type="permission",
            prompt="a secret question",
            options=[PromptOption(key="1", label="a secret option")],
            default="1",
            command="a secret command",
            diff="a secret edit",
        )
        api.control.prompts["synapse-codex-8120"] = asked
        for path in ("/agents/codex/status?detail=1", "/agents/codex/status"):
            _, seen = await api.json(api.http, "GET", path)
            assert (seen["prompt"]["type"], "secret" in json.dumps(seen)) == ("permission", False), path
        assert (await api.json(api.http, "GET", "/agents/claude/screen?format=json"))[0] == 200
        await control.ask(task["id"], PROMPT)
        path = f"/agents/codex/tasks/{task['id']}"
        for answer in ({"input": "1"}, None):
            body = answer or SEND | {"task_id": task["id"]}
            where = f"{path}/input" if answer else "/agents/codex/tasks/send"
            status, body = await api.json(api.http, "POST", where, json=body)
            assert (status, body["error"]["code"]) == (403, "FORBIDDEN")
        status, body = await api.json(api.http, "POST", f"{path}/cancel")
        assert (status, body["task"]["status"]) == (200, "canceled")


async def test_an_agent_asks_and_replies_as_itself(control: FakeControl, tmp_path):
    control.pids[os.getpid()] = CLAUDE
    async with serving(control, tmp_path) as api:
        for path in ("create", "reply"):
            status, body = await api.json(api.http, "POST", f"/agents/codex/tasks/{path}", json=OWN)
            assert (status, body["error"]["code"]) == (403, "FORBIDDEN")
        assert control.calls == []
        status, made = await api.json(api.http, "POST", "/agents/claude/tasks/create", json=OWN)
        assert (status, made["task"]["metadata"]["sender"]["verified"]) == (200, True)
        status, _ = await api.json(api.unix, "GET", f"/control/tasks/{made['task']['id']}")
        assert status == 200
        await control.complete(made["task"]["id"], "done")
        async with api.unix.get(f"/control/tasks/{made['task']['id']}/wait") as response:
            await response.read()
        assert control.calls[-1] == ("waiting", CLAUDE, made["task"]["id"])


async def test_who_cannot_be_settled(control: FakeControl, tmp_path, monkeypatch):
    """Elsewhere than on Linux: send, and read by id; no list, no person's verb."""
    monkeypatch.setattr("synapsed.api.peer_lookup.LINUX", False)
    async with serving(control, tmp_path) as api:
        status, sent = await api.json(api.http, "POST", "/agents/codex/tasks/send", json=SEND)
        unknown = {"sender_id": "unknown", "verified": False, "tier": "claimed"}
        assert (status, sent["task"]["metadata"]["sender"]) == (200, unknown)
        assert (await api.json(api.http, "GET", f"/agents/codex/tasks/{sent['task']['id']}"))[0] == 200
        for path in ("/agents/codex/tasks", "/agents/codex/screen", "/events?stream=sse"):
            assert (await api.json(api.http, "GET", path))[0] == 403
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert (await api.json(api.http, "GET", "/agents/codex/tasks", headers=headers))[0] == 200


async def test_conversations(api: Api):
    status, found = await api.json(api.unix, "GET", "/control/conversations?home=/home/me&profile=codex&cwd=/w")
    assert (status, found[0]["id"]) == (200, "c1")
    assert api.control.calls == [("conversations", "/home/me", "codex", "/w", {})]
    env = {"CODEX_HOME": "/elsewhere"}
    await api.json(api.unix, "GET", f"/control/conversations?env={quote(json.dumps(env))}")
    assert api.control.calls[-1] == ("conversations", None, None, None, env)
    for wrong in ("x", "[]", '{"A":1}'):
        status, answer = await api.json(api.unix, "GET", f"/control/conversations?env={quote(wrong)}")
        assert (status, answer["error"]["code"]) == (400, "INVALID_REQUEST")
    status, _ = await api.json(api.unix, "POST", "/control/start", json={"profile": "dummy", "conversation": "a-1"})
    assert status == 200
    assert api.control.calls[-1][1].conversation == "a-1"
    for bad in ("--version", "", "a b", "x" * 200):
        body = {"profile": "dummy", "conversation": bad}
        status, answer = await api.json(api.unix, "POST", "/control/start", json=body)
        assert (status, answer["error"]["code"]) == (400, "INVALID_REQUEST")


async def test_keys(api: Api, control: FakeControl) -> None:
    path = "/control/agents/claude/keys"
    assert await api.json(api.unix, "POST", path, json={"keys": ["Up", "yes", "Enter"]}) == (200, {"status": "pressed"})
    assert control.calls[-1] == ("press", CLAUDE, "Up", "yes", "Enter")
    for wrong in ({"keys": []}, {"keys": [""]}, {"keys": ["a"] * 65}, {"keys": ["a" * 5000]}, {"keys": "Up"}, {}):
        status, body = await api.json(api.unix, "POST", path, json=wrong)
        assert (status, body["error"]["code"]) == (400, "INVALID_REQUEST"), wrong


async def test_only_a_person_has_an_agent_started_whose_deny_rules_count_for_nothing(api: Api):
    path, wanted = "/control/agents/claude/restart", {"without_approval": True}
    assert (await api.json(api.unix, "POST", path, json=wanted))[0] == 200
    assert api.control.calls == [("restart", CLAUDE)]


async def test_no_agent_may_even_where_it_may_restart_others(control: FakeControl, tmp_path):
    control.pids[os.getpid()] = CLAUDE
    control.rights[CLAUDE] = frozenset({"stop_agents"})
    async with serving(control, tmp_path) as api:
        path = "/control/agents/codex/restart"
        assert (await api.json(api.unix, "POST", path, json={}))[0] == 200
        status, body = await api.json(api.unix, "POST", path, json={"without_approval": True})
    assert (status, body["error"]["code"]) == (403, "FORBIDDEN")
    assert len(control.calls) == 1
