"""The seams between an agent and its parts, and between an agent and those who know all of them."""

from typing import Protocol

from synapsed.config.config import AgentConfig
from synapsed.interfaces import PERSON, AgentLink, NewEvent
from synapsed.model.agent import Activity, ProcessState
from synapsed.model.events import Origin
from synapsed.model.link import LinkExited, LinkObserved
from synapsed.model.records import AgentRecord
from synapsed.model.task import Task
from synapsed.profiles.profile import Profile
from synapsed.tasks.transitions import Commit


class Settings(Protocol):
    """The configuration, as it is now."""

    def config_of(self, record: AgentRecord) -> AgentConfig:
        """What is configured for the agent; the defaults for one that was started by hand."""
        ...


class TaskEnds(Protocol):
    """Who is told of the ends of tasks."""

    def ended(self, task: Task) -> None:
        """The task is at its end, durably."""
        ...


class Configured(Protocol):
    """An agent with its configuration, which may be another one by the next look."""

    @property
    def config(self) -> AgentConfig: ...


class LimitOwner(Configured, Protocol):
    """What a usage limit asks of its agent."""

    @property
    def profile(self) -> Profile: ...

    @property
    def activity(self) -> Activity:
        """What the program does besides, UNKNOWN if it has not been looked at."""
        ...

    async def limit_over(self) -> None:
        """Messages may be given again."""
        ...


class ParkOwner(Configured, Protocol):
    """What the parking asks of its agent."""

    @property
    def seen(self) -> LinkObserved | None:
        """The last observation of a running program."""
        ...


class PromptOwner(Protocol):
    """What is done about an agent's prompts beside them."""

    async def answer(self, text: str, prompt_id: str | None, origin: Origin = PERSON) -> None:
        """Answer whatever prompt is on the screen, in a task or not."""
        ...

    async def observe_again(self) -> None:
        """Look at what is asked once more."""
        ...


class StopOwner(Protocol):
    """The agent, as far as stopping a turn needs it."""

    @property
    def exit(self) -> LinkExited | None:
        """The last end of its program."""
        ...

    async def adopted(self) -> None:
        """Returns when the program is taken up. Raises StoreError where that cannot be written down now."""
        ...

    async def limit_over(self) -> None:
        """Messages may be given again."""
        ...


class ProgramOwner(Protocol):
    """What a program tells its agent. All are called in the actor."""

    def works_on_message(self) -> bool:
        """Whether a turn runs that a message began, and that nobody stops."""
        ...

    async def settle(self, exited: LinkExited, *, interrupted: bool) -> Commit | None:
        """What becomes of the turn in flight; committed together with the exit. `interrupted`: the program did not end
        by itself, it was taken down with its keeper, by a reboot, by the daemon's own end."""
        ...

    async def leaves(self, link: AgentLink) -> None:
        """It is about to be parked: what it shows is shown until it comes back."""
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
