"""`ProgramLink`, the base of all links to a program in a keeper, which opens and closes the link and has its viewers
(attached terminals); and `LinkedTerminal`, the objects that the parts of a terminal's link share: session, stage,
keeper and channels."""

from collections.abc import Sequence
from dataclasses import dataclass

from synapsed.clock import Clock
from synapsed.interfaces import Attachment, ScreenWatch, SideChannel, Store
from synapsed.keepers.kept_program import KeptProgram, Owner
from synapsed.model.records import LaunchRecord
from synapsed.profiles.profile import Profile
from synapsed.pty.prompt_learning import KeptPrompts
from synapsed.pty.session import Session
from synapsed.pty.shared_timer import Rounds, Visited
from synapsed.pty.stopped_turn import KeptStop
from synapsed.pty.viewers import Viewers
from synapsed.terminal.screen_messages import Stage


class ProgramLink(Owner, Visited):
    """Link of a program; its `stage` draws the screen."""

    _viewers: Viewers

    def __init__(
        self,
        *,
        agent_id: str,
        profile: Profile,
        launch: LaunchRecord,
        stage: Stage,
        store: Store,
        clock: Clock,
        rounds: Rounds,
    ) -> None:
        self.launch = launch
        self._agent_id = agent_id
        self._profile = profile
        self._stage = stage
        self._store = store
        self._clock = clock
        self._rounds = rounds
        self._program = KeptProgram(agent_id, launch, self)

    @property
    def attached(self) -> int:
        return len(self._viewers)

    @property
    def writers(self) -> int:
        return self._viewers.writers

    @property
    def has_person(self) -> bool:
        return self._viewers.has_person

    def give_up(self) -> None:
        self._program.give_up()

    async def stop_background(self) -> bool:
        """Returns False: this link knows no way to stop background work."""
        return False

    def leave_unreached(self) -> None:
        self._program.leave_unreached()

    def pulse(self) -> None:
        self._program.pulse()

    async def signal(self, signum: int) -> None:
        await self._program.signal(signum)

    async def attach(self, *, cols: int, rows: int, read_only: bool, keep_size: bool = False) -> Attachment:
        return await self._viewers.join(cols=cols, rows=rows, read_only=read_only, keep_size=keep_size)

    def watch(self) -> ScreenWatch:
        return self._viewers.watch()

    async def close(self) -> None:
        """Closes the link; the program and its keeper live on."""
        self._program.closing = True
        self._rounds.leave(self)
        self._viewers.end()
        await self.leave_off()
        await self._program.let_go()
        await self._program.tasks.cancel()
        await self._stage.close()

    async def leave_off(self) -> None:
        """Saves the data for the next daemon, while the keeper can still be asked. A subclass implements it."""


@dataclass(frozen=True, slots=True)
class LinkedTerminal:
    """A terminal's objects. Made once for each link, and shared by the link's parts."""

    agent_id: str
    profile: Profile
    session: Session
    """Decides about the program."""
    stage: Stage
    """Draws the program's output."""
    program: KeptProgram
    """The program in its keeper."""
    channels: Sequence[SideChannel]
    """Channels by which the program reports besides its terminal."""
    store: Store
    clock: Clock
    kept_prompts: KeptPrompts | None = None
    kept_stop: KeptStop | None = None
