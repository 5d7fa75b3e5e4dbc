"""What performs a procedure: each step's answer goes back into it, and it ends in order whatever happens."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from synapsed.errors import KeeperLost
from synapsed.model.link import LinkExited
from synapsed.profiles.profile import Profile
from synapsed.pty.driver import Driver
from synapsed.pty.keyboard import (
    Emit,
    Keyboard,
    LookNow,
    Press,
    SendSignal,
    Steps,
    StopPressed,
    Tell,
    UntilRead,
    UntilRecorded,
    WaitFor,
    WaitForExit,
)
from synapsed.pty.linked_terminal import LinkedTerminal
from synapsed.pty.session import Session
from synapsed.terminal.screen_messages import KeysTyped, Note, Start, StopAsked, StopOver
from tests.fakes.clock import FakeClock, until
from tests.fakes.program import kept_by

PROFILE = Profile(name="p", command="p")
NOW: Any = SimpleNamespace(screen=SimpleNamespace(lines=("shown",)))


class Terminal:
    """Does what it is asked, and notes it."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.lost = False
        self.is_read = True
        self.never = asyncio.Event()
        surroundings: Any = self
        self.driver = Driver(
            LinkedTerminal(
                "a",
                PROFILE,
                Session(PROFILE, Start(0), channels_tell=False),
                stage=surroundings,
                program=kept_by(surroundings),
                channels=[],
                store=surroundings,
                clock=FakeClock(),
            )
        )
        self.driver.looks.look = surroundings.look  # type: ignore[method-assign]
        self.driver.looks.until = surroundings.until  # type: ignore[method-assign]
        self.driver.unread = surroundings
        self.driver._program.emit = self.done.append

    def note(self, note: Note) -> None:
        self.done.append(note)

    async def look(self) -> Any:
        return NOW

    async def until(self, wanted: Any, _within: float) -> bool:
        if not wanted(NOW):
            await self.never.wait()
        return True

    async def write(self, data: bytes) -> Any:
        if self.lost:
            raise KeeperLost("gone")
        self.done.append(data)
        return SimpleNamespace(hidden=data == b"secret")

    async def signal(self, number: int) -> None:
        self.done.append(number)

    async def until_read(self) -> None:
        if not self.is_read:
            await self.never.wait()


async def test_every_step_is_done_and_answered() -> None:
    terminal = Terminal()
    exited = LinkExited(0, "")
    terminal.driver._program.exited.set_result(exited)
    answers: list[Any] = []

    def everything() -> Steps[str]:
        answers.append((yield Press(b"secret")))
        answers.append((yield Press(b"a")))
        answers.append((yield WaitFor(lambda _: True, 1.0)))
        answers.append((yield LookNow()))
        answers.append((yield WaitForExit(1.0)))
        answers.append((yield UntilRead(1.0)))
        yield UntilRecorded(1.0)
        yield SendSignal(2)
        yield StopPressed()
        yield Tell(StopOver())
        yield Emit(exited)
        return "done"

    now = FakeClock().monotonic()
    typed = KeysTyped(now)
    assert await terminal.driver.perform(everything()) == "done"
    assert answers == [True, False, True, NOW, True, True]
    assert terminal.done == [typed, b"secret", typed, b"a", 2, StopAsked(now), StopOver(), exited]
    terminal.is_read = False
    assert await terminal.driver.perform(one(UntilRead(0.0))) is False


def one(step: Any) -> Steps[Any]:
    return (yield step)


async def test_a_procedure_that_loses_its_keeper_ends_in_order() -> None:
    """Else nothing would be typed any more: half an answer would seem to be on the screen for ever."""
    terminal, keyboard = Terminal(), Keyboard(PROFILE)
    terminal.lost = True
    with pytest.raises(KeeperLost):
        await terminal.driver.perform(keyboard.answer([b"1"], lambda _: True))
    assert not keyboard.answering


async def test_one_that_is_given_up_ends_in_order() -> None:
    terminal, keyboard = Terminal(), Keyboard(PROFILE)
    answering = asyncio.ensure_future(terminal.driver.perform(keyboard.answer([b"1", b"2"], lambda _: False)))
    await until(lambda: b"1" in terminal.done)
    assert keyboard.answering
    answering.cancel()
    await asyncio.gather(answering, return_exceptions=True)
    assert not keyboard.answering
