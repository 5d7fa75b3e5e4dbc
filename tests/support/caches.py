"""Programs that are pinned and hashed by a lock file, installed once into a folder that is kept."""

import fcntl
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Cache"]

_STAMP = ".installed"  # holds the fingerprint; written last, so that a broken install is no install


@dataclass(frozen=True, kw_only=True)
class Cache(ABC):
    """`folder` has, or will have, what `locked` names. `what` is its name in messages, `command` what installs it."""

    locked: Path
    folder: Path
    what: str
    command: str

    @abstractmethod
    def fingerprint(self) -> str:
        """Of all that decides what is installed."""

    def missing(self) -> str | None:
        """Why the programs cannot be used, in a sentence, or None if they can."""
        stamp = self.folder / _STAMP
        if not stamp.is_file():
            return f"no {self.what} in {self.folder} ({self.command})"
        if stamp.read_text() != self.fingerprint():
            return f"the {self.what} in {self.folder} are of other versions ({self.command})"
        return None

    def fill(self, fill: Callable[[], object]) -> Path:
        """Has `fill` install the programs unless they are there, one process at a time. Returns the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.folder.with_name(f"{self.folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.missing() is None:
                return self.folder
            (self.folder / _STAMP).unlink(missing_ok=True)
            fill()
            (self.folder / _STAMP).write_text(self.fingerprint())
        return self.folder
