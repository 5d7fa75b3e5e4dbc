"""Worktrees: a folder and a branch of its own for an agent, beside the repository, so that several change it at once.

`NAME` is the branch and the folder `<repository>.worktrees/NAME`. The commit from which it began is in the repository's
configuration, `branch.NAME.synapsed-base`, which git removes with the branch. This module needs no daemon.
"""

import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from synapsectl.errors import REFUSED, CtlError, UsageError
from synapsectl.output import named
from synapsed.parts.worktrees.ctl.git import Git, GitRefused
from synapsed.parts.worktrees.ctl.unfinished import Unfinished, check_deletable
from synapsed.parts.worktrees.ctl.unsaved import changed_copies, half_done, inner_work, left_behind, some, uncommitted
from synapsed.shared.counts import counted

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
INCLUDE = ".worktreeinclude"
"""File of the repository that names, in the patterns of .gitignore, the ignored files that are copied to a worktree."""
SETUP_KEY = "synapsed.setup"
"""Key of git's configuration: a shell's command line that prepares a new worktree."""

NO_COMMIT = "a repository of its own, without a commit"


class WorkWouldBeLost(CtlError):
    """Error for a request that would remove the only copy of some work."""

    exit_code = REFUSED
    code = "WORK_WOULD_BE_LOST"


class SetupFailed(CtlError):
    exit_code = REFUSED
    code = "SETUP_FAILED"


class Worktree(NamedTuple):
    """A worktree."""

    name: str
    path: Path
    head: str | None
    """The commit that is checked out; None before the first."""
    branch: str | None
    base: str | None
    """The commit from which it began; None if this tool has not made the worktree."""
    target: str | None
    """The branch that was checked out at that time."""


def names() -> Iterator[tuple[str, str]]:
    """Yields the worktrees of the repository that this process is in, each with its folder."""
    for one in Repository(Path.cwd()).worktrees():
        yield one.name, str(one.path)


class Repository:
    """The repository around a folder. Raises GitRefused if there is no checkout."""

    def __init__(self, folder: Path) -> None:
        try:
            self.here = Git(Path(Git(folder).line("rev-parse", "--path-format=absolute", "--show-toplevel")))
        except GitRefused as error:
            raise GitRefused(f"{folder} is in no checkout of a git repository ({error})") from None
        first = self.here.names("worktree", "list", "--porcelain", "-z")[0]
        self.main = Git(Path(first.removeprefix("worktree ")))
        self.folder = self.main.folder.with_name(f"{self.main.folder.name}.worktrees")

    def worktrees(self) -> list[Worktree]:
        """Returns the worktrees in `folder`."""
        return [self._known(each) for each in self._listed() if Path(each["worktree"]).parent == self.folder]

    def find(self, name: str) -> Worktree:
        """Returns the worktree. Raises UsageError for a name that no worktree has."""
        found = self.worktrees()
        for one in found:
            if one.name == name:
                return one
        known = f"there are {', '.join(one.name for one in found)}" if found else "there is no worktree"
        raise UsageError(f"no worktree {name!r} in {self.folder}: {known}")

    def around(self, folder: Path) -> Worktree | None:
        """Returns the worktree that a folder is in."""
        return next((one for one in self.worktrees() if folder.is_relative_to(one.path)), None)

    def add(self, name: str, base: str | None) -> tuple[Worktree, int]:
        """Makes a worktree: its branch from `base`, else from the present checkout, with copies of the ignored files
        that `.worktreeinclude` names; also returns their number. Raises UsageError, GitRefused; then no part of it is
        left."""
        check_name(name)
        start = self.commit(base)
        path = self.folder / name
        if os.path.lexists(path):
            raise UsageError(
                f"{path} is there and is no worktree of {self.main.folder}: remove it, or take another name"
            )
        target = self.here.line("branch", "--show-current")
        if self._has_branch(name):
            raise UsageError(f"there is a branch {name!r} already: take another name, or check it out yourself")
        worktree = Worktree(name, path, start, name, start, target or None)
        unfinished = self._unfinished(name)
        with unfinished.held() as lock:
            unfinished.clear()
            try:
                return worktree, self._make(worktree, unfinished, lock)
            except BaseException as error:
                with suppress(CtlError):  # the next call removes the rest
                    unfinished.clear()
                if isinstance(error, OSError):
                    raise GitRefused(f"{path} was not made: {error.filename}: {error.strerror}") from None
                raise

    def _make(self, worktree: Worktree, unfinished: Unfinished, lock: int) -> int:
        start = str(worktree.base)
        common = Path(self.here.line("rev-parse", "--path-format=absolute", "--git-common-dir"))
        (common / "worktrees").mkdir(exist_ok=True)  # else git would make it in the temporary folder
        self.here.ask("worktree", "add", "--detach", "--", str(unfinished.tree), start, holding=lock)
        link = unfinished.tree / ".git"  # it names the temporary folder, which is gone
        link.write_text(f"gitdir: {common / 'worktrees' / Path(link.read_text().strip()).name}\n")
        copied = self._copy_included(unfinished.tree)
        unfinished.goes_with(start)
        self.here.ask("config", f"branch.{worktree.name}.synapsed-base", start)
        if worktree.target:
            self.here.ask("config", f"branch.{worktree.name}.synapsed-target", worktree.target)
        made = Git(unfinished.tree)
        made.ask("update-ref", f"refs/heads/{worktree.name}", start, "")
        made.ask("symbolic-ref", "HEAD", f"refs/heads/{worktree.name}")
        unfinished.publish()
        return copied

    def commit(self, base: str | None) -> str:
        """Returns the commit that a worktree begins from. Raises UsageError."""
        try:
            return self.here.line("rev-parse", "--verify", "--end-of-options", f"{base or 'HEAD'}^{{commit}}")
        except GitRefused:
            told = (
                f"--base: there is no commit {base!r}" if base else "the repository has no commit yet: make the first"
            )
            raise UsageError(told) from None

    def clear_away(self, name: str) -> bool:
        """Removes the rest of a worktree that was half made or half removed; returns False if there was none. Raises
        CannotBeDeleted, GitRefused."""
        unfinished = self._unfinished(name)
        if not NAME.fullmatch(name) or not unfinished.exists:
            return False
        with unfinished.held():
            unfinished.clear()
        return True

    def _unfinished(self, name: str) -> Unfinished:
        return Unfinished(self.main, self.folder, name)

    def _copy_included(self, tree: Path) -> int:
        """Copies the included files: no file is overwritten, nothing outside of the worktree is written, and a link is
        copied as a link."""
        source = self.here.folder
        return sum(_copy(source / name, tree / name, tree) for name in _included(self.here))

    def set_up(
        self, worktree: Worktree, command: str | None, environ: Mapping[str, str], allows: Callable[[str], bool]
    ) -> None:
        """Runs the command that prepares the worktree, once; its output goes to stderr. A command in the repository's
        own configuration runs only if `allows` returns True. Raises SetupFailed."""
        key = f"branch.{worktree.name}.synapsed-setup"
        if self._config(key) == "done":
            return
        if command is None:
            told = [each for each in self.here.settings() if each.key == SETUP_KEY and each.value is not None]
            command = told[-1].value if told else None
            if command and told[-1].of_the_repository and not allows(command):
                raise SetupFailed(
                    f"the set-up command {command!r} stands in the repository's own configuration, where an agent may "
                    f"have written it: --setup {shlex.quote(command)} runs it, --setup '' starts without it, "
                    f"and 'git config --global {SETUP_KEY}' is yours alone"
                )
        if not command:
            return
        env = {key: value for key, value in environ.items() if not key.startswith("GIT_")}
        env |= {"SYNAPSE_WORKTREE": str(worktree.path), "SYNAPSE_REPOSITORY": str(self.main.folder)}
        code = subprocess.run(["/bin/sh", "-c", command], cwd=worktree.path, env=env, stdout=2, check=False).returncode
        if code != 0:
            raise SetupFailed(
                f"the set-up command {command!r} ended with {code} in {worktree.path}: nothing was started; the same "
                f"command tries again, 'synapsectl worktree remove {worktree.name}' removes the worktree"
            )
        self.here.ask("config", key, "done")

    def remove(self, worktree: Worktree, *, force: bool) -> str | None:
        """Removes the folder, and its branch; returns the last commit. Raises WorkWouldBeLost, GitRefused,
        CannotBeDeleted: then nothing was deleted, or `clear_away` can complete the removal."""
        listed = self._listed()
        facts = next(each for each in listed if Path(each["worktree"]) == worktree.path)
        if "locked" in facts:
            why = f" ({facts['locked']})" if facts["locked"] else ""
            raise GitRefused(
                f"{worktree.name} is locked{why}: 'git worktree unlock {shlex.quote(str(worktree.path))}' first"
            )
        if not force:
            self._keep(worktree)
        if there := worktree.path.is_dir():
            check_deletable(worktree.path)
        ref = f"refs/heads/{worktree.name}"
        its_own = worktree.base is not None or worktree.branch == worktree.name
        elsewhere = any(each.get("branch") == ref for each in listed if each is not facts)
        goes = its_own and not elsewhere and self._has_branch(worktree.name)
        unfinished = self._unfinished(worktree.name)
        with unfinished.held():
            unfinished.goes_with(self.main.line("rev-parse", "--verify", ref) if goes else None)
            if there:
                unfinished.withdraw()
            unfinished.clear()
        return worktree.head

    def merge(self, worktree: Worktree, allows: Callable[[Sequence[str]], bool]) -> int:
        """Merges the worktree's branch into the present checkout; returns git's exit code. The repository's own hooks,
        filters and the like run only if `allows` returns True. Raises WorkWouldBeLost, and the errors of its steps."""
        if self.here.folder == worktree.path:
            raise UsageError(f"this is the worktree {worktree.name} itself: merge it from the checkout that takes it")
        if worktree.path.is_dir():
            self._keep_uncommitted(worktree, "commit them")
        if worktree.branch is None:
            raise WorkWouldBeLost(
                f"{worktree.name} has no branch checked out: "
                f"'git -C {shlex.quote(str(worktree.path))} switch -c BRANCH' gives its commits one"
            )
        # git would merge a tag of the same name instead.
        tagged = self.here.says("show-ref", "--verify", "--quiet", f"refs/tags/{worktree.branch}")
        branch = f"heads/{worktree.branch}" if tagged else worktree.branch
        runs = self.here.merge_runs()
        return self.here.run("merge", "--no-edit", "--", branch, its_own=bool(runs) and allows(runs))

    def _keep(self, worktree: Worktree) -> None:
        again = f"--force removes {worktree.name} all the same"
        if worktree.path.is_dir():
            self._keep_uncommitted(worktree, again)
            self._keep_inside(worktree, again)
        heads = [*([worktree.head] if worktree.head else [])]
        heads += [f"refs/heads/{worktree.name}"] if self._has_branch(worktree.name) else []
        others = (f"--exclude={worktree.name}", "--branches", "--tags", "--remotes")
        if heads and (count := int(self.main.line("rev-list", "--count", *heads, "--not", *others))):
            commits = counted(count, "commit that is", "commits that are")
            raise WorkWouldBeLost(
                f"{worktree.name} has {commits} in no other branch: 'synapsectl worktree merge {worktree.name}' merges "
                f"them; {again}"
            )
        left = left_behind(Git(worktree.path)) if worktree.path.is_dir() else []
        if left and (lost := self.main.line("rev-list", "--ignore-missing", *left, "--not", "--all").split()):
            commits = counted(len(lost), "commit that has", "commits that have")
            raise WorkWouldBeLost(
                f"{worktree.name} has {commits} no branch any more: 'git branch NAME {lost[0][:12]}' keeps the last; "
                f"{again}"
            )

    def _keep_uncommitted(self, worktree: Worktree, advice: str) -> None:
        git = Git(worktree.path)
        if changed := uncommitted(git):
            raise WorkWouldBeLost(f"{worktree.name} has changes that are not committed ({some(changed)}); {advice}")
        if half := half_done(git):
            raise WorkWouldBeLost(f"{worktree.name} has something unfinished ({half}); {advice}")

    def _keep_inside(self, worktree: Worktree, again: str) -> None:
        """Checks for work that git ignores in a checkout: other worktrees, repositories and ignored files that
        matter."""
        git = Git(worktree.path)
        inside = [path for each in self._listed() if (path := Path(each["worktree"])).is_relative_to(worktree.path)]
        if other := next((path for path in inside if path != worktree.path), None):
            raise WorkWouldBeLost(f"{other} is in it, another worktree of this repository: remove that one first")
        if lost := inner_work(git):
            raise WorkWouldBeLost(f"{worktree.name} has more than its own files: {lost}; {again}")
        if changed := changed_copies(git, _included(git), (self.main.folder, self.here.folder)):
            raise WorkWouldBeLost(
                f"{worktree.name} has files of {INCLUDE} that differ from those in {self.main.folder} "
                f"({some(changed)}); {again}"
            )

    def _has_branch(self, name: str) -> bool:
        return self.main.says("show-ref", "--verify", "--quiet", f"refs/heads/{name}")

    def _listed(self) -> list[dict[str, str]]:
        """Returns every worktree of the repository, including this one and the first, as git lists them."""
        told = os.fsdecode(self.here.ask("worktree", "list", "--porcelain", "-z"))
        blocks = (block.split("\0") for block in told.split("\0\0"))
        found = [dict(line.partition(" ")[::2] for line in block if line) for block in blocks]
        return [each for each in found if each]

    def _known(self, told: Mapping[str, str]) -> Worktree:
        path, head = Path(told["worktree"]), told.get("HEAD", "")
        branch = told["branch"].removeprefix("refs/heads/") if "branch" in told else None
        base, target = (self._config(f"branch.{path.name}.synapsed-{key}") for key in ("base", "target"))
        return Worktree(path.name, path, head if head.strip("0") else None, branch, base, target)

    def _config(self, key: str) -> str | None:
        return self.here.line("config", "--get", key) if self.here.says("config", "--get", key) else None


def check_name(name: str) -> None:
    """Raises UsageError if it is no plain name for a branch and a folder."""
    if not NAME.fullmatch(name) or ".." in name or name.endswith((".lock", ".")):
        raise UsageError(f"--worktree: {name!r} is no name of letters, digits, '.', '_' and '-', at most 100 of them")


def ahead(git: Git, base: str) -> int:
    """Returns the number of commits since `base`."""
    return int(git.line("rev-list", "--count", f"{base}..HEAD"))


class ShownChanges(NamedTuple):
    """The changes of a checkout. `diff` is git's output; `unseen` has the reason for each path that cannot be shown."""

    diff: bytes
    unseen: list[str]


def changes(git: Git, base: str | None, *, stat_only: bool = False) -> ShownChanges:
    """Returns the changes since `base`, else since the last commit: committed or not, and files that git does not know
    yet. The checkout's own index is not touched."""
    base = base or _last(git)
    options = ["--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", *(["--stat"] if stat_only else [])]
    options += ["--ignore-submodules=dirty", "--submodule=short"]  # to look into a submodule, git runs its commands
    with tempfile.TemporaryDirectory(prefix="synapsectl-") as folder:
        copied = git.copy_index(Path(folder))
        # Named one by one: with `:/` git would look into submodules too, and run their commands.
        if others := git.names("ls-files", "-z", "--others", "--exclude-standard"):
            listed = b"".join(b":(top,literal)" + os.fsencode(name) + b"\0" for name in others)
            from_stdin = ("--pathspec-from-file=-", "--pathspec-file-nul")
            git.ask("add", "--intent-to-add", "--ignore-errors", *from_stdin, stdin=listed, index=copied, good=1)
        added = set(git.names("ls-files", "-z", index=copied))
        unseen = [f"{named(name)} ({NO_COMMIT})" for name in others if name.rstrip("/") not in added]
        changed = git.names(
            "diff", "--name-only", "-z", "--no-renames", "--ignore-submodules=dirty", base, index=copied
        )
        closed = {name: why for name in changed if (why := _why_unread(git.folder / name))}
        unseen += [f"{named(name)} ({why})" for name, why in closed.items()]
        without = [f":(exclude,top,literal){name}" for name in closed]
        diff = git.ask("diff", *options, base, "--", *([":(top)", *without] if closed else []), index=copied)
        return ShownChanges(diff, unseen + git.closed_folders())


def _why_unread(path: Path) -> str | None:
    """Returns the reason why git cannot read a file; None if it can, or the file is gone."""
    try:
        if stat.S_ISREG(path.lstat().st_mode):
            path.open("rb").close()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return error.strerror
    return None


def base_of(git: Git, worktree: Worktree | None) -> str | None:
    """Returns the commit at which the worktree's changes begin: the last one in common with the branch that it came
    from, else its base."""
    if worktree is None or worktree.base is None:
        return None
    for ref in (worktree.target, worktree.base):
        wanted = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        if ref and git.says(*wanted) and git.says("merge-base", "HEAD", commit := git.line(*wanted)):
            return git.line("merge-base", "HEAD", commit)
    return None


def _last(git: Git) -> str:
    if git.says("rev-parse", "--verify", "--quiet", "HEAD"):
        return "HEAD"
    return git.line("hash-object", "-t", "tree", "/dev/null")


def _included(git: Git) -> list[str]:
    """Returns the ignored files of the checkout that its `.worktreeinclude` names."""
    if not (git.folder / INCLUDE).is_file():
        return []
    matching = git.names("ls-files", "-z", "--others", "--ignored", f"--exclude-from={git.folder / INCLUDE}")
    listed = b"".join(os.fsencode(name) + b"\0" for name in matching)
    return git.names("check-ignore", "-z", "--stdin", stdin=listed, good=1) if matching else []


def _copy(source: Path, target: Path, root: Path) -> bool:
    """Copies a file; returns True if it was copied. It is not if a folder on the way is a link, which may lead out of
    the worktree."""
    if os.path.lexists(target):
        return False
    for folder in reversed([each for each in target.parents if each.is_relative_to(root) and each != root]):
        if folder.is_symlink() or folder.is_file():
            return False
        folder.mkdir(exist_ok=True)
    mode = source.lstat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        return False
    shutil.copy2(source, target, follow_symlinks=False)
    return True
