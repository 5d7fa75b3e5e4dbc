"""Packages from npm, pinned and hashed by a lock file without addresses."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.caches import Cache

__all__ = ["MissingProgramsError", "NpmCache", "cache_root"]

# Not `npm ci`: that demands entries for every platform's optional binaries, and not every registry carries all of them.
# What the lock file has is installed at its version and checked against its hash all the same.
_NPM = ["npm", "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]


class MissingProgramsError(RuntimeError):
    """The cache lacks packages, or has other versions of them, and they cannot be had."""


def cache_root() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "synapsed"


@dataclass(frozen=True, kw_only=True)
class NpmCache(Cache):
    """`locked` is a folder with package.json and package-lock.json."""

    def fingerprint(self) -> str:
        return hashlib.sha256((self.locked / "package-lock.json").read_bytes()).hexdigest()

    def install(self, finish: Callable[[Path], None] = lambda folder: None) -> Path:
        """Installs the packages unless they are there, and has `finish` do what npm did not. Returns the folder.

        subprocess.CalledProcessError where npm fails; MissingProgramsError where there is no npm.
        """
        if shutil.which("npm") is None:
            raise MissingProgramsError("npm is not on PATH")

        def fetch() -> None:
            for name in ("package.json", "package-lock.json"):
                shutil.copyfile(self.locked / name, self.folder / name)
            subprocess.run(_NPM, cwd=self.folder, check=True)
            finish(self.folder)

        return self.fill(fetch)
