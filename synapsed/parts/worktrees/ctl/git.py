"""Runs the git program for this tool, without the effects of a shell's variables or a repository's hooks.

An agent may write to the repository that it works in, so no command from there is run: a git command that reads or
changes files runs apart from the repository's configuration and hooks (`apart`), nothing is fetched, and git does not
look into submodules, which have configurations of their own.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from synapsectl.errors import REFUSED, CtlError
from synapsed.parts.worktrees.ctl.isolation import MERGE_HOOKS, MERGING, Setting, apart, commands, settings

TIMEOUT_S = 120.0
"""Seconds for one git command, on a large repository and a slow disk."""

QUIET = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.pager=cat"),
    *("-c", "submodule.recurse=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false"),
)

CLOSED = re.compile(r"warning: could not open directory '(.*)': (.*)")

HOOKS_PATH = "core.hookspath"

APART = frozenset(
    {"status", "diff", "add", "update-index", "branch", "merge", "worktree add", "worktree remove"}
    | {"update-ref", "symbolic-ref"}
)
"""Commands that read or write files of a checkout, or move a branch. The others only read git's own files; `config`
writes one of these, and must find it."""


class GitRefused(CtlError):
    """Error for a refusal by git, with git's own words."""

    exit_code = REFUSED
    code = "GIT"


class Git:
    """Runs git in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ask(
        self,
        *arguments: str,
        stdin: bytes | None = None,
        index: Path | None = None,
        good: int = 0,
        holding: int | None = None,
    ) -> bytes:
        """Returns git's output; `index` is used in place of the folder's own. Exit codes up to `good` are no error.
        With `holding`, git has that file descriptor open, and there is no time limit. Raises GitRefused."""
        environ = _environment() | ({"GIT_INDEX_FILE": str(index)} if index is not None else {})
        done = self._run(arguments, environ, stdin, holding)
        if not 0 <= done.returncode <= good:
            raise GitRefused(_words(done.stderr) or f"git {arguments[0]} ended with {done.returncode}")
        return done.stdout

    def line(self, *arguments: str) -> str:
        """Returns one line of text. Raises GitRefused."""
        return os.fsdecode(self.ask(*arguments)).rstrip("\n")

    def names(self, *arguments: str, stdin: bytes | None = None, index: Path | None = None, good: int = 0) -> list[str]:
        """Returns the paths in the output of a command that ends each with a NUL. Raises GitRefused."""
        told = self.ask(*arguments, stdin=stdin, index=index, good=good)
        return [os.fsdecode(one) for one in told.split(b"\0") if one]

    def copy_index(self, folder: Path) -> Path:
        """Copies the checkout's index into `folder`, if there is one; returns its path, for `index` of `ask`."""
        index = Path(self.line("rev-parse", "--path-format=absolute", "--git-path", "index"))
        copied = folder / "index"
        if index.exists():
            shutil.copy2(index, copied)  # its time tells git which files may have changed at the same moment
        return copied

    def closed_folders(self) -> list[str]:
        """Returns folders that git cannot read, each with the reason: they may have files that git does not know."""
        done = self._run(("ls-files", "--others", "--exclude-standard"), _environment(), None)
        found = (CLOSED.fullmatch(line) for line in done.stderr.decode("utf-8", "surrogateescape").splitlines())
        return [f"{each[1]} ({each[2]})" for each in found if each]

    def says(self, *arguments: str) -> bool:
        """Returns True if git ends with exit code 0."""
        return self._run(arguments, _environment(), None).returncode == 0

    def settings(self) -> list[Setting]:
        """Returns all settings that count in this folder, the person's and the repository's. Raises GitRefused."""
        return settings(self.ask("config", "--list", "--show-scope", "--includes", "-z"))

    def merge_runs(self) -> list[str]:
        """Returns the repository's own commands that `git merge` would run: hooks, and settings that name a command."""
        folder = Path(self.line("rev-parse", "--path-format=absolute", "--git-common-dir")) / "hooks"
        hooks = sorted(name for name in MERGE_HOOKS if os.access(folder / name, os.X_OK))
        named = commands(self.settings(), MERGING)
        return [*(f"hook {name}" for name in hooks), *(f"{key} ({value})" for key, value in named.items())]

    def run(self, *arguments: str, its_own: bool) -> int:
        """Runs git with its output on stderr, for a person; returns its exit code. With `its_own` it runs the
        repository's hooks and the like."""
        environ = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        with ExitStack() as stack:
            quiet: Sequence[str] = ("-c", "core.pager=cat")
            if not its_own:
                quiet = (*QUIET, "-c", f"core.hooksPath={self._persons_hooks()}")
                environ |= self._isolated_environment(stack)
            command = ["git", "-C", str(self.folder), *quiet, *arguments]
            return subprocess.run(command, env=environ, stdout=2, check=False).returncode

    def _persons_hooks(self) -> str:
        """Returns the person's folder of hooks for all repositories; a relative path would mean a folder of each
        repository, and is not used."""
        found = [each.value or "" for each in self.settings() if each.key == HOOKS_PATH and each.of_all_repositories]
        return found[-1] if found and found[-1].startswith(("/", "~")) else os.devnull

    def _run(
        self, arguments: Sequence[str], environ: dict[str, str], stdin: bytes | None, holding: int | None = None
    ) -> "subprocess.CompletedProcess[bytes]":
        command = ["git", "-C", str(self.folder), *QUIET, *arguments]
        try:
            with ExitStack() as stack:
                if arguments[0] in APART or " ".join(arguments[:2]) in APART:
                    environ = self._isolated_environment(stack) | environ
                return subprocess.run(
                    command,
                    env=environ,
                    input=stdin or b"",
                    capture_output=True,
                    timeout=TIMEOUT_S if holding is None else None,
                    check=False,
                    pass_fds=() if holding is None else (holding,),
                )
        except FileNotFoundError:
            raise GitRefused("git is not installed, or not in PATH") from None
        except subprocess.TimeoutExpired:
            raise GitRefused(f"git {arguments[0]} did not end within {TIMEOUT_S:g} s") from None

    def _isolated_environment(self, stack: ExitStack) -> dict[str, str]:
        """Returns environment variables that separate git from the repository's configuration and hooks, until `stack`
        is closed."""
        own, common = self.names_of("--git-dir", "--git-common-dir")
        place = stack.enter_context(apart(Path(common), self.settings()))
        tree = self.line("rev-parse", "--is-inside-work-tree") == "true"
        told = {"GIT_DIR": own, "GIT_COMMON_DIR": str(place)}
        return told | ({"GIT_WORK_TREE": self.line("rev-parse", "--show-toplevel")} if tree else {})

    def names_of(self, *what: str) -> list[str]:
        """Returns the answer of `git rev-parse` for each, as absolute paths."""
        return [self.line("rev-parse", "--path-format=absolute", each) for each in what]


def _environment() -> dict[str, str]:
    """Returns this process's environment without GIT_DIR and the like, which a hook or an alias sets: they would mean
    another repository."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    never = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "", "GIT_TERMINAL_PROMPT": "0"}
    return kept | never | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


def _words(stderr: bytes) -> str:
    lines = [line.removeprefix("fatal: ").removeprefix("error: ") for line in os.fsdecode(stderr).splitlines()]
    return "git: " + "; ".join(line for line in lines if line and not line.startswith("hint:")) if lines else ""
