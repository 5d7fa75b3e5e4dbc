"""Screens in real processes: a stage with a spool, as its link would have it."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from synapsed.clock import SystemClock
from synapsed.keeper.spool import Spool
from synapsed.model.records import Checkpoint
from synapsed.profiles.profile import Profile
from synapsed.screens.harmful_output import HarmRecord
from synapsed.screens.pool import ScreenPool
from synapsed.screens.remote_screen import RemoteStage
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.look import Look
from synapsed.terminal.screen_messages import Ask, Harmed, StageEvent
from tests.support.begun import begins_with

LAUNCH = "0123456789abcdef"
PATIENT_S = 90.0
COMPOSER = {"line": r"^\$ (?P<text>.*)$", "at_cursor": True}
PROFILE = Profile.model_validate({"name": "a", "command": "a", "composer": COMPOSER})


class Program:
    """A program whose output goes into a spool, and to its stage; what the stage tells is noted."""

    def __init__(self, pool: ScreenPool, folder: Path, harms: HarmRecord, profile: Profile, name: str) -> None:
        self.folder = folder
        self.spool = Spool(str(folder / "spool"))
        self.saved: Checkpoint | None = None
        self.events: list[StageEvent] = []
        self.stage = RemoteStage(
            pool,
            agent_id=name,
            profile=profile,
            size=(80, 24),
            launch_start=0,
            checkpoint=None,
            kept=self._kept,
            spool=folder / "spool",
            harms=harms,
            clock=SystemClock(),
        )
        self.stage.open(self.events.append)

    async def _kept(self) -> Checkpoint | None:
        return self.saved

    def prints(self, data: bytes) -> None:
        at = self.spool.end
        self.spool.append(data)
        self.stage.feed(at, data, time.monotonic())

    async def look(self) -> Look:
        look = await asyncio.wait_for(self.stage.look(Ask(now=time.monotonic())), PATIENT_S)
        assert look is not None
        return look

    async def lines(self) -> list[str]:
        return [line for line in (await self.look()).screen.lines if line]

    @property
    def harmed(self) -> list[Harmed]:
        return [event for event in self.events if isinstance(event, Harmed)]


type MakeProgram = Callable[..., Awaitable[Program]]
type MakePool = Callable[..., ScreenPool]


def shown_by(redraw: bytes) -> list[str]:
    screen = Screen(80, 24)
    screen.feed(redraw)
    return [line for line in screen.snapshot().lines if line]


async def worker(pool: ScreenPool) -> int:
    """The process of `pool`, once it has begun."""
    async with asyncio.timeout(PATIENT_S):
        while not pool.pids:
            await asyncio.sleep(0.01)
    return pool.pids[0]


@pytest.fixture
async def make_pool() -> AsyncIterator[MakePool]:
    pools: list[ScreenPool] = []

    def make(processes: int = 1, program: Sequence[str] | None = None) -> ScreenPool:
        pools.append(ScreenPool(processes, program))
        return pools[-1]

    yield make
    for pool in pools:
        await pool.close()


@pytest.fixture
def pool(make_pool: MakePool) -> ScreenPool:
    return make_pool()


@pytest.fixture
async def make_program(tmp_path: Path) -> AsyncIterator[MakeProgram]:
    made: list[Program] = []

    async def make(pool: ScreenPool, name: str = "one", profile: Profile = PROFILE) -> Program:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        made.append(Program(pool, folder, await HarmRecord.of(folder, LAUNCH), profile, name))
        return made[-1]

    yield make
    for program in made:
        await program.stage.close()


@pytest.fixture
def poison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of this test's children, output with POISON ends every process that feeds it, and one with CIRCLES never returns
    from there; the file that does it."""
    (tmp_path / "site").mkdir()
    lines = [
        "import os, synapsed.terminal.emulator as emulators",
        "feed = emulators.Emulator.feed",
        "def poisoned(self, data):",
        "    if b'POISON' in data: os.abort()",
        "    while b'CIRCLES' in data: pass",
        "    feed(self, data)",
        "emulators.Emulator.feed = poisoned",
    ]
    file = tmp_path / "site" / "sitecustomize.py"
    file.write_text("\n".join(lines))
    monkeypatch.setattr("synapsed.own_python.FILE", begins_with(file))
    return file
