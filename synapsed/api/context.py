"""Objects and look-ups that the routes share: the supervisor, the limits, the caller, and the agent and task of a
request. `origin_of` returns the origin of an action that becomes an event."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final, Literal

from aiohttp import web

from synapsed.aio import Pace, at_once, cancel_all
from synapsed.api.caching import ChangeTimes
from synapsed.api.idempotent_input import Acts
from synapsed.api.memory_reservation import BODIES, reserve_task
from synapsed.api.rights import Rights
from synapsed.api.security import Security, on_unix
from synapsed.clock import Clock
from synapsed.config.paths import Paths
from synapsed.documents.budget import Budget
from synapsed.documents.writing import Texts
from synapsed.errors import QueueFull, UnknownAgent
from synapsed.interfaces import Control, WaitingHere
from synapsed.kernel import Face, Parts
from synapsed.model.agent import AgentView, ProcessState
from synapsed.model.events import Origin, Where
from synapsed.model.task import Task
from synapsed.model.trace import Sampling
from synapsed.store.acts import ActLog

PIECES_AT_ONCE = 8
"""Writers that work in one turn of the event loop; a piece takes some 0.1 ms."""

RIGHTS: Final = web.RequestKey("RIGHTS", Rights)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """Sizes, counts and times; seconds and bytes."""

    body: int = 10 * 1024 * 1024
    """Bytes of a request's body."""
    keepalive: float = 15.0
    """Seconds between comments on an idle SSE stream, and between checks whether its client is still there."""
    write_stall: float = 30.0
    """Seconds that a write to an SSE client may wait; then the stream ends, and its client resumes by its cursor."""
    streams: int = 1024
    """SSE streams and WebSockets that may be open at once, over all listeners."""
    ws_message: int = 1024 * 1024
    """Bytes of one WebSocket frame from a client."""
    exit_wait: float = 2.0
    """Seconds that a terminal whose program has ended waits for the exit code."""


class Streams:
    """Counts the open streams, and ends them all when the daemon ends."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.closing = asyncio.Event()
        """Set as the daemon ends: every stream ends after its present item, and new ones end at once."""
        self.open = 0

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Context of an open stream. Raises QueueFull above the limit."""
        if self.open >= self._limit:
            raise QueueFull(f"{self._limit} streams are open; close some", limit=self._limit)
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1

    async def items[T](self, source: AsyncIterator[T], tick: float) -> AsyncGenerator[T | None]:
        """Yields the items of `source`, None for every `tick` seconds without one; ends with the source or the daemon.
        The item being waited for is never cancelled by a tick, so none is lost."""
        closing = asyncio.create_task(self.closing.wait())
        pending: asyncio.Task[T | Literal[_End.END]] | None = None
        try:
            while not self.closing.is_set():
                # At once: an item that is there already, as in a stream that is behind, costs no turn of the loop.
                pending = pending or at_once(_next(source))
                if not pending.done():
                    waiting: set[asyncio.Task[Any]] = {pending, closing}
                    await asyncio.wait(waiting, timeout=tick, return_when=asyncio.FIRST_COMPLETED)
                if pending.done():
                    if (item := pending.result()) is _END:
                        return
                    pending = None
                    yield item
                    del item  # it may be large, and the next one may come much later
                elif not closing.done():
                    yield None
        finally:
            await cancel_all(task for task in (pending, closing) if task is not None)
            if isinstance(source, AsyncGenerator):
                await source.aclose()


class _End(Enum):
    END = auto()


_END: Final = _End.END
"""Value of a source that is over: StopAsyncIteration does not pass through a Task."""


async def _next[T](source: AsyncIterator[T]) -> T | Literal[_End.END]:
    try:
        return await anext(source)
    except StopAsyncIteration:
        return _END


@dataclass(slots=True, kw_only=True)
class ApiContext:
    """State that both applications share. Made once by the composition root, in the running event loop."""

    control: Control
    faces: Sequence[Face]
    """Descriptions of all parts (`kernel.Face`); their routes are served."""
    parts: Parts
    security: Security
    clock: Clock
    paths: Paths
    version: str
    commit: str = ""
    """Commit of the program, if it is known."""
    limits: RequestLimits = field(default_factory=RequestLimits)
    texts: Texts = field(default_factory=Texts)
    """The store's texts, so that encoded ones are not encoded again."""
    sampling: Sampling = field(default_factory=Sampling)
    acts: Acts = field(init=False)
    streams: Streams = field(init=False)
    changes: ChangeTimes = field(init=False)
    started: float = field(init=False)
    """`clock.monotonic()` when the daemon began."""
    bodies: Budget = field(default_factory=lambda: Budget(BODIES))
    """Room for large bodies of requests."""
    pace: Pace = field(default_factory=lambda: Pace(PIECES_AT_ONCE))
    pid: int = field(default_factory=os.getpid)
    listening: list[str] = field(default_factory=list)
    """`address:port` of the main listeners, once they listen."""
    place: str = ""
    """Published `host:port` of the main listeners, once they listen."""
    proxies: list[str] = field(default_factory=list)
    """Variables of the daemon's environment that name a proxy, if no proxy is used."""
    alerts: list[str] = field(default_factory=list)
    """Problems of the daemon itself, for people."""

    def __post_init__(self) -> None:
        self.acts = Acts(ActLog(self.paths.acts, self.clock))
        self.streams = Streams(self.limits.streams)
        self.changes = ChangeTimes(self.clock)
        self.started = self.clock.monotonic()

    @property
    def waiting(self) -> WaitingHere:
        """Returns the items that wait for the person on this host."""
        return next(iter(self.parts.all(WaitingHere)), WaitingHere())


CONTEXT = web.AppKey("CONTEXT", ApiContext)


async def to_the_end[T](act: Coroutine[Any, Any, T]) -> T:
    """Completes `act`, even if the request is cancelled meanwhile. Begins at once."""
    return await asyncio.shield(at_once(act))


def rights_of(request: web.Request) -> Rights:
    """Returns the caller's rights, which the middleware `gate` has set."""
    return request[RIGHTS]


def port_of(request: web.Request) -> int:
    """Returns the port of this end of a TCP connection; 0 if it is gone."""
    sockname = request.transport.get_extra_info("sockname") if request.transport else None
    return int(sockname[1]) if sockname else 0


def agent_id_of(request: web.Request) -> str:
    """Returns the id of the request's agent: by the path on the main listener, by the port on the agent's own. Raises
    UnknownAgent, AmbiguousAddress. The port of a stopped agent answers 404, and the connection is closed, because the
    next one may find another program behind the port."""
    control = request.app[CONTEXT].control
    if (address := request.match_info.get("agent")) is not None:
        return control.directory.resolve(address)
    port = port_of(request)
    agent_id = control.directory.agent_on_port(port)
    if agent_id is None or control.directory.view(agent_id).state is ProcessState.STOPPED:
        raise UnknownAgent(f"no agent runs on port {port}", port=port)
    return agent_id


def agent_of(request: web.Request) -> AgentView:
    return request.app[CONTEXT].control.directory.view(agent_id_of(request))


async def task_of(request: web.Request) -> Task:
    """Returns the task of the path, which must belong to the path's agent, if any, and be readable by the caller."""
    control = request.app[CONTEXT].control
    on_control = request.path.startswith("/control/")
    agent_id = None if on_control else agent_id_of(request)
    return rights_of(request).shown(await read_task(request, control, agent_id))


async def read_task(request: web.Request, control: Control, agent_id: str | None) -> Task:
    """Returns the task of the path, which must be of agent `agent_id` if that is given, once there is room for it in
    the answer. Raises TaskNotFound, AmbiguousAddress, Busy, Forbidden."""
    rights = rights_of(request)
    task_id = await control.tasks.find_id(request.match_info["task"], agent_id, rights.scope)
    await reserve_task(request, control, task_id)
    task = await control.tasks.find(task_id, agent_id, rights.scope)
    rights.require_read(task)
    return task


def origin_of(request: web.Request) -> Origin:
    rights = rights_of(request)
    where: Where = "control" if on_unix(request) else "http"
    who = f"{rights.grant.kind}:{rights.grant.id}" if rights.grant is not None else rights.agent_id
    return Origin("person" if rights.person else "agent", who=who, where=where)
