"""Limits the output that has come and is not drawn yet, and skips it while a request waits for the program.

A program may write faster than its screen is drawn. Then the keeper is asked to pause, and looks and the report of the
program's end wait until all output is drawn, which can take minutes. A turn needs this, because its text is read off
the screen. A request to stop, kill, restart or interrupt the program must not wait: while there is one, output that is
not drawn within a moment is skipped except for its end, as if the spool had dropped it. Output is also skipped if
drawing it would take too long at the present speed: 64 MiB that fill and scroll the screen take a quarter of an hour,
in which a program that has long finished could take no message.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import structlog

from synapsed.errors import KeeperLost
from synapsed.keepers.keeper_messages import KeeperRefused
from synapsed.keepers.kept_program import KeptProgram
from synapsed.pty.linked_terminal import LinkedTerminal

UNDRAWN_MAX = 512 * 1024
"""Bytes of undrawn output at which the keeper is asked to pause; it resumes when a quarter of them is left."""

KEEP_UP_S = 0.3
"""Seconds that output may wait to be drawn while a request waits for the program."""

END_KEPT = 64 * 1024
"""Bytes at the end of the output that are not skipped: they fill the screen, and may say why the program ended."""

END_LEAST = 4 * 1024
"""Least value to which END_KEPT is reduced: each time that the end is not drawn soon enough, the next one kept is half
as long. Drawing 64 KiB of queries to the terminal took eight seconds on a starved machine."""

EXIT_DRAWN_S = 1.0
"""Seconds that the output of a program that has ended by itself may wait to be drawn."""

MEASURED_S = 10.0
"""Seconds for which the speed of drawing is measured, once output waits to be drawn."""

CATCH_UP_S = 60.0
"""Seconds that drawing the waiting output may take, by the measured speed."""

log = structlog.get_logger(__name__)


class UndrawnOutput:
    """The undrawn output of one program. `passed` gets the offset up to which output was skipped before it came."""

    def __init__(self, terminal: LinkedTerminal, *, drawn: int, passed: Callable[[int], None]) -> None:
        self._agent_id = terminal.agent_id
        self._clock = terminal.clock
        self._session = terminal.session
        self._stage = terminal.stage
        self._program: KeptProgram = terminal.program
        self._passed = passed
        self._drawn = drawn
        """End of the output that is drawn."""
        self.far_behind = False
        """True if the keeper was asked to pause because so much output is undrawn: the screen is old."""
        self._waiting = 0
        """Number of requests that wait for the program."""
        self._task: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._ended_at: float | None = None
        """Time at which the program was found to have ended, while its output waits to be drawn."""
        self._measured: tuple[float, int] | None = None
        """Time since which output waits to be drawn, and `_drawn` at that time."""

    def came(self, end: int) -> None:
        """Notes that output up to `end` has come."""
        if end - self._drawn >= UNDRAWN_MAX:
            self._pause()

    def _pause(self) -> None:
        self._program.keeper().pause_output()
        self.far_behind = True

    def _resume(self) -> None:
        if self.far_behind and self._program.client is not None:
            self.far_behind = False
            self._program.client.resume_output()

    def drawn(self, offset: int) -> None:
        """Notes that the output is drawn up to `offset`."""
        self._drawn = max(self._drawn, offset)
        if self._session.offset - self._drawn <= UNDRAWN_MAX // 4:
            self._resume()

    def gone(self, offset: int) -> None:
        """Notes that the spool has dropped the output up to `offset`. It counts as drawn, but not for the speed."""
        if self._measured is not None:
            since, drawn = self._measured
            self._measured = since, drawn + offset - self._drawn
        self.drawn(offset)

    @contextlib.asynccontextmanager
    async def passed_over(self) -> AsyncIterator[None]:
        """Skips output that is not drawn within a moment, during the body of `async with`."""
        self._waiting += 1
        if self._task is None or self._task.done():
            self._task = self._program.tasks.spawn(self._keep_up())
        try:
            yield
        finally:
            self._waiting -= 1

    async def _keep_up(self) -> None:
        kept = END_KEPT
        while self._waiting:
            came = self._session.offset
            if not self.far_behind:
                await asyncio.sleep(KEEP_UP_S)
            if self._waiting and (self._drawn < came or self.far_behind):
                with contextlib.suppress(KeeperLost, KeeperRefused):
                    await self._pass_over(kept)
                kept = max(kept // 2, END_LEAST)
                if self.far_behind:
                    await asyncio.sleep(KEEP_UP_S)

    async def _pass_over(self, kept: int = END_KEPT) -> None:
        """Skips the undrawn output except the last `kept` bytes. Raises KeeperLost, KeeperRefused."""
        keeper = self._program.keeper()
        self._pause()  # first: so no output is on its way when the keeper has answered
        try:
            at = (await keeper.ping()).spool_end - kept
            if at > self._drawn:
                log.info("output is passed over", agent_id=self._agent_id, start=self._drawn, end=at)
                if at > self._session.offset:
                    await keeper.subscribe(at)
                    self._passed(at)
                self._stage.pass_over(at)
                self._drawn = at
        finally:
            self._resume()

    def visit(self) -> None:
        """Checks, if output is held back at the keeper, if the program has ended (its report comes after the output),
        and if drawing takes too long. Called twice a second."""
        if not self.far_behind and self._drawn >= self._session.offset:
            self._measured = None
        elif self.far_behind and not self._waiting and (self._asking is None or self._asking.done()):
            self._asking = self._program.tasks.spawn(self._ask_for_end())

    async def _ask_for_end(self) -> None:
        try:
            told = await self._program.keeper().ping()
            if told.exit is None:
                if self._is_late(told.spool_end):
                    await self._pass_over()
                return
        except (KeeperLost, KeeperRefused):  # other code reports that
            return
        now = self._clock.monotonic()
        self._ended_at = now if self._ended_at is None else self._ended_at
        if now - self._ended_at >= EXIT_DRAWN_S:
            async with self.passed_over():
                await asyncio.wait({self._program.exited})

    def _is_late(self, end: int) -> bool:
        """Returns True if drawing the output up to `end` would take longer than CATCH_UP_S, at the measured speed."""
        now = self._clock.monotonic()
        since, drawn = self._measured = self._measured or (now, self._drawn)
        late = (end - self._drawn) * (now - since) > CATCH_UP_S * (self._drawn - drawn)
        if now - since < MEASURED_S or not late:
            return False
        self._measured = None
        return True
