"""Plans the launch of an agent's program from its record, its profile, the configuration and the other agents."""

import os
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from synapsed.agents import views
from synapsed.agents.briefing import colleague, instructions
from synapsed.agents.live_agent import Agent
from synapsed.agents.part_doors import PartDoors
from synapsed.channels.decision_ways import decides
from synapsed.channels.launch_additions import replaced_channels
from synapsed.config.config import Config
from synapsed.config.paths import Paths
from synapsed.errors import LaunchError, NotEnforced
from synapsed.interfaces import PersonSettings
from synapsed.keepers.launch_plan import LaunchPlan
from synapsed.model.attributes import ProcessAttributes
from synapsed.model.records import AgentRecord
from synapsed.model.released_names import RefusingRules
from synapsed.profiles.profile import Profile
from synapsed.supervisor import environment
from synapsed.supervisor.environment import with_env_file
from synapsed.supervisor.roster import Roster


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerSettings:
    """Settings that do not change while the daemon runs. `environ` is the daemon's own environment."""

    paths: Paths
    config: Config
    control_token: str
    environ: Mapping[str, str]
    tool_dir: Path | None
    """Directory of synapsectl."""
    attributes: ProcessAttributes = field(default_factory=ProcessAttributes)
    """Attributes that the daemon was started with."""
    mcp: bool = True
    """True if the packages for `synapsectl mcp` are installed: then programs get its address."""
    adapters: Callable[[], Collection[str] | None] = lambda: None
    """Returns the names of the adapters of side channels that are installed; None: all are."""
    on_config: Callable[[Config], None] = lambda _: None
    """Called whenever the configuration was read again."""


class Planner:
    """Plans launches. `listen` is the real address of the main listener, once it is known: the configuration may ask
    for any free port. `agents` has all agents, by id."""

    def __init__(
        self, settings: ManagerSettings, roster: Roster, agents: Mapping[str, Agent], doors: PartDoors
    ) -> None:
        self._doors = doors
        self._settings = settings
        self._roster = roster
        self._agents = agents
        self.listen = settings.config.api.listen

    def plan(self, record: AgentRecord, profile: Profile) -> LaunchPlan:
        """Returns the plan. Raises ProgramNotFound, ConfigError for an unreadable file of variables, NotEnforced."""
        settings, config = self._settings, self._roster.config_of(record)
        record = with_env_file(record, config.env_file, settings.paths.config)
        env = environment.agent_environment(
            record,
            profile,
            own=settings.environ,
            endpoint=self.endpoint(record),
            control_socket=settings.paths.control_socket,
            token=environment.agent_token(settings.control_token, record.id, record.generation),
            tool_dir=settings.tool_dir,
            rules=self._roster.config.environment,
        )
        command = config.command or profile.argv(sys.executable)[0]
        program = environment.find_program(
            command, cwd=record.cwd, env=env, profile=profile.name, install=profile.install
        )
        plan = environment.launch_plan(record, profile, program=program, env=env)
        args, judged = self._doors.settings(
            profile.settings, env=env, cwd=record.cwd, args=plan.args, replaced=replaced_channels(profile)
        )
        if not (record.without_approval or config.without_approval):
            refusing = self._doors.refusing(record.name, config)
            check_enforced(record.name, refusing, judged)
            check_decided(record.name, refusing, profile, settings.adapters())
        told = self._instructions(record, profile) if config.instructions else None
        if told is not None and judged.instructions:
            told = f"{judged.instructions}\n\n{told}"
        return replace(
            plan,
            args=args,
            limits=config.limits,
            attributes=self.attributes(record),
            mcp=config.mcp and settings.mcp,
            instructions=told,
            settings=judged,
        )

    def check(self, record: AgentRecord, profile: Profile) -> None:
        """Implements `LaunchPlanner.check`."""
        self._roster.library.get(record.profile)
        if not (Path(record.cwd).is_dir() and os.access(record.cwd, os.X_OK)):
            raise LaunchError(f"its folder {record.cwd} is not there, or cannot be entered", cwd=record.cwd)
        self.plan(record, profile)

    def attributes(self, record: AgentRecord) -> ProcessAttributes:
        """Returns the attributes of the agent's process: those of the shell that started it, else the daemon's own."""
        own = self._settings.attributes
        return own if record.attributes is None else record.attributes.over(own)

    def unusual(self, record: AgentRecord) -> str | None:
        """Returns the unusual attributes of the agent's process in one line (`ProcessAttributes.unusual`)."""
        return self.attributes(record).unusual(self._settings.attributes)

    def endpoint(self, record: AgentRecord) -> str:
        """Returns the agent's base URL: never one at which another program listens."""
        if record.port is not None and (host := self._roster.ports.host(record.port)) is not None:
            return f"http://{host}:{record.port}"
        return f"http://{self.listen}/agents/{record.name}"

    def _instructions(self, record: AgentRecord, profile: Profile) -> str | None:
        wanted = self._roster.config.instructions
        if not (wanted.enabled and profile.instructions.used):
            return None
        others = (
            colleague(other.record)
            for other in self._agents.values()
            if other.id != record.id and views.is_reachable(other)
        )
        mcp = profile.mcp.used and self._settings.mcp and self._roster.config_of(record).mcp
        return instructions(colleague(record), others, language=wanted.language, text=wanted.text, mcp=mcp)


_REFUSING: tuple[tuple[str, RefusingRules], ...] = (("deny rules", "deny"), ('default = "deny"', "default"))
_WAY_OUT = "start it with --without-approval (in the configuration: without_approval = true)"


def check_enforced(name: str, refusing: Collection[str], judged: PersonSettings) -> None:
    """Raises NotEnforced if a part of the agent's rules that may refuse a call would have no effect."""
    lost = [said for said, part in _REFUSING if part in refusing and part in judged.loses]
    if lost:
        raise NotEnforced(
            f"{name} is not started: its approval has {' and '.join(lost)}, which cannot be enforced: "
            f"{'; '.join(judged.lost_by)}; change that, or {_WAY_OUT}",
            agent=name,
            settings=list(judged.lost_by),
        )


def check_decided(name: str, refusing: Collection[str], profile: Profile, adapters: Collection[str] | None) -> None:
    """Raises NotEnforced if rules may refuse a call, but no question of the program would reach them: its profile names
    no way, or each way needs an adapter that is not installed. If the profile has variants, the program's version is
    not known yet: it is enough if one variant has a way, and the right variant is checked before the program starts."""
    profiles = [profile, *profile.variants]
    for said, part in _REFUSING:
        if part not in refusing or any(decides(each, part, adapters) for each in profiles):
            continue
        if any(decides(each, part, None) for each in profiles):
            needed = next(
                channel.adapter for each in profiles for channel in each.channels.values() if channel.decisions
            )
            why = f"the part of synapsed by which its program asks is not installed (adapter {needed!r}); install it"
        else:
            why = (
                f"its profile {profile.name!r} has no way by which its program asks before it acts and takes a refusal "
                "(ACP, or a channel with 'decisions'); what is only on a screen is a person's to answer. Remove them"
            )
        raise NotEnforced(
            f"{name} is not started: its approval has {said}, which cannot be enforced: {why}, or {_WAY_OUT}",
            agent=name,
        )
