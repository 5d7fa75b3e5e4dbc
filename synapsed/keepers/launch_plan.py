"""The seam around an agent's launches: what is run, and how it is launched, found again, and cleaned up after."""

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Protocol

from synapsed.config.config import Limits
from synapsed.interfaces import AgentLink, PersonSettings
from synapsed.model.attributes import ProcessAttributes
from synapsed.model.link import LinkExited
from synapsed.model.picture import KeptForm, Shown
from synapsed.model.records import AgentRecord, Checkpoint, LaunchRecord
from synapsed.profiles.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """What to run: `program` in place of the profile's command, with exactly `env` but for what the profile's channels
    add. `conversation` is the id for the profile's resume arguments: of an earlier conversation where `resumed`, else
    of a new one."""

    program: str
    env: dict[str, str]
    conversation: str | None = None
    resumed: bool = False
    args: tuple[str, ...] = ()
    """The person's own."""
    chosen: bool = False
    """These choose the conversation: none of the profile's `resume` is given."""
    limits: Limits = field(default_factory=Limits)
    attributes: ProcessAttributes = field(default_factory=ProcessAttributes)
    mcp: bool = True
    """Whether the program is told of the MCP server."""
    instructions: str | None = None
    """What its model is told."""
    settings: PersonSettings = field(default_factory=PersonSettings)


class LaunchPlanner(Protocol):
    """Says what an agent's next launch runs."""

    def plan(self, record: AgentRecord, profile: Profile) -> LaunchPlan:
        """Raises ProgramNotFound, and ConfigError for a file of variables that cannot be read."""
        ...

    def check(self, record: AgentRecord, profile: Profile) -> None:
        """Raises what `plan` raises, LaunchError for a folder that is not there, and UnknownProfile: before a program
        that runs is ended for the next one."""
        ...

    def endpoint(self, record: AgentRecord) -> str:
        """The agent's base URL."""
        ...


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How a program ended whose keeper is gone. `taken_down`: not by itself, but by a reboot or by whoever stops
    services, so that it is to be started again whatever its restart policy says."""

    exited: LinkExited
    taken_down: bool


class LinkFactory(Protocol):
    """Makes links. A link is returned unopened: the agent stores its `launch`, then opens it."""

    async def version(self, record: AgentRecord, profile: Profile, launch: LaunchPlan) -> str | None:
        """The version of the program that `launch` would run, as it tells it; None where it does not, or the profile
        does not say how it is asked. Never raises."""
        ...

    async def launch(self, record: AgentRecord, profile: Profile, launch: LaunchPlan) -> AgentLink:
        """Start the program in `record.cwd` with the profile's arguments, those of its channels and `launch.args`,
        under a new keeper. Raises LaunchError."""
        ...

    async def adopt(self, record: AgentRecord, profile: Profile) -> AgentLink | None:
        """The link to the launch that `record` tells of, found by pid and start time, or None if its keeper is gone.

        `record.launch` is None where the daemon was killed between a launch and its recording: the agent's directory
        says whether there is a keeper. A program that ended while nobody looked is told by LinkExited after `open`.
        """
        ...

    async def strays(self, known: Container[str]) -> list[AgentRecord]:
        """The agents whose programs live, but for those with the ids `known`: the database is another one by now."""
        ...

    async def ended(self, record: AgentRecord) -> ProgramEnd:
        """What is known of the end of the launch of `record`, which could not be adopted."""
        ...

    async def kept(self, checkpoint: Checkpoint, form: KeptForm) -> Shown:
        """What the screen shows that was kept, of a program that does not run. Raises SynapsedError."""
        ...

    async def sweep(self, launch: LaunchRecord) -> int:
        """End what is left of a launch whose keeper is gone; how many processes that were."""
        ...
