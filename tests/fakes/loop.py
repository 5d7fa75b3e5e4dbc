"""An event loop in the time of a `FakeClock`: its timers are due once the test has turned that clock."""

import asyncio
import selectors
from typing import Any

from tests.fakes.clock import FakeClock

__all__ = ["FakeLoop"]


class _NeverWaits(selectors.DefaultSelector):
    def select(self, timeout: float | None = None) -> Any:
        if timeout is None or timeout > 0:
            waiting = ", ".join(sorted(_waits_in(task) for task in asyncio.all_tasks()))
            raise AssertionError(f"only real time would bring what is waited for, in {waiting}")
        return []


class FakeLoop(asyncio.SelectorEventLoop):
    """Nothing comes from outside. It fails where nothing is left to do before something would, or before the clock is
    turned: a real one would wait."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        super().__init__(_NeverWaits())

    def time(self) -> float:
        return self._clock.monotonic()


def _waits_in(task: asyncio.Task[Any]) -> str:
    """The line that the task stands at."""
    at: Any = task.get_coro()
    while getattr(at, "cr_await", None) is not None and hasattr(at.cr_await, "cr_frame"):
        at = at.cr_await
    frame = getattr(at, "cr_frame", None)
    return f"{at.__qualname__}:{frame.f_lineno}" if frame is not None else repr(task)
