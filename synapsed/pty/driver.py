"""Performs the procedures of the keyboard on a terminal: what they yield is done here, one step after the other."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from synapsed.clock import Clock
from synapsed.errors import NotReady
from synapsed.keepers.client import KeeperClient
from synapsed.pty.input_backlog import Unread
from synapsed.pty.keyboard import (
    LookNow,
    Press,
    SendSignal,
    Step,
    Steps,
    StopAsked,
    UntilRead,
    UntilRecorded,
    WaitFor,
    WaitForExit,
)
from synapsed.pty.look_timer import Watch
from synapsed.terminal.observer import TerminalObserver


class Hands:
    """`exited` is done when the program has ended."""

    def __init__(
        self,
        *,
        clock: Clock,
        observer: TerminalObserver,
        watch: Watch,
        keeper: Callable[[], KeeperClient],
        unread: Unread,
        exited: "asyncio.Future[Any]",
    ) -> None:
        self._clock = clock
        self._observer = observer
        self._watch = watch
        self._keeper = keeper
        self._unread = unread
        self._exited = exited
        self.idle = asyncio.Event()
        """Set while the program's turn wants nothing done."""

    async def perform[T](self, steps: Steps[T]) -> T:
        """What the procedure returns. Raises what it raises, and KeeperLost, KeeperRefused."""
        answer: Any = None
        try:
            while True:
                try:
                    step = steps.send(answer)
                except StopIteration as done:
                    result: T = done.value
                    return result
                answer = await self._do(step)
        finally:
            steps.close()  # one that is not at its end puts in order what it has begun

    async def _do(self, step: Step) -> Any:
        match step:
            case Press(data):
                self._observer.typed(self._clock.monotonic())
                return (await self._keeper().write(data)).hidden
            case WaitFor(wanted, within):
                return await self._watch.until(wanted, within)
            case LookNow():
                return self._watch.look()
            case SendSignal(number):
                return await self._keeper().signal(number)
            case StopAsked():
                return self._observer.asked_to_stop(self._clock.monotonic())
            case WaitForExit(within):
                await asyncio.wait({self._exited}, timeout=within)
                return self._exited.done()
            case UntilRead(within):
                return await self._is_read(within)
            case UntilRecorded(within):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.idle.wait(), within)
        return None

    async def _is_read(self, within: float) -> bool:
        try:
            await self._unread.read_within(within)
        except NotReady:
            return False
        return True
