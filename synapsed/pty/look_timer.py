"""When a terminal is looked at: whatever changes it only says so, and looks follow at most once per `EVALUATE_EVERY_S`,
also when time alone changes a verdict.
"""

import asyncio
from collections.abc import Callable

from synapsed.clock import Clock
from synapsed.pty.session import Session
from synapsed.terminal.look import Look

EVALUATE_EVERY_S = 0.015
"""The screen is judged at most so often: a snapshot costs about a millisecond, a program draws in bursts."""


class Watch:
    """The looks at one terminal. `looked` is called with every one, `judged` with those that follow a change (and the
    time); `unread`: see `Unread`; `silent`: see `Pulse`."""

    def __init__(
        self,
        *,
        clock: Clock,
        session: Session,
        looked: Callable[[Look, float], None],
        judged: Callable[[Look, float], None],
        unread: Callable[[], bool],
        silent: Callable[[], bool],
    ) -> None:
        self._clock = clock
        self._session = session
        self._looked = looked
        self._judged = judged
        self._unread = unread
        self._silent = silent
        self._timer: asyncio.TimerHandle | None = None
        self._open = self._closed = False
        self._waiting: list[tuple[Callable[[Look], bool], asyncio.Future[None]]] = []
        self.last: Look | None = None
        self.looked_at = 0.0
        """When the last look was, monotonic seconds."""

    def begin(self) -> None:
        """From now on changes are followed by looks; the first is now."""
        self._open = True
        self.judge()

    def end(self) -> None:
        """Nothing is looked at any more unless it is asked for."""
        self._closed = True
        self._cancel()

    def soon(self) -> None:
        """Something changed."""
        if self._open and not self._closed:
            self._wake_at(max(self.looked_at + EVALUATE_EVERY_S, self._clock.monotonic()))

    def judge(self) -> None:
        """Look now, unless the program is drawing: then as soon as it has drawn."""
        self._cancel()
        if self._closed:
            return
        now = self._clock.monotonic()
        if self._session.observer.mid_frame(now):
            self._wake_at(now + EVALUATE_EVERY_S)
            return
        look = self.look()
        self._judged(look, now)
        if (when := self._session.wake_at(look, now)) is not None:
            self._wake_at(when)

    def look(self) -> Look:
        """A look at this moment."""
        now = self._clock.monotonic()
        self.looked_at = now
        self._session.silent, self._session.unread = self._silent(), self._unread()
        self.last = look = self._session.look(now)
        self._looked(look, now)
        for wanted, future in list(self._waiting):
            if not future.done() and wanted(look):
                future.set_result(None)
        return look

    async def until(self, wanted: Callable[[Look], bool], timeout: float) -> bool:
        """Whether a look that satisfies `wanted` comes (or is had) within `timeout` seconds."""
        if wanted(self.look()):
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (wanted, future)
        self._waiting.append(entry)
        try:
            await asyncio.wait_for(future, timeout)
        except TimeoutError:
            return wanted(self.look())
        finally:
            self._waiting.remove(entry)
        return True

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake_at(self, when: float) -> None:
        """Look at `when`, or earlier if that is planned."""
        loop = asyncio.get_running_loop()
        at = loop.time() + max(0.0, when - self._clock.monotonic())
        if self._timer is not None and self._timer.when() <= at:
            return
        self._cancel()
        self._timer = loop.call_at(at, self.judge)
