"""The actor of an agent: the one task in which everything about that agent is decided, one item after the other.

Long work (launching, ending, interrupting a program) runs beside it as an operation and comes back with a call, so that
the actor never waits for a program, and two agents never wait for each other.

Its inbox is bounded, with a policy for each kind: a call that does not fit is refused with QueueFull; an observation
replaces the one that waits just before it; progress and pieces of text that do not fit are dropped (the answer has the
whole last message, and the text before that may have gaps); every other fact is taken. There are few of these other
facts, because a link has at most one turn and waits until it is recorded.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from synapsed.aio import Pace, TaskSet, Timer, Timers, pause
from synapsed.errors import NotReady, QueueFull, StoreError
from synapsed.interfaces import STORE_RETRY_S, AgentLink
from synapsed.model.link import LinkEvent, LinkObserved, LinkTurnProgress, LinkTurnSaid

CAPACITY = 256
"""Largest number of items; the actor of one agent takes thousands a second."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that a link reported; facts from a link that is no longer the agent's are ignored."""

    link: AgentLink
    event: LinkEvent


@dataclass(frozen=True, slots=True)
class Call:
    """Work for the actor; its outcome goes to `future`."""

    work: Callable[[], Awaitable[Any]]
    future: asyncio.Future[Any]
    internal: bool
    """True for the agent's own calls: they wait as long as the database refuses."""


class Inbox:
    """The items of one actor, in order."""

    def __init__(self) -> None:
        self._items: deque[Fact | Call] = deque()
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._items)

    def put_call(self, call: Call) -> None:
        """Appends a call; raises QueueFull, except for the agent's own calls, of which there are few."""
        if not call.internal and len(self._items) >= CAPACITY:
            raise QueueFull("the agent has too much to do; try again later")
        self._append(call)

    def refuse_calls(self, error: StoreError) -> None:
        """Answers the calls from others with `error`; they are never begun."""
        refused = [item for item in self._items if isinstance(item, Call) and not item.internal]
        for call in refused:
            self._items.remove(call)
            if not call.future.done():
                call.future.set_exception(_copy_of(error))

    def put_fact(self, fact: Fact) -> None:
        if isinstance(fact.event, LinkObserved) and self._replace_last(fact):
            return
        if not isinstance(fact.event, LinkTurnProgress | LinkTurnSaid) or len(self._items) < CAPACITY:
            self._append(fact)

    async def get(self) -> Fact | Call:
        while not self._items:
            self._arrived.clear()
            await self._arrived.wait()
        return self._items.popleft()

    def _append(self, item: Fact | Call) -> None:
        self._items.append(item)
        self._arrived.set()

    def _replace_last(self, fact: Fact) -> bool:
        last = self._items[-1] if self._items else None
        if isinstance(last, Fact) and last.link is fact.link and isinstance(last.event, LinkObserved):
            self._items[-1] = fact
            return True
        return False


def _copy_of(error: StoreError) -> StoreError:
    return StoreError(error.message, **error.details)


class Actor:
    """Runs everything about one agent. `handle` gets the facts from links, in order. `pace` is shared by all actors."""

    def __init__(
        self, name: str, *, agent_id: str, timers: Timers, pace: Pace, handle: Callable[[Fact], Awaitable[None]]
    ) -> None:
        self.log = structlog.stdlib.get_logger("synapsed.agent").bind(agent=name, agent_id=agent_id)
        self.timers = timers
        self._pace = pace
        self._name = name
        self._handle = handle
        self._inbox = Inbox()
        self._task: asyncio.Task[None] | None = None
        self._operations = TaskSet(self._failed)
        self._ending = self._closing = self._asked = False
        self._refusal: StoreError | None = None
        """The reason why a fact could not be written at the last try; None if no fact waits."""
        self._askers: set[asyncio.Future[None]] = set()
        """Callers that wait for begun work; they are done when a fact cannot be written."""
        self._woken = asyncio.Event()
        """Set when a waiting fact is to be tried again now."""

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"agent {self._name}")

    async def close(self) -> None:
        """Ends the actor; later calls get NotReady. Work that was begun is finished: a launch is recorded, because
        otherwise no agent would own its program, and a write in progress takes effect, because otherwise the next owner
        of the agent's record would continue with an old one."""
        self._ending = True
        self._woken.set()
        while self._task is not None and not self._closing:
            await self._operations.finish()
            with contextlib.suppress(NotReady):  # another caller has closed it
                await self.report(self._end)
        self._closing = True
        if self._task is not None:
            await asyncio.wait([self._task])
        while len(self._inbox):
            item = await self._inbox.get()
            if isinstance(item, Call) and not item.future.done():
                item.future.set_exception(NotReady("the daemon is shutting down"))

    async def call[**P, T](self, work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `work` in the actor. Raises the errors of `work`; QueueFull and NotReady if it is not begun. A
        caller does not wait for a database that refuses, but gets its StoreError at once, also while a fact waits for
        it: work refused like this is not begun later."""
        if self._ending:
            raise NotReady("the daemon is shutting down")
        if self._refusal is not None:  # the waiting fact is tried again now; then the call is done, or refused
            self._woken.set()
        return await self._put(partial(work, *args, **kwargs), internal=False)

    async def ask[**P, T](self, begin: Callable[P, Awaitable[Awaitable[T]]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `begin` in the actor, and waits outside the actor until the work that it began is over. Raises
        StoreError as `call` and `wait` do."""
        return await self.wait(await self.call(begin, *args, **kwargs))

    async def wait[T](self, begun: Awaitable[T]) -> T:
        """Returns the result of `begun` when it is over. Raises StoreError if the database refuses a fact first: the
        work goes on, and is over when there is space."""
        over, refused = asyncio.ensure_future(begun), asyncio.get_running_loop().create_future()
        over.add_done_callback(lambda done: done.cancelled() or done.exception())  # the caller may be gone
        self._askers.add(refused)
        try:
            if self._refusal is None:
                await asyncio.wait([over, refused], return_when=asyncio.FIRST_COMPLETED)
            if self._refusal is not None and not over.done():
                raise _copy_of(self._refusal)
            return await over
        finally:
            self._askers.discard(refused)

    async def report[**P, T](self, work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Handles an operation's outcome in the actor, as `call` does, but is not refused before the actor ends."""
        if self._closing:
            raise NotReady("the daemon is shutting down")
        return await self._put(partial(work, *args, **kwargs), internal=True)

    def post[**P](self, work: Callable[P, Awaitable[object]], *args: P.args, **kwargs: P.kwargs) -> None:
        """Runs `work` in the actor without waiting; its errors are logged."""
        if not self._closing:
            self._put(partial(work, *args, **kwargs), internal=True).add_done_callback(self._log_failure)

    def post_later[**P](
        self, delay: float, work: Callable[P, Awaitable[object]], *args: P.args, **kwargs: P.kwargs
    ) -> Timer:
        return self.timers.call_later(delay, partial(self.post, work, *args, **kwargs))

    def emit(self, link: AgentLink, event: LinkEvent) -> None:
        """Takes the reports of links."""
        if not self._closing:
            self._inbox.put_fact(Fact(link, event))

    def spawn(self, operation: Coroutine[Any, Any, None], *, at_once: bool = False) -> asyncio.Task[None]:
        """Runs a long operation beside the actor; `at_once`: now, up to its first wait."""
        return self._operations.spawn(operation, name=f"agent {self._name}: operation", eager=at_once)

    async def persist[**P, T](self, write: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Writes a fact, however long the database refuses; raises StoreError if the actor ends, and in a `call`."""
        try:
            while True:
                try:
                    return await write(*args, **kwargs)
                except StoreError as error:
                    if self._ending or (self._asked and asyncio.current_task() is self._task):
                        raise
                    self._refuse(error)
                    self.log.warning("the database refused; trying again", error=error.message)
                    self._woken.clear()
                    await pause(self.timers, STORE_RETRY_S, woken=self._woken)
        finally:
            self._refusal = None

    def _refuse(self, error: StoreError) -> None:
        self._refusal = error
        self._inbox.refuse_calls(error)
        for asker in self._askers:
            if not asker.done():
                asker.set_result(None)

    def _put[T](self, work: Callable[[], Awaitable[T]], *, internal: bool) -> asyncio.Future[T]:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._inbox.put_call(Call(work, future, internal))
        return future

    async def _end(self) -> None:
        """Ends the actor after this call, unless an operation runs."""
        self._closing = not self._operations

    async def _run(self) -> None:
        while not self._closing:
            item = await self._inbox.get()
            await self._pace.turn()
            if isinstance(item, Call):
                await self._perform(item)
            else:
                await self._take(item)
            del item  # the next may come much later, and this one takes memory

    async def _take(self, fact: Fact) -> None:
        try:
            await self._handle(fact)
        except (Exception, asyncio.CancelledError):  # costs one fact of one agent, never its actor: supervision goes on
            if _is_cancelled():
                raise
            self.log.exception("a fact could not be handled", fact=type(fact.event).__name__)

    async def _perform(self, call: Call) -> None:
        if call.future.cancelled():
            return  # the caller went away before it was begun
        self._asked = not call.internal
        try:
            result = await call.work()
        except asyncio.CancelledError as error:
            if _is_cancelled():
                call.future.cancel()
                raise
            if not call.future.done():  # its caller is not cancelled either
                call.future.set_exception(RuntimeError("the work awaited something that was cancelled"))
                self.log.exception("work was given up", exc_info=error)
        except BaseException as error:  # noqa: BLE001 - the caller awaits the future and gets it
            if not call.future.done():
                call.future.set_exception(error)
        else:
            if not call.future.done():
                call.future.set_result(result)
        finally:
            self._asked = False
            del call  # an error refers to this frame: with the call, that would be a reference cycle

    def _log_failure(self, done: asyncio.Future[Any]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        if not (self._ending and isinstance(error, NotReady | StoreError)):
            self.log.error("an operation failed", exc_info=error)


def _is_cancelled() -> bool:
    """Returns True if the present task is being cancelled; else a CancelledError in it comes from something that it has
    awaited: a part's task that was cancelled, for example."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
