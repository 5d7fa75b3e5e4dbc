"""`/external/…`: shapes, rights, waiting, streams."""

import pytest

from tests.api.serving import TOKEN, Api, sse_events
from tests.fakes.control import hold
from tests.parts.elsewhere.elsewhere import card_10, elsewhere

SECRET = "s3cr3t-of-the-tests"
BODY = {"message": {"parts": [{"type": "text", "text": "hi"}]}}


@pytest.fixture
async def far(api: Api):
    """`api` as an agent elsewhere of itself."""
    async with elsewhere(card_10(f"http://127.0.0.1:{api.agent_port}/a2a")) as place:
        yield place


async def add(api: Api, far, **more):
    body = {"url": far.url, "alias": "far", **more}
    status, answer = await api.json(api.http, "POST", "/external/discover", json=body)
    assert status == 200, answer
    return answer


async def test_added_listed_removed(api: Api, far):
    added = await add(api, far, headers={"X-Key": SECRET})
    assert far.seen[-1]["X-Key"] == SECRET
    assert (added["alias"], added["name"], added["authenticated"], added["skills"]) == ("far", "far", True, ["Chat"])
    assert await api.json(api.http, "GET", "/external/agents") == (200, [added])
    assert await api.json(api.http, "GET", "/external/agents/far") == (200, added)
    async with api.http.get("/external/agents") as response:
        assert SECRET not in await response.text()
    status, answer = await api.json(api.http, "DELETE", "/external/agents/far")
    assert (status, answer) == (200, {"status": "removed", "alias": "far"})
    status, answer = await api.json(api.http, "DELETE", "/external/agents/far")
    assert (status, answer["error"]["code"]) == (404, "UNKNOWN_AGENT")


async def test_an_agent_that_does_not_let_in_is_not_added(api: Api, far):
    body = {"url": far.url, "alias": "far", "token": SECRET}
    status, answer = await api.json(api.http, "POST", "/external/discover", json=body)
    assert far.seen[-1]["Authorization"] == f"Bearer {SECRET}"
    assert (status, answer["error"]["code"]) == (502, "CARD_INVALID")
    assert answer["error"]["message"].endswith("refuses requests (HTTP 401): its credentials are wrong")
    assert await api.json(api.http, "GET", "/external/agents") == (200, [])


async def test_send_and_wait(api: Api, far):
    await add(api, far)
    status, answer = await api.json(api.http, "POST", "/external/agents/far/send?wait=30", json=BODY)
    task = answer["task"]
    assert (status, task["status"], task["agent_id"]) == (200, "completed", "external:far")
    assert task["artifacts"][0]["parts"][0]["text"] == "echo: hi"
    assert await api.json(api.http, "GET", f"/external/agents/far/tasks/{task['id']}") == (200, {"task": task})
    status, answer = await api.json(api.http, "GET", f"/external/agents/other/tasks/{task['id']}")
    assert (status, answer["error"]["code"]) == (404, "TASK_NOT_FOUND")
    async with api.http.get(f"/external/agents/far/tasks/{task['id']}/subscribe") as response:
        events = await sse_events(response)
    assert events[-1]["event"] == "status"
    assert '"completed"' in events[-1]["data"]


async def test_the_same_on_an_agents_own_port_in_the_seeds_words(api: Api, far):
    """As a client of synapse-a2a writes it there: the message is a text, and the answer is read beside `task`."""
    status, added = await api.json(api.agent, "POST", "/external/discover", json={"url": far.url, "alias": "other"})
    assert (status, added["alias"]) == (200, "other")
    assert await api.json(api.agent, "GET", "/external/agents") == (200, [added])
    body = {"message": "hi", "wait_for_completion": True, "timeout": 30}
    status, answer = await api.json(api.agent, "POST", "/external/agents/other/send", json=body)
    assert (status, answer["status"], answer["id"]) == (200, "completed", answer["task"]["id"])
    assert answer["artifacts"][0]["parts"][0]["text"] == "echo: hi"
    path = f"/external/agents/other/tasks/{answer['id']}"
    assert await api.json(api.agent, "GET", path) == (200, {"task": answer["task"]})
    status, refused = await api.json(api.agent, "POST", f"{path}/cancel")
    assert (status, refused["error"]["code"]) == (409, "TASK_NOT_CANCELABLE")
    assert (await api.json(api.agent, "DELETE", "/external/agents/other"))[0] == 200
    for timeout in (0, 3601, "60"):
        status, answer = await api.json(api.agent, "POST", "/external/agents/x/send", json={**body, "timeout": timeout})
        assert (status, answer["error"]["details"]["field"]) == (400, "timeout")


async def test_behind_the_port_of_a_stopped_agent_is_nothing(api: Api, far):
    await add(api, far)
    await api.control.processes.stop("synapse-claude-8100")
    for method, path in (("GET", "/external/agents"), ("POST", "/external/agents/far/send")):
        async with api.agent.request(method, path, json=BODY if method == "POST" else None) as response:
            assert (response.status, response.headers["Connection"]) == (404, "close")


async def test_without_an_alias_the_cards_name_makes_one(api: Api, far):
    far.card = {**far.card, "name": "Research  Assistant_2"}
    for _ in range(2):
        status, added = await api.json(api.http, "POST", "/external/discover", json={"url": far.url})
        assert (status, added["alias"]) == (200, "research-assistant-2")
    for name, code in (("claude", "NAME_TAKEN"), ("研究", "INVALID_REQUEST")):
        far.card = {**far.card, "name": name}
        status, answer = await api.json(api.http, "POST", "/external/discover", json={"url": f"{far.url}/"})
        assert answer["error"]["code"] == code
    far.card = {**far.card, "name": "research assistant 2"}
    status, answer = await api.json(api.http, "POST", "/external/discover", json={"url": f"{far.url}/"})
    assert (status, answer["error"]["code"]) == (409, "NAME_TAKEN")


async def test_an_alias_is_an_address_after_what_is_local(api: Api, far):
    await add(api, far)
    for address in ("far", "@far", "external:far"):
        status, answer = await api.json(api.http, "POST", f"/agents/{address}/tasks/send", json=BODY)
        assert (status, answer["task"]["agent_id"]) == (200, "external:far")
    api.control.add("far", "claude", 8105)
    status, answer = await api.json(api.http, "POST", "/agents/far/tasks/send", json=BODY)
    assert answer["task"]["agent_id"] == "synapse-claude-8105"


async def test_what_it_has_not_is_refused(api: Api, far):
    await add(api, far)
    for path in ("screen", "status"):
        status, answer = await api.json(api.http, "GET", f"/agents/far/{path}")
        assert (status, answer["error"]["code"]) == (404, "UNKNOWN_AGENT")
    status, answer = await api.json(api.http, "POST", "/external/agents/far/send", json={**BODY, "command": True})
    assert (status, answer["error"]["details"]["field"]) == (400, "command")


async def test_cancel(api: Api, far):
    await add(api, far)
    api.control.script = hold
    _, answer = await api.json(api.http, "POST", "/external/agents/far/send", json=BODY)
    path = f"/external/agents/far/tasks/{answer['task']['id']}"
    while "task_id" not in answer["task"]["metadata"].get("external", {}):
        _, answer = await api.json(api.http, "GET", path)
    status, answer = await api.json(api.http, "POST", f"{path}/cancel")
    assert (status, answer["task"]["status"]) == (200, "canceled")
    status, answer = await api.json(api.http, "POST", f"/control{path[path.index('/tasks') :]}/cancel", **as_person())
    assert (status, answer["error"]["code"]) == (409, "TASK_NOT_CANCELABLE")


async def test_an_agent_may_write_but_neither_add_nor_remove(api: Api, far):
    await add(api, far)
    api.control.tokens["token-of-codex"] = "synapse-codex-8120"
    agent = {"headers": {"Authorization": "Bearer token-of-codex"}}
    for method, path, body in (
        ("POST", "/external/discover", {"url": far.url, "alias": "x"}),
        ("DELETE", "/external/agents/far", None),
    ):
        status, answer = await api.json(api.http, method, path, json=body, **agent)
        assert (status, answer["error"]["code"]) == (403, "FORBIDDEN")
    status, answer = await api.json(api.http, "POST", "/external/agents/far/send?wait=30", json=BODY, **agent)
    assert (status, answer["task"]["metadata"]["sender"]["sender_id"]) == (200, "synapse-codex-8120")


async def test_refusals(api: Api, far):
    for body, code, status in (
        ({"url": far.url, "alias": "claude"}, "NAME_TAKEN", 409),
        ({"url": "http://127.0.0.1:1", "alias": "far"}, "UNREACHABLE", 502),
        ({"url": far.url + "/nothing", "alias": "far"}, "CARD_INVALID", 502),
        ({"url": far.url, "alias": "far", "headers": {"X-A": "a\nb"}}, "INVALID_REQUEST", 400),
        ({"url": far.url, "alias": "far", "headers": {"X A": "b"}}, "INVALID_REQUEST", 400),
    ):
        found = await api.json(api.http, "POST", "/external/discover", json=body)
        assert (found[0], found[1]["error"]["code"]) == (status, code)


def as_person() -> dict:
    return {"headers": {"Authorization": f"Bearer {TOKEN}"}}


async def test_a_line_in_an_attached_terminal_reaches_it_too(api: Api, far):
    from synapsed.parts.mentions.routing import Addressee, MentionedAgents

    await add(api, far)
    control = api.servers.context.control
    directory = MentionedAgents(control.directory, control.tasks, control.events)
    to = directory.find("far")
    assert to == Addressee("external:far", "far", "external")
    assert directory.find("nobody") is None
    task = await directory.settled(await directory.send(to, "hi"))
    assert (task.status, task.answer) == ("completed", "echo: hi")
