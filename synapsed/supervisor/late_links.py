"""Makes the factory of links when an agent first needs it: without agents, the rooms of links are not loaded."""

import asyncio
from collections.abc import Awaitable, Callable, Container
from pathlib import Path

from synapsed.interfaces import AgentLink
from synapsed.keepers.launch_plan import LaunchPlan, LinkFactory, ProgramEnd
from synapsed.model.picture import KeptForm, Shown
from synapsed.model.records import AgentRecord, Checkpoint, LaunchRecord
from synapsed.profiles.profile import Profile


class LateLinks:
    """Implements `launch_plan.LinkFactory` by the one that `make` returns. `agents` has a folder of each agent."""

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
