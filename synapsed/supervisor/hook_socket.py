"""The two sockets to which the hooks of programs connect: one for notices, one for questions.

A notice is a datagram that says that an agent has new reports. On the stream socket, a hook asks one question in each
connection.

A question is the agent's id, a line break and a hook's report (see `hookclient`); the asker then closes its side. The
answer is JSON in the program's own format, or nothing, which leaves the decision to a person.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import structlog

from synapsed.aio import TaskSet, stop_listening
from synapsed.errors import SynapsedError
from synapsed.supervisor.directory import AgentDirectory

QUESTION_MAX = 17 << 20
"""Largest number of bytes of a question: the hook client's limit and its envelope."""
PATIENCE_S = 5.0
"""Seconds for a question and its answer; after that, the asker has given up."""
POKE_BYTES = 256
"""Bytes that are read of a datagram; an agent's id is shorter."""
AT_ONCE = 64
"""Largest number of questions that are read and answered at once; others wait."""
PIECE = 64 << 10
"""Bytes that are read at once. A longer question is parsed in a thread."""

type Decide = Callable[[str, str, dict[str, Any]], Awaitable[dict[str, Any] | None]]
"""Returns the answer for an agent, an event, and the program's data."""

log = structlog.stdlib.get_logger("synapsed.questions")


class HookSocket:
    """A socket that exists within the context of `made`, and that can be made again if it is removed."""

    def __init__(self, made: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        self._made = made
        self._open = AsyncExitStack()

    async def make(self) -> None:
        """Makes the socket; an earlier one is closed first."""
        await self.close()
        await self._open.enter_async_context(self._made())

    async def close(self) -> None:
        await self._open.aclose()


@asynccontextmanager
async def answering(path: Path, decide: Decide) -> AsyncIterator[None]:
    """Makes the Unix socket `path`, and answers the questions that come to it within the block."""
    path.unlink(missing_ok=True)  # the daemon's lock is held: no other daemon uses it
    room = asyncio.Semaphore(AT_ONCE)
    serving = TaskSet()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.spawn(serve(reader, writer), eager=True)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                begin = await reader.read(PIECE)  # a client that says nothing keeps no other waiting
                async with room:
                    writer.write(await _answer(await _read(begin, reader), decide))
                writer.close()
                await writer.wait_closed()
        except (SynapsedError, OSError, ValueError, RecursionError) as error:
            log.warning("a question was not answered: the person is asked", error=str(error))
        finally:
            writer.transport.abort()  # an answer that is not read would keep the connection, and the daemon's end

    server = await asyncio.start_unix_server(connected, path)
    try:
        yield
    finally:
        await stop_listening(server)
        await serving.cancel()
        await server.wait_closed()
        path.unlink(missing_ok=True)


async def _read(begin: bytes, reader: asyncio.StreamReader) -> bytes:
    content = bytearray(begin)
    while piece := await reader.read(PIECE):
        content += piece
        if len(content) > QUESTION_MAX:
            raise ValueError("the question is too long")
    return bytes(content)


async def _answer(question: bytes, decide: Decide) -> bytes:
    agent_id, _, report = question.partition(b"\n")
    told = await asyncio.to_thread(json.loads, report) if len(report) > PIECE else json.loads(report)
    event, payload = (told.get("event"), told.get("payload")) if isinstance(told, dict) else (None, None)
    if not isinstance(event, str) or not isinstance(payload, dict):
        return b""
    answer = await decide(agent_id.decode("ascii", "replace"), event, payload)
    return json.dumps(answer, ensure_ascii=False).encode() if answer is not None else b""


@asynccontextmanager
async def poked(path: Path, directory: AgentDirectory) -> AsyncIterator[None]:
    """Listens for the datagrams by which hooks say that an agent has new reports."""
    path.unlink(missing_ok=True)  # the lock is held: no other daemon uses it
    transport, protocol = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: _Pokes(directory), local_addr=str(path), family=socket.AF_UNIX
    )
    try:
        yield
    finally:
        transport.close()
        await protocol.end()
        path.unlink(missing_ok=True)


class _Pokes(asyncio.DatagramProtocol):
    """Handles one datagram (a poke) of each agent at a time; all that come meanwhile are remembered as one."""

    def __init__(self, directory: AgentDirectory) -> None:
        self._directory = directory
        self._again: dict[str, bool] = {}
        self._tasks = TaskSet()

    def datagram_received(self, data: bytes, addr: object) -> None:
        agent_id = data[:POKE_BYTES].decode("ascii", "replace")
        if agent_id in self._again:
            self._again[agent_id] = True
            return
        if self._directory.get(agent_id) is None:
            return
        self._again[agent_id] = False
        self._tasks.spawn(self._poke(agent_id))

    def error_received(self, exc: Exception) -> None:
        log.warning("hooks socket", error=str(exc))

    async def end(self) -> None:
        await self._tasks.cancel()

    async def _poke(self, agent_id: str) -> None:
        try:
            while True:
                self._again[agent_id] = False
                if (agent := self._directory.get(agent_id)) is not None:
                    await agent.poke()
                if not self._again[agent_id]:
                    return
        except (SynapsedError, OSError) as error:
            log.warning("an agent's reports could not be read", agent=agent_id, error=str(error))
        finally:
            del self._again[agent_id]
