"""Large bodies are read when there is room for them: they wait for it, and who waits too long is told to come again."""

import asyncio
import json
import zlib
from typing import Any

import pytest

from synapsed.api import memory_reservation
from synapsed.api.memory_reservation import BODIES, SMALL_BODY
from synapsed.api.rights import Peer
from tests.api.serving import Api
from tests.fakes.clock import until

LARGE = "x" * SMALL_BODY
PARTS = [{"type": "text", "text": LARGE}]
MESSAGE = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": LARGE}]}
RPC = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": MESSAGE}}
NEW = {"A2A-Version": "1.0"}
DOORS: list[tuple[str, Any, dict[str, str]]] = [
    ("/tasks/send", {"message": {"role": "user", "parts": PARTS}}, {}),
    ("/message", {"content": LARGE}, {}),
    ("/a2a", RPC, NEW),
    ("/a2a/rest/message:send", {"message": MESSAGE}, NEW),
]


@pytest.mark.parametrize(("path", "body", "headers"), DOORS)
async def test_a_large_body_that_finds_no_room_in_time_is_refused(
    api: Api, monkeypatch: pytest.MonkeyPatch, path: str, body: Any, headers: dict[str, str]
) -> None:
    monkeypatch.setattr(memory_reservation, "PATIENCE_S", 0.0)
    room = api.servers.context.bodies
    held = room.take_now("held", BODIES)
    assert held is not None
    async with api.agent.post(path, json=body, headers=headers) as response:
        assert (response.status, response.headers.get("Retry-After")) == (503, "5")
        assert "BUSY" in await response.text()
    assert not [call for call in api.control.calls if call[0] == "send"]
    assert room.used == BODIES, "what was refused holds nothing"
    assert (await api.json(api.agent, "POST", "/message", json={"content": "small"}))[0] == 200
    held.release()
    async with api.agent.post(path, json=body, headers=headers) as response:
        assert response.status == 200, await response.text()
    await until(lambda: room.used == 0, "it is given back")


@pytest.mark.parametrize("chunked", [True, False])
async def test_uploads_of_unknown_callers_take_no_room(
    api: Api, monkeypatch: pytest.MonkeyPatch, chunked: bool
) -> None:
    """Some that never end would hold all of it, and every large message would be refused."""
    security = api.servers.context.security

    async def stranger(*_: object, **__: object) -> Peer:
        return Peer(transport="tcp", loopback=False, can_look_up=False)

    monkeypatch.setattr(security._peers, "tcp", stranger)

    async def pieces() -> Any:
        yield b'{"code": "x"}'

    body: dict[str, Any] = {"data": pieces()} if chunked else {"json": {"code": LARGE}}
    headers = {"Content-Type": "application/json"}
    room = api.servers.context.bodies
    held = room.take_now("held", BODIES)
    assert held is not None
    status, told = await api.json(api.http, "POST", "/web/session", headers=headers, **body)
    assert (status, told["error"]["code"]) == (413, "TOO_LARGE")
    assert (await api.json(api.http, "POST", "/web/session", json={"code": "x"}))[0] == 403, "a small one is read"
    held.release()


@pytest.mark.parametrize("chunked", [True, False])
async def test_a_large_body_waits_for_room(api: Api, chunked: bool) -> None:
    """One that does not say how long it is might be as long as any may be."""
    room = api.servers.context.bodies
    held = room.take_now("held", BODIES - (SMALL_BODY if chunked else 1))
    assert held is not None

    async def pieces() -> Any:
        yield b'{"content": "hi"}'

    body: dict[str, Any] = {"data": pieces()} if chunked else {"json": {"content": LARGE}}
    headers = {"Content-Type": "application/json"}
    sending = asyncio.create_task(api.json(api.agent, "POST", "/message", headers=headers, **body))
    await until(lambda: room.waiting == 1, "it waits")
    assert not sending.done()
    held.release()
    assert (await sending)[0] == 200
    await until(lambda: room.used == 0, "it is given back")


async def test_too_many_do_not_wait(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_reservation, "WAITING_MAX", 0)
    held = api.servers.context.bodies.take_now("held", BODIES)
    assert held is not None
    status, body = await api.json(api.agent, "POST", "/message", json={"content": LARGE})
    assert (status, body["error"]["code"]) == (503, "BUSY")


async def test_a_message_that_is_taken_holds_no_room_while_its_answer_is_waited_for(api: Api) -> None:
    room = api.servers.context.bodies
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(api.json(api.agent, "POST", "/a2a", json=RPC, headers=NEW))
        await until(lambda: [call for call in api.control.calls if call[0] == "send"], "it is in the mailbox")
        await until(lambda: room.used == 0, "it is given back")
        asking.cancel()


async def test_who_leaves_while_it_waits_holds_up_nobody(api: Api) -> None:
    room = api.servers.context.bodies
    held = room.take_now("held", BODIES)
    assert held is not None
    sending = asyncio.create_task(api.json(api.agent, "POST", "/message", json={"content": LARGE}))
    await until(lambda: room.waiting == 1, "it waits")
    sending.cancel()
    held.release()
    await until(lambda: room.used == 0 and room.waiting == 0, "nothing is held")
    assert (await api.json(api.agent, "POST", "/message", json={"content": LARGE}))[0] == 200


async def test_who_leaves_in_the_middle_of_a_body_is_no_failure_of_the_daemon(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    room = api.servers.context.bodies
    _, writer = await asyncio.open_connection("127.0.0.1", api.port)
    head = "POST /agents/claude/tasks/send HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {2 * SMALL_BODY}\r\n\r\n{{".encode())
    await until(lambda: room.used > 0, "it is read")
    writer.transport.abort()
    await until(lambda: room.used == 0, "the request is over")
    captured = capsys.readouterr()
    assert "request failed" not in captured.out + captured.err


@pytest.mark.parametrize("coding", ["deflate", "gzip", "br", "x-own"])
@pytest.mark.parametrize(("path", "body", "headers"), DOORS)
async def test_a_body_that_grows_when_it_is_read_is_refused(
    api: Api, path: str, body: Any, headers: dict[str, str], coding: str
) -> None:
    """Room is kept for what is sent."""
    packed = zlib.compress(json.dumps(body).encode())
    assert len(packed) < SMALL_BODY / 100
    coded = {**headers, "Content-Type": "application/json", "Content-Encoding": coding}
    async with api.agent.post(path, data=packed, headers=coded) as response:
        assert response.status == 415, await response.text()
        assert "send it as it is" in await response.text()
    assert not [call for call in api.control.calls if call[0] == "send"]


async def test_a_body_may_say_that_it_is_as_it_is(api: Api) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "identity"}
    assert (await api.json(api.agent, "POST", "/message", data=b'{"content": "hi"}', headers=headers))[0] == 200
