"""A program whose keeper is whatever the test has for one, and its terminal."""

from typing import Any

from synapsed.clock import Clock
from synapsed.keepers.kept_program import KeptProgram
from synapsed.model.records import LaunchRecord
from synapsed.profiles.profile import Profile
from synapsed.pty.linked_terminal import LinkedTerminal
from synapsed.pty.session import Session
from synapsed.terminal.screen_messages import Stage
from tests.fakes.store import MemoryStore

LAUNCH = LaunchRecord(
    launch_id="l", socket="/none", keeper_pid=1, keeper_start=1, pid=2, pid_start=2, spool_start=0, started_at=0
)


class FakeOwner:
    """A link that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def finishing(self) -> None:
        self.told.append("finishing")

    async def last_words(self) -> None:
        self.told.append("last words")

    def silenced(self, *, silent: bool) -> None:
        self.told.append("silent" if silent else "answers")


def kept_by(keeper: Any, owner: FakeOwner | None = None) -> KeptProgram:
    """None where it is not reached."""
    program = KeptProgram("a", LAUNCH, owner or FakeOwner())
    program.client = keeper
    return program


def linked(profile: Profile, session: Session, stage: Stage, keeper: Any, clock: Clock) -> LinkedTerminal:
    """The terminal of such a program, of which no channel tells."""
    store = MemoryStore(clock)
    return LinkedTerminal("a", profile, session, stage, kept_by(keeper), channels=[], store=store, clock=clock)
