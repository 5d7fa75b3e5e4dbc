"""The service in systemd's user manager. The arrangement of the units is explained in docs/service.md."""

import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from synapsectl.errors import CtlError
from synapsectl.output import is_text, named
from synapsectl.service.files import WantedFile
from synapsectl.service.manager import Finished, State, run_tool
from synapsectl.service.settings import ServiceSettings, env_file, template, user_env_file
from synapsed import own_python
from synapsed.config.paths import Paths
from synapsed.keeper.processes import lived_s, start_mark
from synapsed.process.file_owners import user_name
from synapsed.process.loopback import host_port, other

SERVICE = "synapsed.service"
TARGET = "synapse-agents.target"
CONTROL = "synapsed-control.socket"
HTTP = "synapsed-http.socket"
HTTP6 = "synapsed-http6.socket"
AGENTS = "synapse-agent-*.service"
UNITS = (SERVICE, TARGET, CONTROL, HTTP, HTTP6)
BOOTED = Path("/run/systemd/system")
"""Folder that exists if systemd has started this machine (sd_booted(3))."""
AS_ARGUMENT = ("/bin/sh", "-c", 'exec "$0" "$@"')
LINGER = Path("/var/lib/systemd/linger")


class Systemd:
    """`manager.ServiceManager` over `systemctl --user`."""

    name = "systemd"

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._paths = Paths.from_environ(environ)
        home = Path(environ.get("HOME") or Path.home())
        self._units = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "systemd" / "user"

    def problem(self) -> str | None:
        asked = self._systemctl("show-environment")
        if asked.code == 0:
            return None
        told = asked.err or asked.code
        if not BOOTED.is_dir():
            return f"systemd does not run here ({told}): start, run and send start a daemon when they need one"
        return (
            f"systemd's user manager does not answer ({told}): log in as this user (su and sudo do "
            f"not start it), or have an administrator run 'loginctl enable-linger {user_name(os.getuid())}'"
        )

    # --- files ---

    def files(self, settings: ServiceSettings) -> list[WantedFile]:
        too = _other_place(settings.listen)
        sockets = [CONTROL, *([HTTP] if settings.listen else []), *([HTTP6] if too else [])]
        values = {
            "SYNAPSED": command_words(own_python.command("synapsed.cli", python=settings.python)),
            "PACKAGES": folder_line(own_python.PACKAGES),
            "ENV_FILE": file_line(env_file(settings.paths)),
            "USER_ENV_FILE": file_line(user_env_file(settings.paths)),
            "CONTROL_SOCKET": _line(settings.paths.control_socket),
            "LISTEN": settings.listen or "",
            "LISTEN_TOO": too,
            "SOCKETS": " ".join(sockets),
        }
        units = [SERVICE, TARGET, *sockets]
        wanted = [WantedFile(self._units / unit, template(f"systemd/{unit}", values)) for unit in units]
        return [*wanted, WantedFile(env_file(settings.paths), _environment(settings), 0o600)]

    def installed(self) -> list[WantedFile]:
        there = [*(self._units / unit for unit in UNITS), env_file(self._paths)]
        return [WantedFile(path, "") for path in there if path.exists()]

    def is_ours(self) -> bool:
        return env_file(self._paths).exists() and (self._units / SERVICE).exists()

    # --- requests to the manager ---

    def state(self) -> State:
        wanted = "LoadState,UnitFileState,ActiveState,SubState,MainPID"
        asked = self._systemctl("show", SERVICE, f"--property={wanted}")
        told = dict(line.partition("=")[::2] for line in asked.out.splitlines())
        active = told.get("ActiveState", "unknown")
        pid = int(told.get("MainPID") or 0)
        return State(
            installed=told.get("LoadState") == "loaded",
            enabled=told.get("UnitFileState") == "enabled",
            running=active in ("active", "reloading"),
            outdated=_is_older(pid, [file.path for file in self.installed()]),
            pid=pid or None,
            words=f"{active} ({told.get('SubState', 'unknown')})",
        )

    def load(self) -> None:
        self._do("daemon-reload")
        self._do("enable", SERVICE)

    def start(self) -> None:
        self._do("start", SERVICE)

    def restart(self) -> None:
        self._do("restart", SERVICE)

    def unload(self) -> None:
        there = [unit for unit in UNITS if (self._units / unit).exists()]
        if there:
            # The target is named as well: it would stop because no unit needs it, but nothing would wait for that.
            self._do("stop", *there)
            self._systemctl("stop", AGENTS)  # waits for the agents; stopped ones are refused
        if SERVICE in there:
            self._do("disable", SERVICE)

    def forget(self) -> None:
        self._do("daemon-reload")
        self._systemctl("reset-failed", *UNITS)  # refused where there is nothing to forget

    def advice(self) -> list[tuple[str, str]]:
        user = user_name(os.getuid())
        asked = run_tool(["loginctl", "show-user", user, "--property=Linger", "--value"], self._environ)
        lingers = asked.out == "yes" if asked.code == 0 and asked.out else (LINGER / user).exists()
        if lingers:
            return []
        return [("it ends when you log out, and starts when you log in", f"loginctl enable-linger {user}")]

    def how_to_log(self) -> str:
        return f"journalctl --user -u {SERVICE}"

    def _do(self, *arguments: str) -> None:
        done = self._systemctl(*arguments)
        if done.code != 0:
            raise CtlError(f"systemctl --user {' '.join(arguments)}: {done.err or done.out or done.code}")

    def _systemctl(self, *arguments: str) -> Finished:
        return run_tool(["systemctl", "--user", *arguments], self._environ)


def _is_older(pid: int, files: Iterable[Path]) -> bool:
    """Returns True if the process began before one of `files` was written: by its age, which counts the time that the
    machine slept."""
    mark = start_mark(pid) if pid else None
    began = time.time() - lived_s(mark) if mark is not None else math.inf
    return any(_written(file) > began for file in files)


def _written(path: Path) -> float:
    """Returns the time of the last change in Unix seconds; 0 if there is no such file."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _other_place(listen: str | None) -> str:
    """Returns the same port at the other address of `localhost`; empty if `listen` is at neither."""
    address, _, port = (listen or "").rpartition(":")
    twin = other(address.strip("[]"))
    return "" if twin is None else host_port(twin, int(port))


def _line(value: object) -> str:
    """Returns `value` as the whole rest of a line in a unit. Raises CtlError."""
    text = str(value)
    if not is_text(text) or any(character < " " or character == "\x7f" for character in text):
        raise CtlError(
            f"a path with a line break, or another character that is no text, cannot be written into a unit: "
            f"'{named(text)}'"
        )
    return text.replace("%", "%%")


def folder_line(path: str) -> str:
    """Returns a folder as the whole rest of a line. With a backslash at its end, the line would go on in the next one,
    and a space at its end would be dropped: a `/` after it prevents both."""
    return _line(f"{path}/" if path.endswith(("\\", " ")) else path)


def file_line(path: Path) -> str:
    """Returns the line for a file of variables with exactly that name: systemd reads the value as a pattern
    (glob(7))."""
    return _line("".join(f"\\{character}" if character in "\\*?[" else character for character in str(path)))


def command_words(command: Sequence[str]) -> str:
    """Returns a command line. systemd accepts no program whose path has quotes or a backslash, and keeps both
    characters of `$$` in a path: a shell is started instead, and becomes the program."""
    if any(character in command[0] for character in "$\"'\\"):
        command = [*AS_ARGUMENT, *command]
    return " ".join(quoted_word(word).replace("$", "$$") for word in command)


def quoted_word(value: str) -> str:
    """Returns a word, quoted if it must be."""
    text = _line(value)
    if not any(character in text for character in " \t\"'\\;"):
        return text
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'


def _environment(settings: ServiceSettings) -> str:
    lines = [
        "# Written by 'synapsectl install', and written again by the next one: your own variables belong into",
        f"# {user_env_file(settings.paths)}",
    ]
    lines += [f"# {program.name}: {program.path or 'not found'}" for program in settings.login.programs]
    for name, value in settings.variables.items():
        if "\n" in value:
            raise CtlError(f"{name} has a line break in it, which an environment file cannot hold")
        quoted = "".join(f"\\{character}" if character in '"\\$`' else character for character in value)
        lines.append(f'{name}="{quoted}"')
    return "\n".join(lines) + "\n"
