"""Interfaces for an agent's launches: the plan of a launch, launching it, finding it again, and cleaning up after
it."""

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
    """The program to run: `program` in place of the profile's command, with exactly `env` and the additions of the
    profile's channels. `conversation` is the id for the profile's resume arguments: an earlier conversation if
    `resumed`, else a new one."""

    program: str
    env: dict[str, str]
    conversation: str | None = None
    resumed: bool = False
    args: tuple[str, ...] = ()
    """Arguments of the person's own."""
    chosen: bool = False
    """These arguments choose the conversation: none of the profile's `resume` is given."""
    limits: Limits = field(default_factory=Limits)
    attributes: ProcessAttributes = field(default_factory=ProcessAttributes)
    mcp: bool = True
    """True if the program gets the address of the MCP server."""
    instructions: str | None = None
    """Instructions for its model."""
    settings: PersonSettings = field(default_factory=PersonSettings)


class LaunchPlanner(Protocol):
    """Plans an agent's next launch."""

    def plan(self, record: AgentRecord, profile: Profile) -> LaunchPlan:
        """Returns the plan. Raises ProgramNotFound, and ConfigError for a file of variables that cannot be read."""
        ...

    def check(self, record: AgentRecord, profile: Profile) -> None:
        """Raises the errors of `plan`, LaunchError for a missing folder, and UnknownProfile. It is called before a
        running program is ended for the next one."""
        ...

    def endpoint(self, record: AgentRecord) -> str:
        """Returns the agent's base URL."""
        ...


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """End of a program whose keeper is gone. `taken_down`: it did not end by itself, but by a reboot or a stop of
    services, so that it is to be started again whatever its restart policy says."""

    exited: LinkExited
    taken_down: bool


class LinkFactory(Protocol):
    """Makes links. A link is returned unopened: the agent stores its `launch`, then opens it."""

    async def version(self, record: AgentRecord, profile: Profile, launch: LaunchPlan) -> str | None:
        """Returns the version that the program of `launch` reports; None if it reports none, or the profile has no way
        to ask. Never raises."""
        ...

    async def launch(self, record: AgentRecord, profile: Profile, launch: LaunchPlan) -> AgentLink:
        """Starts the program in `record.cwd` with the profile's arguments, those of its channels and `launch.args`,
        under a new keeper. Raises LaunchError."""
        ...

    async def adopt(self, record: AgentRecord, profile: Profile) -> AgentLink | None:
        """Returns the link to the launch in `record`, found by pid and start time, or None if its keeper is gone.

        `record.launch` is None if the daemon was killed between a launch and its recording: the agent's directory then
        says whether there is a keeper. The end of a program while no daemon ran is reported by LinkExited after `open`.
        """
        ...

    async def strays(self, known: Container[str]) -> list[AgentRecord]:
        """Returns the agents whose programs live, except those with the ids `known`: the database is another one by
        now."""
        ...

    async def ended(self, record: AgentRecord) -> ProgramEnd:
        """Returns the known facts about the end of the launch of `record`, which could not be adopted."""
        ...

    async def kept(self, checkpoint: Checkpoint, form: KeptForm) -> Shown:
        """Returns the kept screen of a program that does not run. Raises SynapsedError."""
        ...

    async def sweep(self, launch: LaunchRecord) -> int:
        """Ends the remaining processes of a launch whose keeper is gone. Returns their number."""
        ...
