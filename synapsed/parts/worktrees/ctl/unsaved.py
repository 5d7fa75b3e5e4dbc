"""Finds work that would be lost with a folder: uncommitted changes, and commits that are nowhere else.

An agent may have written the repository's configuration and its index, so a file counts as changed even if these make
git ignore it.
"""

import filecmp
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from synapsectl.output import named
from synapsed.parts.worktrees.ctl.git import Git
from synapsed.shared.counts import counted

IN_PROGRESS = (
    *("rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG"),
    "sequencer",  # a pick of several commits: CHERRY_PICK_HEAD is gone after each commit
)
"""Files of git that show an unfinished operation."""
STATUS = ("status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=dirty", "--untracked-files=normal")
LOG = ("log", "--no-show-signature", "--no-patch", "--walk-reflogs", "--format=%H%x09%gs", "HEAD", "--")
LEFT = re.compile(r"checkout: moving from ([0-9a-f]{40,64}) to ")
"""The entry of HEAD's log for a commit without a branch, from which something else was checked out."""
FETCHED = ("clone:", "checkout:", "reset:", "pull:", "fetch:")
"""First words of entries in HEAD's log that do not tell of a new commit."""
GITLINK = "160000"
"""Mode of a submodule in an index."""
SHOWN = 3
"""Most names of files in a message."""


def uncommitted(git: Git) -> list[str]:
    """Returns paths with changes that are in no commit, including files that git does not know, and submodules with
    such changes."""
    inside = ((name, Git(git.folder / name)) for name in submodules(git))
    changed = [name for name, inner in inside if os.path.lexists(inner.folder / ".git") and uncommitted(inner)]
    return list(dict.fromkeys([*_own_uncommitted(git), *changed]))


def _own_uncommitted(git: Git) -> list[str]:
    marked = [entry[2:] for entry in git.names("ls-files", "-v", "-z") if entry[0] == "S" or entry[0].islower()]
    there = b"".join(os.fsencode(name) + b"\0" for name in marked if os.path.lexists(git.folder / name))
    if not there:
        return [entry[3:] for entry in git.names(*STATUS)]
    with tempfile.TemporaryDirectory(prefix="synapsectl-") as folder:
        copied = git.copy_index(Path(folder))
        for mark in ("--no-assume-unchanged", "--no-skip-worktree"):
            git.ask("update-index", mark, "-z", "--stdin", stdin=there, index=copied)
        return [entry[3:] for entry in git.names(*STATUS, index=copied)]


def half_done(git: Git) -> str | None:
    """Returns the file that shows an unfinished merge, rebase or the like."""
    private = Path(git.line("rev-parse", "--path-format=absolute", "--git-dir"))
    return next((name for name in IN_PROGRESS if (private / name).exists()), None)


def submodules(git: Git) -> list[str]:
    entries = (entry.partition("\t") for entry in git.names("ls-files", "--stage", "-z"))
    return [name for facts, _, name in entries if facts.startswith(GITLINK)]


def inner_work(git: Git) -> str | None:
    """Returns the reason why a repository inside this checkout, a submodule or an ignored one, has work that is nowhere
    else."""
    for name in [*submodules(git), *_ignored_repositories(git)]:
        inner = Git(git.folder / name)
        if not os.path.lexists(inner.folder / ".git"):
            continue
        if changed := uncommitted(inner):
            return f"{name} in it has changes that are not committed ({some(changed)})"
        if inner.says("show-ref", "--quiet", "--verify", "refs/stash"):
            return f"{name} in it has a stash"
        if half := half_done(inner):
            return f"{name} in it has something unfinished ({half})"
        if count := _commits_only_there(inner):
            return f"{name} in it has {counted(count, 'commit that is', 'commits that are')} in no remote"
        if deeper := inner_work(inner):
            return f"{deeper}, in {name}"
    return None


def left_behind(git: Git) -> list[str]:
    """Returns the commits that had no branch when something else was checked out: only HEAD's log has them, unless they
    got a branch later."""
    return list(dict.fromkeys(found[1] for _, what in _head_log(git) if (found := LEFT.match(what))))


def _commits_only_there(git: Git) -> int:
    """Returns the number of commits that no remote of this repository is known to have.

    A tag may be the remote's or the person's. So a commit of a tag counts if HEAD's log shows that it was made here, or
    if the log does not go back to the clone.
    """
    log = _head_log(git)
    made = {commit for commit, what in log if not what.startswith(FETCHED)}
    shallow = Path(git.line("rev-parse", "--path-format=absolute", "--git-path", "shallow"))
    remote = ["--remotes", *(shallow.read_text("ascii").split() if shallow.is_file() else [])]
    own = ["HEAD"] if log or git.says("rev-parse", "--verify", "--quiet", "HEAD") else []
    own += [*left_behind(git), "--exclude=refs/remotes/*", "--exclude=refs/tags/*", "--all"]
    missing = "--ignore-missing"  # of a commit that git has thrown away
    found = set(git.line("rev-list", missing, *own, "--not", *remote).split())
    tagged = set(git.line("rev-list", missing, "--tags", "--not", *remote).split())
    if log and log[-1][1].startswith("clone:"):
        found = found - (tagged - made)
        tagged &= made
    return len(found | tagged)


def _head_log(git: Git) -> list[tuple[str, str]]:
    """Returns the entries of HEAD's log, the newest first, each as a commit and the reason for the entry."""
    if not git.says("rev-parse", "--verify", "--quiet", "HEAD"):
        return []
    entries = (line.partition("\t") for line in git.line(*LOG).splitlines())
    return [(commit, what) for commit, _, what in entries]


def changed_copies(git: Git, names: Sequence[str], sources: Sequence[Path]) -> list[str]:
    """Returns the ignored files among `names` that differ from their namesakes in all folders from which they may have
    been copied."""
    return [name for name in names if not any(_same(git.folder / name, source / name) for source in sources)]


def some(names: Sequence[str]) -> str:
    shown = ", ".join(map(named, names[:SHOWN]))
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"


def _ignored_repositories(git: Git) -> Iterator[str]:
    listed = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    for name in git.names(*listed):
        if name.endswith("/"):
            for folder, folders, files in os.walk(git.folder / name):
                if ".git" in folders or ".git" in files:
                    yield os.path.relpath(folder, git.folder)
                    folders.clear()


def _same(one: Path, other: Path) -> bool:
    if one.is_symlink() or other.is_symlink():
        return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
    return other.is_file() and filecmp.cmp(one, other, shallow=False)
