"""Attacks on `worktree remove` and `merge`: work that git does not tell of where it is asked plainly."""

import shutil
from pathlib import Path

import pytest

from synapsed.parts.worktrees.ctl.git import Git
from tests.parts.worktrees.test_worktrees import Repo, repo
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon

__all__ = ["repo"]


@pytest.fixture
def tree(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> Path:
    """The worktree `login`, without an agent in it."""
    (repo.folder / ".worktreeinclude").write_text("*.env\n")
    (repo.folder / "local.env").write_text("KEY=1\n")
    repo.commit("deep.txt", "deep\n")
    assert ctl("start", "dummy", "--worktree", "login").code == 0
    daemon.agents.clear()
    return repo.tree("login")


def refused(ctl: Ctl, *wanted: str, verb: str = "remove") -> str:
    done = ctl("worktree", verb, "login")
    assert done.code == 6, done.err
    for words in wanted:
        assert words in done.err, done.err
    return done.err


def removed(ctl: Ctl, tree: Path, *options: str) -> None:
    done = ctl("worktree", "remove", "login", *options)
    assert done.code == 0, done.err
    assert not tree.exists()


def test_nothing_in_it(ctl: Ctl, tree: Path) -> None:
    removed(ctl, tree)


def test_a_repository_that_shows_no_unknown_files(repo: Repo, ctl: Ctl, tree: Path) -> None:
    repo.git("config", "status.showUntrackedFiles", "no")
    (tree / "new.txt").write_text("only here\n")
    refused(ctl, "not committed (new.txt)")
    refused(ctl, "not committed (new.txt)", verb="merge")


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
def test_a_file_that_git_is_told_not_to_look_at(repo: Repo, ctl: Ctl, tree: Path, mark: str) -> None:
    repo.git("update-index", mark, "a.txt", at=tree)
    (tree / "a.txt").write_text("only here\n")
    refused(ctl, "not committed (a.txt)")
    assert repo.git("ls-files", "-v", "a.txt", at=tree)[0] in "hS", "the checkout's own index is as it was"
    (tree / "a.txt").unlink()
    removed(ctl, tree)


def test_names_of_every_kind(ctl: Ctl, tree: Path) -> None:
    names = ("\x1b]0;title\x07", " leading", "-rf", "a\nline", "two words", "ümlaut")
    for name in names:
        (tree / name).write_text("only here\n")
    told = refused(ctl, "not committed (", " leading, -rf and 3 more")
    assert "\x1b" not in told
    for name in names[:3]:
        (tree / name).unlink()
    refused(ctl, "two words, ümlaut")


def test_a_file_that_was_copied_and_then_changed(ctl: Ctl, tree: Path) -> None:
    (tree / "local.env").write_text("KEY=2\n")
    refused(ctl, ".worktreeinclude", "(local.env)")
    (tree / "local.env").write_text("KEY=1\n")
    (tree / "other.env").symlink_to("local.env")
    refused(ctl, "(other.env)")
    (tree / "other.env").unlink()
    (tree / "build").mkdir()
    (tree / "build" / "made").write_text("made again by whoever wants it\n")
    removed(ctl, tree)


def test_a_worktree_in_a_folder_that_is_ignored(repo: Repo, ctl: Ctl, tree: Path) -> None:
    inner = tree / "build" / "inner"
    repo.git("worktree", "add", "-q", "--detach", str(inner))
    refused(ctl, f"{inner} is in it")
    repo.git("worktree", "remove", str(inner))
    removed(ctl, tree)


def test_a_repository_in_a_folder_that_is_ignored(repo: Repo, ctl: Ctl, tree: Path) -> None:
    inner = tree / "build" / "deps" / "inner"
    repo.git("clone", "-q", str(repo.folder), str(inner))
    (inner / "a.txt").write_text("only here\n")
    refused(ctl, "build/deps/inner in it has changes that are not committed (a.txt)")
    repo.git("stash", at=inner)
    refused(ctl, "build/deps/inner in it has a stash")
    repo.git("stash", "drop", at=inner)
    repo.commit("b.txt", "b\n", at=inner)
    refused(ctl, "build/deps/inner in it has 1 commit that is in no remote")
    repo.git("push", "-q", "origin", "HEAD:refs/heads/theirs", at=inner)
    removed(ctl, tree)


@pytest.mark.parametrize(
    ("acts", "words"),
    [
        ((["tag", "v1"],), "1 commit that is in no remote"),
        ((["switch", "-q", "--detach"], ["branch", "-qD", "main"]), "1 commit that is in no remote"),
        ((["tag", "v1"], ["reset", "-q", "--hard", "HEAD~1"]), "1 commit that is in no remote"),
        ((["update-ref", "refs/notes/mine", "HEAD"], ["reset", "-q", "--hard", "HEAD~1"]), "1 commit that is in no"),
        (
            (*(["switch", "-q", "--detach"], ["branch", "-qf", "main", "HEAD~1"], ["switch", "-q", "main"]),),
            "1 commit that is in no remote",
        ),
        ((["push", "-q", "origin", "HEAD:refs/heads/theirs"], ["bisect", "start"]), "unfinished (BISECT_LOG)"),
    ],
    ids=["tagged", "detached", "tag alone", "another reference", "left behind", "unfinished"],
)
def test_commits_of_an_inner_repository_that_no_branch_has(
    repo: Repo, ctl: Ctl, tree: Path, acts: tuple[list[str], ...], words: str
) -> None:
    inner = tree / "build" / "inner"
    repo.git("clone", "-q", str(repo.folder), str(inner))
    repo.git("tag", "old", at=inner)
    repo.git("remote", "set-head", "origin", "-d", at=inner)
    repo.commit("b.txt", "b\n", at=inner)
    for act in acts:
        repo.git(*act, at=inner)
    refused(ctl, f"build/inner in it has {words}" if "unfinished" not in words else words)


def test_a_tag_of_the_remote_is_no_work(repo: Repo, ctl: Ctl, tree: Path) -> None:
    """A tag that no branch of the remote has; a clone of that tag alone; and an older tag."""
    repo.git("switch", "-q", "--detach")
    repo.commit("b.txt", "b\n")
    repo.git("tag", "v1")
    repo.git("switch", "-q", "main")
    whole, shallow = tree / "build" / "whole", tree / "build" / "shallow"
    repo.git("clone", "-q", str(repo.folder), str(whole))
    repo.git("checkout", "-q", "v1", at=whole)
    repo.git("clone", "-q", "--depth", "1", "--branch", "v1", f"file://{repo.folder}", str(shallow))
    removed(ctl, tree)


def test_a_commit_of_the_worktree_that_was_left_without_a_branch(repo: Repo, ctl: Ctl, tree: Path) -> None:
    repo.git("switch", "-q", "--detach", at=tree)
    repo.commit("b.txt", "b\n", at=tree)
    lost = repo.git("rev-parse", "HEAD", at=tree).strip()
    repo.git("switch", "-q", "login", at=tree)
    refused(ctl, "1 commit that has no branch any more", f"git branch NAME {lost[:12]}")
    repo.git("branch", "kept", lost)
    removed(ctl, tree)


def test_a_pick_of_several_commits_that_is_not_over(repo: Repo, ctl: Ctl, tree: Path) -> None:
    base = repo.git("rev-parse", "main").strip()
    repo.commit("a.txt", "first\n")
    repo.commit("a.txt", "second\n")
    repo.commit("a.txt", "theirs\n", at=tree)
    assert not Git(tree).says("cherry-pick", f"{base}..main")
    repo.commit("a.txt", "both\n", at=tree)
    refused(ctl, "something unfinished (sequencer)")


def test_a_submodule(repo: Repo, ctl: Ctl, tree: Path) -> None:
    shutil.copytree(repo.folder, library := repo.folder.with_name("library"))
    allowed = ("-c", "protocol.file.allow=always")
    repo.git(*allowed, "submodule", "--quiet", "add", str(library), "lib", at=tree)
    repo.git("commit", "-qm", "a submodule", at=tree)
    assert ctl("worktree", "merge", "login").code == 0
    (tree / "lib" / "a.txt").write_text("only here\n")
    refused(ctl, "not committed (lib)")
    repo.commit("a.txt", "only here\n", at=tree / "lib")
    repo.git("commit", "-qam", "its commit", at=tree)
    assert ctl("worktree", "merge", "login").code == 0, "the repository has which commit it is, and not the commit"
    refused(ctl, "lib in it has 1 commit that is in no remote")
    repo.git("push", "-q", "origin", "HEAD:refs/heads/theirs", at=tree / "lib")
    removed(ctl, tree)


def test_no_branch_is_checked_out(repo: Repo, ctl: Ctl, tree: Path) -> None:
    repo.git("switch", "-q", "--detach", at=tree)
    repo.commit("b.txt", "b\n", at=tree)
    refused(ctl, "no branch checked out", "switch -c BRANCH", verb="merge")
    refused(ctl, "1 commit that is in no other branch")


def test_a_tag_of_the_same_name(repo: Repo, ctl: Ctl, tree: Path) -> None:
    repo.git("tag", "login", "main")
    repo.commit("b.txt", "b\n", at=tree)
    repo.git("switch", "-qc", "theirs", "main", at=tree)
    refused(ctl, "1 commit that is in no other branch")
    repo.git("switch", "-q", "login", at=tree)
    assert ctl("worktree", "merge", "login").code == 0
    assert (repo.folder / "b.txt").exists(), "the branch was merged, not the tag"
    removed(ctl, tree)


def test_one_that_is_locked_stays(repo: Repo, ctl: Ctl, tree: Path) -> None:
    repo.git("worktree", "lock", "--reason", "on a disk of its own", str(tree))
    refused(ctl, "on a disk of its own")
    assert ctl("worktree", "remove", "login", "--force").code == 6
    assert repo.git("branch", "--list", "login") == "+ login\n"


def test_a_conflict_that_is_not_solved(repo: Repo, ctl: Ctl, tree: Path) -> None:
    repo.commit("a.txt", "theirs\n", at=tree)
    repo.commit("a.txt", "ours\n")
    assert ctl("worktree", "merge", "login").code == 6
    assert (repo.folder / ".git" / "MERGE_HEAD").exists()
    refused(ctl, "1 commit that is in no other branch")
    again = ctl("worktree", "merge", "login")
    assert again.code == 6, "a second one does not begin while the first is open"
    repo.commit("a.txt", "both\n")
    removed(ctl, tree)


def test_a_folder_that_is_gone(repo: Repo, daemon: FakeDaemon, ctl: Ctl, tree: Path) -> None:
    repo.commit("b.txt", "b\n", at=tree)
    shutil.rmtree(tree)
    told = ctl("worktree", "list")
    assert (told.code, "the folder of login is gone" in told.err) == (0, True)
    assert ctl("start", "dummy", "--worktree", "login").code == 2
    refused(ctl, "1 commit that is in no other branch")
    assert ctl("worktree", "merge", "login").code == 0
    removed(ctl, tree)
    assert repo.git("branch", "--list", "login") == ""


def test_a_branch_of_that_name_that_is_not_its_own(repo: Repo, ctl: Ctl) -> None:
    repo.git("branch", "login")
    repo.tree("login").parent.mkdir()
    repo.git("worktree", "add", "-q", "-b", "theirs", str(repo.tree("login")))
    assert ctl("worktree", "remove", "login").code == 0
    assert "login" in repo.git("branch", "--list", "login")


def test_a_branch_before_its_first_commit(repo: Repo, ctl: Ctl, tree: Path) -> None:
    repo.git("switch", "-q", "--orphan", "fresh", at=tree)
    (tree / "new.txt").write_text("only here\n")
    refused(ctl, "not committed (local.env, new.txt)")
    (tree / "new.txt").unlink()
    (tree / "local.env").unlink()
    removed(ctl, tree)
