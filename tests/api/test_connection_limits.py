"""Connections before they say anything: how many, whose, and for how long."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from synapsed.api.connection_limits import ConnectionLimits
from synapsed.api.peer_lookup import client_uid
from tests.api.serving import Api, serving
from tests.fakes.control import FakeControl
from tests.support.patience import PATIENCE_S

LIMITS = ConnectionLimits(tcp=12, listener=8, foreign=2, head=30.0, idle=30.0, body=30.0)
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /agents/claude/tasks/send HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
needs_root = pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="needs root to be somebody else")


@asynccontextmanager
async def limited(control: FakeControl, home: Path, **limits: float) -> AsyncGenerator[Api]:
    async with serving(control, home, door=replace(LIMITS, **limits)) as api:
        yield api


async def until_closed(port: int, *pieces: bytes) -> bytes:
    """All that the server says before it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize("said", [b"", HEAD, b"\r\n", HEAD + b"X: " + b"y" * 1000])
async def test_half_a_header_is_not_waited_for(control: FakeControl, tmp_path: Path, said: bytes) -> None:
    async with limited(control, tmp_path, head=0.2) as api:
        assert await until_closed(api.port, said) == b""


async def test_a_connection_that_is_done_is_not_kept_for_ever(control: FakeControl, tmp_path: Path) -> None:
    async with limited(control, tmp_path, idle=0.2) as api:
        assert (await until_closed(api.port, HEAD + b"\r\n")).startswith(b"HTTP/1.1 200 ")


async def test_half_a_body_is_not_waited_for(control: FakeControl, tmp_path: Path) -> None:
    async with limited(control, tmp_path, body=0.2, idle=0.2) as api:
        answer = await until_closed(api.port, POST + b'Content-Length: 100\r\n\r\n{"half":')
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"the body did not come in time" in answer


async def test_work_takes_as_long_as_it_takes(control: FakeControl, tmp_path: Path) -> None:
    """A stream outlives every deadline of its connection."""
    async with (
        limited(control, tmp_path, head=0.3, idle=0.3, body=0.3) as api,
        api.http.get("/events", headers={"Accept": "text/event-stream"}) as stream,
    ):
        await api.streams(1)
        await until_closed(api.port, HEAD + b"\r\n")  # three deadlines later
        await until_closed(api.port)
        await until_closed(api.port)
        assert api.servers.context.streams.open == 1
        assert not stream.content.at_eof()


@contextmanager
def idle(port: int, count: int) -> Iterator[list[socket.socket]]:
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    try:
        yield sockets
    finally:
        for sock in sockets:
            sock.close()


async def test_a_listener_that_is_full_leaves_the_others_alone(control: FakeControl, tmp_path: Path) -> None:
    async with limited(control, tmp_path) as api:
        with idle(api.agent_port, LIMITS.listener):
            assert await until_closed(api.agent_port, HEAD + b"\r\n") == b"", "no more of them"
            assert (await api.json(api.http, "GET", "/healthz"))[0] == 200
            with idle(api.port, LIMITS.tcp - LIMITS.listener - 1):  # one is kept by the client above
                assert await until_closed(api.port, HEAD + b"\r\n") == b"", "nor of all together"
                assert (await api.json(api.unix, "GET", "/healthz"))[0] == 200
        assert (await api.json(api.agent, "GET", "/status"))[0] == 200, "there is room again"


STRANGER = """
import os, select, socket, sys
port, count = map(int, sys.argv[1:])
os.setgroups([]); os.setgid(65534); os.setuid(65534)
kept = []
for n in range(count):
    one = socket.socket()
    one.connect(("127.0.0.1", port))
    kept.append(one)
closed, left = 0, list(kept)
while closed < count - 2:
    readable, _, _ = select.select(left, [], [], 60)
    for one in readable:
        left.remove(one)
        try:
            closed += not one.recv(1)
        except ConnectionError:
            closed += 1
    if not readable:
        break
print(closed, flush=True)
sys.stdin.read()
"""


@needs_root
async def test_another_user_gets_a_few(control: FakeControl, tmp_path: Path) -> None:
    async with limited(control, tmp_path) as api:
        argv = [sys.executable, "-c", STRANGER, str(api.port), "7"]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as stranger:
            assert stranger.stdin is not None
            assert stranger.stdout is not None
            assert await asyncio.to_thread(stranger.stdout.readline) == "5\n"
            assert (await api.json(api.http, "GET", "/healthz"))[0] == 200
            stranger.stdin.close()


@pytest.mark.skipif(sys.platform != "linux", reason="there is no sock_diag")
@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_whose_connection_it_is(family: socket.AddressFamily, host: str) -> None:
    with socket.socket(family) as listener, socket.socket(family) as client:
        listener.bind((host, 0))
        listener.listen()
        client.connect(listener.getsockname())
        served, peer = listener.accept()
        with served:
            assert client_uid(peer, served.getsockname()) == os.getuid()
            client.close()
            assert client_uid(peer, served.getsockname()) is None
            assert client_uid((host, 1), served.getsockname()) is None


def test_what_there_is_room_for() -> None:
    for files in (256, 1024, 4096, 65_536, 1 << 30):
        limits = ConnectionLimits.of(files, proxied=False)
        assert limits.foreign <= limits.listener <= limits.tcp
        assert limits.tcp + limits.listener < files or files < 512
        assert limits.listener == limits.tcp // 2  # one that is full leaves the others as much
    assert ConnectionLimits.of(1024, proxied=True).foreign > 32
