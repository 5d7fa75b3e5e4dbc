"""A program in its terminal, as all parts of its link know it: who decides, draws, holds and keeps it."""

from collections.abc import Sequence
from dataclasses import dataclass

from synapsed.clock import Clock
from synapsed.interfaces import SideChannel, Store
from synapsed.keepers.kept_program import KeptProgram
from synapsed.profiles.profile import Profile
from synapsed.pty.prompt_learning import KeptPrompts
from synapsed.pty.session import Session
from synapsed.terminal.screen_messages import Stage


@dataclass(frozen=True, slots=True)
class LinkedTerminal:
    """Made once for each link; its parts share it."""

    agent_id: str
    profile: Profile
    session: Session
    """Decides."""
    stage: Stage
    """Draws what the program writes."""
    program: KeptProgram
    """The program, as its keeper has it."""
    channels: Sequence[SideChannel]
    """Where the program reports beside its terminal."""
    store: Store
    clock: Clock
    kept_prompts: KeptPrompts | None = None
