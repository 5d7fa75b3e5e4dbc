"""An event loop whose time is virtual and whose order is drawn: one handle a step.

`asyncio.BaseEventLoop` with nothing below it. Threads are steps: what is given to an executor is run here, whole, at a
drawn moment, and its outcome is told in a step of its own. What runs belongs to a life (`LIFE`, a context variable): a
life that is ended takes no further step, as the threads and tasks of a process that was killed.

asyncio calls what is ready in the order in which it became so, and code may rely on that of callbacks. So only the
steps of tasks are brought forward, some of them, by a chance that the seed draws too.
"""

import asyncio
import contextlib
import contextvars
import heapq
import itertools
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from random import Random
from typing import Any

__all__ = ["LIFE", "Life", "Overrun", "SimClock", "SimExecutor", "SimLoop", "SimTask"]

STEP_S = 0.00002
"""What a step takes."""

AHEAD = 6
"""Handles among which the next one is drawn."""

STEPS_MAX = 600_000
"""Of one run; more is a loop that does not come to rest."""


class Overrun(Exception):
    """The run took more steps than any should."""


class Life:
    """One process of the simulated machine: `over` once it was killed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.over = False


LIFE: contextvars.ContextVar[Life | None] = contextvars.ContextVar("life", default=None)


class SimClock:
    """The machine's clocks; see `tests.fakes.clock.FakeClock`."""

    def __init__(self) -> None:
        self._monotonic = 1000.0
        self._wall = 1_700_000_000.0 - 1000.0
        self._slept = 0.0

    def monotonic(self) -> float:
        return self._monotonic

    def wall(self) -> float:
        return self._wall + self._monotonic

    def boot(self) -> float:
        return self._monotonic + self._slept

    def move(self, to: float) -> None:
        self._monotonic = max(self._monotonic, to)

    def jump(self, seconds: float) -> None:
        self._wall += seconds

    def sleep(self, seconds: float) -> None:
        """The machine is suspended: what is monotonic stands."""
        self._wall += seconds
        self._slept += seconds


_NUMBERS = itertools.count(1)


class SimTask(asyncio.Task[Any]):
    """Sets of tasks have the same order in every run."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._number = next(_NUMBERS)
        super().__init__(*args, **kwargs)
        self._log_destroy_pending = False

    def __hash__(self) -> int:
        return self._number


class SimFuture(asyncio.Future[Any]):
    """As `SimTask`."""

    def __init__(self, *, loop: asyncio.AbstractEventLoop) -> None:
        self._number = next(_NUMBERS)
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class SimLoop(asyncio.BaseEventLoop):
    """`hurry`: how often a step is drawn instead of the next one. `delay` draws how long a piece of work takes in a
    thread, given the executor's name. `stepped` is called after each step."""

    def __init__(self, clock: SimClock, rng: Random, *, hurry: float) -> None:
        super().__init__()
        self._ready: deque[asyncio.Handle]
        self._scheduled: list[asyncio.TimerHandle]
        self._timer_cancelled_count: int
        self._clock = clock
        self._rng = rng
        self._hurry = hurry
        self._clock_resolution = 1e-9
        self.steps = 0
        self.delay: Callable[[str], float] = lambda _name: 0.0
        self.stepped: Callable[[], None] = lambda: None
        self.connect: Callable[[str], Any] = lambda path: None
        self.set_task_factory(lambda loop, coro, **more: SimTask(coro, loop=loop, **more))
        self._threads = SimExecutor(0, "thread")

    def time(self) -> float:
        return self._clock.monotonic()

    def create_future(self) -> asyncio.Future[Any]:
        return SimFuture(loop=self)

    def _write_to_self(self) -> None:
        """Nothing waits."""

    def _process_events(self, event_list: Any) -> None:
        raise AssertionError("nothing comes from outside")

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        while True:
            now = self._clock.monotonic()
            while scheduled and (scheduled[0]._when <= now or scheduled[0]._cancelled):  # type: ignore[attr-defined]
                timer = heapq.heappop(scheduled)
                timer._scheduled = False  # type: ignore[attr-defined]
                if timer._cancelled:
                    self._timer_cancelled_count -= 1
                else:
                    ready.append(timer)
            if ready:
                break
            if not scheduled:
                raise AssertionError("nothing will ever happen again")
            self._clock.move(scheduled[0]._when)  # type: ignore[attr-defined]
        handle = self._next()
        if handle._cancelled:
            return
        life = handle._context.get(LIFE)  # type: ignore[attr-defined]
        if life is not None and life.over:
            return
        handle._run()
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise Overrun(f"{STEPS_MAX} steps")
        self._clock.move(now + STEP_S)
        self.stepped()

    def _next(self) -> asyncio.Handle:
        ready = self._ready
        if self._hurry and len(ready) > 1 and self._rng.random() < self._hurry:
            at = self._rng.randrange(min(len(ready), AHEAD))
            if isinstance(getattr(ready[at]._callback, "__self__", None), asyncio.Task):  # type: ignore[attr-defined]
                handle = ready[at]
                del ready[at]
                return handle
        return ready.popleft()

    # --- threads ---

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        future = self.create_future()

        def tell(done: "Future[Any]") -> None:
            if future.cancelled():
                return
            if (error := done.exception()) is not None:
                future.set_exception(error)
            else:
                future.set_result(done.result())

        work = (executor or self._threads).submit(func, *args)
        work.add_done_callback(lambda done: self.call_soon_threadsafe(tell, done))
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Does nothing: this loop has no such thing."""

    # --- sockets ---

    async def create_unix_connection(
        self, protocol_factory: Callable[[], Any], path: str | None = None, **_: Any
    ) -> tuple[Any, Any]:
        """To a keeper of the simulated machine. Raises OSError."""
        assert path is not None
        await asyncio.sleep(0.0001)
        protocol = protocol_factory()
        transport = self.connect(path)(protocol)
        protocol.connection_made(transport)
        return transport, protocol


@dataclass
class _Work:
    call: Callable[[], Any]
    future: "Future[Any]"
    context: contextvars.Context = field(default_factory=contextvars.copy_context)


class SimExecutor:
    """In the place of a ThreadPoolExecutor. One of a single thread does one piece after the other; others each by
    itself. What the thread of a life was about to do when that ended is not done."""

    def __init__(self, max_workers: int, name: str = "") -> None:
        self._single = max_workers == 1
        self._name = name
        self._waiting: deque[_Work] = deque()
        self._busy = False

    def submit(self, call: Callable[..., Any], *args: Any) -> "Future[Any]":
        work = _Work(lambda: call(*args), Future())
        if self._single:
            self._waiting.append(work)
            if not self._busy:
                self._go_on()
        else:
            self._later(work, lambda: None)
        return work.future

    def _go_on(self) -> None:
        self._busy = bool(self._waiting)
        if self._waiting:
            self._later(self._waiting.popleft(), self._go_on)

    def _later(self, work: _Work, then: Callable[[], None]) -> None:
        loop = asyncio.get_event_loop()
        assert isinstance(loop, SimLoop)

        def run() -> None:
            try:
                result = work.call()
            except BaseException as error:  # it is told to whoever waits
                work.future.set_exception(error)
            else:
                work.future.set_result(result)
            then()

        loop.call_later(loop.delay(self._name), run, context=work.context)

    def shutdown(self, wait: bool = True) -> None:
        """Threads end by themselves."""


def bury(tasks: "set[asyncio.Task[Any]]") -> None:
    """Let go of tasks that never ran to their end, in a world that is over: what they would still do is not seen."""
    for task in tasks:
        coro = task.get_coro()
        with contextlib.suppress(BaseException):
            if coro is not None:
                coro.close()
