"""Repositories as people have them: `start --worktree` makes one there, or leaves nothing and says why."""

from pathlib import Path

import pytest

from tests.parts.worktrees.test_worktrees import Repo, repo
from tests.parts.worktrees.test_worktrees_unfinished import assert_nothing
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon

__all__ = ["repo"]


def test_a_branch_whose_folder_would_be_in_the_way(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    """git keeps a branch as a file, and others below its name in a folder."""
    repo.git("branch", "login/old")
    told = ctl("start", "dummy", "--worktree", "login")
    assert (told.code, "login/old" in told.err, "Traceback" in told.err) == (6, True, False), told
    assert told.err.count("\n") == 1
    assert_nothing(repo, "login/old")
    repo.git("branch", "-D", "login/old")
    assert ctl("start", "dummy", "--worktree", "login").code == 0, "the same command works"


def test_before_the_first_commit(
    repo: Repo, daemon: FakeDaemon, ctl: Ctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = tmp_path / "new"
    repo.git("init", "-q", str(new))
    monkeypatch.chdir(new)
    told = ctl("start", "dummy", "--worktree", "login")
    assert (told.code in (2, 6), "commit" in told.err, told.err.count("\n")) == (True, True, 1), told
    assert not new.with_name("new.worktrees").exists()
    assert repo.git("worktree", "list", "--porcelain", at=new).count("worktree ") == 1


def test_from_within_another_worktree(
    repo: Repo, daemon: FakeDaemon, ctl: Ctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands beside the other, not in it."""
    assert ctl("start", "dummy", "--worktree", "first").code == 0
    monkeypatch.chdir(repo.tree("first"))
    assert ctl("start", "dummy", "--name", "two", "--worktree", "login").code == 0
    assert daemon.requests[-1][2]["cwd"] == str(repo.tree("login"))
    daemon.agents.clear()
    assert ctl("worktree", "remove", "login").code == 0
    assert not repo.tree("login").exists()
