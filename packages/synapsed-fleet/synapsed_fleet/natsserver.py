"""The broker's program: finds `nats-server`, checks its version, and makes its configuration.

`nats-server` comes with `synapsed[broker]`, or is found on PATH.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from synapsed.errors import ProgramNotFound
from synapsed.shared.regex import regex
from synapsed_fleet.streams import BODY_MAX

PROGRAM: Final = "nats-server"
NEEDED: Final = (2, 15, 1)
"""Least version: older ones sync replicated streams in another way, or lose messages that they have acked."""
INSTALL: Final = "pip install 'synapsed[broker]'"
VERSION_S: Final = 20.0

STORE_BOUND: Final = 16 << 40
"""Most bytes that the server may keep. The sizes of the streams limit what it keeps; a server whose limit is smaller
than their sum would not load them."""
CLUSTER: Final = "synapsed"
LOG_BYTES: Final = 10 << 20
LOG_FILES: Final = 4

_VERSION = regex(r"\bv?(\d{1,5})\.(\d{1,5})\.(\d{1,5})\b")


class NatsServer(NamedTuple):
    """A program, and its version as three numbers."""

    path: str
    version: tuple[int, int, int]

    @property
    def release(self) -> str:
        return ".".join(map(str, self.version))


def find(environ: Mapping[str, str] = os.environ) -> NatsServer:
    """Returns the first program that is new enough: beside Python, then on PATH. Raises ProgramNotFound, which names
    older ones."""
    old = []
    for path in _candidates(environ):
        version = ask(path)
        if version is not None and version >= NEEDED:
            return NatsServer(path, version)
        old.append(f"{path} is {'.'.join(map(str, version)) if version else 'of no version that it tells'}")
    needed = ".".join(map(str, NEEDED))
    found = f": {'; '.join(old)}" if old else ""
    raise ProgramNotFound(f"a broker needs {PROGRAM} {needed} or newer{found}; {INSTALL}, or put one on PATH")


def ask(path: str) -> tuple[int, int, int] | None:
    """Returns the version of the program at `path`, None if it prints none."""
    try:
        done = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return version_in(done.stdout)


def version_in(text: str) -> tuple[int, int, int] | None:
    """Returns the version in the output of `nats-server --version`."""
    match = _VERSION.search(text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


class ClusterPlace(NamedTuple):
    """The place of a broker in a cluster: where it listens for the others, the addresses that it advertises to them and
    to clients, and the addresses of all."""

    listen: str
    advertise: str
    clients: str
    routes: tuple[str, ...]


def configuration(
    folder: Path,
    *,
    name: str,
    listen: str,
    operator_token: str,
    system_account: str,
    store: str = "store",
    cluster: ClusterPlace | None = None,
) -> dict[str, Any]:
    """Returns the document that `nats-server` reads (JSON is one of its forms). `folder` has certificates, tokens and
    store."""
    encrypted = {"cert_file": str(folder / "cert.pem"), "key_file": str(folder / "key.pem")}
    found: dict[str, Any] = {
        "server_name": name,
        "listen": listen,
        "http": "127.0.0.1:-1",  # health, for the watchdog; on any free port, which a file in the folder names
        "ports_file_dir": str(folder),
        "log_file": str(folder / "log" / "nats-server.log"),
        "logfile_size_limit": LOG_BYTES,
        "logfile_max_num": LOG_FILES,
        "operator": operator_token,
        "system_account": system_account,
        # No preload: at every start it would replace the newer tokens, with their revocations.
        "resolver": {"type": "full", "dir": str(folder / "jwt"), "allow_delete": False, "interval": "1m"},
        "max_payload": BODY_MAX,
        "write_deadline": "10s",
        "jetstream": {
            "store_dir": str(folder / store),
            "max_file_store": STORE_BOUND,
            "max_memory_store": 0,
            "sync_interval": "always",  # with the default a loss of power takes whole streams
        },
        # First, so that an attacker in between cannot leave it out of the greeting.
        "tls": {**encrypted, "handshake_first": True, "min_version": "1.3", "timeout": 10},
    }
    if cluster is not None:
        found["client_advertise"] = cluster.clients
        found["lame_duck_grace_period"] = "1s"
        found["lame_duck_duration"] = "30s"  # the shortest that it allows
        found["cluster"] = {
            "name": CLUSTER,
            "listen": cluster.listen,
            "advertise": cluster.advertise,
            "routes": list(cluster.routes),
            # A server with a certificate of the authority is a broker of the fleet.
            "tls": {**encrypted, "ca_file": str(folder / "ca.pem"), "verify": True, "timeout": 10},
        }
    return found


def _candidates(environ: Mapping[str, str]) -> Iterator[str]:
    beside = Path(sys.executable).parent / PROGRAM
    if os.access(beside, os.X_OK):
        yield str(beside)
    for place in environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which(PROGRAM, path=place) if place else None
        if found is not None and found != str(beside):
            yield found
