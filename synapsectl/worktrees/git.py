"""The git program, asked by this tool: without what a shell's variables or a repository's hooks would make of it.

An agent may write to the repository that it works in, so a question about it runs none of its hooks, monitors, pagers
or programs for showing (textconv, external diff). A merge is a person's own and runs hooks as `git merge` does."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from synapsectl.errors import REFUSED, CtlError

TIMEOUT_S = 120.0
"""Seconds for a question, on a large repository behind a slow disk."""

QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.pager=cat")


class GitRefused(CtlError):
    """git said no, in its own words."""

    exit_code = REFUSED
    code = "GIT"


class Git:
    """git in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ask(self, *arguments: str, stdin: bytes | None = None, index: Path | None = None, good: int = 0) -> bytes:
        """What git prints; `index` is used in place of the folder's own. Exit codes up to `good` are no error.
        Raises GitRefused."""
        environ = _environment() | ({"GIT_INDEX_FILE": str(index)} if index is not None else {})
        done = self._run([*QUIET, *arguments], environ, stdin)
        if not 0 <= done.returncode <= good:
            raise GitRefused(_words(done.stderr) or f"git {arguments[0]} ended with {done.returncode}")
        return done.stdout

    def line(self, *arguments: str) -> str:
        """One line of text. Raises GitRefused."""
        return os.fsdecode(self.ask(*arguments)).rstrip("\n")

    def names(self, *arguments: str, stdin: bytes | None = None, index: Path | None = None, good: int = 0) -> list[str]:
        """Paths, of a command that ends each with a NUL. Raises GitRefused."""
        told = self.ask(*arguments, stdin=stdin, index=index, good=good)
        return [os.fsdecode(one) for one in told.split(b"\0") if one]

    def copy_index(self, folder: Path) -> Path:
        """Copy the checkout's index into `folder`, if there is one; returns where it is, for `index` of `ask`."""
        index = Path(self.line("rev-parse", "--path-format=absolute", "--git-path", "index"))
        copied = folder / "index"
        if index.exists():
            shutil.copy2(index, copied)  # by its time git knows which files may have changed in the same moment
        return copied

    def says(self, *arguments: str) -> bool:
        """Whether it ends well."""
        return self._run([*QUIET, *arguments], _environment(), None).returncode == 0

    def run(self, *arguments: str) -> int:
        """Let a person see what git does, on stderr; returns its exit code. Hooks run."""
        command = ["git", "-C", str(self.folder), "-c", "core.pager=cat", *arguments]
        environ = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        return subprocess.run(command, env=environ, stdout=2, check=False).returncode

    def _run(
        self, arguments: Sequence[str], environ: dict[str, str], stdin: bytes | None
    ) -> "subprocess.CompletedProcess[bytes]":
        command = ["git", "-C", str(self.folder), *arguments]
        try:
            return subprocess.run(
                command, env=environ, input=stdin or b"", capture_output=True, timeout=TIMEOUT_S, check=False
            )
        except FileNotFoundError:
            raise GitRefused("git is not installed, or not in PATH") from None
        except subprocess.TimeoutExpired:
            raise GitRefused(f"git {arguments[len(QUIET)]} did not end within {TIMEOUT_S:g} s") from None


def _environment() -> dict[str, str]:
    """Ours without GIT_DIR and the like, which a hook or an alias leaves behind: they would mean another repository."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return kept | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def _words(stderr: bytes) -> str:
    lines = [line.removeprefix("fatal: ").removeprefix("error: ") for line in os.fsdecode(stderr).splitlines()]
    return "git: " + "; ".join(line for line in lines if line and not line.startswith("hint:")) if lines else ""
