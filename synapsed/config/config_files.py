"""Reads the user's configuration (docs/configuration.md), TOML in, frozen models out; and writes for `start --save`.

`config.toml` is the user's own and is never written. `agents.d/<name>.toml` holds one agent each, its keys at the top
level, read like `[agents.<name>]`. An unknown key is a ConfigError that names key, file, line and the nearest known
key: no key is accepted without effect.
"""

import difflib
import hashlib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import tomli_w
from pydantic import BaseModel, ValidationError

from synapsed.config.config import AgentConfig, Config, SectionFile, TeamConfig, agent_model
from synapsed.config.paths import Paths
from synapsed.config.toml_errors import describe_validation, parse_toml, unreadable
from synapsed.errors import ConfigError, InvalidRequest, StoreError
from synapsed.model.agent import validate_name
from synapsed.shared.files import check_absent, toml_files, write_private

_SAVED = "# By 'synapsectl start --save' ({}). 'synapsectl stop {} --remove' removes this, unless it was changed.\n"


def load_config(paths: Paths, model: type[Config] = Config) -> Config:
    """Returns the configuration (empty without files); `model` has the parts' sections. Raises ConfigError."""
    config = model()
    if (text := _read(paths.config_file)) is not None:
        config = _validate(paths.config_file, text, model)
    origin = dict.fromkeys(config.agents, paths.config_file)
    agents = dict(config.agents)
    for path in toml_files(paths.agents_d):
        if (text := _read(path)) is None:
            continue  # it was removed meanwhile
        if path.stem in agents:
            raise ConfigError(
                f"{path}: the agent {path.stem!r} is defined in {origin[path.stem]} already", file=str(path)
            )
        agents[path.stem] = _validate(path, text, agent_model(model))
        origin[path.stem] = path
    for name in agents:
        try:
            validate_name(name)
        except InvalidRequest as error:
            raise ConfigError(f"{origin[name]}: {error.message}", file=str(origin[name])) from None
    _check_ports(agents, origin)
    _check_dependencies(agents, origin)
    _check_teams(config.teams, agents, paths.config_file)
    files = {name: key.file for name, key in model.part_sections.items() if key.file is not None}
    completed = {name: _completed(getattr(config, name), file, paths) for name, file in files.items()}
    config = config.model_copy(update={"agents": agents, **completed})
    for wrong in (check(config) for check in model.part_checks):
        if wrong is not None:
            raise ConfigError(f"{paths.config_file}: {wrong}", file=str(paths.config_file))
    return config


def save_agent(paths: Paths, name: str, agent: AgentConfig) -> Path:
    """Writes `agents.d/<name>.toml`, 0600, without default values. Raises StoreError."""
    path = paths.agents_d / f"{validate_name(name)}.toml"
    data = agent.model_dump(exclude_defaults=True, exclude_none=True)
    write_private(path, _saved(name, tomli_w.dumps(data).encode()))
    return path


def _saved(name: str, text: bytes) -> bytes:
    """Returns `text` behind a line with its hash, by which a file that was changed, or copied, is told."""
    digest = hashlib.sha256(name.encode() + b"\n" + text).hexdigest()
    return _SAVED.format(digest[:16], name).encode() + text


def unsave_agent(paths: Paths, name: str) -> None:
    """Removes the file that `save_agent` has written; not one that a person wrote or changed. Raises StoreError."""
    path = paths.agents_d / f"{name}.toml"
    try:
        saved = path.read_bytes()
        if saved == _saved(name, saved.partition(b"\n")[2]):
            path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise StoreError(f"{path} cannot be removed, so the agent stays: {error.strerror}", file=str(path)) from error


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        check_absent(path)
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(unreadable(path, error), file=str(path)) from None


def _validate[M: BaseModel](path: Path, text: str, model: type[M]) -> M:
    data = parse_toml(text, path)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise ConfigError(describe_validation(error, path, text, model), file=str(path)) from None


def _completed(written: BaseModel | None, file: SectionFile, paths: Paths) -> BaseModel | None:
    """Returns a section completed with the keys of its own file that are not in config.toml."""
    path, section = paths.config / file.name, written
    if (text := _read(path)) is not None:
        beside = _validate(path, text, file.kind)
        section = beside if written is None else _overlaid(beside, written)
    if section is not None and (wrong := file.lacking(section, path)) is not None:
        raise ConfigError(f"{paths.config_file}: {wrong}", file=str(paths.config_file))
    return section


def _overlaid[M: BaseModel](below: M, above: M) -> M:
    """Returns `below` with the keys that are set in `above`; tables are merged key by key."""
    keys: dict[str, object] = {}
    for key in above.model_fields_set:
        old, new = getattr(below, key), getattr(above, key)
        keys[key] = _overlaid(old, new) if isinstance(old, BaseModel) and isinstance(new, BaseModel) else new
    return below.model_copy(update=keys)


def _check_dependencies(agents: dict[str, AgentConfig], origin: dict[str, Path]) -> None:
    for name, agent in agents.items():
        for other in agent.depends_on:
            if other not in agents:
                near = difflib.get_close_matches(other, agents, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                message = f"{origin[name]}: agent {name!r} depends on {other!r}, which is not configured{hint}"
                raise ConfigError(message, file=str(origin[name]))
    try:
        TopologicalSorter({name: agent.depends_on for name, agent in agents.items()}).prepare()
    except CycleError as error:
        around: list[str] = error.args[1]
        raise ConfigError(
            f"{origin[around[0]]}: agents depend on each other: {' on '.join(reversed(around))}",
            file=str(origin[around[0]]),
        ) from None


def _check_teams(teams: dict[str, TeamConfig], agents: dict[str, AgentConfig], file: Path) -> None:
    for name, team in teams.items():
        wrong = None
        try:
            for one in (name, *team.members):
                validate_name(one)
        except InvalidRequest as error:
            wrong = error.message
        if name in agents:
            wrong = f"there is an agent {name!r} already"
        elif nested := [member for member in team.members if member in teams]:
            wrong = f"{nested[0]!r} is a team itself: name its members"
        elif len(set(team.members)) < len(team.members):
            wrong = "a member stands there twice"
        if wrong is not None:
            raise ConfigError(f"{file}: teams.{name}: {wrong}", file=str(file))


def _check_ports(agents: dict[str, AgentConfig], origin: dict[str, Path]) -> None:
    taken: dict[int, str] = {}
    for name, agent in agents.items():
        if not agent.port:
            continue
        if (other := taken.setdefault(agent.port, name)) != name:
            raise ConfigError(
                f"{origin[name]}: agents {other!r} and {name!r} both want port {agent.port}", file=str(origin[name])
            )
