"""A host of `bench.fleet`, without agents' programs: a real store and the real fleet, or plain HTTP in its place.

python -m bench.fleetpeer fleet|http [URL ...]

As a process of its own it is the receiver: it says "ready", with its port, and then the text of each message and when
it was committed, by the clock that all processes of a machine share.
"""

import asyncio
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Self

import structlog
from aiohttp import web

from synapsed.clock import SystemClock
from synapsed.config.config_files import load_config
from synapsed.config.paths import Paths
from synapsed.interfaces import SendRequest
from synapsed.model.task import Message, Task, TextPart
from synapsed.parts.loading import config_model
from synapsed.store.store import SqliteStore
from synapsed.tasks import transitions
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.member_files import Home
from synapsed_fleet.service import Fleet
from tests.parts.fleet.member import AGENT, Agents, AheadClock, Control, Plan

PATIENCE_S = 60.0
HTTP = "http"


def quiet() -> None:
    """Only what is wrong is logged, and not among the figures."""
    warnings = structlog.make_filtering_bound_logger(logging.WARNING)
    structlog.configure(wrapper_class=warnings, logger_factory=structlog.PrintLoggerFactory(sys.stderr))


def tell(text: str) -> None:
    """A line to whoever has started this process: what was committed, and when."""
    print(f"{time.monotonic()} {text}", flush=True)


class Taking(Agents):
    """Agents that only take messages: an answer would be under way beside the next message."""

    async def send(self, agent_id: str, request: SendRequest) -> Task:
        task = await super().send(agent_id, request)
        tell(words(task.message))
        return task


def words(message: Message) -> str:
    (part,) = message.parts
    assert isinstance(part, TextPart)
    return part.text


@asynccontextmanager
async def member(paths: Paths, urls: Sequence[str] = ()) -> AsyncIterator[tuple[Fleet, SqliteStore]]:
    """A host with its store and its connection, for as long as the block runs."""
    whole: Any = await asyncio.to_thread(load_config, paths, config_model())
    config = whole.fleet
    if urls:
        config = config.model_copy(update={"urls": list(urls)})
    clock = AheadClock(0.0)
    store = await SqliteStore.open(paths.database, clock=clock)
    agents = Taking(store, clock, Plan())
    control: Any = Control(agents, agents)
    fleet = Fleet(
        config, Home(paths), store=store, table=FleetTable(store), control=control, clock=clock, version="bench"
    )
    try:
        await fleet.start()
        yield fleet, store
    finally:
        await fleet.close()
        await store.close()


async def commit(store: SqliteStore, text: str) -> None:
    """A task as a message makes one, as durable as what the fleet keeps."""
    task = Task(agent_id=AGENT, message=Message.of(text), created_at="", updated_at="")
    accepted = transitions.accepted(task)
    await store.commit(events=accepted.events, tasks=[task], durable=True)


# --- the process -----------------------------------------------------------------------------------------------------


async def _serve(what: str, urls: Sequence[str]) -> None:
    quiet()
    paths = Paths.from_environ(dict(os.environ))
    if what == HTTP:
        await _serve_http(paths.database.parent / "plain.db")
        return
    async with member(paths, urls) as (fleet, _):
        await fleet.link.wait_up()
        tell("ready")
        await asyncio.Event().wait()


async def _serve_http(path: Path) -> None:
    store = await SqliteStore.open(path, clock=SystemClock())

    async def take(request: web.Request) -> web.Response:
        text = str((await request.json())["text"])
        await commit(store, text)
        tell(text)
        return web.json_response({"taken": True})

    app = web.Application()
    app.router.add_post("/", take)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        tell(f"ready {runner.addresses[0][1]}")
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
        await store.close()


class Peer:
    """The process, from the outside. Leave it by `end`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._said: dict[str, asyncio.Future[float]] = {}
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, what: str, environ: dict[str, str], urls: Sequence[str] = ()) -> Self:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.fleetpeer", what, *urls, env=environ, stdout=asyncio.subprocess.PIPE
        )
        return cls(process)

    async def committed(self, text: str) -> float:
        """When it has said that; the loop that asks first is not waited for again."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._future(text)

    def _future(self, text: str) -> "asyncio.Future[float]":
        return self._said.setdefault(text, asyncio.get_running_loop().create_future())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := (await self._process.stdout.readline()).decode():
            at, _, text = line.rstrip("\n").partition(" ")
            key, _, rest = text.partition(" ")
            self.port = int(rest) if key == "ready" and rest else 0
            future = self._future("ready" if key == "ready" else text)
            if not future.done():
                future.set_result(float(at))

    async def end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.terminate()
        await self._process.wait()
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(sys.argv[1], sys.argv[2:]))
