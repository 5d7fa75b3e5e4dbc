"""Helpers for asyncio: timers whose clock a test can set, a pause that uses them, work that begins at once, work in
small steps, background tasks, waiters for one event, and the end of a listener."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, Protocol

import structlog

log = structlog.stdlib.get_logger("synapsed")


class Timer(Protocol):
    def cancel(self) -> None: ...


class Timers(Protocol):
    """The used methods of an event loop's timers, so that tests can turn the clock."""

    def call_later(self, delay: float, callback: "_Callback", /) -> Timer: ...


class _Callback(Protocol):
    def __call__(self) -> object: ...


def at_once[T](work: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
    """Returns a task for `work`, which has already run as far as it can: it waits for no other work of the loop."""
    return asyncio.Task(work, loop=asyncio.get_running_loop(), name=name, eager_start=True)


async def pause(timers: Timers, seconds: float, *, woken: asyncio.Event | None = None) -> None:
    """Returns after `seconds` (at once for 0), or earlier if `woken` is set; the end of the time sets `woken`, too. A
    cancelled pause leaves no timer."""
    if seconds <= 0:
        return
    over = woken or asyncio.Event()
    timer = timers.call_later(seconds, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()


async def cancel_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancels `tasks`; returns when all of them are over."""
    for task in (tasks := list(tasks)):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def whole[T](
    work: Coroutine[Any, Any, T], *, undo: Callable[[T], Coroutine[Any, Any, object]] | None = None
) -> T:
    """Returns the result of `work`, which runs to its end even if the caller is cancelled, however often. Then no
    caller gets the result, so `undo` gets it, and the cancellation is raised afterwards."""
    task = asyncio.get_running_loop().create_task(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        if undo is not None and not task.cancelled() and task.exception() is None:
            await whole(undo(task.result()))
        raise asyncio.CancelledError
    return task.result()


class Pace:
    """Limits how many callers do a piece of work in one turn of the event loop, in the order in which they came.

    An event that three hundred streams wait for wakes them all, and a slow disk lets two dozen programs go on at once.
    In a single turn of the loop that would block everything else for a tenth of a second. So each turn admits only a
    few of one kind, and everything else runs between two turns. One object serves all work of a kind.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._admitted = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._counting = False

    async def turn(self) -> None:
        """Returns when the caller may do its piece of work: at once if few callers were admitted in this turn."""
        loop = asyncio.get_running_loop()
        if not self._counting:
            self._counting = True
            loop.call_soon(self._next)
        if self._admitted < self._at_once and not self._waiting:
            self._admitted += 1
            return
        place = loop.create_future()
        self._waiting.append(place)
        await place

    def _next(self) -> None:
        """Begins the next turn of the loop."""
        self._admitted = 0
        while self._waiting and self._admitted < self._at_once:
            place = self._waiting.popleft()
            if not place.done():  # a cancelled caller does not wait any more
                place.set_result(None)
                self._admitted += 1
        if self._admitted:
            asyncio.get_running_loop().call_soon(self._next)
        else:
            self._counting = False


class Waiters:
    """Waiters for the same event, each with a future of its own: one may give up without the others."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def add(self) -> asyncio.Future[None]:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        # A caller that is gone does not read the error, which asyncio would log then.
        waiter.add_done_callback(lambda done: done.cancelled() or done.exception())
        return waiter

    def take(self) -> "Waiters":
        """Moves the present waiters into an object of their own, and returns it: later ones do not belong to it."""
        taken = Waiters()
        taken._waiting, self._waiting = self._waiting, []
        return taken

    def wake(self, error: BaseException | None = None) -> None:
        """Wakes the waiters: the event has happened, or cannot happen any more, because of `error`."""
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)


class TaskSet:
    """Background tasks that no code awaits. The set refers to them until they are over, because the garbage collector
    could remove them otherwise. `failed` gets the error of a task that raises; by default the error is logged."""

    def __init__(self, failed: Callable[[BaseException], None] | None = None) -> None:
        self._failed = failed or _log_failure
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        return iter(list(self._tasks))

    def spawn[T](
        self, work: Coroutine[Any, Any, T], *, name: str | None = None, eager: bool = False
    ) -> asyncio.Task[T]:
        """Starts `work` in the next turn of the loop; with `eager` at once (`at_once`)."""
        begin = at_once if eager else asyncio.get_running_loop().create_task
        task = begin(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def finish(self) -> None:
        """Returns when all tasks are over, also those that begin meanwhile."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def cancel(self) -> None:
        """Cancels the present tasks; returns when they are over."""
        await cancel_all(self._tasks)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)


def _log_failure(error: BaseException) -> None:
    log.error("a task failed", exc_info=error)


async def stop_listening(server: asyncio.Server) -> None:
    """Closes `server`, once the sockets that it has accepted are connections. `asyncio.Server.close` forgets the
    connections that were accepted in the same turn of the loop: each is left without an owner, and logged with a
    traceback when it is collected (python/cpython#109564)."""
    loop = asyncio.get_running_loop()
    for sock in server.sockets:
        loop.remove_reader(sock)
    for _ in ("its transport is made", "its protocol is told"):
        await asyncio.sleep(0)
    server.close()
