"""Stopping what runs: when its keys are pressed, what proves it, and what is removed from the composer afterwards."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from synapsed.model.agent import Activity
from synapsed.model.facts import PromptAccepted, TurnEnded
from synapsed.model.link import LinkExited
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import BusySigns, Composer, Dialog, Interrupt, Prompts, Ready
from synapsed.pty.driver import Driver
from synapsed.pty.keyboard import Steps
from synapsed.pty.session import Session
from synapsed.pty.stopped_turn import KeptStop, StoppedMessage
from synapsed.pty.stopping import LATE_S, Stopping
from synapsed.pty.turn import PtyTurn
from synapsed.pty.turn_types import Command, Phase, Save, TurnState
from synapsed.terminal.look import Look
from tests.fakes.clock import FakeClock, until
from tests.fakes.program import linked
from tests.fakes.stage import LocalStage
from tests.pty.playbook import compose, delivery_of

PROFILE = Profile(
    name="p",
    command="p",
    ready=Ready(quiet_ms=0),
    busy=BusySigns(screen=["esc to stop"]),
    composer=Composer(line=r"^> ?(?P<text>.*)$"),
    interrupt=Interrupt(keys="\x1b", still_ms=1000),
    prompts=Prompts(dialogs=[Dialog(type="question", when=["^A menu"], leave="q")]),
)
SILENT = PROFILE.model_copy(update={"busy": BusySigns()})


class Program:
    """A terminal whose screen the test draws, and everything around `Stopping` that it acts on."""

    def __init__(self, profile: Profile = PROFILE, left: StoppedMessage | None = None) -> None:
        self.clock = FakeClock()
        launch: Any = SimpleNamespace(spool_start=0)
        self.stage = LocalStage(profile, launch, (40, 5), None, 0.0)
        self.observer = self.stage._observer
        self.session = Session(profile, self.stage.start, channels_tell=True)
        self.session.hands_at = 0.0
        self.typed: list[bytes] = []
        self.commands: list[Command] = []
        self.works: list[Steps[object]] = []
        self.waits: list[float] = []
        self.computing = 0
        """How many more times the kernel says that it has something to do; then it gives its message back."""
        self.draw("> ")
        keeper: Any = SimpleNamespace(write=self.write)
        terminal = linked(profile, self.session, self.stage, keeper, self.clock)
        self.driver = driver = Driver(terminal)
        driver.looks.look = self.looks  # type: ignore[method-assign]
        driver.looks.until = self.until  # type: ignore[method-assign]
        driver.kernel.rests_with_keys_read = self.rests  # type: ignore[method-assign]
        driver.turn.add = self.commands.extend  # type: ignore[method-assign]
        self.stopping = Stopping(terminal, perform=self.works.append, left=left)

    @property
    def turn(self) -> PtyTurn | None:
        return self.session.turn

    @turn.setter
    def turn(self, turn: PtyTurn | None) -> None:
        self.session.turn = turn

    async def stop(self) -> bool:
        return await self.driver.perform(self.stopping.stop())

    def begin(self, phase: Phase = Phase.WORKING, *, interrupting: bool = False) -> PtyTurn:
        state = TurnState(phase=phase, submitted=True, shown="hello", busy_seen=True, interrupting=interrupting)
        self.turn = turn = PtyTurn(PROFILE, delivery_of(), compose, state, channels_tell=True)
        self.observer.turn.told(PromptAccepted(channel="hooks", at_ns=int(self.clock.monotonic() * 1e9)))
        return turn

    def later(self, change: str) -> None:
        """The turn is over, and a second passes, in which there may be a `change`."""
        self.turn = None
        match change:
            case "a person types":
                self.session.hands_at = self.clock.monotonic() + 0.5
            case "another turn":
                self.begin()
            case "too late":
                self.clock.advance(LATE_S + 1)
        self.clock.advance(1.0)

    def draw(self, *rows: str) -> None:
        self.observer.feed(self.observer.offset, ("\x1b[H\x1b[J" + "\r\n".join(rows)).encode(), 0.0)
        self.look()

    def asked(self) -> None:
        self.observer.turn.asked_to_stop(self.clock.monotonic())

    async def write(self, data: bytes) -> Any:
        self.typed.append(data)
        if data == PROFILE.delivery.clear.encode():
            self.draw("> ")
        return SimpleNamespace(hidden=False)

    async def rests(self) -> bool:
        if not self.computing:
            return True
        self.computing -= 1
        if not self.computing:
            self.draw("> hello")
        return False

    # --- the watch ---

    def look(self) -> Look:
        look = self.observer.look(self.clock.monotonic())
        if self.turn is not None and self.turn.state.interrupting and look.verdict.activity is Activity.READY:
            self.turn.state.phase = Phase.OVER
        self.session.last, self.session.now = look, self.clock.monotonic()
        return look

    async def looks(self) -> Look:
        return self.look()

    async def until(self, wanted: Callable[[Look], bool], timeout: float) -> bool:
        """Time passes while it is waited for."""
        self.waits.append(timeout)
        for _ in range(20):
            if wanted(self.look()):
                return True
            self.clock.advance(timeout / 20)
            await asyncio.sleep(0)
        return wanted(self.look())


async def test_a_turn_that_only_its_channel_holds_open_is_stopped_and_what_was_given_back_removed() -> None:
    program = Program()
    turn = program.begin()
    program.draw("> hello")
    assert await program.stop()
    assert turn.over
    assert program.typed == [b"\x1b", PROFILE.delivery.clear.encode()]


async def test_no_key_is_pressed_before_the_record_says_that_the_turn_is_to_stop() -> None:
    """Else the next daemon would submit once more what the program has given back."""
    program = Program()
    program.begin()
    program.driver.turn.idle.clear()
    stopping = asyncio.ensure_future(program.stop())
    await until(lambda: program.commands == [Save()])
    for _ in range(10):
        await asyncio.sleep(0)
    assert program.typed == []
    program.driver.turn.idle.set()
    assert await stopping
    assert program.typed[0] == b"\x1b"


async def test_the_keys_are_not_pressed_again_where_the_last_daemon_did() -> None:
    program = Program()
    program.begin(interrupting=True)
    program.asked()
    assert await program.stop()
    assert program.typed == []


async def test_a_program_that_still_works_gets_the_keys_that_the_last_daemon_may_have_pressed() -> None:
    program = Program()
    program.begin(interrupting=True)
    program.draw("3 s, esc to stop", "> ")
    stopping = asyncio.ensure_future(program.stop())
    await until(lambda: program.typed)
    program.draw("> ")
    assert await stopping


async def test_a_turn_that_goes_on_is_believed_to_be_open_again() -> None:
    program = Program()
    turn = program.begin()
    program.draw("3 s, esc to stop", "> ")
    program.clock.advance(0.5)
    assert not await program.stop()
    assert not turn.state.interrupting
    program.draw("> ")
    program.clock.advance(2.0)
    assert program.look().verdict.activity is Activity.BUSY


async def test_a_program_that_ended_did_not_confirm() -> None:
    program = Program()
    turn = program.begin()
    program.draw("3 s, esc to stop", "> ")
    program.driver._program.exited.set_result(LinkExited(0, ""))
    assert not await program.stop()
    assert not turn.over
    assert program.typed == []


@pytest.mark.parametrize(
    ("profile", "key", "over"),
    [
        (PROFILE, b"\x1b", True),
        (PROFILE, b"\x1b[27u", True),
        (PROFILE, b"\x1b[27;1:3u", False),
        (PROFILE, b"x", False),
        (SILENT, b"\x1b", False),
    ],
)
async def test_the_key_of_a_person_stops_their_own_turn(profile: Profile, key: bytes, over: bool) -> None:
    program = Program(profile)
    program.observer.turn.told(PromptAccepted(channel="hooks", at_ns=1))
    if program.stopping.asks_to_stop(key):
        program.asked()
    program.clock.advance(1.0)
    assert (program.look().verdict.activity is Activity.READY) is over


async def test_a_program_that_gets_little_of_a_busy_machine_is_waited_for_to_give_its_message_back() -> None:
    """The next message would stand behind it, and be submitted with it."""
    program = Program()
    program.computing = 3
    program.begin()
    assert await program.stop()
    assert program.typed == [b"\x1b", PROFILE.delivery.clear.encode()]


@pytest.mark.parametrize("change", ["none", "a person types", "other words", "another turn", "too late"])
async def test_a_message_that_is_given_back_late_is_removed(change: str) -> None:
    program = Program()
    program.begin()
    assert await program.stop()
    program.later(change)
    program.draw("> my words" if change == "other words" else "> hello")
    program.stopping.looked(program.look())
    assert len(program.works) == (change == "none")
    for work in program.works:
        await program.driver.perform(work)
        assert program.look().composer.state == "empty"


@pytest.mark.parametrize("change", ["none", "late", "a person types", "other words", "another turn", "too late"])
async def test_a_message_that_was_given_back_to_the_last_daemon_is_removed(change: str) -> None:
    """The last daemon was killed after it had published the end of the task, and before it had removed the message."""
    program = Program(left=StoppedMessage(text="hello", shown="hello"))
    program.clock.advance(1000.0)
    if change != "none":
        look, program.session.now = program.look(), 0.0  # a link's first look is before its session's first judgement
        program.stopping.looked(look)
        program.later(change)
    program.draw("> my words" if change == "other words" else "> hello")
    program.stopping.looked(program.look())
    assert len(program.works) == (change in ("none", "late"))
    for work in program.works:
        await program.driver.perform(work)
        assert program.look().composer.state == "empty"


async def test_the_next_daemon_knows_the_message_of_the_last_stop(tmp_path: Path) -> None:
    """Only for the same launch, and until nothing more of it is expected."""
    path, message = tmp_path / "stopped.json", StoppedMessage(text="hello\nyou", shown="[Pasted # lines]")
    kept = KeptStop(path, "launch")
    assert await kept.load() is None
    await kept.save(message)
    assert path.stat().st_mode & 0o077 == 0
    assert await KeptStop(path, "another launch").load() is None
    left = await (successor := KeptStop(path, "launch")).load()
    assert left is not None
    assert [left.is_in(one) for one in ("hello", "[Pasted 2 lines]", "hello there", "")] == [True, True, False, False]
    await successor.remove(message)
    assert path.exists(), "of another stop"
    await successor.remove(left)
    assert not path.exists()
    path.write_bytes(b"{")
    assert await kept.load() is None
    path.unlink()
    path.mkdir()
    await kept.save(message)  # it is logged


@pytest.mark.parametrize("late", [False, True])
async def test_a_menu_that_the_keys_of_two_daemons_opened_is_closed(late: bool) -> None:
    program = Program()
    program.begin(interrupting=True)
    program.asked()
    if late:
        assert await program.stop()
        program.turn = None
    program.draw("A menu")
    program.stopping.looked(program.look())
    assert len(program.works) == late
    closing: Any = program.driver.perform(program.works[0]) if late else program.stop()
    closing = asyncio.ensure_future(closing)
    await until(lambda: program.typed == [b"q"])
    program.draw("> ")
    assert await closing is (None if late else True)


@pytest.mark.parametrize("change", ["none", "rests", "a person types", "another turn", "too late"])
async def test_a_message_that_is_taken_after_it_was_given_up_is_stopped(change: str) -> None:
    """A busy machine's program had it for seconds without a word, and its task is told as canceled."""
    program = Program()
    turn = program.begin(Phase.SUBMITTED)
    turn.state.phase = Phase.OVER
    assert await program.stop()
    assert program.typed == []
    program.later(change)
    program.observer.turn.told(TurnEnded(channel="hooks", at_ns=1, answer=None))
    program.draw(*(["> "] if change == "rests" else ["3 s, esc to stop", "> "]))
    program.stopping.looked(program.look())
    assert len(program.works) == (change == "none")
    for work in program.works:
        stopping = asyncio.ensure_future(program.driver.perform(work))
        await until(lambda: program.typed == [b"\x1b"])
        program.draw("> ")
        await stopping
