"""The processes of screens, and the distribution of screens to them: as many in one process as its memory allows, and
no more processes than processors."""

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
"""Number of screens that fit a process of 30 MB; each further one takes 0.75 MB."""

PROCESSES_MAX = 2

CHECK_S = 0.5

DELAY_MAX_S = 10.0
"""Seconds between two tries to begin a process that fails to begin."""

KEPT_TRIES = 2
"""Number of processes that may end at a kept screen, without those that were ended from outside."""

log = structlog.stdlib.get_logger("synapsed.screens")


class PlacedScreen(Protocol):
    """A screen that is drawn by a process (`RemoteStage`), or a request that stands alone."""

    @property
    def works_since(self) -> int | None:
        """Value of `ScreenPool.order` at its oldest unfinished request, or None."""
        ...

    def came(self, frame: ScreenFrame) -> None: ...

    def lost(self, *, suspect: bool, outside: bool) -> None:
        """Called when its process has ended; `suspect`: the process may have been at work on this screen; `outside`: it
        was ended from outside."""
        ...


class ScreenPool:
    """Distributes screens to at most `processes` processes. `program` is the command line of one, without the pid of
    its parent."""

    def __init__(self, processes: int | None = None, program: Sequence[str] | None = None) -> None:
        self._program = program or own_python.command("synapsed.screens.worker")
        self._most = processes or min(PROCESSES_MAX, usable_cpus())
        self._processes: dict[ScreenProcess, dict[int, PlacedScreen]] = {}
        self._ending = aio.TaskSet()
        """Waits for processes that are no longer used."""
        self._numbers = itertools.count(1)
        self._delay = 0.0
        self._closed = False
        self._watch: asyncio.Task[None] | None = None
        self.order = itertools.count(1)
        """Order of all messages to screens."""
        self.trials = asyncio.Lock()
        """Allows one trial at a time: each takes a process."""

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes if process.pid is not None]

    def begin(self) -> None:
        """Begins a process, unless there is one, because a screen is about to come."""
        if self._watch is None:
            self._watch = asyncio.get_running_loop().create_task(self._watching())
        if not self._processes:
            self._begin()

    def place(self, screen: PlacedScreen) -> "Seat":
        """Returns a seat for `screen` in a process, which is begun if no process has room."""
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
            # One that has just been closed may be answered.

        process = ScreenProcess(self._program, came, lambda reason: self._over(process, at, reason), self._delay)
        self._delay = min(max(0.1, 2 * self._delay), DELAY_MAX_S)  # until one answers
        self._processes[process] = screens
        return process

    def _leave(self, process: ScreenProcess, number: int) -> None:
        self._processes.get(process, {}).pop(number, None)

    def _over(self, process: ScreenProcess, at: int | None, reason: str) -> None:
        """Handles the end of a process. It was at work on the screen `at` that it announced last, if that is not
        finished; or, if it was idle before, on the screen that waits longest."""
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
            self._begin()  # while what harmed is tried

    async def _watching(self) -> None:
        while True:
            await asyncio.sleep(CHECK_S)
            for process, screens in list(self._processes.items()):
                process.check(work=any(screen.works_since is not None for screen in screens.values()))

    async def kept(self, checkpoint: Checkpoint, form: KeptForm) -> Shown:
        """Returns the kept screen (`scrollback`: as text, with the rows above it). Raises SynapsedError."""
        tries = 0
        while tries < KEPT_TRIES:
            request = _Kept(form)
            seat = self.place(request)
            state = {"form": form}
            text, blob = protocol.write_checkpoint(checkpoint.model_copy(update={"state": state}))
            seat.say(ScreenFrame(FrameKind.KEPT, number=1, text=text, blob=blob))
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
        """Ends all of them."""
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
        """Takes a frame. Raises ScreenFrameError for an impossible one: its process is ended, and the next one is
        asked."""
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
        self._process.say(frame._replace(agent=self._number))

    def leave(self) -> None:
        self._process.say(ScreenFrame(FrameKind.CLOSE, self._number))
        self._leave(self._process, self._number)
