"""Programs from PyPI that do not fit beside ours: pinned and hashed by a lock file, in an environment of their own."""

import fcntl
import hashlib
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PypiCache"]

_STAMP = ".installed"  # holds the fingerprint; written last, so that a broken install is no install


@dataclass(frozen=True, kw_only=True)
class PypiCache:
    """`folder` is, or will be, an environment with what `locked` (a file of hashed requirements) names. `what` is its
    name in messages, `command` what installs it."""

    locked: Path
    folder: Path
    what: str
    command: str

    def missing(self) -> str | None:
        """Why the programs cannot be used, in a sentence, or None if they can."""
        stamp = self.folder / _STAMP
        if not stamp.is_file():
            return f"no {self.what} in {self.folder} ({self.command})"
        if stamp.read_text() != self._fingerprint():
            return f"the {self.what} in {self.folder} are of other versions ({self.command})"
        return None

    def program(self, name: str) -> str:
        return str(self.folder / "bin" / name)

    def install(self) -> Path:
        """Installs the programs unless they are there. Returns the folder. subprocess.CalledProcessError where pip
        fails."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.missing() is None:
                return self.folder
            venv.create(self.folder, clear=True, with_pip=True)
            pip = [self.program("python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "--require-hashes", "-r", str(self.locked)], check=True)
            (self.folder / _STAMP).write_text(self._fingerprint())
        return self.folder

    def _fingerprint(self) -> str:
        """Of the lock and of the interpreter, without which an environment is nothing."""
        return hashlib.sha256(self.locked.read_bytes() + sys.version.encode()).hexdigest()
