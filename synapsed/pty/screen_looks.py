"""When a program's screen is looked at, and who waits for what it shows.

Whatever changes only says so, and a look follows, at most once per `EVALUATE_EVERY_S`; one follows too when time alone
changes a verdict. A look is asked for and comes when all output before it is drawn.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from synapsed.errors import KeeperLost
from synapsed.pty.kernel_witness import FactsOfTerminal, Unread
from synapsed.pty.linked_terminal import LinkedTerminal
from synapsed.pty.session_commands import SessionCommand
from synapsed.terminal.look import Look

EVALUATE_EVERY_S = 0.015
"""The screen is judged at most so often: a look costs about a millisecond, a program draws in bursts."""


class Looks:
    """`do` performs what the session wants, `looked` is called with every look."""

    def __init__(
        self,
        terminal: LinkedTerminal,
        unread: Unread,
        *,
        do: Callable[[Sequence[SessionCommand]], None],
        looked: Callable[[Look], None],
    ) -> None:
        self._clock = terminal.clock
        self._session = terminal.session
        self._stage = terminal.stage
        self._program = terminal.program
        self.unread = unread
        self.learns = terminal.profile.composer.usual
        self.facts = FactsOfTerminal(self._session, unread, leader=terminal.program.launch.pid)
        self._do = do
        self._looked = looked
        self._timer: asyncio.TimerHandle | None = None
        self._open = self._closed = False
        self._judging = self._again = False
        self._waiting: list[tuple[Callable[[Look], bool], asyncio.Future[None]]] = []
        self._looked_at = 0.0

    async def begin(self) -> None:
        """From now on changes are followed by looks; the first is now."""
        self._open = True
        await self.judge()

    def end(self) -> None:
        """Nothing is looked at any more unless it is asked for."""
        self._closed = True
        self._cancel()

    def soon(self, *, at_once: bool = False) -> None:
        """Something changed."""
        if self._judging:
            self._again = True
        elif self._open and not self._closed:
            now = self._clock.monotonic()
            self._wake_at(now if at_once else max(self._looked_at + EVALUATE_EVERY_S, now))

    async def judge(self) -> None:
        """Look now, unless the program is drawing: then as soon as it has drawn."""
        self._cancel()
        if self._judging or self._closed:
            self._again = True
            return
        self._judging, self._again = True, False
        try:
            when = await self._judge(self._clock.monotonic())
        finally:
            self._judging = False
        if self._again:
            self.soon()
        if when is not None and not self._closed:
            self._wake_at(when)

    async def _judge(self, now: float) -> float | None:
        """When it is to be judged again at the latest."""
        turn, phase = self._session.turn, self._session.phase
        look = await self._look(whole=True)
        if look is None:
            return now + EVALUATE_EVERY_S
        if self._session.turn is not turn or self._session.phase is not phase:
            self._again = True  # it does not show yet what came of the turn's last step
            return None
        if not self._program.exited.done():
            if self._session.wants_facts(look, now):
                await self._inform()
            self._do(self._session.judge(look, now))
        return self._session.wake_at(look, now)

    async def _inform(self) -> None:
        """The next look knows who reads the terminal."""
        with contextlib.suppress(KeeperLost):
            await self.facts.ask()
            self._again = True

    async def look(self) -> Look:
        """The terminal as it is at this moment."""
        look = await self._look()
        assert look is not None, "one in the middle of a frame is wanted too"
        return look

    async def _look(self, *, whole: bool = False) -> Look | None:
        self._looked_at = now = self._clock.monotonic()
        self._session.silent, self._session.unread = self._program.silent, self.unread.now
        shown = await self._stage.look(self._session.ask(now, whole=whole))
        if shown is None:
            return None
        look = self._session.believed(shown)
        self._looked(look)
        if commands := self._session.looked(look, now):
            self._do(commands)
        for wanted, future in list(self._waiting):
            if not future.done() and wanted(look):
                future.set_result(None)
        return look

    async def until(self, wanted: Callable[[Look], bool], timeout: float) -> bool:
        """Whether a look that satisfies `wanted` comes within `timeout` seconds, and before the program ends."""
        if wanted(await self.look()):
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (wanted, future)
        self._waiting.append(entry)
        try:
            either: set[asyncio.Future[Any]] = {future, self._program.exited}
            await asyncio.wait(either, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiting.remove(entry)
        return future.done() or wanted(await self.look())

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
        self._timer = loop.call_at(at, self._due)

    def _due(self) -> None:
        self._timer = None
        self._program.tasks.spawn(self.judge(), eager=True)
