"""The service under launchd, in the domain of the user's graphical session."""

import os
import plistlib
import re
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

from synapsectl.errors import CtlError
from synapsectl.service.files import WantedFile
from synapsectl.service.manager import Finished, State, run_tool
from synapsectl.service.settings import ServiceSettings, template
from synapsed import own_python
from synapsed.config.paths import Paths

LABEL = "synapsed"
LOG = "launchd.log"
"""Log of the daemon before it has its own log, or if it cannot write its own log."""


def plist_words(words: Iterable[str]) -> str:
    """Returns words of a command line, as elements of an array in a property list."""
    return "\n".join(f"    <string>{escape(word, quote=False)}</string>" for word in words)


class Launchd:
    """`manager.ServiceManager` over `launchctl`. Stopping the service ends the agents; a crash of the daemon does
    not."""

    name = "launchd"

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        home = Path(environ.get("HOME") or Path.home())
        self._plist = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        self._domain = f"gui/{os.getuid()}"

    def problem(self) -> str | None:
        asked = self._launchctl("print", self._domain)
        if asked.code == 0:
            return None
        return f"launchd has no session {self._domain} ({asked.err or asked.code}): log in at the screen as this user"

    def files(self, settings: ServiceSettings) -> list[WantedFile]:
        variables = "\n".join(
            f"    <key>{escape(name, quote=False)}</key>\n    <string>{escape(value, quote=False)}</string>"
            for name, value in settings.variables.items()
        )
        values = {
            "SYNAPSED": plist_words(own_python.command("synapsed.cli", python=settings.python)),
            "PACKAGES": escape(own_python.PACKAGES, quote=False),
            "LOG": escape(str(settings.paths.logs / LOG), quote=False),
            "VARIABLES": variables,
        }
        return [WantedFile(self._plist, template("launchd/synapsed.plist", values), 0o600)]

    def installed(self) -> list[WantedFile]:
        return [WantedFile(self._plist, "")] if self._plist.exists() else []

    def is_ours(self) -> bool:
        log = str(Paths.from_environ(self._environ).logs / LOG)
        return self._plist.exists() and plistlib.loads(self._plist.read_bytes()).get("StandardErrorPath") == log

    def state(self) -> State:
        asked = self._launchctl("print", f"{self._domain}/{LABEL}")
        pid = re.search(r"^\s*pid = (\d+)$", asked.out, re.MULTILINE)
        words = re.search(r"^\s*state = (.+)$", asked.out, re.MULTILINE)
        return State(
            installed=self._plist.exists(),
            enabled=asked.code == 0,
            running=pid is not None,
            outdated=False,  # `load` starts it again
            pid=int(pid[1]) if pid else None,
            words=words[1] if words else "not loaded",
        )

    def load(self) -> None:
        """Loads the service, which starts it as well: RunAtLoad."""
        if self.state().enabled:
            self._do("bootout", f"{self._domain}/{LABEL}")
        self._do("bootstrap", self._domain, str(self._plist))

    def start(self) -> None:
        self._do("kickstart", f"{self._domain}/{LABEL}")

    def restart(self) -> None:
        """Does nothing: `load` has restarted the service."""

    def unload(self) -> None:
        if self.state().enabled:
            self._do("bootout", f"{self._domain}/{LABEL}")

    def forget(self) -> None:
        """Does nothing: there is nothing to forget."""

    def advice(self) -> list[tuple[str, str]]:
        return []

    def how_to_log(self) -> str:
        return "synapsed.log in the logs directory of the state"

    def _do(self, *arguments: str) -> None:
        done = self._launchctl(*arguments)
        if done.code != 0:
            raise CtlError(f"launchctl {' '.join(arguments)}: {done.err or done.out or done.code}")

    def _launchctl(self, *arguments: str) -> Finished:
        return run_tool(["launchctl", *arguments], self._environ)
