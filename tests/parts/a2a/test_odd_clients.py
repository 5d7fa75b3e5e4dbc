"""Clients that are odd, but within JSON-RPC, HTTP and A2A; and what is too much of a good thing."""

import asyncio
import json
from typing import Any

import pytest

from synapsed.api.rights import Rights, Standing
from synapsed.parts.a2a.a2a_http import HttpCaller
from tests.api.serving import Api
from tests.parts.a2a.rpc import AGENT, MESSAGE, V1, a_request, error, post, result
from tests.support.patience import PATIENCE_S

LISTING = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}


async def raw(port: int, head: str, body: bytes = b"") -> tuple[str, bytes]:
    """The status line and headers, and what follows up to the end of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(PATIENCE_S):
        writer.write(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    told, _, rest = answer.partition(b"\r\n\r\n")
    return told.decode(), rest


# --- JSON-RPC --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_no_parameters_may_be_null(api: Api, version: str):
    """As a serializer writes them that leaves nothing out."""
    method = "ListTasks" if version == "1.0" else "agent/getAuthenticatedExtendedCard"
    answer = await post(api, LISTING | {"method": method, "params": None}, {"A2A-Version": version})
    assert "result" in answer


@pytest.mark.parametrize("number", [12345678901234567890123456789012345, 1e5, -0.0])
async def test_numbers_of_any_kind_are_ids(api: Api, number: float):
    assert (await post(api, LISTING | {"id": number}))["id"] == number


@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_an_id_is_no_document(api: Api, version: str):
    """Every event of a stream repeats it."""
    method = "SendStreamingMessage" if version == "1.0" else "message/stream"
    answer = await post(api, LISTING | {"id": "x" * 1025, "method": method}, {"A2A-Version": version})
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert "at most 1024 characters" in answer["error"]["message"]
    assert (await post(api, LISTING | {"id": "x" * 1024}))["id"] == "x" * 1024


@pytest.mark.parametrize("name", ["messageId", "contextId"])
async def test_ids_of_messages_and_contexts_are_bounded(api: Api, name: str):
    bad = await error(api, "SendMessage", message=MESSAGE | {name: "x" * 1025})
    assert (bad["code"], bad["message"]) == (-32602, f"message.{name}: must have at most 1024 characters")
    assert api.control.calls == []
    assert await result(api, "SendMessage", message=MESSAGE | {name: "x" * 1024})


async def test_of_two_members_of_one_name_the_last_counts(api: Api):
    body = b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "Sing", "method": "ListTasks"}'
    assert (await post(api, body))["id"] == 2


@pytest.mark.parametrize("query", ["A2A-Version=1.0", "a2a-version=1.0", "A2A-VERSION=1.0"])
async def test_the_version_in_a_query_is_named_in_any_case(api: Api, query: str):
    assert "result" in await post(api, LISTING, {}, f"/a2a?{query}")


# --- HTTP ------------------------------------------------------------------------------------------------------------


async def test_head_is_answered_as_get_is(api: Api):
    task = await api.control.tasks.send(AGENT, a_request())
    for path in ("/a2a/rest/tasks", f"/a2a/rest/tasks/{task.id}", "/.well-known/agent-card.json"):
        async with api.agent.get(path, headers=V1) as whole, api.agent.head(path, headers=V1) as head:
            assert (head.status, await head.read()) == (200, b"")
            assert head.headers["Content-Length"] == whole.headers["Content-Length"]
    async with api.agent.head(f"/a2a/rest/tasks/{task.id}:subscribe", headers=V1) as stream:
        assert (stream.status, stream.headers["Allow"]) == (405, "POST, GET")


async def test_a_verb_that_a_path_does_not_take(api: Api):
    async with api.agent.put("/a2a/rest/tasks", headers=V1) as response:
        told = (await response.json(content_type=None))["error"]
        assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")
        assert (told["code"], told["status"]) == (405, "UNIMPLEMENTED")


@pytest.mark.parametrize("config", ["a:b", "hook:cancel", "https:x", "a%3Ab"])
async def test_a_config_is_reached_by_any_id_that_it_may_have(api: Api, config: str):
    """Pushes are not offered here, so that what reaches the operation says so."""
    path = f"/a2a/rest/tasks/t/pushNotificationConfigs/{config}"
    async with api.agent.delete(path, headers=V1) as response:
        (info,) = (await response.json(content_type=None))["error"]["details"]
        assert info["reason"] == "PUSH_NOTIFICATION_NOT_SUPPORTED"


@pytest.mark.parametrize("binding", ["rpc", "rest"])
async def test_who_is_not_known_is_told_how_to_say_who(api: Api, monkeypatch: pytest.MonkeyPatch, binding: str):
    """Also where only the operation itself asks who it is."""
    nobody = HttpCaller.of

    def of(request: Any, agent_id: str) -> HttpCaller:
        caller = nobody(request, agent_id)
        return HttpCaller(caller.request, caller.context, Rights(Standing.NONE), agent_id)

    monkeypatch.setattr(HttpCaller, "of", of)
    if binding == "rpc":
        asking = api.agent.post("/a2a", json=LISTING | {"method": "GetExtendedAgentCard"}, headers=V1)
    else:
        asking = api.agent.get("/a2a/rest/extendedAgentCard", headers=V1)
    async with asking as response:
        assert (response.status, response.headers["WWW-Authenticate"]) == (401, 'Bearer realm="synapsed"')


async def test_a_full_mailbox_says_when_to_come_again(api: Api):
    api.control.queue_max = 0
    async with api.agent.post("/a2a/rest/message:send", json={"message": MESSAGE}, headers=V1) as response:
        assert response.status == 429
        assert int(response.headers["Retry-After"]) > 0


SENT = json.dumps(LISTING | {"method": "SendStreamingMessage", "params": {"message": MESSAGE}}).encode()
HEAD = "Content-Type: application/json\nA2A-Version: 1.0"


async def test_a_stream_over_http_1_0_ends_with_the_connection(api: Api):
    told, rest = await raw(
        api.agent_port, f"POST /a2a HTTP/1.0\nHost: localhost\nContent-Length: {len(SENT)}\n{HEAD}", SENT
    )
    assert "text/event-stream" in told
    assert "chunked" not in told.lower()
    assert rest.startswith(b"data: {")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_a_body_in_chunks_with_extensions_and_trailers(api: Api, version: str):
    body = b"%x;x=y\r\n%b\r\n%x\r\n%b\r\n0\r\nX: y\r\n\r\n" % (9, SENT[:9], len(SENT) - 9, SENT[9:])
    head = f"POST /a2a/ HTTP/{version}\nHost: LOCALHOST:1\nTransfer-Encoding: chunked\n{HEAD}"
    told, rest = await raw(api.agent_port, head, body)
    assert " 200 " in told.partition("\r\n")[0]
    assert b"TASK_STATE_COMPLETED" in rest


@pytest.mark.parametrize("accepts", ["text/event-stream", "text/html", "*/*;q=0", "nonsense,,;", ""])
async def test_what_is_accepted_changes_no_answer(api: Api, accepts: str):
    assert "result" in await post(api, LISTING, V1 | {"Accept": accepts})


async def test_a_stream_is_resumed_by_the_task_and_no_event_id(api: Api):
    """What an `EventSource` sends when it comes back is looked over: the task comes first, as ever."""
    task = await api.control.tasks.send(AGENT, a_request())
    path = f"/a2a/rest/tasks/{task.id}:subscribe"
    headers = V1 | {"Last-Event-ID": "99", "Accept": "text/event-stream"}
    async with api.agent.get(path, headers=headers) as response:
        (info,) = (await response.json(content_type=None))["error"]["details"]
        assert (response.status, info["reason"]) == (400, "UNSUPPORTED_OPERATION")  # over: it does not come back again


async def test_the_card_has_the_address_that_was_called(api: Api):
    head = "GET /.well-known/agent-card.json HTTP/1.1\nHost: [::1]:8100\nConnection: close"
    _, rest = await raw(api.agent_port, head)
    assert json.loads(rest)["supportedInterfaces"][0]["url"] == "http://[::1]:8100/a2a"
