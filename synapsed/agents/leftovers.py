"""What a launch leaves behind that nobody saw to its end: a keeper that was not told so, processes without a keeper."""

from synapsed.agents.actor import Actor
from synapsed.errors import SynapsedError
from synapsed.keepers.launch_plan import LinkFactory
from synapsed.model.records import AgentRecord, LaunchRecord
from synapsed.profiles.profile import Profile


class Leftovers:
    def __init__(self, factory: LinkFactory, actor: Actor) -> None:
        self._factory = factory
        self._actor = actor

    async def dismiss(self, record: AgentRecord, profile: Profile) -> None:
        """Its exit is on record, but the last daemon may have been killed before it told the keeper so."""
        if (launch := record.launch) is None:
            return
        try:
            if await self._factory.adopt(record, profile) is not None:
                await self._factory.sweep(launch)
        except (SynapsedError, OSError) as error:
            self._actor.log.warning("the last keeper could not be dismissed", error=str(error))

    async def sweep(self, launch: LaunchRecord) -> None:
        """Nobody saw how it ended, so something of it may be left. That is ended before the exit is on record: the next
        daemon does not look for it again."""
        try:
            ended = await self._factory.sweep(launch)
        except (SynapsedError, OSError) as error:
            self._actor.log.error("processes are left over", error=str(error))  # noqa: TRY400
            return
        if ended:
            self._actor.log.warning("processes were left over and are ended", count=ended)
