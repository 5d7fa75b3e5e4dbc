"""Compares the files of an installation with the present ones, shows them as a diff, and writes each whole or not at
all."""

import difflib
import stat
from pathlib import Path
from typing import NamedTuple

from synapsectl.errors import CtlError
from synapsed.shared.files import write_whole


class WantedFile(NamedTuple):
    """The wanted state of a file."""

    path: Path
    text: str
    mode: int = 0o644

    def current(self) -> str | None:
        """Returns the present content; None if there is no file. Raises CtlError."""
        try:
            return self.path.read_text(encoding="utf-8", errors="surrogateescape")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CtlError(f"{self.path}: {error.strerror}") from None

    def is_current(self) -> bool:
        return self.current() == self.text and stat.S_IMODE(self.path.stat().st_mode) == self.mode

    def diff(self, *, removed: bool = False) -> list[str]:
        """Returns lines of a unified diff from the present file to the wanted one, or to nothing."""
        old, new = self.current(), None if removed else self.text
        if old == new and not self.is_current():
            return [f"mode of {self.path} becomes {self.mode:04o}"]
        names = [str(self.path) if text is not None else "/dev/null" for text in (old, new)]
        before, after = ((text or "").splitlines() for text in (old, new))
        return list(difflib.unified_diff(before, after, names[0], names[1], lineterm=""))

    def write(self) -> None:
        """Writes the file atomically and durably. Raises CtlError."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self.path, self.text.encode("utf-8", "surrogateescape"), mode=self.mode)
        except OSError as error:
            raise CtlError(f"{self.path} cannot be written: {error.strerror}") from None

    def remove(self) -> None:
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise CtlError(f"{self.path} cannot be removed: {error.strerror}") from None
