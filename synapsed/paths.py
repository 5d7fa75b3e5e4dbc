"""Where everything lives (docs/configuration.md). Standard library only: the person's tool imports it too, where
`sockets` is not enough.

`SYNAPSED_HOME=/dir` puts configuration, state and runtime files under one directory; else the XDG base directories
count. `SYNAPSED_A2A_HOME` moves `~/.a2a`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from synapsed.sockets import runtime_directory, socket_directory


class Paths(NamedTuple):  # a dataclass would cost every call of the person's tool 10 ms
    """The locations of one daemon."""

    config: Path
    state: Path
    run: Path
    a2a: Path

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ) -> "Paths":
        """Locations by `environ`; nothing is created."""
        user_home = Path(environ.get("HOME") or Path.home())
        a2a = Path(environ.get("SYNAPSED_A2A_HOME") or user_home / ".a2a")
        run = Path(runtime_directory(environ))
        if home := environ.get("SYNAPSED_HOME"):
            root = Path(home).absolute()
            return cls(config=root / "config", state=root / "state", run=run, a2a=a2a)
        config = Path(environ.get("XDG_CONFIG_HOME") or user_home / ".config") / "synapsed"
        state = Path(environ.get("XDG_STATE_HOME") or user_home / ".local" / "state") / "synapsed"
        return cls(config=config, state=state, run=run, a2a=a2a)

    @property
    def config_file(self) -> Path:
        return self.config / "config.toml"

    @property
    def agents_d(self) -> Path:
        """What `start --save` writes."""
        return self.config / "agents.d"

    @property
    def user_profiles(self) -> Path:
        return self.config / "profiles"

    @property
    def database(self) -> Path:
        return self.state / "synapsed.db"

    @property
    def history(self) -> Path:
        """What is searched; made of the database."""
        return self.state / "history.db"

    @property
    def token(self) -> Path:
        return self.state / "token"

    @property
    def metrics_token(self) -> Path:
        """A token that reads the metrics, and nothing else."""
        return self.state / "metrics-token"

    @property
    def traces_cursor(self) -> Path:
        """The event up to which traces were sent."""
        return self.state / "traces.cursor"

    @property
    def versions(self) -> Path:
        """What programs told of their versions."""
        return self.state / "versions.json"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def backups(self) -> Path:
        """Daily copies of the database."""
        return self.state / "backups"

    @property
    def lock(self) -> Path:
        return self.run / "lock"

    @property
    def control_socket(self) -> Path:
        """The daemon's Unix socket; in a short directory of its own where the runtime path is too long for one."""
        return self.sockets / "control.sock"

    @property
    def hooks_socket(self) -> Path:
        """Datagrams that wake the daemon for a new file in an agent's `hooks/new`."""
        return self.sockets / "hooks.sock"

    @property
    def decide_socket(self) -> Path:
        """Where hooks ask the daemon whether a tool may be used; beside `hooks_socket`."""
        return self.sockets / "decide.sock"

    @property
    def sockets(self) -> Path:
        """The directory of all sockets: `run`, or a short stand-in derived from it (OS_FACTS: long paths fail)."""
        return Path(socket_directory(os.fspath(self.run)))

    @property
    def keeper_sockets(self) -> Path:
        return self.sockets / "keepers"

    @property
    def registry(self) -> Path:
        return self.a2a / "registry"

    @property
    def external(self) -> Path:
        return self.a2a / "external"

    @property
    def hosts(self) -> Path:
        """What is known of other hosts."""
        return self.state / "hosts"

    @property
    def host_sockets(self) -> Path:
        """Other hosts' control sockets, as far as ssh has brought them here."""
        return self.sockets / "hosts"

    def inbox(self, agent_id: str) -> Path:
        """Files that came with messages for the agent."""
        return self.agent(agent_id) / "inbox"

    def agent(self, agent_id: str) -> Path:
        """The state directory of one agent: spool, journal, exit record, inbox, hooks."""
        return self.state / "agents" / agent_id
