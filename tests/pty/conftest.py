"""A link to a program in a terminal, for tests of what it does."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from synapsed.keepers.keeper_messages import Output
from synapsed.model.records import Checkpoint, LaunchRecord
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import Composer, Dialog, Interrupt, ListedOption, Prompts, Ready
from synapsed.pty.output_times import OutputTimes
from synapsed.pty.pty_link import PtyLink
from synapsed.pty.shared_timer import Rounds
from synapsed.pty.window import LastSeen
from tests.fakes.clock import FakeClock
from tests.fakes.stage import LocalStage
from tests.fakes.store import MemoryStore

PROFILE = Profile(
    name="a",
    command="a",
    ready=Ready(quiet_ms=0),
    composer=Composer(line="^> ?(?P<text>.*)$"),
    interrupt=Interrupt(keys="\x1b"),
    prompts=Prompts(
        dialogs=[
            Dialog(type="permission", when=[r"^Allow it\?"], option=r"^(?P<key>\d)\. (?P<label>.*)$", from_first=["1"]),
            Dialog(
                type="question",
                when=[r"^Which \w+\?"],
                options=[ListedOption(key="next", label="Go on", keys=["first", "then"])],
            ),
        ]
    ),
)

type Opens = Callable[..., tuple[PtyLink, list[bytes]]]


@pytest.fixture
def opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opens:
    """A link to a program that shows `screen`, and what is typed into it."""

    def opens(screen: bytes = b"", *, offset: int = 101) -> tuple[PtyLink, list[bytes]]:
        clock = FakeClock()
        launch = LaunchRecord(
            launch_id="l",
            socket="/none",
            keeper_pid=1,
            keeper_start=1,
            pid=2,
            pid_start=2,
            spool_start=100,
            started_at=0,
        )
        checkpoint = Checkpoint(offset=offset, cols=80, rows=24, redraw=screen, state={"activity": "ready"})
        link = PtyLink(
            agent_id="a",
            profile=PROFILE,
            launch=launch,
            stage=LocalStage(PROFILE, launch, (80, 24), checkpoint, clock.monotonic()),
            channels=[],
            times=OutputTimes(tmp_path / "times"),
            store=MemoryStore(clock),
            clock=clock,
            seen=LastSeen(),
            rounds=Rounds(clock),
            own_size=(80, 24),
        )
        typed: list[bytes] = []

        class Keeper:
            async def write(self, data: bytes) -> Any:
                typed.append(data)
                return SimpleNamespace(hidden=False)

            async def ping(self, *, timeout: float = 10) -> Any:
                return SimpleNamespace(unread=0, line_mode=None, echo=None, foreground=None)

            async def ping_briefly(self, *, timeout: float = 10) -> None:
                await self.ping()

            async def signal(self, number: int) -> None:
                raise AssertionError(number)

        monkeypatch.setattr(link._program, "client", Keeper())
        return link, typed

    return opens


def prints(link: PtyLink, data: bytes) -> None:
    link._on_event(Output(link.output, data))
