"""Decides, purely, the changes that a new configuration makes: its differences to the old one, agent by agent.

The inputs of a launch cannot change while the program runs: such agents are restarted, when they are idle. The daemon's
own behaviour (reading the screen, the restart policy, approval) changes at once. An agent that is no longer configured
is stopped and stays listed. All other agents are not touched.
"""

from collections.abc import Callable, Iterable
from graphlib import TopologicalSorter

from pydantic import BaseModel

from synapsed.config.config import AgentConfig, Config, agent_model
from synapsed.interfaces import ConfigChange
from synapsed.model.records import AgentRecord
from synapsed.profiles.profile import Profile
from synapsed.supervisor.roster import resuming

LAUNCH_CONFIG = frozenset({"command", "cwd", "args", "env", "env_file", "limits", "mcp", "instructions"})
"""Keys of an agent's configuration that its launch uses."""

LAUNCH_PROFILE = frozenset({"command", "args", "env", "unset_env", "transport", "channels", "mcp", "instructions"})
"""Keys of a profile that a launch uses."""

UNSEEN = frozenset({"name", "source", "description", "verified", "unverified", "install", "ports"})
"""Keys of a profile that change nothing for an agent that exists."""

type ProfileOf = Callable[[str], Profile | None]


def differences(
    agents: Iterable[tuple[AgentRecord, bool]], old: Config, new: Config, before: ProfileOf, after: ProfileOf
) -> list[ConfigChange]:
    """Returns the changes that bring `agents` (each with True if it lives) to the state of `new`; `before` and `after`
    return the profiles. In the order of the names."""
    model = agent_model(type(new))
    known = {record.name: (record, live) for record, live in agents}
    found: list[ConfigChange | None] = [
        _of_daemon("[api]", old.api, new.api),
        _of_daemon("[a2a]", old.a2a.model_copy(update={"push": new.a2a.push}), new.a2a),
        _of_daemon("[a2a.push]", old.a2a.push, new.a2a.push),
        *(
            _of_daemon(f"[{name}]", getattr(old, name), getattr(new, name))
            for name, key in new.part_sections.items()
            if key.restart
        ),
        _of_daemon("[outgoing]", old.outgoing, new.outgoing),
        _of_daemon("[store]", old.store, new.store),
        *_at_once(old, new),
    ]
    for name, (record, live) in known.items():
        config = new.agents.get(name)
        if config is None and record.from_config:
            found.append(ConfigChange(name, "stop" if live else "update", "it is configured no more"))
        elif config is not None and record.profile != (config.profile or name):
            reason = f"it is of profile {record.profile!r}: 'synapsectl stop --remove {name}' it first"
            found.append(ConfigChange(name, "refused", reason))
        else:
            now = config or model()
            was = old.agents.get(name, model()) if record.from_config else _by_hand(record, config, model)
            found.append(_of_one(name, live, was, now, before(record.profile), after(record.profile)))
    for name, config in new.agents.items():
        if name not in known:
            found.append(ConfigChange(name, "start" if config.autostart else "add", "it is new"))
    return sorted((change for change in found if change is not None), key=lambda change: change.agent or "")


def _by_hand(record: AgentRecord, config: AgentConfig | None, model: type[AgentConfig]) -> AgentConfig:
    """Returns the configuration of an agent started by hand (and perhaps saved), as far as `config` covers it."""
    if config is None:
        return model()
    return model(
        profile=record.profile if config.profile is not None else None,
        cwd=record.cwd if config.cwd is not None else None,
        port=(record.port or False) if config.port is not None else None,
        args=record.args,
        accept_agents=record.accept_agents,
        without_approval=record.without_approval,
        prompt=record.prompt,
        env=record.extra_env,
        **(resuming(model) if record.resume_at_reset else {}),
    )


def _of_daemon(section: str, old: BaseModel | None, new: BaseModel | None) -> ConfigChange | None:
    """Returns the change of settings that a daemon reads only at its start."""
    if old is None or new is None:
        reason = f"{section} counts after a restart of the daemon"
        return ConfigChange(None, "daemon", reason) if old is not new else None
    keys = _changed(old, new)
    counts = "counts" if len(keys) == 1 else "count"
    reason = f"{section} {', '.join(keys)} {counts} after a restart of the daemon"
    return ConfigChange(None, "daemon", reason) if keys else None


def _at_once(old: Config, new: Config) -> list[ConfigChange]:
    """Returns the changes that take effect at once for all agents."""
    words: list[str] = []
    for name, key in new.part_sections.items():
        before, after = getattr(old, name), getattr(new, name)
        if before != after and not key.restart:
            words += [f"[{name}] changed"] if key.changes is None else key.changes(before, after)
    changes = [ConfigChange(None, "update", word) for word in words]
    sections = (
        ("[attach]", old.attach != new.attach),
        ("[instructions]", old.instructions != new.instructions),
        ("[teams]", old.teams != new.teams),
        ("[environment]", old.environment != new.environment),
    )
    changes += [ConfigChange(None, "update", f"{section} changed") for section, changed in sections if changed]
    return changes


def _of_one(
    name: str, live: bool, was: AgentConfig, now: AgentConfig, before: Profile | None, after: Profile | None
) -> ConfigChange | None:
    config = _changed(was, now)
    profile = [key for key in _changed(before, after) if key not in UNSEEN] if before and after else []
    if not config and not profile:
        return None
    reason = "; ".join(
        f"{of}{', '.join(keys)} changed" for of, keys in (("", config), ("of its profile ", profile)) if keys
    )
    if live and (LAUNCH_CONFIG & set(config) or LAUNCH_PROFILE & set(profile)):
        return ConfigChange(name, "restart", reason)
    if not live and now.autostart and not was.autostart:
        return ConfigChange(name, "start", reason)
    return ConfigChange(name, "update", reason)


def _changed(before: BaseModel, after: BaseModel) -> list[str]:
    """Returns the keys whose values differ, sorted."""
    fields = type(before).model_fields
    return sorted(key for key in fields if getattr(before, key) != getattr(after, key))


def in_layers(config: Config, names: Iterable[str]) -> list[list[str]]:
    """Returns `names` in the order of their start: each layer after those that it depends on, also indirectly through
    agents that are not among `names`."""
    wanted = list(names)
    sorter = TopologicalSorter({name: agent.depends_on for name, agent in config.agents.items()})
    for name in wanted:
        sorter.add(name)
    sorter.prepare()
    layers = []
    while sorter.is_active():
        ready = sorter.get_ready()
        sorter.done(*ready)
        layers.append([name for name in wanted if name in ready])
    return [layer for layer in layers if layer]
