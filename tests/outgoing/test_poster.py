"""One POST over a connection whose address was screened, to real receivers on loopback."""

import asyncio
import socket
import threading
from collections.abc import AsyncGenerator

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from synapsed.errors import InvalidRequest
from synapsed.outgoing.poster import LOOKUPS_MAX, HttpPoster, Receipt, ThreadedResolver
from synapsed.outgoing.screening import AddressScreen
from tests.fakes.clock import PATIENCE_S
from tests.parts.a2a.push.receiver import Receiver, receiving

HEADERS = {"Content-Type": "application/a2a+json", "Authorization": "Bearer secret"}


class FakeResolver(AbstractResolver):
    """Gives each look-up the next answer, and the last one again and again."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET):
        self.asked.append(host)
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not found:
            raise OSError("no such name")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in found
        ]

    async def close(self) -> None:
        pass


@pytest.fixture
async def receiver() -> AsyncGenerator[Receiver]:
    async with receiving() as receiver:
        yield receiver


async def posted(url: str, *, allow=("loopback",), resolver: AbstractResolver | None = None, timeout=30.0) -> Receipt:
    poster = HttpPoster(AddressScreen(allow), timeout=timeout, resolver=resolver)
    try:
        return await poster.post(url, [b'{"task":{}}'], HEADERS)
    finally:
        await poster.close()


async def test_what_arrives(receiver: Receiver):
    assert await posted(receiver.url) == Receipt(accepted=True, status=200)
    assert receiver.taken == [{"task": {}}]
    assert receiver.headers[0]["Authorization"] == "Bearer secret"
    assert receiver.headers[0]["Content-Type"] == "application/a2a+json"
    assert "Cookie" not in receiver.headers[0]


async def test_loopback_is_refused_unless_allowed(receiver: Receiver):
    receipt = await posted(receiver.url, allow=())
    assert (receipt.accepted, receipt.problem) == (False, "the address is not allowed")
    receipt = await posted(receiver.url.replace("127.0.0.1", "localhost"), allow=())
    assert not receipt.accepted
    assert "not allowed" in receipt.problem
    receipt = await posted(receiver.url.replace("127.0.0.1", "[::ffff:127.0.0.1]"), allow=())
    assert not receipt.accepted
    assert receiver.bodies == []


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "127.0.0.1."])
async def test_odd_spellings_of_loopback_are_refused(receiver: Receiver, host: str):
    assert not (await posted(receiver.url.replace("127.0.0.1", host), allow=())).accepted
    assert receiver.bodies == []


async def test_a_name_that_means_another_address_by_now_is_not_followed(receiver: Receiver):
    url = receiver.url.replace("127.0.0.1", "rebinding.example")
    resolver = FakeResolver(["93.184.215.14"], ["127.0.0.1"])
    poster = HttpPoster(AddressScreen(), timeout=30, resolver=resolver)
    await poster.check(url)  # harmless when it is looked at first
    receipt = await poster.post(url, [b"{}"], HEADERS)
    await poster.close()
    assert (receipt.accepted, len(resolver.asked)) == (False, 2)
    assert "not allowed" in receipt.problem
    assert receiver.bodies == []


async def test_the_address_that_was_screened_is_the_one_that_is_connected_to(receiver: Receiver):
    """One look-up for each connection, and only addresses are connected to that are permitted."""
    url = receiver.url.replace("127.0.0.1", "mixed.example")
    resolver = FakeResolver(["10.255.255.1", "127.0.0.1"])
    assert (await posted(url, resolver=resolver)).accepted
    assert resolver.asked == ["mixed.example"]
    assert receiver.headers[0]["Host"] == url.split("/")[2]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(receiver: Receiver, status: int):
    receiver.answers = lambda _: web.Response(status=status, headers={"Location": receiver.url})
    receipt = await posted(receiver.url)
    assert (receipt.accepted, receipt.problem) == (False, f"it answered {status}")
    assert len(receiver.bodies) == 1


async def test_refusals_are_told(receiver: Receiver):
    receiver.answers = lambda _: web.Response(status=503, headers={"Retry-After": "7"})
    assert await posted(receiver.url) == Receipt(accepted=False, retry_after="7", problem="it answered 503", status=503)
    receiver.answers = lambda _: 410
    assert (await posted(receiver.url)).gone


async def test_silence_and_a_dropped_connection_are_failures(receiver: Receiver):
    receiver.answers = lambda _: receiver.silence()
    assert (await posted(receiver.url, timeout=0.2)).problem == "no answer within 0.2 s"

    async def drop(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    server = await asyncio.start_server(drop, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert (await posted(f"http://127.0.0.1:{port}/?token=secret")).problem == "it dropped the connection"
    server.close()
    await server.wait_closed()
    assert "cannot be connected" in (await posted(f"http://127.0.0.1:{port}/")).problem


async def test_an_endless_answer_is_not_read(receiver: Receiver):
    """The head is all that counts."""

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while not writer.is_closing():
                writer.write(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")
                await writer.drain()
        except ConnectionError:
            pass

    server = await asyncio.start_server(flood, "127.0.0.1", 0)
    assert (await posted(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")).accepted
    server.close()


async def test_new_configs_are_looked_at():
    async def check(url: str, *answers: list[str]) -> None:
        poster = HttpPoster(AddressScreen(), timeout=30, resolver=FakeResolver(*answers))
        await poster.check(url)
        await poster.close()

    await check("https://example.com/", ["93.184.215.14", "10.0.0.1"])
    await check("https://unknown.example/", [])
    for url, answer in (
        ("https://inside.example/", ["10.0.0.1"]),
        ("https://inside.example/", ["::1", "127.0.0.1"]),
        ("https://[::1]/", []),
        ("https://169.254.169.254/latest/", []),
        ("ftp://example.com/", []),
    ):
        with pytest.raises(InvalidRequest):
            await check(url, answer)


async def test_a_look_up_for_which_there_is_no_thread_fails_and_the_next_one_works():
    resolver = ThreadedResolver()
    before = threading.stack_size(1 << 47)  # more than a process can have: no thread can be begun
    try:
        for _ in range(2 * LOOKUPS_MAX):
            with pytest.raises(OSError, match="thread"):
                await resolver.resolve("localhost", 80)
    finally:
        threading.stack_size(before)
    async with asyncio.timeout(PATIENCE_S):
        assert await resolver.resolve("localhost", 80)


async def test_names_are_looked_up_beside_the_loop():
    resolver = ThreadedResolver()
    both = await asyncio.gather(resolver.resolve("localhost", 80), resolver.resolve("localhost", 80))
    assert {item["host"] for item in both[0]} <= {"127.0.0.1", "::1"}
    assert both[0] == both[1]
    with pytest.raises(OSError):
        await resolver.resolve("no-such-name.invalid", 80)
    with pytest.raises(OSError):
        await resolver.resolve("x" * 300, 80)
