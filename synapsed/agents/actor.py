"""The actor of an agent: the one task in which everything about that agent is decided, one item after the other.

What takes long (launching, ending, interrupting a program) runs beside it as an operation and comes back with a call,
so that the actor never waits for a program, and two agents never wait for each other.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import structlog

from synapsed.agents.inbox import Call, Fact, Inbox
from synapsed.aio import Timers
from synapsed.errors import NotReady, StoreError
from synapsed.interfaces import AgentLink
from synapsed.model.link import LinkEvent

__all__ = ["STORE_RETRY_S", "Actor", "at_once"]

STORE_RETRY_S = 1.0
"""Pause before a fact that the database refused (disk full) is written again. Facts are not lost: the agent's next
turn waits for them."""


class Actor:
    """`handle` is given the facts of links, in order."""

    def __init__(self, name: str, *, agent_id: str, timers: Timers, handle: Callable[[Fact], Awaitable[None]]) -> None:
        self.log = structlog.stdlib.get_logger("synapsed.agent").bind(agent=name, agent_id=agent_id)
        self.timers = timers
        self._name = name
        self._handle = handle
        self._inbox = Inbox()
        self._task: asyncio.Task[None] | None = None
        self._operations: set[asyncio.Task[None]] = set()
        self._ending = self._closing = False
        self._woken = asyncio.Event()

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"agent {self._name}")

    async def close(self) -> None:
        """End the actor; what is asked of it from now on gets NotReady. What was begun is finished: a launch is
        recorded, or its program would be nobody's; what is being written is believed, or whoever goes on with the
        agent's record would go on with an old one."""
        self._ending = True
        self._woken.set()
        while self._task is not None and not self._closing:
            while self._operations:
                await asyncio.wait(set(self._operations))
            with contextlib.suppress(NotReady):  # somebody else has closed it
                await self.call(self._end, internal=True)
        self._closing = True
        if self._task is not None:
            await asyncio.wait([self._task])
        while len(self._inbox):
            item = await self._inbox.get()
            if isinstance(item, Call) and not item.future.done():
                item.future.set_exception(NotReady("the daemon is shutting down"))

    async def call[T](self, work: Callable[[], Awaitable[T]], *, internal: bool = False) -> T:
        """Have `work` done in the actor. Raises what it raises; QueueFull, NotReady where it is not even begun."""
        if self._closing or (self._ending and not internal):
            raise NotReady("the daemon is shutting down")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._inbox.put_call(Call(work, future), internal=internal)
        return await future

    def post(self, work: Callable[[], Awaitable[None]]) -> None:
        """Have `work` done in the actor, and do not wait; what it raises is logged."""
        if self._closing:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.add_done_callback(self._log_failure)
        self._inbox.put_call(Call(work, future), internal=True)

    def emit(self, link: AgentLink, event: LinkEvent) -> None:
        """What links are given to report with."""
        if not self._closing:
            self._inbox.put_fact(Fact(link, event))

    def spawn(self, operation: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something long beside the actor."""
        task = asyncio.get_running_loop().create_task(operation, name=f"agent {self._name}: operation")
        self._operations.add(task)
        task.add_done_callback(self._operation_done)
        return task

    async def persist[T](self, write: Callable[[], Awaitable[T]]) -> T:
        """Write a fact, however long the database refuses; raises StoreError where the actor ends meanwhile."""
        while True:
            try:
                return await write()
            except StoreError as error:
                if self._ending:
                    raise
                self.log.warning("the database refused; trying again", error=error.message)
                await self._pause()

    async def _pause(self) -> None:
        """Until it is time for another attempt, or for none."""
        self._woken.clear()
        timer = self.timers.call_later(STORE_RETRY_S, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()

    async def _end(self) -> None:
        """The last call, unless one before it has begun something."""
        self._closing = not self._operations

    async def _run(self) -> None:
        while not self._closing:
            item = await self._inbox.get()
            if isinstance(item, Call):
                await self._perform(item)
                continue
            try:
                await self._handle(item)
            except Exception:  # a defect costs one fact of one agent, never its actor: supervision goes on
                self.log.exception("a fact could not be handled", fact=type(item.event).__name__)

    async def _perform(self, call: Call) -> None:
        if call.future.cancelled():
            return  # the caller went away before it was begun
        try:
            result = await call.work()
        except asyncio.CancelledError:
            call.future.cancel()
            raise
        except BaseException as error:  # noqa: BLE001 - it is the caller's, who awaits the future
            if not call.future.done():
                call.future.set_exception(error)
        else:
            if not call.future.done():
                call.future.set_result(result)

    def _operation_done(self, task: asyncio.Task[None]) -> None:
        self._operations.discard(task)
        self._log_failure(task)

    def _log_failure(self, done: asyncio.Future[None]) -> None:
        if done.cancelled():
            return
        error = done.exception()
        if error is not None and not (self._ending and isinstance(error, NotReady | StoreError)):
            self.log.error("an operation failed", exc_info=error)


def at_once[T](work: Callable[[], T]) -> Callable[[], Awaitable[T]]:
    """`work` in the form in which the actor does it."""

    async def perform() -> T:
        return work()

    return perform
