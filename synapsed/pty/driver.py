"""Does the I/O of one program's terminal: performs the commands of its session (`Session`, which decides), and reports
the results to it.

`Looks` looks at the screen, `TurnWorker` does the work that a turn's machine wants. This module performs the steps that
the generators of `keyboard` yield.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from synapsed.errors import KeeperLost
from synapsed.keepers.keeper_messages import KeeperRefused
from synapsed.pty.keyboard import (
    Emit,
    LookNow,
    Pause,
    Press,
    Resize,
    Rests,
    SendSignal,
    Step,
    Steps,
    StopPressed,
    Tell,
    UntilRead,
    UntilRecorded,
    WaitFor,
    WaitForExit,
    Work,
)
from synapsed.pty.linked_terminal import LinkedTerminal
from synapsed.pty.screen_looks import KernelChecks, Looks, Unread
from synapsed.pty.session_commands import AnswerQuery, AtRest, LookSoon, Poll, SavePrompts, SaveScreen, SessionCommand
from synapsed.pty.turn_worker import TurnWorker
from synapsed.terminal.look import Look
from synapsed.terminal.screen_messages import KeysTyped, StopAsked


class Driver:
    """The driver. `looked` is called with every look (reading of the screen), `resized` with the window's new size."""

    def __init__(
        self,
        terminal: LinkedTerminal,
        *,
        looked: Callable[[Look], None] = lambda _look: None,
        resized: Callable[[int, int], None] = lambda _cols, _rows: None,
    ) -> None:
        self._terminal = terminal
        self._session = terminal.session
        self._stage = terminal.stage
        self._program = terminal.program
        self._clock = terminal.clock
        self._resized = resized
        self._works: dict[type[SessionCommand], Callable[[], Coroutine[Any, Any, None]]] = {
            SaveScreen: self.save_screen,
            SavePrompts: self._save_prompts,
            Poll: self.poll,
            AtRest: self.rests,
        }
        self.unread = Unread(terminal.program.keeper, lambda: self.do(self._session.read(self._clock.monotonic())))
        self.looks = Looks(terminal, self.unread, do=self.do, looked=looked)
        self.kernel = KernelChecks(terminal, self.looks)
        self.turn = TurnWorker(terminal, self.looks, self.kernel, performer=self)

    # --- the session's commands ---

    def do(self, commands: Sequence[SessionCommand]) -> None:
        for command in commands:
            match command:
                case Emit(event):
                    self._program.emit(event)
                case Tell(note):
                    self._stage.note(note)
                case Work(wanted):
                    self.turn.add(wanted)
                case LookSoon(at_once):
                    self.looks.soon(at_once=at_once)
                case AnswerQuery(offset, data):
                    self._program.tasks.spawn(self._answer_query(f"query.{offset}", data))
                case SaveScreen() | SavePrompts() | Poll() | AtRest():
                    self._program.tasks.spawn(self._works[type(command)]())

    async def _answer_query(self, input_id: str, data: bytes) -> None:
        with contextlib.suppress(KeeperRefused, KeeperLost):
            await self._program.keeper().write(data, input_id)

    async def _save_prompts(self) -> None:
        if (kept := self._terminal.kept_prompts) is not None:
            await asyncio.to_thread(kept.save, self._session.prompts.known)

    async def save_screen(self) -> None:
        try:
            checkpoint = await self._stage.checkpoint()
            self._session.saving(checkpoint.offset)
            session = self._session
            kept = {"asked": session.observations.asking.kept, "misread": session.misreading.left}
            await self._terminal.store.save_checkpoint(
                self._terminal.agent_id, checkpoint.model_copy(update={"state": {**checkpoint.state, **kept}})
            )
        finally:
            self._session.saved()

    async def poll(self) -> None:
        for channel in self._terminal.channels:
            await channel.poll()

    async def rests(self) -> None:
        for channel in self._terminal.channels:
            await channel.rests()

    # --- procedures ---

    async def perform[T](self, steps: Steps[T]) -> T:
        """Performs the procedure by steps, and returns its result. Raises its errors, and KeeperLost, KeeperRefused."""
        go_on: Callable[[], Step] = partial(steps.send, None)
        try:
            while True:
                try:
                    step = go_on()
                except StopIteration as done:
                    result: T = done.value
                    return result
                try:
                    go_on = partial(steps.send, await self._step(step))
                except KeeperLost as error:
                    go_on = partial(steps.throw, error)  # the procedure decides: its step may have ended the program
        finally:
            steps.close()  # runs the `finally` blocks of a procedure that has not ended

    def undertake(self, steps: Steps[object]) -> None:
        """Performs a procedure in the background; no caller waits for its result."""
        self._program.tasks.spawn(self._undertake(steps))

    async def _undertake(self, steps: Steps[object]) -> None:
        with contextlib.suppress(KeeperLost, KeeperRefused):
            await self.perform(steps)

    async def _step(self, step: Step) -> Any:
        match step:
            case Press(data):
                self._stage.note(KeysTyped(now := self._clock.monotonic()))
                self._session.lag.typed(now)
                return (await self._program.keeper().write(data)).hidden
            case LookNow():
                return await self.looks.look()
            case SendSignal(number):
                return await self._program.keeper().signal(number)
            case StopPressed():
                # Behind a relay the screen also stands still because the program does not have the keys yet.
                self._stage.note(StopAsked(self._clock.monotonic() + self._session.lag.seconds))
            case Resize(cols, rows):
                keeper = self._program.keeper()
                # First: the program's output for the new size may arrive before the keeper's answer.
                self._resized(cols, rows)
                await keeper.resize(cols, rows)
            case Rests():
                return await self._rests()
            case Emit() | Tell() | Work():
                self.do([step])
            case _:
                return await self._wait(step)
        return None

    async def _wait(self, step: WaitFor | WaitForExit | Pause | UntilRead | UntilRecorded) -> bool | None:
        match step:
            case WaitFor(wanted, within, effect):
                return await self.looks.until(wanted, within + (self._session.lag.seconds if effect else 0.0))
            case WaitForExit(within):
                await asyncio.wait({self._program.exited}, timeout=within)
                return self._program.exited.done()
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case UntilRead(within):
                return await self._is_read(within)
            case UntilRecorded(within):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.turn.idle.wait(), within)
        return None

    async def _rests(self) -> bool:
        try:
            return await self.kernel.rests_with_keys_read()
        except KeeperLost:
            return True

    async def _is_read(self, within: float | None) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.unread.until_read(), within)
            await asyncio.sleep(self._session.lag.left(self._clock.monotonic()))
            return True
        return False
