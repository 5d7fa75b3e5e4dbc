"""The broker's unit: a service of its own beside the daemon's, under this machine's service manager."""

import fcntl
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Protocol

from synapsectl.context import CommandContext
from synapsectl.daemon_program import PACKAGES, daemon_command
from synapsectl.errors import REFUSED, CtlError
from synapsectl.service.available import this_machines
from synapsectl.service.files import WantedFile
from synapsectl.service.launchd import plist_words
from synapsectl.service.manager import Finished, NoServiceManager, run_tool
from synapsectl.service.settings import CARRIED, LOCALE, filled
from synapsectl.service.systemd import command_words, folder_line, quoted_word
from synapsectl.spawn import lasting_environment, spawn_detached

SERVICE = "synapsed-broker.service"
LABEL = "synapsed-broker"
UNITS = Path(__file__).parents[1] / "units"
"""Folder of both unit templates."""
STOP_S = 90.0
POLL_S = 0.05


class OtherHome(CtlError):
    exit_code = REFUSED
    code = "OTHER_HOME"


class BrokerService(Protocol):
    """Starts and stops the broker of this home."""

    name: str

    def install(self) -> None:
        """Writes and starts the service, and has it start with each session. Raises CtlError."""
        ...

    def restart(self) -> None: ...

    def remove(self) -> None:
        """Stops the service for good."""
        ...

    def is_installed(self) -> bool: ...

    def how_to_log(self) -> str: ...


def service_of(ctx: CommandContext) -> BrokerService:
    """Returns the service of this machine: systemd's, launchd's, or else a process of its own."""
    try:
        manager = this_machines(ctx.environ)
    except NoServiceManager:
        return BrokerProcess(ctx)
    if manager.problem() is not None:
        return BrokerProcess(ctx)
    return BrokerPlist(ctx) if manager.name == "launchd" else BrokerOfSystemd(ctx)


class BrokerOfSystemd:
    name = "systemd"

    def __init__(self, ctx: CommandContext) -> None:
        self._environ = ctx.environ
        self._paths = ctx.paths
        home = Path(ctx.environ.get("HOME") or Path.home())
        self._unit = Path(ctx.environ.get("XDG_CONFIG_HOME") or home / ".config") / "systemd" / "user" / SERVICE

    def install(self) -> None:
        file = self._file()
        there = file.current()
        if there is not None and self._mark() not in there:
            raise OtherHome(f"{self._unit} is the broker of another home of synapsed: stop that one first")
        if not file.is_current():
            file.write()
        self._do("daemon-reload")
        self._do("enable", SERVICE)
        self._do("restart", SERVICE)

    def restart(self) -> None:
        self._do("reload", SERVICE)

    def remove(self) -> None:
        if self.is_installed():
            self._do("stop", SERVICE)
            self._do("disable", SERVICE)
            self._file().remove()
            self._do("daemon-reload")
            self._systemctl("reset-failed", SERVICE)  # refused if there is no failure to forget

    def is_installed(self) -> bool:
        return self._mark() in (self._file().current() or "")

    def how_to_log(self) -> str:
        return f"journalctl --user -u {SERVICE}"

    def _file(self) -> WantedFile:
        variables = "\n".join(
            f"Environment={quoted_word(f'{name}={value}')}" for name, value in variables_of(self._environ).items()
        )
        values = {
            "HOME": self._mark(),
            "PACKAGES": folder_line(PACKAGES),
            "SYNAPSED": command_words(daemon_command()),
            "VARIABLES": variables,
        }
        return WantedFile(self._unit, filled(UNITS / SERVICE, values))

    def _mark(self) -> str:
        return f"of {self._paths.state / 'fleet'}"

    def _do(self, *arguments: str) -> None:
        done = self._systemctl(*arguments)
        if done.code != 0:
            raise CtlError(f"systemctl --user {' '.join(arguments)}: {done.err or done.out or done.code}")

    def _systemctl(self, *arguments: str) -> Finished:
        return run_tool(["systemctl", "--user", *arguments], self._environ)


class BrokerPlist:
    name = "launchd"

    def __init__(self, ctx: CommandContext) -> None:
        self._environ = ctx.environ
        self._paths = ctx.paths
        home = Path(ctx.environ.get("HOME") or Path.home())
        self._plist = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        self._domain = f"gui/{os.getuid()}"

    def install(self) -> None:
        file = self._file()
        there = file.current()
        if there is not None and self._log() not in there:
            raise OtherHome(f"{self._plist} is the broker of another home of synapsed: stop that one first")
        self._paths.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write()
        self._launchctl("bootout", f"{self._domain}/{LABEL}")  # refused if it is not loaded
        self._do("bootstrap", self._domain, str(self._plist))

    def restart(self) -> None:
        self._do("kill", "HUP", f"{self._domain}/{LABEL}")

    def remove(self) -> None:
        if self.is_installed():
            self._launchctl("bootout", f"{self._domain}/{LABEL}")
            self._file().remove()

    def is_installed(self) -> bool:
        return self._log() in (self._file().current() or "")

    def how_to_log(self) -> str:
        return "broker.log in the logs directory of the state"

    def _file(self) -> WantedFile:
        variables = "\n".join(
            f"    <key>{escape(name, quote=False)}</key>\n    <string>{escape(value, quote=False)}</string>"
            for name, value in variables_of(self._environ).items()
        )
        values = {
            "SYNAPSED": plist_words(daemon_command()),
            "PACKAGES": escape(PACKAGES, quote=False),
            "LOG": self._log(),
            "VARIABLES": variables,
        }
        return WantedFile(self._plist, filled(UNITS / f"{LABEL}.plist", values), 0o600)

    def _log(self) -> str:
        return escape(str(self._paths.logs / "broker-launchd.log"), quote=False)

    def _do(self, *arguments: str) -> None:
        done = self._launchctl(*arguments)
        if done.code != 0:
            raise CtlError(f"launchctl {' '.join(arguments)}: {done.err or done.out or done.code}")

    def _launchctl(self, *arguments: str) -> Finished:
        return run_tool(["launchctl", *arguments], self._environ)


class BrokerProcess:
    """Broker without a service manager: a process in a session of its own. It is not started again when the machine
    is."""

    name = "process"

    def __init__(self, ctx: CommandContext) -> None:
        self._ctx = ctx
        self._paths = ctx.paths
        self._lock = ctx.paths.state / "fleet" / "broker" / "lock"

    def install(self) -> None:
        if _holder(self._lock) is not None:
            return
        self._paths.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = os.open(
            self._paths.logs / "broker-process.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        command = daemon_command("broker", "--log-file")
        try:
            os.close(spawn_detached(command, lasting_environment(self._ctx), log))
        finally:
            os.close(log)

    def restart(self) -> None:
        pid = _holder(self._lock)
        if pid is None:
            self.install()
        else:
            os.kill(pid, signal.SIGHUP)

    def remove(self) -> None:
        pid = _holder(self._lock)
        if pid is None:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_S
        while _holder(self._lock) is not None:
            if time.monotonic() > deadline:
                raise CtlError(
                    f"the broker (pid {pid}) does not end: see 'synapsectl fleet broker status', then try again"
                )
            time.sleep(POLL_S)

    def is_installed(self) -> bool:
        return False

    def how_to_log(self) -> str:
        return str(self._paths.logs / "broker.log")


def variables_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the unit's environment, in which all paths are the same as for the person's tool."""
    kept = {name: environ[name] for name in ("PATH", *CARRIED, *LOCALE) if environ.get(name)}
    return {name: value for name, value in kept.items() if "\n" not in value}


def _holder(lock: Path) -> int | None:
    """Returns the pid that a lock's holder has written, None if the lock is free."""
    try:
        with lock.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(file.read() or b"0") or None
    except (OSError, ValueError):
        return None
    return None
