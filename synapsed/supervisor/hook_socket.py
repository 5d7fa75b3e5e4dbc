"""The stream socket on which hooks ask: one question a connection, answered in the program's own words or not at all.

A question is the agent's id, a line break and a hook's report (see `hookclient`); the asker then closes its side. The
answer is JSON, or nothing, which leaves the matter to a person.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog

from synapsed.errors import SynapsedError
from synapsed.listening import stop_listening

QUESTION_MAX = 17 << 20
"""Bytes of a question: the hook client's limit and its envelope."""
PATIENCE_S = 5.0
"""For a question to be asked and answered; the asker has gone by then."""
AT_ONCE = 64
"""Questions that are being answered; further ones wait."""

type Decide = Callable[[str, str, dict[str, Any]], Awaitable[dict[str, Any] | None]]
"""Agent, event, what the program told → the answer."""

log = structlog.stdlib.get_logger("synapsed.questions")


@asynccontextmanager
async def answering(path: Path, decide: Decide) -> AsyncIterator[None]:
    """Answer the questions that come to `path`, a Unix socket made here, within the block."""
    path.unlink(missing_ok=True)  # the daemon's lock is held: nobody else's
    room = asyncio.Semaphore(AT_ONCE)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with room, asyncio.timeout(PATIENCE_S):
                writer.write(await _answer(await _read(reader), decide))
                await writer.drain()
        except (SynapsedError, OSError, ValueError, RecursionError) as error:
            log.warning("a question was not answered: the person is asked", error=str(error))
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    server = await asyncio.start_unix_server(serve, path)
    try:
        yield
    finally:
        await stop_listening(server)
        server.close_clients()
        await server.wait_closed()
        path.unlink(missing_ok=True)


async def _read(reader: asyncio.StreamReader) -> bytes:
    content = bytearray()
    while piece := await reader.read(1 << 16):
        content += piece
        if len(content) > QUESTION_MAX:
            raise ValueError("the question is too long")
    return bytes(content)


async def _answer(question: bytes, decide: Decide) -> bytes:
    agent_id, _, report = question.partition(b"\n")
    told = json.loads(report)
    event, payload = (told.get("event"), told.get("payload")) if isinstance(told, dict) else (None, None)
    if not isinstance(event, str) or not isinstance(payload, dict):
        return b""
    answer = await decide(agent_id.decode("ascii", "replace"), event, payload)
    return json.dumps(answer, ensure_ascii=False).encode() if answer is not None else b""
