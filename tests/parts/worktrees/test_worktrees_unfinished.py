"""A worktree is made whole or not at all, and removed whole: whatever fails, or ends the tool, in whichever step."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from synapsed.parts.worktrees.ctl import unfinished
from synapsed.parts.worktrees.ctl.git import Git
from synapsed.parts.worktrees.ctl.unfinished import CannotBeDeleted, check_deletable
from tests.parts.worktrees.test_worktrees import UNPRIVILEGED, Repo, needs_setpriv, repo
from tests.support.daemon import eventually
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon
from tests.synapsectl.pty_tool import PtyTool

__all__ = ["repo"]

DIES = """
import os, sys
from pathlib import Path
from synapsed.parts.worktrees.ctl.checkout import Repository

left = int(sys.argv[2])
CHANGES = {"add", "remove", "update-ref", "symbolic-ref", "config"}
IN_THE_FOLDER = {"os.mkdir", "os.rename", "os.remove", "os.rmdir"}

def look(event, args):
    global left
    changes = event == "subprocess.Popen" and CHANGES & set(args[1]) and "--list" not in args[1]
    if event == "open" and isinstance(args[0], str) and (args[2] or 0) & os.O_WRONLY:
        changes = "/.git/worktrees/" in args[0] or ".worktrees" in args[0]
    if event in IN_THE_FOLDER and ".worktrees" in str(args[0]):
        changes = True
    if changes:
        left -= 1
        if left == 0:
            os._exit(9)

repository = Repository(Path.cwd())
sys.addaudithook(look)
if sys.argv[1] == "add":
    repository.add("login", None)
else:
    repository.remove(repository.find("login"), force=False)
"""


def dies(verb: str, step: int) -> bool:
    """Begins to make the worktree login, or to remove it, and is gone in that step; returns False if there is no such
    step."""
    done = subprocess.run([sys.executable, "-c", DIES, verb, str(step)], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 9), done.stderr
    return done.returncode == 9


def assert_whole(repo: Repo) -> None:
    tree = repo.tree("login")
    assert repo.git("branch", "--show-current", at=tree) == "login\n"
    assert repo.git("status", "--porcelain", at=tree) == ""
    listed = repo.git("worktree", "list", "--porcelain")
    assert (listed.count("worktree "), f"worktree {tree}\n" in listed) == (2, True)
    assert [each.name for each in tree.parent.iterdir()] == ["login"]
    assert repo.git("config", "branch.login.synapsed-base") == repo.git("rev-parse", "main")


def assert_nothing(repo: Repo, *branches: str) -> None:
    beside = repo.tree("login").parent
    assert not beside.exists() or not list(beside.iterdir())
    assert repo.git("worktree", "list", "--porcelain").count("worktree ") == 1
    assert repo.git("branch", "--format=%(refname:short)").split() == [*branches, "main"]
    assert "branch.login" not in repo.git("config", "--list")


@pytest.mark.night
def test_one_that_dies_while_it_makes_one(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    repo.git("pack-refs", "--all")
    step = 1
    while dies("add", step):
        again = ctl("start", "dummy", "--worktree", "login")
        assert again.code == 0, (step, again.err)
        assert_whole(repo)
        daemon.agents.clear()
        assert ctl("worktree", "remove", "login").code == 0
        assert_nothing(repo)
        step += 1
    assert step > 8
    assert_whole(repo)


@pytest.mark.night
@pytest.mark.parametrize("next_verb", ["remove", "start"])
def test_one_that_dies_while_it_removes_one(repo: Repo, daemon: FakeDaemon, ctl: Ctl, next_verb: str) -> None:
    repo.commit("sub.txt", "two\n")
    step = 1
    while True:
        ctl("start", "dummy", "--worktree", "login")
        daemon.agents.clear()
        repo.git("pack-refs", "--all")
        if not dies("remove", step):
            break
        if next_verb == "start":
            again = ctl("start", "dummy", "--worktree", "login")
            assert again.code == 0, (step, again.err)
            assert_whole(repo)
            daemon.agents.clear()
        again = ctl("worktree", "remove", "login")
        assert again.code == 0 or "no worktree 'login'" in again.err, (step, again.err)
        assert_nothing(repo)
        step += 1
    assert step > 5
    assert_nothing(repo)


@pytest.mark.parametrize("smudge", ["is-not-installed %f", "kill -9 $PPID"])
def test_a_checkout_that_fails_leaves_nothing(repo: Repo, ctl: Ctl, smudge: str) -> None:
    """As where git-lfs is configured, and not installed; or where git itself is ended."""
    repo.git("config", "--global", "filter.lfs.clean", "cat")
    (repo.folder / ".gitattributes").write_text("*.bin filter=lfs\n")
    repo.commit("a.bin", "binary\n")
    repo.git("config", "--global", "filter.lfs.smudge", smudge)
    repo.git("config", "--global", "filter.lfs.required", "true")
    failed = ctl("start", "dummy", "--worktree", "login")
    assert (failed.code, "git" in failed.err) == (6, True)
    assert_nothing(repo)
    repo.git("config", "--global", "filter.lfs.smudge", "cat")
    assert ctl("start", "dummy", "--worktree", "login").code == 0
    assert_whole(repo)


@pytest.mark.night
def test_a_ctrl_c_while_a_filter_sleeps_leaves_nothing(
    repo: Repo, daemon: FakeDaemon, ctl: Ctl, tmp_path: Path
) -> None:
    """The terminal's: to all of the process group, the tool, git and its filter."""
    begun, before = tmp_path / "begun", set(daemon.agents)
    repo.git("config", "--global", "filter.lfs.clean", "cat")
    (repo.folder / ".gitattributes").write_text("*.bin filter=lfs\n")
    repo.commit("a.bin", "binary\n")
    repo.git("config", "--global", "filter.lfs.smudge", f"touch {begun}; sleep 600; cat")
    repo.git("config", "--global", "filter.lfs.required", "true")
    tool = PtyTool("start", "dummy", "--worktree", "login")
    try:
        eventually(begun.exists, "the filter runs")
        tool.type(b"\x03")
        assert tool.end() == 130, tool.shown
    finally:
        tool.close()
    assert_nothing(repo)
    assert set(daemon.agents) == before
    repo.git("config", "--global", "filter.lfs.smudge", "cat")
    assert ctl("start", "dummy", "--worktree", "login").code == 0
    assert_whole(repo)


def test_one_that_is_interrupted_leaves_nothing(repo: Repo, ctl: Ctl, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(unfinished.Unfinished, "publish", interrupted)
        assert ctl("start", "dummy", "--worktree", "login").code == 130
    assert_nothing(repo)


def test_what_is_in_the_way_of_a_copy_leaves_nothing(repo: Repo, ctl: Ctl) -> None:
    """The branch has a file where the checkout has a folder with a file that is to come along."""
    repo.git("switch", "-qc", "other")
    repo.commit("conf", "a file\n")
    repo.git("switch", "-q", "main")
    (repo.folder / "conf").mkdir()
    (repo.folder / "conf" / "local.env").write_text("x\n")
    (repo.folder / ".worktreeinclude").write_text("*.env\n")
    done = ctl("start", "dummy", "--worktree", "login", "--base", "other")
    assert done.code == 0, done.err
    assert (repo.tree("login") / "conf").read_text() == "a file\n"


@pytest.mark.parametrize("wrong", [("--env", "novalue"), ("--cols", "0")])
def test_an_agent_that_is_not_started_leaves_nothing(repo: Repo, ctl: Ctl, wrong: tuple[str, str]) -> None:
    assert ctl("start", "dummy", "--worktree", "login", *wrong).code == 2
    assert_nothing(repo)


def test_without_a_daemon_nothing_is_left(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.die()
    assert ctl("start", "dummy", "--worktree", "login", "--no-spawn-daemon").code == 3
    assert_nothing(repo)


def test_two_at_once(repo: Repo, ctl: Ctl) -> None:
    """The lock is also that of a git that outlives its synapsectl."""
    place = repo.tree(".login")
    place.mkdir(parents=True)
    fd = os.open(place, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    refused = ctl("start", "dummy", "--worktree", "login")
    assert (refused.code, "another synapsectl, or its git" in refused.err) == (6, True)
    assert ctl("start", "dummy", "--worktree", "other").code == 0
    assert "login is half made or half removed" in ctl("worktree", "list").err
    os.close(fd)
    assert ctl("start", "dummy", "--worktree", "login").code == 0


def test_one_whose_branch_is_checked_out_elsewhere(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    ctl("start", "dummy", "--worktree", "login")
    daemon.agents.clear()
    repo.git("switch", "-q", "--detach", at=repo.tree("login"))
    repo.git("switch", "-q", "login")
    assert ctl("worktree", "remove", "login").code == 0
    assert repo.git("branch", "--show-current") == "login\n"
    assert repo.git("rev-parse", "login") == repo.git("rev-parse", "main")


@needs_setpriv
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_folder_that_may_not_be_deleted(repo: Repo, daemon: FakeDaemon, ctl: Ctl, force: tuple[str, ...]) -> None:
    """As Go's cache of modules."""
    ctl("start", "dummy", "--worktree", "login")
    daemon.agents.clear()
    closed = repo.tree("login") / "build" / "it's closed"
    closed.mkdir(parents=True)
    (closed / "made").write_text("x")
    closed.chmod(0o500)
    for _ in range(2):
        command = [*UNPRIVILEGED, sys.executable, "-m", "synapsectl", "worktree", "remove", "login", *force]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        )
        assert done.returncode == 6, done
        assert f"{closed} may not be deleted by you (mode 0500" in done.stderr
        assert "chmod -R u+rwX '" in done.stderr
        assert_whole(repo)
        assert (closed / "made").exists()
    closed.chmod(0o700)
    assert ctl("worktree", "remove", "login").code == 0
    assert_nothing(repo)


def test_what_resists_later_is_gone_on_with(
    repo: Repo, daemon: FakeDaemon, ctl: Ctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctl("start", "dummy", "--worktree", "login")
    daemon.agents.clear()

    def stubborn(_: Path) -> None:
        raise CannotBeDeleted("it cannot be deleted")

    with monkeypatch.context() as patched:
        patched.setattr(unfinished, "_delete", stubborn)
        assert ctl("worktree", "remove", "login").code == 6
        assert "login is half made or half removed" in ctl("worktree", "list").err
        assert ctl("start", "dummy", "--worktree", "login").code == 6
    (repo.tree(".login") / "login" / "a.txt").unlink()
    done = ctl("worktree", "remove", "login")
    assert (done.code, done.out) == (0, "what was left of login is removed\n")
    assert_nothing(repo)


def test_a_branch_that_goes_on_meanwhile_stays(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    ctl("start", "dummy", "--worktree", "login")
    unfinished_one = unfinished.Unfinished(Git(repo.folder), repo.tree("x").parent, "login")
    daemon.agents.clear()
    with unfinished_one.held():
        unfinished_one.goes_with(repo.git("rev-parse", "login").strip())
        unfinished_one.withdraw()
    repo.commit("more.txt", "more\n", at=unfinished_one.tree)
    assert ctl("worktree", "remove", "login").code == 0
    assert repo.git("log", "-1", "--format=%s", "login") == "change more.txt\n"


def test_what_shows_beforehand_that_it_would_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a b" / "c").mkdir(parents=True)
    (tmp_path / "link").symlink_to("/")
    check_deletable(tmp_path)
    mounts = tmp_path / "mountinfo"
    monkeypatch.setattr(unfinished, "MOUNTS", mounts)
    check_deletable(tmp_path)
    where = str(tmp_path / "a b").replace(" ", "\\040")
    mounts.write_text(f"36 35 98:0 / {where} rw,noatime - ext3 /dev/root rw\n")
    with pytest.raises(CannotBeDeleted, match="a b is a mount point"):
        check_deletable(tmp_path)
