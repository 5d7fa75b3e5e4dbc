"""The interfaces between an agent and its parts, and between an agent and the objects that know all agents."""

from typing import Protocol

from synapsed.config.config import AgentConfig
from synapsed.interfaces import PERSON, AgentLink, NewEvent
from synapsed.model.agent import ProcessState
from synapsed.model.events import Origin
from synapsed.model.link import LinkExited, LinkObserved
from synapsed.model.records import AgentRecord
from synapsed.model.task import Task
from synapsed.tasks.transitions import Commit


class Settings(Protocol):
    """The present configuration."""

    def config_of(self, record: AgentRecord) -> AgentConfig:
        """Returns the configuration for the agent; the defaults for one that was started by hand."""
        ...


class TaskEnds(Protocol):
    """Receives the ends of tasks."""

    def ended(self, task: Task) -> None:
        """Notes that the task is at its end, durably."""
        ...


class Configured(Protocol):
    """An agent with its configuration, which may change between two reads."""

    @property
    def config(self) -> AgentConfig: ...


class ParkOwner(Configured, Protocol):
    """The agent, as its parking uses it."""

    @property
    def seen(self) -> LinkObserved | None:
        """Returns the last observation of a running program."""
        ...


class PromptOwner(Protocol):
    """The agent, as the handling of its prompts uses it."""

    async def answer(self, text: str, prompt_id: str | None, origin: Origin = PERSON) -> None:
        """Answers the prompt on the screen, in a task or outside one."""
        ...

    async def observe_again(self) -> None:
        """Looks at the present prompt once more."""
        ...


class StopOwner(Protocol):
    """The agent, as the stopping of a turn uses it."""

    @property
    def exit(self) -> LinkExited | None:
        """Returns the last end of its program."""
        ...

    async def adopted(self) -> None:
        """Returns when the program is adopted. Raises StoreError if that cannot be recorded now."""
        ...

    async def recheck(self) -> None:
        """Looks again whether a message can be given."""
        ...


class ProgramOwner(Protocol):
    """The agent, as its program reports to it. All methods are called in the actor."""

    def works_on_message(self) -> bool:
        """Returns whether a turn runs that a message began, and that is not being stopped."""
        ...

    async def settle(self, exited: LinkExited, *, interrupted: bool) -> Commit | None:
        """Returns the result for the turn in flight; committed together with the exit. `interrupted`: the program did
        not end by itself, but with its keeper, by a reboot, or with the daemon."""
        ...

    async def leaves(self, link: AgentLink) -> None:
        """Notes that the program is about to be parked: its last screen is shown until it comes back."""
        ...

    def settled(self, commit: Commit) -> None:
        """Notes that this commit is durable."""
        ...

    def over(self, state: ProcessState) -> tuple[NewEvent, ...]:
        """Returns the events that are committed together with a change to `state`: the program's open questions and
        alerts end with it, unless it still runs."""
        ...

    async def opened(self, link: AgentLink) -> None:
        """Notes that the link reports from now on."""
        ...

    def changed(self) -> None:
        """Notes a change of the process state."""
        ...
