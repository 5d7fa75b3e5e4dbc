"""The end of a listener, at whatever moment somebody comes."""

import asyncio
import contextlib
import gc
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from synapsed.supervisor.hook_socket import answering
from tests.api.serving import serving
from tests.fakes.control import FakeControl

TURNS = range(6)
"""Of the loop, between the connection and the end: in one of them it is accepted, in the next its transport made."""


@contextlib.contextmanager
def nothing_told() -> Iterator[None]:
    told: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(context))
    yield
    gc.collect()
    assert told == []


async def connected(client: socket.socket, address: Any, turns: int) -> None:
    client.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        client.connect(address)
    for _ in range(turns):
        await asyncio.sleep(0)


@pytest.mark.parametrize("turns", TURNS)
async def test_who_comes_as_the_api_ends(control: FakeControl, tmp_path: Path, turns: int) -> None:
    with nothing_told(), socket.socket() as client:
        async with serving(control, tmp_path) as api:
            await connected(client, ("127.0.0.1", api.agent_port), turns)
            await api.servers.close()


@pytest.mark.parametrize("turns", TURNS)
async def test_who_comes_as_an_agent_s_port_closes(control: FakeControl, tmp_path: Path, turns: int) -> None:
    with nothing_told(), socket.socket() as client:
        async with serving(control, tmp_path) as api:
            await connected(client, ("127.0.0.1", api.agent_port), turns)
            await api.servers.close_agent_port(api.agent_port)


@pytest.mark.parametrize("turns", TURNS)
async def test_who_asks_as_no_questions_are_answered_any_more(tmp_path: Path, turns: int) -> None:
    async def decide(*_: Any) -> None: ...

    with nothing_told(), socket.socket(socket.AF_UNIX) as client:
        async with answering(tmp_path / "decide.sock", decide):
            await connected(client, str(tmp_path / "decide.sock"), turns)
