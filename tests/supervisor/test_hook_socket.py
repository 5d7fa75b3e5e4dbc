"""Clients of the socket for questions that are slow: they keep neither others waiting nor the daemon's end."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from synapsed.supervisor import hook_socket
from synapsed.supervisor.hook_socket import AT_ONCE, PIECE, answering

DEADLINE_S = 60.0
QUESTION = b'synapse-x-1\n{"event": "Asked", "payload": {}}'


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is to happen because a client was waited for long enough."""
    monkeypatch.setattr(hook_socket, "PATIENCE_S", 1e6)


@asynccontextmanager
async def connected(path: Path) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def test_clients_that_say_nothing_keep_no_other_waiting(tmp_path: Path) -> None:
    async def decide(*_: Any) -> dict[str, Any]:
        return {"ok": True}

    path = tmp_path / "decide.sock"
    async with asyncio.timeout(DEADLINE_S), answering(path, decide), AsyncExitStack() as silent:
        for _ in range(AT_ONCE + 1):
            await silent.enter_async_context(connected(path))
        async with connected(path) as (reader, writer):
            writer.write(QUESTION)
            writer.write_eof()
            assert json.loads(await reader.read()) == {"ok": True}


async def test_a_client_that_does_not_read_its_answer_does_not_keep_the_end_waiting(tmp_path: Path) -> None:
    decided = asyncio.Event()

    async def decide(*_: Any) -> dict[str, Any]:
        decided.set()
        return {"long": "x" * (16 << 20)}

    path = tmp_path / "decide.sock"
    async with asyncio.timeout(DEADLINE_S), AsyncExitStack() as open_, answering(path, decide):
        _, writer = await open_.enter_async_context(connected(path))
        cast("asyncio.ReadTransport", writer.transport).pause_reading()
        writer.write(QUESTION)
        writer.write_eof()
        await decided.wait()


async def test_a_decision_that_takes_for_ever_ends_with_the_socket(tmp_path: Path) -> None:
    begun, given_up = asyncio.Event(), asyncio.Event()

    async def decide(*_: Any) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    path = tmp_path / "decide.sock"
    async with asyncio.timeout(DEADLINE_S), AsyncExitStack() as open_:
        async with answering(path, decide):
            _, writer = await open_.enter_async_context(connected(path))
            writer.write(QUESTION)
            writer.write_eof()
            await begun.wait()
        assert given_up.is_set()


async def test_a_large_question_is_parsed_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed_in: list[int] = []
    loads = json.loads

    def noted(text: bytes) -> Any:
        parsed_in.append(threading.get_ident())
        return loads(text)

    async def decide(_agent: str, _event: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"size": len(payload["text"])}

    path = tmp_path / "decide.sock"
    monkeypatch.setattr(hook_socket.json, "loads", noted)
    report = json.dumps({"event": "Asked", "payload": {"text": "x" * PIECE}})
    async with asyncio.timeout(DEADLINE_S), answering(path, decide), connected(path) as (reader, writer):
        writer.write(b"synapse-x-1\n" + report.encode())
        writer.write_eof()
        assert loads(await reader.read()) == {"size": PIECE}
    assert parsed_in
    assert threading.get_ident() not in parsed_in
