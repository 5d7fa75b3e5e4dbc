"""The paths of all files (docs/configuration.md). It uses the standard library only, because the person's tool imports
it too, if `sockets` is not enough.

`SYNAPSED_HOME=/dir` puts configuration, state and runtime files under one directory; else the XDG base directories
count. `SYNAPSED_A2A_HOME` moves `~/.a2a`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from synapsed.config.sockets import runtime_directory, socket_directory


class _Below:
    """A place of fixed name below another one of `Paths`."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self._name = name

    def __get__(self, paths: "Paths", owner: type["Paths"]) -> Path:
        folder: Path = getattr(paths, self._folder)
        return folder / self._name


class _Roots(NamedTuple):  # a dataclass would cost every call of the person's tool 10 ms
    config: Path
    state: Path
    run: Path
    a2a: Path


class Paths(_Roots):
    """The locations of one daemon."""

    __slots__ = ()

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ) -> "Paths":
        """Returns the locations by `environ`; nothing is created."""
        user_home = Path(environ.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - it never raises
        a2a = Path(environ.get("SYNAPSED_A2A_HOME") or user_home / ".a2a")
        run = Path(runtime_directory(environ))
        if home := environ.get("SYNAPSED_HOME"):
            root = Path(home).absolute()
            return cls(config=root / "config", state=root / "state", run=run, a2a=a2a)
        config = Path(environ.get("XDG_CONFIG_HOME") or user_home / ".config") / "synapsed"
        state = Path(environ.get("XDG_STATE_HOME") or user_home / ".local" / "state") / "synapsed"
        return cls(config=config, state=state, run=run, a2a=a2a)

    config_file = _Below("config", "config.toml")
    agents_d = _Below("config", "agents.d")
    """Files that `start --save` writes."""
    user_profiles = _Below("config", "profiles")
    database = _Below("state", "synapsed.db")
    token = _Below("state", "token")
    acts = _Below("state", "acts.jsonl")
    """Actions with the keys that their callers gave them, so that each is typed once."""
    versions = _Below("state", "versions.json")
    """Versions that programs reported."""
    logs = _Below("state", "logs")
    backups = _Below("state", "backups")
    """Daily copies of the database."""
    lock = _Below("state", "daemon.lock")
    """Lock of the daemon that uses this state; its content says where that daemon listens (`lock_record`)."""
    run_lock = _Below("run", "lock")
    """Lock of the daemon that has its sockets in `run`; the only lock of daemons before 0.2."""
    control_socket = _Below("sockets", "control.sock")
    """The daemon's Unix socket; in a short directory of its own if the runtime path is too long for one."""
    hooks_socket = _Below("sockets", "hooks.sock")
    """Datagrams that wake the daemon for a new file in an agent's `hooks/new`."""
    decide_socket = _Below("sockets", "decide.sock")
    """Socket on which hooks ask the daemon for a decision on a tool; beside `hooks_socket`."""
    keeper_sockets = _Below("sockets", "keepers")
    registry = _Below("a2a", "registry")
    kept_files = _Below("state", "fleet/files")
    """Files of messages to other hosts, and of messages from them."""

    @property
    def sockets(self) -> Path:
        """Directory of all sockets: `run`, or a short stand-in derived from it, because long paths cannot be bound."""
        return Path(socket_directory(os.fspath(self.run)))

    def inbox(self, agent_id: str) -> Path:
        """Returns the directory of files that came with messages for the agent."""
        return self.agent(agent_id) / "inbox"

    def agent(self, agent_id: str) -> Path:
        """Returns the state directory of one agent: spool, journal, exit record, inbox, hooks."""
        return self.state / "agents" / agent_id
