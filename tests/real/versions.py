"""Older versions of the agent programs, each pinned by a lock file of its own and installed into a folder of its own.

    python -m tests.real.versions install [PROGRAM…]         # from npm; nothing to do for those that are there
    python -m tests.real.versions lock PROGRAM VERSION       # adds a version, or writes its lock file again

A version is in the matrix (`make test-versions`) while ``npm/versions/PROGRAM/VERSION`` exists; its programs are
installed into ``PROGRAM/VERSION`` below ``$SYNAPSED_VERSIONS_CACHE``, by default ``~/.cache/synapsed/versions``. The
verified version of a program is that of `programs`; while it is npm's newest, both are one row.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.real import programs
from tests.real.programs import PROGRAMS, Prepared, run_install_script
from tests.support.npm import MissingProgramsError, NpmCache, cache_root

__all__ = ["OLDER", "SUPPORTED", "Version", "bin_dir", "install", "missing", "of", "prepare", "unsupported"]

_LOCKED = Path(__file__).with_name("npm") / "versions"


@dataclass(frozen=True, slots=True)
class Version:
    cli: str
    number: str

    def __str__(self) -> str:
        return f"{self.cli}-{self.number}"


def _key(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in number.split("."))


def _locked(cli: str) -> list[Version]:
    numbers = (path.parent.name for path in (_LOCKED / cli).glob("*/package-lock.json"))
    return [Version(cli, number) for number in sorted(numbers, key=_key, reverse=True)]


OLDER: tuple[Version, ...] = tuple(version for cli in PROGRAMS for version in _locked(cli))
"""Those that are pinned here, the newest of each program first."""


def _oldest_supported(cli: str) -> str:
    return str(json.loads((_LOCKED / "supported.json").read_text())[cli])


SUPPORTED: tuple[Version, ...] = tuple(v for v in OLDER if _key(v.number) >= _key(_oldest_supported(v.cli)))
"""Those of the last six months, which must work; of older ones the person is told."""


def of(cli: str) -> tuple[Version, ...]:
    """The supported ones of one program, the newest first."""
    return tuple(version for version in SUPPORTED if version.cli == cli)


def unsupported() -> tuple[Version, ...]:
    return tuple(version for version in OLDER if version not in SUPPORTED)


def _folder(version: Version) -> Path:
    root = Path(os.environ.get("SYNAPSED_VERSIONS_CACHE") or cache_root() / "versions")
    return root / version.cli / version.number


def _cache(version: Version) -> NpmCache:
    return NpmCache(
        locked=_LOCKED / version.cli / version.number,
        folder=_folder(version),
        what=str(version),
        command="python -m tests.real.versions install",
    )


def bin_dir(version: Version) -> Path:
    """Where the program of that version is; it has the program's own name."""
    return _folder(version) / "node_modules" / ".bin"


def missing(version: Version) -> str | None:
    """Why the version cannot be run, in a sentence, or None if it can."""
    return _cache(version).missing()


def install(version: Version) -> Path:
    """Installs the version unless it is there. Returns its folder."""
    return _cache(version).install(lambda folder: run_install_script(folder, PROGRAMS[version.cli]))


def prepare(version: Version, home: Path, project: Path, model_url: str) -> Prepared:
    """As `programs.prepare`, with this version in the place of the pinned one."""
    if reason := missing(version):
        raise MissingProgramsError(reason)
    prepared = programs.prepare(version.cli, home, project, model_url)
    folder = bin_dir(version)
    path = prepared.env["PATH"].replace(str(programs.cache_dir() / "node_modules" / ".bin"), str(folder))
    return replace(prepared, argv=(str(folder / version.cli),), env={**prepared.env, "PATH": path})


def _lock(version: Version) -> None:
    folder = _LOCKED / version.cli / version.number
    folder.mkdir(parents=True, exist_ok=True)
    package = {"name": "synapsed-version", "private": True, "dependencies": {PROGRAMS[version.cli]: version.number}}
    (folder / "package.json").write_text(json.dumps(package, indent=2) + "\n")
    options = ["--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund"]
    subprocess.run(["npm", "install", "--omit-lockfile-registry-resolved", *options], cwd=folder, check=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.real.versions", description="Older versions of the programs."
    )
    parser.add_argument("verb", choices=["install", "lock"])
    parser.add_argument("which", nargs="*", metavar="PROGRAM", help="lock: the program and the version")
    options = parser.parse_args(arguments)
    if options.verb == "lock":
        cli, number = options.which
        _lock(Version(cli, number))
        return 0
    failed = 0
    for version in OLDER:
        if options.which and version.cli not in options.which:
            continue
        try:
            print(f"{version} in {install(version)}", flush=True)
        except (MissingProgramsError, subprocess.CalledProcessError) as error:
            print(f"{version}: {error}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
