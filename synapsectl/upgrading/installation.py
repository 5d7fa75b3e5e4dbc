"""Finds the installer of this program by the files that installers leave beside it, and the command that brings another
version.

The installer is recognised by its own marks: `uv-receipt.toml` and `pipx_metadata.json` in the environment, `INSTALLER`
and `direct_url.json` (PEP 610) among the distribution's metadata; an environment of `uvx` by its place in uv's cache,
one of `pipx run` by its name, outside the folder of what pipx installs.
"""

import json
import re
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from synapsed.own_python import PACKAGES

NAME = "synapsed"


class Installer(StrEnum):
    """The programs by which synapsed comes to a machine."""

    CHECKOUT = "checkout"
    UV_TOOL = "uv tool"
    UVX = "uvx"
    PIPX = "pipx"
    PIPX_RUN = "pipx run"
    UV = "uv"
    PIP = "pip"
    DEBIAN = "debian"
    HOMEBREW = "homebrew"
    UNKNOWN = "unknown"


BASE: str = getattr(sys, "_base_executable", sys.executable)
"""The Python of which an environment was made: without it, uv and pipx choose another one, which may be too old."""
UV_ARCHIVE = "archive-v"
"""Beginning of the name of the folder in uv's cache that holds environments of `uvx`."""
CACHE_MARK = "CACHEDIR.TAG"
"""File by which a folder says that it is a cache's, and may be emptied."""
PIPX_INSTALLED = "venvs"
"""Folder in pipx's home with the environments that it installs; `pipx run` makes its own in a cache elsewhere."""
_PIPX_RUN = re.compile(r"[0-9a-f]{15}")
"""Name of an environment of `pipx run`: the beginning of a hash."""
_CACHES = (Installer.UVX, Installer.PIPX_RUN)
"""Programs that run synapsed out of a cache."""
_NO_WHEELS = (Installer.CHECKOUT, Installer.DEBIAN, Installer.HOMEBREW)
"""Installers that do not install a wheel."""


class Installation(NamedTuple):
    """`place` is the environment, or the folder of a checkout; `source` the file or folder that it was installed from,
    empty for an index."""

    installer: Installer
    place: Path
    python: str = sys.executable
    source: str = ""
    under_git: bool = False
    """True if `place` of a checkout, or the folder `source`, is a git repository."""

    @property
    def words(self) -> str:
        """Returns installer, place and source in words for people."""
        if self.installer is Installer.CHECKOUT:
            return f"a checkout, {self.place}"
        by = "an installer that is not known" if self.installer is Installer.UNKNOWN else str(self.installer)
        return f"by {by}{f' from {self.source}' if self.source else ''}, in {self.place}"

    @property
    def cached(self) -> str:
        """Returns in words that it may vanish under a daemon; empty if it is installed for good."""
        match self.installer:
            case Installer.UVX:
                return f"it is in uv's cache ({self.place}), which 'uv cache clean' and 'prune' empty under a daemon"
            case Installer.PIPX_RUN:
                return f"it is in pipx's cache ({self.place}), and pipx removes it under a daemon at 14 days"
            case _:
                return ""


def find_installation(packages: Path = Path(PACKAGES), prefix: Path = Path(sys.prefix)) -> Installation:
    """Returns how the program in the folder `packages` of the environment `prefix` was installed."""
    metadata = next(iter(sorted(packages.glob(f"{NAME}-*.dist-info"))), None)
    if metadata is None:
        return Installation(Installer.CHECKOUT, packages, under_git=(packages / ".git").exists())
    source = _source(metadata / "direct_url.json")
    under_git = bool(source) and (Path(source) / ".git").exists()
    by = _installer(metadata, prefix)
    place = packages if by is Installer.DEBIAN else prefix  # Debian's Python is not of this program
    return Installation(by, place, source=source, under_git=under_git)


def _installer(metadata: Path, prefix: Path) -> Installer:
    if (prefix / "uv-receipt.toml").is_file():
        return Installer.UV_TOOL
    if (prefix / "pipx_metadata.json").is_file():
        run = _PIPX_RUN.fullmatch(prefix.name) and prefix.parent.name != PIPX_INSTALLED
        return Installer.PIPX_RUN if run else Installer.PIPX
    if prefix.parent.name.startswith(UV_ARCHIVE) and (prefix.parents[1] / CACHE_MARK).is_file():
        return Installer.UVX
    if "Cellar" in prefix.parts:
        return Installer.HOMEBREW
    by = _text(metadata / "INSTALLER").strip()
    known = {one.value: one for one in (Installer.UV, Installer.PIP, Installer.DEBIAN)}
    return known.get(by, Installer.UNKNOWN)


def _source(direct_url: Path) -> str:
    """Returns the file, folder or URL in a `direct_url.json` (PEP 610), as an installer takes it; empty if it says no
    source."""
    try:
        told = json.loads(_text(direct_url) or "{}")
        url, vcs = str(told.get("url", "")), told.get("vcs_info") or {}
        if vcs:
            at, folder = vcs.get("requested_revision"), told.get("subdirectory")
            return f"{vcs['vcs']}+{url}{f'@{at}' if at else ''}{f'#subdirectory={folder}' if folder else ''}"
        parts = urlsplit(url)
    except (ValueError, AttributeError, KeyError, TypeError):
        return ""
    return unquote(parts.path) if parts.scheme == "file" else url


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def commands(installed: Installation, file: str = "", *, same_version: bool = False) -> list[str]:
    """Returns the command lines that bring the version in the wheel `file`, or without a file the newest version of the
    source that synapsed was installed from. `same_version`: it is another build of the installed version, which an
    installer may skip as already installed."""
    if file and installed.installer not in _NO_WHEELS:
        return [_from(installed, file, again=same_version)]
    place = installed.place if installed.installer is Installer.CHECKOUT else Path(installed.source)
    pull = [f"git -C {shlex.quote(str(place))} pull"] if installed.under_git else []
    if installed.installer is Installer.CHECKOUT:
        return [*pull, f"make -C {shlex.quote(str(place))} setup"]
    if installed.source and installed.installer not in _NO_WHEELS:
        return [*pull, _from(installed, installed.source, again=True)]
    if installed.installer in _CACHES:
        return [_from(installed, NAME, again=True)]
    return [_from_index(installed)]


def _from(installed: Installation, source: str, *, again: bool) -> str:
    what, python = shlex.quote(source), shlex.quote(installed.python)
    match installed.installer:
        case Installer.UV_TOOL:
            return f"uv tool install --python {shlex.quote(BASE)} {'--reinstall' if again else '--force'} {what}"
        case Installer.UVX:  # to an installed tool, whose files stay; without --reinstall it may be an old one, cached
            return f"uv tool install --python {shlex.quote(BASE)} --reinstall {what}"
        case Installer.PIPX | Installer.PIPX_RUN:
            return f"pipx install --python {shlex.quote(BASE)} --force {what}"
        case Installer.UV:
            return f"uv pip install --python {python} --upgrade {f'--reinstall-package {NAME} ' if again else ''}{what}"
        case _:
            return f"{python} -m pip install --upgrade {'--force-reinstall ' if again else ''}{what}"


def _from_index(installed: Installation) -> str:
    python = shlex.quote(installed.python)
    return {
        Installer.UV_TOOL: f"uv tool upgrade {NAME}",
        Installer.PIPX: f"pipx upgrade {NAME}",
        Installer.UV: f"uv pip install --python {python} --upgrade {NAME}",
        Installer.DEBIAN: f"sudo apt install ./{NAME}_VERSION_ARCHITECTURE.deb",
        Installer.HOMEBREW: f"brew upgrade {NAME}",
    }.get(installed.installer, f"{python} -m pip install --upgrade {NAME}")
