"""How often the process that draws screens is asked for a look while one message is typed, worked on and answered."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from synapsed.interfaces import Delivery
from synapsed.keepers.keeper_messages import Output
from synapsed.model.link import LinkEvent, LinkTurnEnded, LinkTurnRecord
from synapsed.model.records import LaunchRecord, TurnRecord
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import AnswerSpec, BusySigns, Composer, DeliverySpec, Ready
from synapsed.pty.output_times import OutputTimes
from synapsed.pty.pty_link import PtyLink
from synapsed.pty.shared_timer import Rounds
from synapsed.pty.window import LastSeen
from synapsed.screens.harmful_output import HarmRecord
from synapsed.screens.pool import ScreenPool
from synapsed.screens.protocol import FrameKind, ScreenFrame
from synapsed.screens.remote_screen import RemoteStage
from tests.fakes.clock import FakeClock
from tests.fakes.screens import FakeScreenProcess
from tests.fakes.store import MemoryStore

LOOKS_MAX = 5
"""In one turn: the echo, the composer at rest, the work, the prompt, the prompt at rest."""

SETTLES = 30
"""Turns of the event loop in which everything is done that is to be done at one moment."""

FULL_SCREEN = Profile(
    name="a",
    command="a",
    ready=Ready(quiet_ms=250),
    busy=BusySigns(screen=["^working"]),
    composer=Composer(line="^> ?(?P<text>.*)$"),
    delivery=DeliverySpec(settle_ms=80),
    answer=AnswerSpec(mode="blocks", start="^\\* ", end="^>"),
)
LINES = FULL_SCREEN.model_copy(
    update={"composer": Composer(line="^> ?(?P<text>.*)$", at_cursor=True), "answer": AnswerSpec()}
)


class Program:
    """A program that is scripted, with the link to it. Time is that of the clock, which goes on to whatever is due next
    when there is nothing to do."""

    def __init__(self, profile: Profile, folder: Path, pool: ScreenPool, harms: HarmRecord, asked: list[bool]) -> None:
        self.clock = clock = FakeClock()
        numbers = dict.fromkeys(("keeper_pid", "keeper_start", "pid", "pid_start"), 1)
        launch = LaunchRecord(launch_id="l", socket="/none", spool_start=0, started_at=0, **numbers)
        store = MemoryStore(clock)
        self.stage = RemoteStage(
            pool,
            agent_id="a",
            profile=profile,
            size=(80, 24),
            launch_start=0,
            checkpoint=None,
            kept=lambda: store.checkpoint("a"),
            spool=folder / "spool",
            harms=harms,
            clock=clock,
        )
        self.link = PtyLink(
            agent_id="a",
            profile=profile,
            launch=launch,
            stage=self.stage,
            channels=[],
            times=OutputTimes(folder / "times"),
            store=store,
            clock=clock,
            seen=LastSeen(),
            rounds=Rounds(clock),
            own_size=(80, 24),
        )
        # One whose screen is its own keeps its composer while it works.
        self._works = b"\r\x1b[Kworking" + (b"" if profile.composer.at_cursor else b"\r\n> ")
        self.ended: LinkTurnEnded | None = None
        self._asked = asked
        """Whether what the process was told is asking for a look."""
        self.at_paste = self.at_end = 0
        self.over = 0.0
        self._printed = b""
        self._due: list[float] = []
        self._script: list[tuple[float, bytes]] = []
        driver = self.link._driver
        driver._program.emit = self._emit
        driver.looks._wake_at = self._due.append  # type: ignore[method-assign]
        driver.looks._cancel = self._due.clear  # type: ignore[method-assign]
        driver.looks._open = True
        self.link._program.client = self  # type: ignore[assignment]
        self.stage.open(self.link._on_stage)
        self._worker = asyncio.create_task(driver.turn.run())

    def _emit(self, event: LinkEvent) -> None:
        if isinstance(event, LinkTurnRecord):
            asyncio.get_running_loop().call_soon(self.link.recorded, event.record)
        if isinstance(event, LinkTurnEnded):
            self.ended, self.at_end, self.over = event, self.looks, self.clock.monotonic()

    def prints(self, data: bytes) -> None:
        self._printed += data
        self.link._on_event(Output(self.link.output, data))

    @property
    def looks(self) -> int:
        return sum(self._asked)

    async def settled(self) -> None:
        """Until nothing is left to do now."""
        for _ in range(SETTLES):
            await asyncio.sleep(0)

    async def goes_on(self) -> None:
        """Until nothing is left to do now; then time goes on to what is due next."""
        await self.settled()
        due = min([*self._due, *(at for at, _ in self._script)], default=self.clock.monotonic())
        self.clock.advance(max(0.0, due - self.clock.monotonic()))
        if self._script and self._script[0][0] <= due:
            self.prints(self._script.pop(0)[1])
        elif self._due:
            self._due.clear()
            self.link._driver.looks._due()

    async def close(self) -> None:
        self._worker.cancel()
        await asyncio.gather(self._worker, return_exceptions=True)
        await self.link._driver._program.tasks.cancel()
        await self.stage.close()

    # --- its keeper ---

    lost = None

    async def write(self, data: bytes, input_id: str | None = None) -> Any:
        """A paste is shown, and the submit key makes it work for half a second."""
        now = self.clock.monotonic()
        if data == b"\r":
            self._script += [(now + 0.005, self._works), (now + 0.5, b"\r\x1b[H\x1b[J* the answer\r\n> ")]
        else:
            self.at_paste = self.looks
            self._script.append((now + 0.005, data))
        return SimpleNamespace(at=self.link.output, hidden=False)

    async def ping(self, *, timeout: float = 10) -> Any:
        return SimpleNamespace(unread=0, line_mode=False, echo=None, foreground=7)

    async def read(self, start: int, size: int) -> tuple[int, bytes]:
        return start, self._printed[start : start + size]

    def resume_output(self) -> None:
        """It was never paused."""


@pytest.fixture(params=[FULL_SCREEN, LINES], ids=["full screen", "lines"])
async def program(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Program]:
    looks: list[bool] = []

    class Counted(FakeScreenProcess):
        def say(self, frame: ScreenFrame, agent: int = 0) -> None:
            looks.append(frame.kind == FrameKind.LOOK)
            super().say(frame, agent)

    monkeypatch.setattr("synapsed.screens.pool.ScreenProcess", Counted)
    pool = ScreenPool(1)
    program = Program(request.param, tmp_path, pool, await HarmRecord.of(tmp_path, "l"), looks)
    yield program
    await program.close()
    await pool.close()


async def takes_a_turn(program: Program) -> int:
    """How many looks there were before it."""
    program.prints(b"> ")
    program.link._driver.looks.soon()
    for _ in range(4):  # it has come to rest
        await program.goes_on()
    link = program.link
    assert (await link.observe()).can_receive
    before = program.looks
    record = link.prepare(TurnRecord(task_id="t", launch_id="l"))
    await link.deliver(Delivery(task_id="t", text="hello", record=record, fresh=True))
    async with asyncio.timeout(60):
        while program.ended is None:
            await program.goes_on()
    assert program.ended.answer.endswith("the answer")
    return before


async def test_a_turn_looks_once_at_what_has_changed(program: Program) -> None:
    """And not at all between what the agent was told and the first key."""
    before = await takes_a_turn(program)
    assert program.at_paste == before
    assert program.at_end - before <= LOOKS_MAX


async def test_a_message_right_behind_a_turn_waits_for_no_look(program: Program) -> None:
    await takes_a_turn(program)
    await program.settled()
    looks = program.looks
    assert (await program.link.observe()).can_receive
    assert program.looks == looks
    assert program.clock.monotonic() == program.over
