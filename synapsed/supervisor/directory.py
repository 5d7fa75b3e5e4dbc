"""The directory of agents: finds and describes them (implements `interfaces.Directory`)."""

import asyncio
import hmac
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from synapsed.agents import views
from synapsed.agents.conversations import taken
from synapsed.agents.live_agent import Agent, agent_of
from synapsed.channels.past_conversations import find_conversations
from synapsed.errors import UnknownAgent
from synapsed.keepers.process_owner import Root, owner_of
from synapsed.model.agent import (
    AgentDetail,
    AgentView,
    ConversationAnswer,
    ProfileAnswer,
    RegistryEntry,
    Testimony,
    resolve,
    resolve_folder,
)
from synapsed.model.records import AgentRecord
from synapsed.profiles.library import ProfileLibrary
from synapsed.supervisor import environment
from synapsed.supervisor.carriers import Carriers
from synapsed.supervisor.launch_planner import ManagerSettings, Planner
from synapsed.supervisor.roster import Roster

LINUX = sys.platform == "linux"


class AgentDirectory:
    """`agents` has all agents of this daemon, by id; `carriers` know those of others."""

    def __init__(
        self,
        agents: Mapping[str, Agent],
        *,
        settings: ManagerSettings,
        library: ProfileLibrary,
        roster: Roster,
        planner: Planner,
        carriers: Carriers,
    ) -> None:
        self._agents = agents
        self._settings = settings
        self._library = library
        self._roster = roster
        self._planner = planner
        self._carriers = carriers
        self._tokens: dict[str, str] = {}

    def all(self) -> list[Agent]:
        return list(self._agents.values())

    def get(self, agent_id: str) -> Agent | None:
        return self._agents.get(agent_id)

    def admit(self, record: AgentRecord) -> None:
        """Makes the agent's token valid from now on."""
        self._tokens[self._token(record)] = record.id

    def dismiss(self, record: AgentRecord) -> None:
        self._tokens.pop(self._token(record), None)

    def _token(self, record: AgentRecord) -> str:
        return environment.agent_token(self._settings.control_token, record.id, record.generation)

    def in_conversations(self) -> dict[tuple[str, str], str]:
        """Returns names of agents by their profile and conversation."""
        return taken(agent.record for agent in self._agents.values())

    # --- Directory ---

    def agents(self) -> list[AgentView]:
        return [views.view_of(agent, self._planner.endpoint(agent.record)) for agent in self._agents.values()]

    def entries(self, agent_ids: Collection[str] | None = None) -> dict[str, RegistryEntry | None]:
        chosen = self._agents if agent_ids is None else agent_ids
        return {
            agent.id: views.entry_of(agent, self._planner.endpoint(agent.record)) if views.is_reachable(agent) else None
            for agent in (self._agents.get(agent_id) for agent_id in chosen)
            if agent is not None
        }

    async def believed(self, agent_ids: Iterable[str]) -> None:
        agents = [agent for agent_id in agent_ids if (agent := self._agents.get(agent_id)) is not None]
        await asyncio.gather(*(agent.believed() for agent in agents))

    def resolve(self, address: str, *, folders: bool = True) -> str:
        refs = [views.ref_of(agent) for agent in self._agents.values()]
        try:
            return resolve(address, refs).id
        except UnknownAgent:
            if (found := self._carriers.find(address)) is not None:
                return found
            if folders and (there := resolve_folder(address, refs)) is not None:
                return there.id
            raise

    def teams(self) -> dict[str, list[str]]:
        return {name: list(team.members) for name, team in self._roster.config.teams.items()}

    def agent_on_port(self, port: int) -> str | None:
        return next((agent.id for agent in self._agents.values() if agent.record.port == port), None)

    def view(self, agent_id: str) -> AgentView:
        agent = agent_of(self._agents, agent_id)
        return views.view_of(agent, self._planner.endpoint(agent.record))

    def detail(self, agent_id: str) -> AgentDetail:
        agent = agent_of(self._agents, agent_id)
        record = agent.record
        return views.detail_of(agent, self._planner.endpoint(record), self._planner.unusual(record))

    async def gone(self, agent_id: str) -> list[str]:
        record, rules = agent_of(self._agents, agent_id).record, self._roster.config.environment
        env = environment.stored(record, own=self._settings.environ, rules=rules)
        return sorted(await asyncio.to_thread(environment.gone, env))

    async def explain(self, agent_id: str) -> list[Testimony]:
        return await views.explanation_of(agent_of(self._agents, agent_id))

    def profiles(self, names: Collection[str] | None = None) -> list[ProfileAnswer]:
        wanted = self._library.names() if names is None else [name for name in self._library.names() if name in names]
        return [views.profile_row(self._library.get(name)) for name in wanted]

    async def conversations(
        self, home: str | None, *, profile: str | None, cwd: str | None, env: Mapping[str, str]
    ) -> list[ConversationAnswer]:
        names = [profile] if profile is not None else self._library.names()
        where = Path(home or self._settings.environ.get("HOME") or Path.home())
        found = await asyncio.to_thread(
            lambda: find_conversations([self._library.get(name) for name in names], where, cwd, env=env)
        )
        return views.conversation_rows(found, self.in_conversations())

    def roots(self) -> list[Root]:
        """Returns the launches of the running programs."""
        return [
            Root(agent.id, agent.record.launch)
            for agent in self._agents.values()
            if agent.record.launch is not None and agent.process.pid is not None
        ]

    async def process_of(self, pid: int) -> str | None:
        roots = self.roots()
        if LINUX:
            return owner_of(pid, roots, self._tokens)
        return await asyncio.to_thread(owner_of, pid, roots) if roots else None

    def granted(self, agent_id: str) -> frozenset[str]:
        return frozenset(agent.profile.rights) if (agent := self._agents.get(agent_id)) is not None else frozenset()

    def token_owner(self, token: str) -> str | None:
        given = token.encode()
        owners = (owner for known, owner in self._tokens.items() if hmac.compare_digest(known.encode(), given))
        return next(owners, None)
