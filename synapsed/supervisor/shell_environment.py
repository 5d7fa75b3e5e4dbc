"""Variables that a later shell brings to an agent: its connection, as tmux's `update-environment`, or all of them.

`renewed` decides it, purely; `gone` looks at the sockets and folders that an environment names.
"""

import errno
import os
import socket
import stat
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from synapsed.interfaces import Bringing
from synapsed.model.records import AgentRecord
from synapsed.process.inherited import CONNECTION, select

PLACES = (
    "CONDA_PREFIX",
    "DBUS_SESSION_BUS_ADDRESS",
    "I3SOCK",
    "KRB5CCNAME",
    "NIRI_SOCKET",
    "SSH_AUTH_SOCK",
    "SWAYSOCK",
    "TMPDIR",
    "VIRTUAL_ENV",
    "WAYLAND_DISPLAY",
    "WSL_INTEROP",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
)
"""Variables that name something in the file system, by `place_of`."""

_CACHES = ("FILE:", "DIR:")


def renewed(
    record: AgentRecord,
    env: Mapping[str, str],
    bringing: Bringing,
    *,
    own: Mapping[str, str],
    update: Iterable[str],
    is_gone: Callable[[Mapping[str, str]], set[str]],
) -> dict[str, Any]:
    """The fields of `record` that are others once a shell with `env` has brought what it does; `own` is the daemon's
    environment, `update` what is brought besides the connection.

    A variable that the shell lacks stays. What leads nowhere replaces nothing that leads somewhere. With `missing`,
    which is for a shell that may not be a person's, only what is gone is replaced, by what is there. An agent that was
    started with the daemon's environment, on purpose, takes no connection."""
    if bringing == "all":
        return {"env": dict(env), "connection": {}}
    if record.env is None and not record.from_config:
        return {}
    stored = {**(own if record.env is None else record.env), **record.connection}
    brought = {name: value for name, value in select(env, (*CONNECTION, *update)).items() if stored.get(name) != value}
    if not brought:
        return {}
    stale, dead = is_gone(stored), is_gone(env)
    if bringing == "missing":
        brought = {name: value for name, value in brought.items() if name in stale - dead}
    else:
        brought = {
            name: value for name, value in brought.items() if name not in dead or name in stale or name not in stored
        }
    return {"connection": {**record.connection, **brought}} if brought else {}


def place_of(name: str, environ: Mapping[str, str]) -> str | None:
    """The path that variable `name` names; None where it names no path."""
    value = environ.get(name, "")
    match name:
        case "DBUS_SESSION_BUS_ADDRESS":
            value = value.removeprefix("unix:path=").partition(",")[0].partition(";")[0]
        case "KRB5CCNAME":
            value = next((value.removeprefix(kind) for kind in _CACHES if value.startswith(kind)), value)
        case "WAYLAND_DISPLAY" if value and not value.startswith("/"):
            value = f"{environ.get('XDG_RUNTIME_DIR', '')}/{value}"
    return value if value.startswith("/") else None


def gone(environ: Mapping[str, str]) -> set[str]:
    """The names of those variables that lead to nothing any more: no file, or a socket at which nobody listens. Call it
    in a thread."""
    return {name for name in PLACES if (path := place_of(name, environ)) is not None and _is_gone(path)}


def _is_gone(path: str) -> bool:
    try:
        listens = stat.S_ISSOCK(os.stat(path).st_mode)  # noqa: PTH116 - text, as the environment has it
    except OSError as error:
        return error.errno in (errno.ENOENT, errno.ENOTDIR)
    except ValueError:  # no path can be like that
        return True
    if not listens:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            return probe.connect_ex(path) == errno.ECONNREFUSED
        except OSError:  # its path is longer than can be asked
            return False
