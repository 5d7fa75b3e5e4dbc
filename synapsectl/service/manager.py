"""The service managers, behind one interface, and which of them this machine has."""

import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from synapsectl.errors import REFUSED, CtlError
from synapsectl.service.files import WantedFile
from synapsectl.service.settings import ServiceSettings

TOOL_TIMEOUT_S = 120.0
"""A stop waits for the agents."""


class NoServiceManager(CtlError):
    exit_code = REFUSED
    code = "NO_SERVICE_MANAGER"


class Finished(NamedTuple):
    code: int
    out: str
    err: str


class State(NamedTuple):
    """Of the service, as its manager tells it."""

    installed: bool
    enabled: bool
    running: bool
    outdated: bool
    """It was started from what the files said before."""
    pid: int | None
    words: str


class ServiceManager(Protocol):
    """Installs, starts and stops the one service of this user."""

    name: str

    def problem(self) -> str | None:
        """Why nothing can be asked of it, for people; None: it answers."""
        ...

    def files(self, settings: ServiceSettings) -> list[WantedFile]:
        """Everything that is to be there."""
        ...

    def installed(self) -> list[WantedFile]:
        """The files of an installation that are there, whatever is in them."""
        ...

    def is_ours(self) -> bool:
        """Whether the service that is installed is that of this home: there may be several homes, but one service."""
        ...

    def state(self) -> State: ...

    def load(self) -> None:
        """The files have changed: read them, and have the service started with the session. Raises CtlError."""
        ...

    def start(self) -> None:
        """Raises CtlError with the service manager's words."""
        ...

    def restart(self) -> None: ...

    def unload(self) -> None:
        """Stop the service with its agents, and do not start it again."""
        ...

    def forget(self) -> None:
        """The files are gone."""
        ...

    def advice(self) -> list[tuple[str, str]]:
        """What a person still has to do, as (why, command)."""
        ...

    def how_to_log(self) -> str: ...


def run_tool(command: Sequence[str], environ: Mapping[str, str]) -> Finished:
    """Run a service manager's tool; it is never a failure of ours how it ends."""
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
