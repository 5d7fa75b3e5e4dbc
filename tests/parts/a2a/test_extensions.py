"""Our extensions: declared, activated, and what their metadata does."""

import pytest

from synapsed.a2a_types.a2a_errors import EXTENSION_SUPPORT_REQUIRED, A2aError
from synapsed.a2a_types.extensions import (
    ASKED_MAX,
    EXTENSIONS,
    INTERRUPT,
    PRIORITY,
    REPLY,
    SENDER,
    Extension,
    activated,
    asked_for,
    declared,
    taken,
)
from tests.api.serving import TOKEN, Api
from tests.fakes.control import hold
from tests.parts.a2a.rpc import MESSAGE, V1

REQUIRED = (Extension("urn:x", "x", required=True), *EXTENSIONS)


def test_what_headers_ask_for():
    assert asked_for([]) == frozenset()
    assert asked_for([f" {PRIORITY} ,urn:a,, ", "urn:b"]) == {PRIORITY, "urn:a", "urn:b"}
    assert len(asked_for([",".join(f"urn:{number}" for number in range(1000))])) == ASKED_MAX


def test_those_of_ours_are_active_in_their_order():
    assert activated(frozenset({SENDER, "urn:other", PRIORITY})) == [PRIORITY, SENDER]
    assert activated(frozenset()) == []


def test_a_required_one_must_be_asked_for():
    with pytest.raises(A2aError) as caught:
        activated(frozenset({PRIORITY}), REQUIRED)
    assert (caught.value.code, caught.value.metadata) == (EXTENSION_SUPPORT_REQUIRED, {"extension": "urn:x"})
    assert activated(frozenset({"urn:x"}), REQUIRED) == ["urn:x"]
    assert declared(REQUIRED)[0] == {"uri": "urn:x", "description": "x", "required": True}


@pytest.mark.parametrize(
    ("metadata", "priority", "kept"),
    [
        ({}, 1, {}),
        ({"a": 1, "synapsed": {"priority": 3}}, 3, {"a": 1}),
        ({PRIORITY: {"priority": 4}}, 4, {}),
        ({PRIORITY: {}}, 1, {}),
        ({INTERRUPT: {"interrupt": True}}, 5, {}),
        ({INTERRUPT: {}}, 5, {}),
        ({INTERRUPT: {"interrupt": False}, PRIORITY: {"priority": 2}}, 2, {}),
        ({SENDER: {"sender_id": "ann"}, "b": []}, 1, {"sender": {"sender_id": "ann"}, "b": []}),
        ({REPLY: {"in_reply_to": "t", "other": 1}}, 1, {"in_reply_to": "t"}),
        ({"synapsed": 5, PRIORITY: 5, INTERRUPT: 5, SENDER: 5, REPLY: 5}, 1, {}),
    ],
)
def test_metadata(metadata, priority, kept):
    assert taken(metadata) == (priority, kept)


@pytest.mark.parametrize("value", [0, 6, True, "4", None, 1.5])
def test_a_priority_that_is_none(value):
    with pytest.raises(A2aError) as caught:
        taken({PRIORITY: {"priority": value}})
    assert caught.value.violations[0][0] == f"metadata.{PRIORITY}.priority"


@pytest.mark.parametrize("path", ["/a2a", "/a2a/rest/message:send", "/a2a/rest/message:stream"])
async def test_active_ones_are_told_and_do_what_they_say(api: Api, path):
    api.control.script = hold if "stream" not in path else api.control.script
    message = MESSAGE | {"metadata": {PRIORITY: {"priority": 4}, SENDER: {"sender_id": "ann"}}}
    request = {"message": message, "configuration": {"returnImmediately": True}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": request} if path == "/a2a" else request
    headers = V1 | {"A2A-Extensions": f"urn:other, {PRIORITY},{SENDER}"}
    async with api.agent.post(path, json=body, headers=headers) as response:
        assert response.headers["A2A-Extensions"] == f"{PRIORITY}, {SENDER}"
        await response.read()
    sent = api.control.calls[-1][2]
    assert sent.priority == 4
    assert sent.metadata["sender"]["sender_id"] == "ann"
    assert PRIORITY not in sent.metadata
    async with api.agent.post(path, json=body, headers=V1) as response:
        assert "A2A-Extensions" not in response.headers


async def test_the_card_declares_them(api: Api):
    _, card = await api.json(api.agent, "GET", "/.well-known/agent-card.json")
    assert [each["uri"] for each in card["capabilities"]["extensions"]] == [PRIORITY, INTERRUPT, SENDER, REPLY]


# --- what else a request may say -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("modes", "refused"),
    [
        ([], False),
        (["text/plain"], False),
        (["image/png", "text/plain; charset=utf-8"], False),
        (["*/*"], False),
        (["image/png"], True),
        (["application/json"], True),
    ],
)
async def test_accepted_output_modes(api: Api, modes, refused):
    body = {"message": MESSAGE, "configuration": {"acceptedOutputModes": modes}}
    async with api.agent.post("/a2a/rest/message:send", json=body, headers=V1) as response:
        answer = await response.json()
    assert (response.status == 400) is refused
    if refused:
        assert answer["error"]["details"][0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"
        assert api.control.calls == []


async def test_an_agent_sees_its_own_tasks_and_no_trace_of_others(api: Api):
    api.control.tokens["codex-token"] = "synapse-codex-8120"
    mine = {"Authorization": "Bearer codex-token"}
    ids = {}
    for name, headers in (("person", {"Authorization": f"Bearer {TOKEN}"}), ("codex", mine)):
        async with api.agent.post(
            "/a2a/rest/message:send", json={"message": MESSAGE}, headers=V1 | headers
        ) as response:
            ids[name] = (await response.json())["task"]["id"]
    async with api.agent.get("/a2a/rest/tasks", headers=V1 | mine) as response:
        listed = await response.json()
    assert ([task["id"] for task in listed["tasks"]], listed["totalSize"]) == ([ids["codex"]], 1)
    answers = []
    for task_id in (ids["person"], "0" * 36):
        async with api.agent.get(f"/a2a/rest/tasks/{task_id}", headers=V1 | mine) as response:
            answers.append((response.status, (await response.json())["error"]["message"].replace(task_id, "")))
    assert answers[0] == answers[1]
    assert answers[0][0] == 404
