"""Names and ports in use, and the records of agents made from requests and configuration."""

import asyncio
import os
from collections.abc import Callable
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal

import structlog

from synapsed.clock import Clock
from synapsed.config.config import AgentConfig, Config, agent_model
from synapsed.config.config_files import save_agent, unsave_agent
from synapsed.config.paths import Paths
from synapsed.errors import InvalidRequest, NameTaken, StoreError, SynapsedError
from synapsed.interfaces import StartRequest
from synapsed.model.agent import agent_id, folder_in_name, validate_name
from synapsed.model.records import AgentRecord
from synapsed.model.released_names import RESUME_AT_RESET
from synapsed.model.task import new_id
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile
from synapsed.supervisor.ports import COMMON, Ports

log = structlog.stdlib.get_logger("synapsed.roster")


class Roster:
    """Takes names and ports without waiting, so that two requests at once never get the same."""

    def __init__(
        self,
        config: Config,
        profiles: ProfileLibrary,
        clock: Clock,
        on_config: Callable[[Config], None] = lambda _: None,
    ) -> None:
        """`on_config` gets each later configuration."""
        self.config = config
        """The present configuration; `become` replaces it."""
        self._model = agent_model(type(config))
        self._defaults, self._resuming = self._model(), self._model(**resuming(self._model))
        self._on_config = on_config
        self.library = profiles
        self._clock = clock
        self._names: set[str] = set()
        self.ports = Ports(listen=config.api.agent_ports)

    def config_of(self, record: AgentRecord) -> AgentConfig:
        """Returns the agent's configuration; for one started by hand, the defaults with its request's values."""
        found = self.config.agents.get(record.name) if record.from_config else None
        return found or (self._resuming if record.resume_at_reset else self._defaults)

    def restore(self, known: list[AgentRecord]) -> list[AgentRecord]:
        """Returns the agents of the last daemon, brought up to date with the configuration, and the newly configured
        ones, which are stopped. All have their names and ports."""
        for record in known:
            record.from_config = False
            self._names.add(record.name)
            if record.port is not None:
                self.ports.reclaim(record.name, record.port)
        by_name = {record.name: record for record in known}
        records = list(known)
        for name, config in self.config.agents.items():
            try:
                if name not in by_name:
                    by_name[name] = self._configured(name, config)
                    records.append(by_name[name])
                _configure(by_name[name], name, config)
            except SynapsedError as error:
                log.error("a configured agent cannot be made", agent=name, why=error.message)  # noqa: TRY400
        return records

    def become(self, config: Config) -> None:
        """Sets `config` from now on; `configured` makes records of it."""
        self.config = config
        self._on_config(config)

    def configured(self, name: str, record: AgentRecord | None) -> AgentRecord:
        """Returns the record that an agent should have: a new one, or `record` brought up to date, also if the agent is
        no longer configured. Raises InvalidRequest, PortsExhausted."""
        if (config := self.config.agents.get(name)) is None:
            assert record is not None, "only an agent that is there is left out of a new configuration"
            return record.model_copy(update={"from_config": False})
        made = self._configured(name, config) if record is None else record.model_copy()
        _configure(made, name, config)
        return made

    def enter(self, request: StartRequest, profile: Profile) -> AgentRecord:
        """Returns the record of a new agent; takes its name and its port, or raises and takes neither. Raises
        InvalidRequest, NameTaken, PortsExhausted."""
        cwd = Path(request.cwd or Path.home()).expanduser()
        if not cwd.is_absolute() or not cwd.is_dir():
            raise InvalidRequest(f"the working directory {cwd} is no directory with an absolute path", cwd=str(cwd))
        if request.name is not None and validate_name(request.name) in self._names:
            raise NameTaken(
                f"there is an agent {request.name!r} already: choose another name, or end that one with "
                f"'synapsectl stop {request.name} --remove'",
                name=request.name,
            )
        port = self._claim(request.name or profile.name, request.port, profile)
        name = request.name or self._free_name(profile.name, port, cwd)
        if name in self._names:
            self._release(port)
            raise NameTaken(f"there is an agent {name!r} already: choose another name with --name", name=name)
        if port is not None:
            self.ports.rename(port, name)
        identity = agent_id(profile.name, port, name)
        self._names.add(name)
        return AgentRecord(
            id=identity,
            name=name,
            profile=profile.name,
            port=port,
            cwd=str(cwd),
            args=list(request.args),
            env=request.env,
            extra_env=request.extra_env,
            attributes=request.attributes,
            cols=request.cols,
            rows=request.rows,
            accept_agents=request.accept_agents,
            without_approval=request.without_approval,
            prompt=request.prompt,
            resume_at_reset=request.resume_at_reset,
            created_at=self._clock.wall(),
            generation=os.urandom(8).hex(),
            **_adopted(request),
        )

    async def save_started(self, paths: Paths, record: AgentRecord, request: StartRequest) -> None:
        """Writes a started agent to `agents.d`, with the variables of `--env`, but without the environment of the
        caller's shell. Raises StoreError."""
        config = self._model(
            profile=record.profile,
            cwd=record.cwd,
            args=list(request.args),
            env=dict(request.extra_env),
            port=False if record.port is None else record.port,
            autostart=True,
            accept_agents=record.accept_agents,
            without_approval=record.without_approval,
            prompt=record.prompt,
            **(resuming(self._model) if record.resume_at_reset else {}),
        )
        try:
            path = await asyncio.to_thread(save_agent, paths, record.name, config)
        except StoreError as error:
            raise StoreError(
                f"agent {record.name!r} runs but is not saved: {error.message}", **error.details
            ) from error
        log.info("agent saved", agent=record.name, file=str(path))

    async def unsave(self, paths: Paths, name: str) -> None:
        """Removes the file of `save_started`, unless other agents depend on that one. Raises StoreError."""
        if not any(name in other.depends_on for other in self.config.agents.values()):
            await asyncio.to_thread(unsave_agent, paths, name)

    def leave(self, record: AgentRecord) -> None:
        """Frees the agent's name and port."""
        self._names.discard(record.name)
        self._release(record.port)

    def _free_name(self, profile: str, port: int | None, cwd: Path) -> str:
        """Returns the profile's name; if that is in use, the name of the folder is added to it. If the folder's name is
        of no use, the port is added, or without a port a number."""
        if profile not in self._names:
            return profile
        folder = folder_in_name(cwd, home=Path.home())
        if folder is not None:
            named = f"{profile}-{folder}"
        elif port is not None:
            return f"{profile}-{port}"
        else:
            named = profile
        if named not in self._names:
            return named
        return next(name for number in count(2) if (name := f"{named}-{number}") not in self._names)

    def _release(self, port: int | None) -> None:
        if port is not None:
            self.ports.release(port)

    def _claim(self, name: str, port: int | Literal[False] | None, profile: Profile) -> int | None:
        """Returns the port that the agent has from now on: `port`, or one of the profile's range or of the common
        range; None if `port` is False."""
        if port is False:
            return None
        if port is not None:
            return self.ports.claim(name, [port], listed=str(port))
        low, high = profile.ports
        own = range(low, high + 1)
        wanted = chain(own, (one for one in COMMON if one not in own))
        listed = f"{low} to {high} (profile {profile.name}) or {COMMON[0]} to {COMMON[-1]}"
        return self.ports.claim(name, wanted, listed=listed)

    def _configured(self, name: str, config: AgentConfig) -> AgentRecord:
        profile = self.library.get(config.profile or name)
        port = self._claim(name, config.port, profile)
        self._names.add(name)
        return AgentRecord(
            id=agent_id(profile.name, port, name),
            name=name,
            profile=profile.name,
            port=port,
            cwd=str(Path.home()),
            cols=profile.cols,
            rows=profile.rows,
            desired="stopped",
            created_at=self._clock.wall(),
            generation=os.urandom(8).hex(),
        )


def resuming(model: type[AgentConfig]) -> dict[str, Any]:
    """Returns the configuration of an agent started with `resume_at_reset`: the keys that an installed part has."""
    return {key: value for key, value in RESUME_AT_RESET.items() if key in model.model_fields}


def _adopted(request: StartRequest) -> dict[str, Any]:
    if request.conversation is None:
        return {}
    return {"conversation": request.conversation, "said": True, "context_id": new_id()}


def _configure(record: AgentRecord, name: str, config: AgentConfig) -> None:
    """Applies the configuration, from the next launch on. Profile and port are part of the agent's id and stay. Raises
    InvalidRequest if the agent of that name is of another profile."""
    if record.profile != (config.profile or name):
        raise InvalidRequest(f"there is an agent {name!r} of profile {record.profile!r}: 'stop --remove' it first")
    record.from_config = True
    record.accept_agents = config.accept_agents
    record.without_approval = config.without_approval
    record.prompt = config.prompt
    record.args = list(config.args)
    record.extra_env = dict(config.env)
    record.env, record.connection = None, {}
    if config.cwd is not None:
        record.cwd = str(Path(config.cwd).expanduser())
    if config.port is not None and (config.port or None) != record.port:
        log.warning("the new port counts after 'stop --remove'", agent=name, port=record.port, new=config.port)
