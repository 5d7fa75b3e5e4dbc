"""Worktrees that are half made or half removed, kept out of their final place.

A worktree is made in a folder of its own, `<repository>.worktrees/.NAME/NAME`, and renamed once it is complete; before
a removal it is renamed to that folder. So the content of that folder after a failure or a signal is not an agent's
work: the next `start --worktree NAME` or `worktree remove NAME` removes it. `branch` beside it has the commit of the
branch that goes with it.
"""

import fcntl
import os
import pwd
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from synapsectl.errors import REFUSED, CtlError
from synapsed.parts.worktrees.ctl.git import Git, GitRefused

MOUNTS = Path("/proc/self/mountinfo")
CAP_FOWNER = 1 << 3
_ESCAPED = re.compile(rb"\\([0-7]{3})")


class CannotBeDeleted(CtlError):
    """Error for an entry of a worktree that cannot be deleted."""

    exit_code = REFUSED
    code = "CANNOT_BE_DELETED"


class Unfinished:
    """The place where the worktree `name` is made, and removed. `main` is the first checkout of its repository."""

    def __init__(self, main: Git, folder: Path, name: str) -> None:
        self.name = name
        self.tree = folder / f".{name}" / name
        self._main = main
        self._whole = folder / name
        self._branch = self.tree.with_name("branch")

    @property
    def exists(self) -> bool:
        return self.tree.parent.is_dir()

    @contextmanager
    def held(self) -> Iterator[int]:
        """Holds the lock of the place, so that no other process makes or removes the worktree meanwhile. A git process
        that got the file descriptor keeps the lock even after its synapsectl has ended. Raises GitRefused."""
        place = self.tree.parent
        fd = self._lock(place)
        try:
            yield fd
        finally:
            for folder in (place, place.parent):
                with suppress(OSError):
                    folder.rmdir()
            os.close(fd)

    def _lock(self, place: Path) -> int:
        try:
            while True:
                place.mkdir(parents=True, exist_ok=True)
                fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(fd), place.stat()):
                        return fd
                os.close(fd)  # its last holder is done, and has removed it
        except BlockingIOError:
            os.close(fd)
            raise GitRefused(
                f"another synapsectl, or its git, makes or removes {self.name}: try again once that has ended"
            ) from None
        except OSError as error:
            raise GitRefused(f"{place} cannot be made: {error.strerror}") from None

    def goes_with(self, commit: str | None) -> None:
        """Notes the branch of this name, at `commit`, which is removed with the worktree; None: no branch is
        removed."""
        self._branch.write_text(commit or "")

    def publish(self) -> None:
        """Moves the finished worktree to its place."""
        self._register(self._whole)
        self.tree.rename(self._whole)
        self._branch.unlink()

    def withdraw(self) -> None:
        """Moves a worktree to be removed from its place. Raises CannotBeDeleted."""
        try:
            self._whole.rename(self.tree)
        except OSError as error:
            self._branch.unlink()
            raise CannotBeDeleted(f"{self._whole} cannot be deleted: {error.strerror}; nothing was") from None

    def clear(self) -> None:
        """Deletes the folder, git's record of it, and the branch that goes with it. Raises CannotBeDeleted, GitRefused;
        a repeated call continues."""
        self._register(self.tree)
        _delete(self.tree)
        for path in registered(self._main):
            if path == self.tree or (path == self._whole and not os.path.lexists(path)):
                self._main.ask("worktree", "remove", "--force", "--force", "--", str(path))
        if not self._branch.exists():
            return
        commit = self._branch.read_text()
        if commit and self._whole not in registered(self._main):
            self._main.says("update-ref", "-d", f"refs/heads/{self.name}", commit)
            if not self._main.says("show-ref", "--verify", "--quiet", f"refs/heads/{self.name}"):
                self._main.says("config", "--remove-section", f"branch.{self.name}")
        self._branch.unlink()

    def _register(self, place: Path) -> None:
        """Registers the tree in `place` with git."""
        try:
            link = (self.tree / ".git").read_text().strip().removeprefix("gitdir: ")
        except OSError:
            return
        private = Path(os.path.normpath(self._whole / link))
        if private.is_dir():
            (private / "gitdir").write_text(f"{place / '.git'}\n")


def unfinished_in(folder: Path) -> list[str]:
    """Returns the names of worktrees that are half made or half removed."""
    if not folder.is_dir():
        return []
    return sorted(entry.name[1:] for entry in folder.iterdir() if entry.name[0] == "." and entry.is_dir())


def registered(git: Git) -> list[Path]:
    """Returns the worktrees that git knows."""
    lines = git.names("worktree", "list", "--porcelain", "-z")
    return [Path(line.removeprefix("worktree ")) for line in lines if line.startswith("worktree ")]


def check_deletable(root: Path) -> None:
    """Raises CannotBeDeleted if something in `root` is known not to be deletable."""
    mounts, owns_all = _mounts(), _owns_all()
    try:
        for name, folders, files in os.walk(root, onerror=_raise):
            folder = Path(name)
            if os.fsencode(name) in mounts:
                raise CannotBeDeleted(f"{folder} is a mount point: nothing was deleted; unmount it first")
            if (folders or files) and not os.access(folder, os.W_OK | os.X_OK):
                raise _resists(folder)
            if folder.stat().st_mode & 0o1000 and not owns_all and folder.stat().st_uid != os.geteuid():
                for each in (folder / one for one in (*folders, *files)):
                    if each.lstat().st_uid != os.geteuid():
                        raise _resists(each)
    except FileNotFoundError:
        return  # a program changes files in it now
    except OSError as error:
        raise _resists(Path(error.filename)) from None


def _raise(error: OSError) -> None:
    raise error


def _resists(path: Path) -> CannotBeDeleted:
    status = path.lstat()
    try:
        owner = pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        owner = str(status.st_uid)
    told = f"{path} may not be deleted by you (mode {status.st_mode & 0o7777:04o}, {owner}'s): nothing was deleted; "
    if status.st_uid != os.geteuid():
        return CannotBeDeleted(f"{told}{owner} or root can delete it")
    return CannotBeDeleted(f"{told}'chmod -R u+rwX {shlex.quote(str(path))}' makes it so that you may")


def _owns_all() -> bool:
    """Returns True for root, unless a container has removed that capability."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return os.geteuid() == 0
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    return os.geteuid() == 0 and (found is None or int(found[1], 16) & CAP_FOWNER != 0)


def _mounts() -> set[bytes]:
    try:
        lines = MOUNTS.read_bytes().splitlines()
    except OSError:
        return set()
    return {_ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), line.split(b" ")[4]) for line in lines}


def _delete(tree: Path) -> None:
    left: list[tuple[str, BaseException]] = []

    def keep(_: Callable[..., object], path: str, error: BaseException) -> None:
        if not isinstance(error, FileNotFoundError):
            left.append((path, error))

    shutil.rmtree(tree, onexc=keep)
    if left:
        path, error = left[0]
        why = error.strerror if isinstance(error, OSError) else error
        raise CannotBeDeleted(f"{path} cannot be deleted: {why}; once it can, 'synapsectl worktree remove' ends it")
