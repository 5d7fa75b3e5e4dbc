"""What a request asks for in its body, and what an agent's process says that it passes on: neither opens a door."""

from dataclasses import replace
from typing import Any

import pytest

from synapsed.api.rights import Peer
from synapsed.parts.a2a.a2a_loading import A2aSdk
from synapsed.parts.a2a.running import A2aPart
from synapsed.parts.web.records import DESK
from tests.api.serving import TOKEN, Api
from tests.parts.web.test_doors import ELSEWHERE, ORIGIN, PAGE, book_of, code_of, enter

MESSAGE = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
MESSAGE_03 = {"messageId": "m1", "kind": "message", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
SENDS = {
    "JSON-RPC": ("a2a", {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": MESSAGE}}),
    "JSON-RPC, streamed": (
        "a2a", {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": MESSAGE}},
    ),
    "HTTP+JSON": ("a2a/rest/message:send", {"message": MESSAGE}),
    "JSON-RPC 0.3": ("a2a", {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": MESSAGE_03}}),
}  # fmt: skip


async def bearer(api: Api, rights: set[Any]) -> dict[str, str]:
    _, value = await book_of(api).make_token("script", frozenset(rights), agents=["claude"], days=1)
    return {"Authorization": f"Bearer {value}"}


@pytest.mark.parametrize(
    ("rights", "sent"), [({"look"}, False), ({"look", "type"}, False), ({"send"}, True), ({"answer"}, True)]
)
@pytest.mark.parametrize("way", SENDS)
async def test_sending_by_a2a_needs_the_right_too(api: Api, way: str, rights: set[Any], *, sent: bool) -> None:
    path, body = SENDS[way]
    version = {} if "0.3" in way else {"A2A-Version": "1.0"}
    headers = await bearer(api, rights) | version
    async with api.http.post(f"/agents/claude/{path}", json=body, headers=headers) as answer:
        told = await answer.text()
    assert any(call[0] == "send" for call in api.control.calls) == sent, told
    assert ("does not have the right" in told) != sent, told


class _NoPushes:
    """Offered, and never come to."""

    async def check(self, url: str) -> None:
        raise AssertionError(f"{url} was looked at")


async def test_a_message_of_a_tokens_brings_no_notifications(api: Api) -> None:
    sdk = A2aSdk(api.control.tasks, api.control.events, _NoPushes())  # type: ignore[arg-type]
    api.servers.context.parts._running["a2a"] = A2aPart(sdk)
    told = {"taskPushNotificationConfig": {"url": "https://example.com/x"}}
    headers = await bearer(api, {"send"}) | {"A2A-Version": "1.0"}
    body = {"message": MESSAGE, "configuration": told}
    status, answer = await api.json(
        api.http, "POST", "/agents/claude/a2a/rest/message:send", json=body, headers=headers
    )
    assert status == 403, answer
    assert not any(call[0] == "send" for call in api.control.calls)


@pytest.fixture
def inside(api: Api, monkeypatch: pytest.MonkeyPatch) -> Api:
    """Every TCP connection is of a process of claude's."""
    security = api.servers.context.security
    looked_up = Peer(transport="tcp", uid=security._own_uid, settled=True)

    async def of_claude(*_: object, **__: object) -> Peer:
        return replace(looked_up, agent_id=next(iter(api.control.views)))

    monkeypatch.setattr(security._peers, "tcp", of_claude)
    return api


async def test_an_agent_that_says_it_is_a_proxy_stays_that_agent(inside: Api) -> None:
    await book_of(inside).serve("box.example.net", on=True)
    _, session = await book_of(inside).pair("a browser", DESK)
    shown = {"Authorization": f"Bearer {TOKEN}"}, {"Cookie": f"__Host-synapsed-443={session}", **ORIGIN, **PAGE}
    for proof in shown:
        status, told = await inside.json(inside.http, "GET", "/whoami", headers=ELSEWHERE | proof)
        assert (status, told["standing"]) == (200, "agent")


async def test_an_agent_pairs_no_device_and_uses_up_no_code(inside: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    code = await code_of(inside)
    assert (await enter(inside, code))[0] == 403
    assert book_of(inside).devices == []
    security = inside.servers.context.security

    async def of_a_person(*_: object, **__: object) -> Peer:
        return Peer(transport="tcp", uid=security._own_uid, settled=True)

    monkeypatch.setattr(security._peers, "tcp", of_a_person)
    assert (await enter(inside, code))[0] == 200
