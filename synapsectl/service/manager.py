"""The interface to the service managers, and running their tools."""

import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from synapsectl.errors import REFUSED, CtlError
from synapsectl.service.files import WantedFile
from synapsectl.service.settings import ServiceSettings

TOOL_TIMEOUT_S = 120.0
"""Seconds for a tool, since a stop waits for the agents."""


class NoServiceManager(CtlError):
    exit_code = REFUSED
    code = "NO_SERVICE_MANAGER"


class Finished(NamedTuple):
    code: int
    out: str
    err: str


class State(NamedTuple):
    """State of the service, as its manager reports it."""

    installed: bool
    enabled: bool
    running: bool
    outdated: bool
    """True if the service was started from former contents of the files."""
    pid: int | None
    words: str


class ServiceManager(Protocol):
    """Installs, starts and stops the one service of this user."""

    name: str

    def problem(self) -> str | None:
        """Returns the reason why the manager cannot be used, for people; None if it answers."""
        ...

    def files(self, settings: ServiceSettings) -> list[WantedFile]:
        """Returns all wanted files."""
        ...

    def installed(self) -> list[WantedFile]:
        """Returns the present files of an installation, with any content."""
        ...

    def is_ours(self) -> bool:
        """Returns True if the installed service is that of this home: there may be several homes, but one service."""
        ...

    def state(self) -> State: ...

    def load(self) -> None:
        """Reads changed files, and makes the service start with the session. Raises CtlError."""
        ...

    def start(self) -> None:
        """Starts the service. Raises CtlError with the service manager's words."""
        ...

    def restart(self) -> None: ...

    def unload(self) -> None:
        """Stops the service with its agents, and does not start it again."""
        ...

    def forget(self) -> None:
        """Makes the manager forget the service, after its files are gone."""
        ...

    def advice(self) -> list[tuple[str, str]]:
        """Returns the remaining actions for a person, as (reason, command)."""
        ...

    def how_to_log(self) -> str: ...


def run_tool(command: Sequence[str], environ: Mapping[str, str]) -> Finished:
    """Runs a service manager's tool; its exit code is never an error here."""
    try:
        done = subprocess.run(
            command,
            env={**environ, "LC_ALL": "C.UTF-8", "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TOOL_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Finished(127, "", str(error))
    return Finished(done.returncode, done.stdout.strip(), done.stderr.strip())
