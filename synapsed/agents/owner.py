"""The seam between a program and the agent that it is part of."""

from typing import Protocol

from synapsed.interfaces import AgentLink, NewEvent
from synapsed.model.agent import ProcessState
from synapsed.model.link import LinkExited
from synapsed.tasks.transitions import Commit

__all__ = ["ProgramOwner"]


class ProgramOwner(Protocol):
    """What a program tells its agent. All are called in the actor."""

    def settle(self, exited: LinkExited, *, interrupted: bool) -> Commit | None:
        """What becomes of the turn in flight; committed together with the exit. `interrupted`: the program did not end
        by itself, it was taken down with its keeper, by a reboot, by the daemon's own end."""
        ...

    def settled(self, commit: Commit) -> None:
        """That commit is durable."""
        ...

    def over(self, state: ProcessState) -> tuple[NewEvent, ...]:
        """What is told together with a change to `state`: what the program needed a person for is gone with it, unless
        it still runs."""
        ...

    async def opened(self, link: AgentLink) -> None:
        """The link reports from now on."""
        ...

    def changed(self) -> None:
        """The process state changed."""
        ...
