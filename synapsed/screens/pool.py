"""Starts the processes of screens, and distributes the screens to them: SCREENS_EACH in one process before another one
is started, and no more processes than processors."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from synapsed import aio, own_python
from synapsed.errors import SynapsedError, TooLarge
from synapsed.model.picture import KeptForm, Shown
from synapsed.model.records import Checkpoint
from synapsed.process.parent_attributes import usable_cpus
from synapsed.screens import checked_replies, protocol
from synapsed.screens.protocol import FrameKind, ScreenFrame, ScreenFrameError
from synapsed.screens.screen_process import ScreenProcess

SCREENS_EACH = 8
"""Number of screens in a process before another process is started. A process takes 30 MB, each screen 0.75 MB."""

PROCESSES_MAX = 2

CHECK_S = 0.5
"""Seconds between two checks that the processes make progress."""

DELAY_MAX_S = 10.0
"""Largest number of seconds between two attempts to start a process, if it fails to start."""

KEPT_TRIES = 2
"""Number of processes that may end while they draw the same kept screen; those killed from outside do not count."""

log = structlog.stdlib.get_logger("synapsed.screens")


class PlacedScreen(Protocol):
    """A screen that a process draws (`RemoteStage`), or a single request (`_Kept`)."""

    @property
    def works_since(self) -> int | None:
        """`ScreenPool.order` when the process got its oldest unfinished work for this screen; None if it has none."""

    def came(self, frame: ScreenFrame) -> None: ...

    def lost(self, *, suspect: bool, outside: bool) -> None:
        """Called when the screen's process has ended. `suspect`: the process may have been working on this screen;
        `outside`: it was killed or stopped from outside."""


class ScreenPool:
    """Distributes screens to at most `processes` processes. `program` is the command line of a process, without its
    last argument, the pid of the parent."""

    def __init__(self, processes: int | None = None, program: Sequence[str] | None = None) -> None:
        self._program = program or own_python.command("synapsed.screens.worker")
        self._most = processes or min(PROCESSES_MAX, usable_cpus())
        self._processes: dict[ScreenProcess, dict[int, PlacedScreen]] = {}
        self._ending = aio.TaskSet()
        """Tasks that wait for the end of processes that are no longer used."""
        self._numbers = itertools.count(1)
        self._delay = 0.0
        self._closed = False
        self._watch: asyncio.Task[None] | None = None
        self.order = itertools.count(1)
        """Counter that gives the work of all screens an order."""
        self.trials = asyncio.Lock()
        """Allows one trial of output at a time: each starts a process."""

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes if process.pid is not None]

    def begin(self) -> None:
        """Starts a process if no process runs: called when a screen is about to be placed."""
        if self._watch is None:
            self._watch = asyncio.get_running_loop().create_task(self._watching())
        if not self._processes:
            self._begin()

    def place(self, screen: PlacedScreen) -> "Seat":
        """Returns a seat for `screen` in the process with the fewest screens; in a new one if all are full and another
        is allowed."""
        self.begin()
        process = min(self._processes, key=lambda one: len(self._processes[one]))
        if len(self._processes[process]) >= SCREENS_EACH and len(self._processes) < self._most:
            process = self._begin()
        number = next(self._numbers)
        self._processes[process][number] = screen
        return Seat(process, number, self._leave)

    def _begin(self) -> ScreenProcess:
        screens: dict[int, PlacedScreen] = {}

        at: int | None = None

        def came(frame: ScreenFrame) -> None:
            nonlocal at
            if frame.kind == FrameKind.AT:
                at = frame.agent
                return
            if frame.kind not in (FrameKind.DRAWN, FrameKind.ANSWER):
                raise ScreenFrameError(f"a frame of kind {frame.kind}")
            if (screen := screens.get(frame.agent)) is not None:
                self._delay = 0.0
                screen.came(frame)
            # Else the frame is for a screen that was closed meanwhile.

        process = ScreenProcess(self._program, came, lambda reason: self._over(process, at, reason), self._delay)
        self._delay = min(max(0.1, 2 * self._delay), DELAY_MAX_S)  # until one answers
        self._processes[process] = screens
        return process

    def _leave(self, process: ScreenProcess, number: int) -> None:
        self._processes.get(process, {}).pop(number, None)

    def _over(self, process: ScreenProcess, at: int | None, reason: str) -> None:
        """Handles the end of a process. It may have been working on the screen `at`, which it announced last (AT), or,
        if it was idle before, on the screen whose work waits longest."""
        screens = self._processes.pop(process, {})
        self._ending.spawn(process.wait())
        if self._closed:
            return
        log.warning("a process of screens ended", pid=process.pid, reason=reason, screens=len(screens))
        working = {number: since for number, screen in screens.items() if (since := screen.works_since) is not None}
        suspects = {at, min(working, key=working.__getitem__, default=None)} & working.keys() if process.began else ()
        for number, screen in screens.items():
            screen.lost(suspect=number in suspects, outside=process.ended_from_outside)
        if screens and not self._processes:
            self._begin()  # it starts while the output is tried

    async def _watching(self) -> None:
        while True:
            await asyncio.sleep(CHECK_S)
            for process, screens in list(self._processes.items()):
                process.check(work=any(screen.works_since is not None for screen in screens.values()))

    async def kept(self, checkpoint: Checkpoint, form: KeptForm) -> Shown:
        """Returns the kept screen in `form` ("scrollback": as text, with the rows above it). Raises SynapsedError."""
        tries = 0
        while tries < KEPT_TRIES:
            request = _Kept(form)
            seat = self.place(request)
            seat.say(ScreenFrame(FrameKind.KEPT, number=1, blob=protocol.write_value((checkpoint, form))))
            try:
                shown = await request.answer
            finally:
                seat.leave()
            if isinstance(shown, TooLarge):
                raise shown
            if shown is not None:
                return shown
            tries += not request.ended_from_outside
        raise SynapsedError("the saved screen cannot be drawn: the terminal emulator fails on it")

    async def close(self) -> None:
        """Ends all processes."""
        self._closed = True
        if self._watch is not None:
            self._watch.cancel()
        for process in list(self._processes):
            process.end("the daemon ends")
        await self._ending.finish()


class _Kept:
    works_since = 0
    ended_from_outside = False

    def __init__(self, form: KeptForm) -> None:
        self._form = form
        self.answer: asyncio.Future[Shown | TooLarge | None] = asyncio.get_running_loop().create_future()

    def came(self, frame: ScreenFrame) -> None:
        """Takes the answer. Raises ScreenFrameError for an impossible one: then the process is ended, and `kept` tries
        another one."""
        if frame.kind != FrameKind.ANSWER:
            raise ScreenFrameError("output drawn of a screen that was kept")
        shown = checked_replies.read_shown(self._form, frame)
        if not self.answer.done():
            self.answer.set_result(shown)

    def lost(self, *, suspect: bool, outside: bool) -> None:
        self.ended_from_outside = outside
        if not self.answer.done():
            self.answer.set_result(None)


class Seat:
    """A screen's place in a process."""

    def __init__(self, process: ScreenProcess, number: int, leave: Callable[[ScreenProcess, int], None]) -> None:
        self._process = process
        self._number = number
        self._leave = leave

    def say(self, frame: ScreenFrame) -> None:
        self._process.say(frame, self._number)

    def leave(self) -> None:
        self._process.say(ScreenFrame(FrameKind.CLOSE, self._number))
        self._leave(self._process, self._number)
