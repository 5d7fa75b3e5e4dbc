"""The interfaces between an agent and its parts, and between an agent and the objects that know all agents."""

from typing import Protocol

from synapsed.config.config import AgentConfig
from synapsed.interfaces import AgentLink, NewEvent
from synapsed.model.agent import ProcessState
from synapsed.model.link import LinkExited
from synapsed.model.records import AgentRecord
from synapsed.model.task import Task
from synapsed.tasks.transitions import Commit


class Settings(Protocol):
    """The present configuration."""

    def config_of(self, record: AgentRecord) -> AgentConfig:
        """Returns the configuration for the agent; the defaults for one that was started by hand."""


class TaskEnds(Protocol):
    """Receives the ends of tasks."""

    def ended(self, task: Task) -> None:
        """Notes that the task is at its end, durably."""


class ProgramOwner(Protocol):
    """The agent, as its program reports to it. All methods are called in the actor."""

    def works_on_message(self) -> bool:
        """Returns whether a turn runs that a message began, and that is not being stopped."""

    async def settle(self, exited: LinkExited, *, interrupted: bool) -> Commit | None:
        """Returns the result for the turn in flight; committed together with the exit. `interrupted`: the program did
        not end by itself, but with its keeper, by a reboot, or with the daemon."""

    async def leaves(self, link: AgentLink) -> None:
        """Notes that the program is about to be parked: its last screen is shown until it comes back."""

    def settled(self, commit: Commit) -> None:
        """Notes that this commit is durable."""

    def over(self, state: ProcessState) -> tuple[NewEvent, ...]:
        """Returns the events that are committed together with a change to `state`: the program's open questions and
        alerts end with it, unless it still runs."""

    async def opened(self, link: AgentLink) -> None:
        """Notes that the link reports from now on."""

    def changed(self) -> None:
        """Notes a change of the process state."""
