"""Packages from npm, pinned and hashed by a lock file without addresses, installed once into a cache."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MissingProgramsError", "NpmCache", "cache_root"]

_STAMP = ".installed"  # holds the lock file's hash; written last, so that a broken install is no install

# Not `npm ci`: that demands entries for every platform's optional binaries, and not every registry carries all of them.
# What the lock file has is installed at its version and checked against its hash all the same.
_NPM = ["npm", "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]


class MissingProgramsError(RuntimeError):
    """The cache lacks packages, or has other versions of them, and they cannot be had."""


def cache_root() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "synapsed"


@dataclass(frozen=True, kw_only=True)
class NpmCache:
    """`folder` has, or will have, what `locked` (a folder with package.json and package-lock.json) names. `what` is its
    name in messages, `command` what installs it."""

    locked: Path
    folder: Path
    what: str
    command: str

    def missing(self) -> str | None:
        """Why the packages cannot be used, in a sentence, or None if they can."""
        stamp = self.folder / _STAMP
        if not stamp.is_file():
            return f"no {self.what} in {self.folder} ({self.command})"
        if stamp.read_text() != self._fingerprint():
            return f"the {self.what} in {self.folder} are of other versions ({self.command})"
        return None

    def install(self, finish: Callable[[Path], None] = lambda folder: None) -> Path:
        """Installs the packages unless they are there, and has `finish` do what npm did not. Returns the folder.

        subprocess.CalledProcessError where npm fails; MissingProgramsError where there is no npm.
        """
        if shutil.which("npm") is None:
            raise MissingProgramsError("npm is not on PATH")
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.missing() is None:
                return self.folder
            (self.folder / _STAMP).unlink(missing_ok=True)
            for name in ("package.json", "package-lock.json"):
                shutil.copyfile(self.locked / name, self.folder / name)
            subprocess.run(_NPM, cwd=self.folder, check=True)
            finish(self.folder)
            (self.folder / _STAMP).write_text(self._fingerprint())
        return self.folder

    def _fingerprint(self) -> str:
        return hashlib.sha256((self.locked / "package-lock.json").read_bytes()).hexdigest()
