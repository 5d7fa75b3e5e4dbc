"""Interfaces for an agent's launches: planning one, launching the program, finding it again, cleaning up after it."""

import asyncio
from collections.abc import Awaitable, Callable, Container
from dataclasses import dataclass, field
from pathlib import Path
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
    """Plan of one launch."""

    program: str
    """It is run in place of the profile's command."""
    env: dict[str, str]
    """Environment, without the additions of the profile's channels."""
    conversation: str | None = None
    """Id for the profile's resume arguments: of an earlier conversation if `resumed`, else of a new one."""
    resumed: bool = False
    args: tuple[str, ...] = ()
    """Arguments that the person has given."""
    chosen: bool = False
    """True if the person's arguments choose the conversation: then the profile's `resume` arguments are left out."""
    limits: Limits = field(default_factory=Limits)
    attributes: ProcessAttributes = field(default_factory=ProcessAttributes)
    mcp: bool = True
    """True if the program gets the address of the MCP server."""
    instructions: str | None = None
    """Instructions for the program's model."""
    settings: PersonSettings = field(default_factory=PersonSettings)


class LaunchPlanner(Protocol):
    """Plans an agent's next launch."""

    def plan(self, record: AgentRecord, profile: Profile) -> LaunchPlan:
        """Returns the plan. Raises ProgramNotFound, and ConfigError for a file of variables that cannot be read."""

    def check(self, record: AgentRecord, profile: Profile) -> None:
        """Raises the errors of `plan`, LaunchError for a missing folder, and UnknownProfile. Called before a running
        program is ended for the next launch, so that it is not ended in vain."""

    def endpoint(self, record: AgentRecord) -> str:
        """Returns the agent's base URL."""


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """End of a program whose keeper is gone. `taken_down` is True if a reboot or a stop of services ended it: then it
    is started again, without regard to its restart policy."""

    exited: LinkExited
    taken_down: bool


class LinkFactory(Protocol):
    """Makes links, the daemon's objects for running programs. A link is returned unopened: the agent first stores the
    link's `launch`, then opens the link."""

    async def version(self, record: AgentRecord, profile: Profile, launch: LaunchPlan) -> str | None:
        """Returns the version that the program of `launch` reports; None if it reports none, or the profile has no way
        to ask. Never raises."""

    async def launch(self, record: AgentRecord, profile: Profile, launch: LaunchPlan) -> AgentLink:
        """Starts the program in `record.cwd` with the profile's arguments, those of its channels and `launch.args`,
        under a new keeper. Raises LaunchError."""

    async def adopt(self, record: AgentRecord, profile: Profile) -> AgentLink | None:
        """Returns the link to the launch in `record`, found by pid and start time, or None if its keeper is gone.
        `record.launch` is None if the daemon was killed between a launch and its recording: then the agent's directory
        shows if there is a keeper. If the program ended meanwhile, the link reports LinkExited after `open`."""

    async def strays(self, known: Container[str]) -> list[AgentRecord]:
        """Returns the agents that have a living program but are not among the ids `known`, those in the database. There
        are some if the database was removed or replaced while programs ran."""

    async def ended(self, record: AgentRecord) -> ProgramEnd:
        """Returns the known facts about the end of the launch of `record`, after `adopt` has returned None."""

    async def kept(self, checkpoint: Checkpoint, form: KeptForm) -> Shown:
        """Returns the kept screen, in `form`, of a program that does not run. Raises SynapsedError."""

    async def sweep(self, launch: LaunchRecord) -> int:
        """Ends the remaining processes of a launch whose keeper is gone. Returns their number."""


class LateLinks:
    """The factory that `make` returns when an agent first needs it: without agents, the rooms of links are not loaded.
    `agents` has a folder of each agent."""

    def __init__(self, make: Callable[[], Awaitable[LinkFactory]], agents: Path) -> None:
        self._make = make
        self._agents = agents
        self._made: LinkFactory | None = None
        self._making = asyncio.Lock()

    async def _links(self) -> LinkFactory:
        async with self._making:
            if self._made is None:
                self._made = await self._make()
            return self._made

    async def version(self, record: AgentRecord, profile: Profile, launch: LaunchPlan) -> str | None:
        return await (await self._links()).version(record, profile, launch)

    async def launch(self, record: AgentRecord, profile: Profile, launch: LaunchPlan) -> AgentLink:
        return await (await self._links()).launch(record, profile, launch)

    async def adopt(self, record: AgentRecord, profile: Profile) -> AgentLink | None:
        return await (await self._links()).adopt(record, profile)

    async def strays(self, known: Container[str]) -> list[AgentRecord]:
        there = await asyncio.to_thread(lambda: self._agents.is_dir() and any(self._agents.iterdir()))
        return await (await self._links()).strays(known) if there else []

    async def ended(self, record: AgentRecord) -> ProgramEnd:
        return await (await self._links()).ended(record)

    async def kept(self, checkpoint: Checkpoint, form: KeptForm) -> Shown:
        return await (await self._links()).kept(checkpoint, form)

    async def sweep(self, launch: LaunchRecord) -> int:
        return await (await self._links()).sweep(launch)
