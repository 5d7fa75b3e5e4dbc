"""A home of synapsed whose daemon is a service of a user manager."""

import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

import psutil

from tests.support.daemon import Ctl, Daemon, eventually
from tests.support.systemd import UserManager

__all__ = ["AGENT", "House"]

AGENT = "synapse-agent-dummy.service"


class ServedDaemon(Daemon):
    """A daemon that is reached in the usual ways, under the manager's user, and never started as a child."""

    def __init__(self, home: Path, manager: UserManager, config: str) -> None:
        super().__init__(home, environ=manager.env, config=config)

    @property
    def env(self) -> dict[str, str]:
        return {**super().env, "XDG_RUNTIME_DIR": self.environ["XDG_RUNTIME_DIR"]}


class House:
    """`daemon` is asked through its socket; `manager` is the user manager."""

    def __init__(
        self, manager: UserManager, config: str = '[api]\nlisten = "127.0.0.1:0"\nagent_ports = false\n'
    ) -> None:
        self.manager = manager
        home = manager.home / "h"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(mode=0o700)
        self.daemon = ServedDaemon(home, manager, config)

    def ctl(self, *arguments: str, env: Mapping[str, str] | None = None) -> Ctl:
        return self.daemon.ctl(*arguments, env=env)

    def install(self, *arguments: str) -> Ctl:
        done = self.ctl("install", *arguments)
        assert done.code == 0, done
        return done

    def up(self) -> int:
        """Installed, started by systemctl; its pid."""
        self.install()
        self.manager.systemctl("start", "synapsed")
        return self.pid

    @property
    def pid(self) -> int:
        return int(self.manager.show("synapsed.service", "MainPID"))

    def state(self, unit: str = "synapsed.service") -> str:
        return self.manager.show(unit, "ActiveState")

    def kill9(self) -> int:
        """Kill the daemon; the next one's pid, once that one answers."""
        before = self.pid
        os.kill(before, signal.SIGKILL)
        eventually(lambda: self.pid not in (0, before) and self.state() == "active", "the service is started again")
        return self.pid

    def gone(self) -> bool:
        """Nothing of synapsed's is left among the manager's processes."""
        return not self.processes()

    def processes(self) -> list[str]:
        found = []
        # Programs use the session's other services, a message bus for instance.
        for pid in self.manager.pids("synapse"):
            try:
                found.append(" ".join(psutil.Process(pid).cmdline()))
            except psutil.Error:
                continue
        return [command for command in found if command]

    def clear(self) -> None:
        self.manager.systemctl("reset-failed", check=False)
        done = self.ctl("uninstall")
        assert done.code == 0, done
        try:
            eventually(self.gone, "no process is left")
        except AssertionError:
            raise AssertionError(f"left over: {self.processes()}") from None
