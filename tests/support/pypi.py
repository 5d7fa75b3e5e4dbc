"""Programs from PyPI that do not fit beside ours: pinned and hashed by a lock file, in an environment of their own."""

import hashlib
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from tests.support.caches import Cache

__all__ = ["PypiCache"]


@dataclass(frozen=True, kw_only=True)
class PypiCache(Cache):
    """`locked` is a file of hashed requirements; `folder` is an environment."""

    def fingerprint(self) -> str:
        """Of the lock and of the interpreter, without which an environment is nothing."""
        return hashlib.sha256(self.locked.read_bytes() + sys.version.encode()).hexdigest()

    def program(self, name: str) -> str:
        return str(self.folder / "bin" / name)

    def install(self) -> Path:
        """Installs the programs unless they are there. Returns the folder. subprocess.CalledProcessError where pip
        fails."""

        def fetch() -> None:
            venv.create(self.folder, clear=True, with_pip=True)
            pip = [self.program("python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "--require-hashes", "-r", str(self.locked)], check=True)

        return self.fill(fetch)
