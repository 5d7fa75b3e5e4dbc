"""Where the daemon's sockets are, told from the environment alone.

Apart from `synapsed.paths`, and without pathlib: the person's tool asks for one path, and importing pathlib would be an
eighth of its time.
"""

import os
from collections.abc import Mapping

__all__ = ["PATH_MAX", "control_socket", "runtime_directory", "socket_directory"]

PATH_MAX = 103
"""Bytes of a Unix socket's path that every supported system accepts (macOS 103, Linux 107)."""

_LONGEST = os.path.join("keepers", "k" * 24 + ".sock")


def control_socket(environ: Mapping[str, str]) -> str:
    """The daemon's Unix socket."""
    return os.path.join(socket_directory(runtime_directory(environ)), "control.sock")


def runtime_directory(environ: Mapping[str, str]) -> str:
    """What is of use only while the daemon runs."""
    if home := environ.get("SYNAPSED_HOME"):
        return _plain(os.path.join(os.getcwd(), home, "run"))
    if runtime := environ.get("XDG_RUNTIME_DIR"):
        return _plain(os.path.join(runtime, "synapsed"))
    return _plain(os.path.join(environ.get("TMPDIR") or "/tmp", f"synapsed-{os.getuid()}"))


def _plain(path: str) -> str:
    """As pathlib writes it: one path has one hash."""
    steps = "/".join(step for step in path.split("/") if step not in ("", "."))
    return f"/{steps}" if path.startswith("/") else steps


def socket_directory(run: str) -> str:
    """The runtime directory `run` itself, or a short stand-in derived from it: longer paths cannot be bound."""
    if len(os.fsencode(os.path.join(run, _LONGEST))) <= PATH_MAX:
        return run
    return f"/tmp/synapsed-{os.getuid()}-{_hash(run):012x}"


def _hash(path: str) -> int:
    """A stable 48-bit number (FNV-1a), the same in every process and run."""
    value = 0xCBF29CE484222325
    for byte in os.fsencode(path):
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value & 0xFFFFFFFFFFFF
