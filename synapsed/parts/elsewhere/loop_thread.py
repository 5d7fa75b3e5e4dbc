"""An event loop in a thread of its own, for a library that computes much with what it has waited for: the daemon's loop
does not wait for that. Names are looked up in threads of that loop's, too: if no name server answers, each takes one
for many seconds, and the daemon's own threads are few."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any, Concatenate, Final, Protocol

from synapsed.aio import whole

_END: Final = object()
THREADS: Final = 32
"""Most names that are looked up at once."""


class LoopThread:
    """Runs coroutines of the caller's loop in a thread, which begins with the first; `close` it after all of them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = asyncio.Event()
        self._thread = threading.Thread()

    async def run[T](self, work: Coroutine[Any, Any, T]) -> T:
        """Returns the result of `work`. If the caller is cancelled, so is `work`, and the cancellation is raised when
        that is over."""
        here, there = asyncio.get_running_loop(), self._started()
        if here is there:
            return await work
        over: asyncio.Future[asyncio.Task[T]] = here.create_future()
        tasks: list[asyncio.Task[T]] = []

        def begin() -> None:
            tasks.append(there.create_task(work))
            tasks[0].add_done_callback(lambda task: here.call_soon_threadsafe(over.set_result, task))

        def cancel() -> None:
            tasks[0].cancel()  # it has begun: callbacks run in their order

        there.call_soon_threadsafe(begin)
        try:
            await asyncio.wait({over})
        except asyncio.CancelledError:
            there.call_soon_threadsafe(cancel)
            await whole(asyncio.wait({over}))
            over.result().cancelled() or over.result().exception()  # an error that nobody waits for is not logged
            raise
        return over.result().result()

    async def items[T](self, stream: AsyncGenerator[T]) -> AsyncGenerator[T]:
        """Yields the items of `stream`, each of which is made there."""
        try:
            while (item := await self.run(_next(stream))) is not _END:
                yield item
        finally:
            await self.run(stream.aclose())

    async def close(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._closing.set)
            self._loop = None
            await asyncio.to_thread(self._thread.join)

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            runner, self._closing = asyncio.Runner(loop_factory=asyncio.new_event_loop), asyncio.Event()
            self._loop = runner.get_loop()
            self._loop.set_default_executor(ThreadPoolExecutor(THREADS, thread_name_prefix=f"{self._name} look-up"))
            self._thread = threading.Thread(target=self._serve, args=(runner,), name=self._name, daemon=True)
            self._thread.start()
        return self._loop

    def _serve(self, runner: asyncio.Runner) -> None:
        with runner:
            runner.run(self._closing.wait())


class HasThread(Protocol):
    """Interface of objects some of whose methods run in a thread."""

    @property
    def thread(self) -> LoopThread: ...


def beside[S: HasThread, **P, T](
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Marks a method that runs in the object's thread."""

    @wraps(method)
    async def run(self: S, /, *args: P.args, **options: P.kwargs) -> T:
        return await self.thread.run(method(self, *args, **options))

    return run


def streaming_beside[S: HasThread, **P, T](
    method: Callable[Concatenate[S, P], AsyncGenerator[T]],
) -> Callable[Concatenate[S, P], AsyncGenerator[T]]:
    """Marks a generator that runs in the object's thread."""

    @wraps(method)
    def run(self: S, /, *args: P.args, **options: P.kwargs) -> AsyncGenerator[T]:
        return self.thread.items(method(self, *args, **options))

    return run


async def _next(stream: AsyncGenerator[Any]) -> Any:
    return await anext(stream, _END)
