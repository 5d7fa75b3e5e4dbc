"""Worktrees on a real git: made, listed, compared, merged and removed, and no work is lost by any of it."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from synapsed.config.paths import Paths
from synapsed.errors import EXIT_CODES, Busy, NameTaken, SynapsedError, UnknownProfile
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon, agent
from tests.synapsectl.pty_tool import PtyTool

UNPRIVILEGED = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()
"""Runs a program that may not do what only root may."""
needs_setpriv = pytest.mark.skipif(
    bool(UNPRIVILEGED) and shutil.which("setpriv") is None, reason="root may do anything"
)

CHANGES = """
import json
from pathlib import Path
from synapsed.parts.worktrees.ctl.git import Git
from synapsed.parts.worktrees.ctl.checkout import changes

found = changes(Git(Path.cwd()), None)
print(json.dumps([found.diff.decode(), found.unseen]))
"""


class Repo:
    """A repository with one commit, and this process in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")
        (folder / ".gitignore").write_text("*.env\nbuild/\n")
        self.commit("a.txt", "one\n")

    def git(self, *arguments: str, at: Path | None = None) -> str:
        command = ["git", "-C", str(at or self.folder), "-c", "user.name=me", "-c", "user.email=me@here", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def commit(self, name: str, text: str, at: Path | None = None) -> None:
        ((at or self.folder) / name).write_text(text)
        self.git("add", "-A", at=at)
        self.git("commit", "-qm", f"change {name}", at=at)

    def tree(self, name: str) -> Path:
        return self.folder.with_name(f"{self.folder.name}.worktrees") / name


@pytest.fixture
def repo(tmp_path: Path, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> Repo:
    for name, value in (("NAME", "me"), ("EMAIL", "me@here")):
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", value)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    made = Repo(tmp_path / "api")
    made.git("config", "user.name", "me")
    made.git("config", "user.email", "me@here")
    monkeypatch.chdir(made.folder)
    return made


def test_an_agent_is_started_on_a_branch_of_its_own(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    done = ctl("start", "dummy", "--worktree", "login")
    assert done.code == 0, done.err
    assert daemon.requests[-1][2]["cwd"] == str(repo.tree("login"))
    assert "worktree" not in daemon.requests[-1][2]
    assert repo.git("branch", "--show-current", at=repo.tree("login")) == "login\n"
    assert repo.git("branch", "--show-current") == "main\n"
    assert repo.git("status", "--porcelain") == ""
    (listed,) = json.loads(ctl("worktree", "list", "--json").out)
    assert (listed["name"], listed["branch"], listed["commits"], listed["uncommitted"]) == ("login", "login", 0, 0)
    assert listed["path"] == str(repo.tree("login"))


def test_a_second_start_goes_on_in_it(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    ctl("start", "dummy", "--worktree", "login")
    repo.commit("b.txt", "b\n", at=repo.tree("login"))
    assert ctl("start", "dummy", "--name", "again", "--worktree", "login").code == 0
    assert (repo.tree("login") / "b.txt").exists()
    assert ctl("start", "dummy", "--name", "same", "--worktree", "login", "--base", "main").code == 0
    refused = ctl("start", "dummy", "--worktree", "login", "--base", "login")
    assert (refused.code, "leave --base out" in refused.err) == (2, True)


def test_the_base_and_a_folder_below(repo: Repo, daemon: FakeDaemon, ctl: Ctl, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo.folder / "sub").mkdir()
    repo.commit("sub/c.txt", "c\n")
    monkeypatch.chdir(repo.folder / "sub")
    assert ctl("start", "dummy", "--worktree", "here").code == 0
    assert daemon.requests[-1][2]["cwd"] == str(repo.tree("here") / "sub")
    assert ctl("start", "dummy", "--worktree", "before", "--base", "HEAD~1").code == 0
    assert daemon.requests[-1][2]["cwd"] == str(repo.tree("before")), "sub was not there then"
    assert ctl("start", "dummy", "--worktree", "x", "--base", "nothing").code == 2
    assert ctl("start", "dummy", "--worktree", "x", "--base=--output=x").code == 2
    assert not repo.tree("x").exists()


@pytest.mark.parametrize(
    "name", ["", "-b", "../out", "a/b", "a..b", ".git", "a.lock", "a b", "a\nb", "x" * 101, "ä", "a."]
)
def test_names_that_would_be_more_than_a_name(repo: Repo, daemon: FakeDaemon, ctl: Ctl, name: str) -> None:
    assert ctl("start", "dummy", f"--worktree={name}").code == 2
    assert daemon.requests == []
    assert not repo.tree("x").parent.exists()


def test_what_is_in_the_way_is_left_alone(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    repo.git("branch", "login")
    assert "branch 'login' already" in ctl("start", "dummy", "--worktree", "login").err
    repo.tree("other").mkdir(parents=True)
    (repo.tree("other") / "mine").write_text("x")
    assert "is no worktree" in ctl("start", "dummy", "--worktree", "other").err
    assert (repo.tree("other") / "mine").read_text() == "x"
    assert ctl("start", "dummy", "--base", "main").code == 2


def test_outside_of_a_repository(daemon: FakeDaemon, ctl: Ctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = ctl("start", "dummy", "--worktree", "x", GIT_CEILING_DIRECTORIES=str(tmp_path))
    assert (refused.code, "no checkout of a git repository" in refused.err) == (6, True)


@pytest.mark.parametrize("refusal", [NameTaken("claude is taken"), UnknownProfile("no profile dummy")])
def test_one_that_the_daemon_refuses_leaves_nothing(
    repo: Repo, daemon: FakeDaemon, ctl: Ctl, refusal: SynapsedError
) -> None:
    daemon.refuse("POST", "/control/start", refusal)
    assert ctl("start", "dummy", "--worktree", "login").code == EXIT_CODES.get(refusal.code, 6)
    assert not repo.tree("login").exists()
    assert repo.git("branch", "--list", "login") == ""


def test_ignored_files_that_are_named_come_along(repo: Repo, ctl: Ctl, tmp_path: Path) -> None:
    (repo.folder / ".env").write_text("SECRET=1\n")
    (repo.folder / "other.env").write_text("no\n")
    (repo.folder / "untracked.txt").write_text("not ignored\n")
    (repo.folder / "build").mkdir()
    (repo.folder / "build" / "cache").write_text("big\n")
    (repo.folder / "build" / "link").symlink_to("/etc/passwd")
    (repo.folder / ".worktreeinclude").write_text("/.env\nbuild/\n*.txt\n")
    (repo.folder / ".env").chmod(0o600)
    done = ctl("start", "dummy", "--worktree", "login")
    tree = repo.tree("login")
    assert "with 3 ignored files" in done.err
    assert (tree / ".env").read_text() == "SECRET=1\n"
    assert (tree / ".env").stat().st_mode & 0o777 == 0o600
    assert (tree / "build/cache").exists()
    assert (tree / "build/link").readlink() == Path("/etc/passwd")
    assert not (tree / "other.env").exists()
    assert not (tree / "untracked.txt").exists(), "it is not ignored"


def test_no_copy_leaves_the_worktree(repo: Repo, ctl: Ctl, tmp_path: Path) -> None:
    """The branch has a link where the checkout has a folder: what is copied would go where it leads."""
    outside = tmp_path / "outside"
    outside.mkdir()
    repo.git("switch", "-qc", "hostile")
    (repo.folder / "conf").symlink_to(outside)
    repo.git("add", "-A")
    repo.git("commit", "-qm", "link")
    repo.git("switch", "-q", "main")
    (repo.folder / "conf").mkdir()
    (repo.folder / "conf" / "local.env").write_text("x\n")
    (repo.folder / ".worktreeinclude").write_text("*.env\n")
    assert ctl("start", "dummy", "--worktree", "login", "--base", "hostile").code == 0
    assert list(outside.iterdir()) == []


def test_the_set_up_command(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    repo.git("config", "--global", "synapsed.setup", "echo ready in $SYNAPSE_WORKTREE && echo once >> ran")
    assert ctl("start", "dummy", "--worktree", "login").code == 0
    assert (repo.tree("login") / "ran").read_text() == "once\n"
    ctl("start", "dummy", "--name", "two", "--worktree", "login")
    assert (repo.tree("login") / "ran").read_text() == "once\n"
    started = len(daemon.requests)
    failed = ctl("start", "dummy", "--worktree", "other", "--setup", "echo no compiler >&2; exit 3")
    assert (failed.code, "ended with 3" in failed.err) == (6, True)
    assert [path for _, path, _ in daemon.requests[started:] if path == "/control/start"] == []
    assert ctl("start", "dummy", "--worktree", "other", "--setup", "touch there").code == 0, "it is tried again"
    assert (repo.tree("other") / "there").exists()


def test_a_diff_has_everything_since_the_branch_began(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    ctl("start", "dummy", "--worktree", "login")
    tree = repo.tree("login")
    repo.commit("a.txt", "one\ntwo\n", at=tree)
    (tree / "a.txt").write_text("one\ntwo\nthree\n")
    (tree / "new.txt").write_text("new\n")
    (tree / ".env").write_text("ignored\n")
    repo.commit("elsewhere.txt", "x\n")
    before = repo.git("status", "--porcelain", at=tree)
    shown = ctl("worktree", "diff", "login").out
    assert "+two\n+three\n" in shown
    assert "+new\n" in shown
    assert "elsewhere" not in shown
    assert "ignored" not in shown
    assert repo.git("status", "--porcelain", at=tree) == before, "its index is as it was"
    daemon.agents["claude"] = agent("claude", port=8100, cwd=str(tree))
    assert ctl("diff", "claude").out == shown
    assert "a.txt   | 2 ++" in ctl("diff", "claude", "--stat").out
    assert json.loads(ctl("diff", "claude", "--json").out)["diff"] == shown
    applied = subprocess.run(["git", "apply", "--check"], cwd=repo.folder, input=shown, text=True, check=False)
    assert applied.returncode == 0


@pytest.mark.parametrize("form", [(), ("--stat",)])
def test_what_git_does_not_add_takes_nothing_else_away(
    repo: Repo, daemon: FakeDaemon, ctl: Ctl, form: tuple[str, ...]
) -> None:
    ctl("start", "dummy", "--worktree", "login")
    tree = repo.tree("login")
    for name in ("inner", "two\nlines"):
        repo.git("init", "-q", str(tree / name))
    (tree / "a.txt").write_text("two\n")
    (tree / "new.txt").write_text("new\n")
    shown = ctl("worktree", "diff", "login", *form)
    assert shown.code == 0
    assert "a.txt" in shown.out
    assert "new.txt" in shown.out
    why = "(a repository of its own, without a commit)"
    assert f"not shown, for git cannot read it: inner/ {why}, two\\nlines/ {why}\n" in shown.err
    told = json.loads(ctl("worktree", "diff", "login", "--json").out)
    assert [one.partition("/")[0] for one in told["unseen"]] == ["inner", "two\\nlines"]
    (tree / "a.txt").write_text("one\n")
    (tree / "new.txt").unlink()
    assert "nothing has changed" not in ctl("worktree", "diff", "login").err
    daemon.agents.clear()
    assert "not committed (inner/, two\\nlines/)" in ctl("worktree", "remove", "login").err
    assert ctl("worktree", "remove", "login", "--force").code == 0


@needs_setpriv
def test_what_may_not_be_read_takes_nothing_else_away(repo: Repo) -> None:
    """A file of git's, a new one, and folders of both kinds."""
    (repo.folder / "known").mkdir()
    repo.commit("known/b.txt", "b\n")
    repo.commit("c.txt", "one\n")
    (repo.folder / "closed").mkdir()
    for name in ("a.txt", "c.txt", "new.txt", "closed/d.txt"):
        (repo.folder / name).write_text("two\n")
    for name in ("c.txt", "new.txt", "closed", "known"):
        (repo.folder / name).chmod(0)
    done = subprocess.run([*UNPRIVILEGED, sys.executable, "-c", CHANGES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    diff, unseen = json.loads(done.stdout)
    assert [line for line in diff.splitlines() if line.startswith("diff ")] == ["diff --git a/a.txt b/a.txt"]
    wanted = ("c.txt", "new.txt", "known/b.txt", "closed/", "known/")
    assert sorted(unseen) == sorted(f"{name} (Permission denied)" for name in wanted)


def test_submodules_of_a_new_worktree_are_told_of(repo: Repo, ctl: Ctl) -> None:
    shutil.copytree(repo.folder, library := repo.folder.with_name("library"))
    allowed = ("-c", "protocol.file.allow=always")
    repo.git(*allowed, "submodule", "--quiet", "add", str(library), "lib")
    repo.git("commit", "-qm", "a submodule")
    done = ctl("start", "dummy", "--worktree", "login")
    told = (
        f"its submodules are empty (lib): 'git -C {repo.tree('login')} submodule update --init --recursive' fills them"
    )
    assert told in done.err
    repo.git(*allowed, "submodule", "update", "--quiet", "--init", "--recursive", at=repo.tree("login"))
    assert (repo.tree("login") / "lib" / "a.txt").exists()
    assert "submodules" not in ctl("start", "dummy", "--name", "two", "--worktree", "login").err


def test_a_change_in_the_moment_of_the_checkout_is_seen(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    """Of the same size, at the same time: only by the time of its index does git know that it must read the file."""
    repo.git("config", "core.trustctime", "false")
    ctl("start", "dummy", "--worktree", "login")
    changed = repo.tree("login") / "a.txt"
    index = repo.git("rev-parse", "--path-format=absolute", "--git-path", "index", at=repo.tree("login")).strip()
    os.utime(changed, (1_700_000_000, 1_700_000_000))
    repo.git("update-index", "--refresh", at=repo.tree("login"))
    changed.write_text("two\n")
    for path in (str(changed), index):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    assert "+two" in ctl("worktree", "diff", "login").out


def test_a_diff_runs_nothing_that_the_repository_names(
    repo: Repo, daemon: FakeDaemon, ctl: Ctl, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\necho $0 >> {ran}\n")
    trap.chmod(0o755)
    hooks = repo.folder / ".git/hooks"
    for hook in ("post-checkout", "post-index-change", "reference-transaction"):
        (hooks / hook).symlink_to(trap)
    for key in ("core.fsmonitor", "diff.external", "diff.x.textconv", "diff.x.command", "core.pager"):
        repo.git("config", key, str(trap))
    ran.unlink(missing_ok=True)
    assert ctl("start", "dummy", "--worktree", "login").code == 0
    (repo.tree("login") / ".gitattributes").write_text("* diff=x\n")
    (repo.tree("login") / "a.txt").write_text("two\n")
    assert "+two" in ctl("worktree", "diff", "login").out
    daemon.agents.clear()
    assert ctl("worktree", "list").code == 0
    assert ctl("worktree", "remove", "login", "--force").code == 0
    assert not ran.exists()


def test_another_repositorys_variables_are_not_ours(repo: Repo, ctl: Ctl, tmp_path: Path) -> None:
    other = Repo(tmp_path / "other")
    assert ctl("start", "dummy", "--worktree", "login", GIT_DIR=str(other.folder / ".git")).code == 0
    assert repo.tree("login").exists()
    assert not other.tree("login").exists()


def test_merge_and_remove(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    ctl("start", "dummy", "--worktree", "login")
    daemon.agents.clear()
    tree = repo.tree("login")
    (tree / "b.txt").write_text("b\n")
    for verb in ("merge", "remove"):
        refused = ctl("worktree", verb, "login")
        assert (refused.code, "not committed (b.txt)" in refused.err) == (6, True)
    repo.commit("b.txt", "b\n", at=tree)
    refused = ctl("worktree", "remove", "login")
    assert (refused.code, "1 commit that is in no other branch" in refused.err) == (6, True)
    merged = ctl("worktree", "merge", "login", "--json")
    assert json.loads(merged.out)["commit"] == repo.git("rev-parse", "main").strip()
    assert (repo.folder / "b.txt").exists()
    done = ctl("worktree", "remove", "login", "--json")
    assert json.loads(done.out)["commit"] == repo.git("rev-parse", "main").strip()
    assert not tree.exists()
    assert repo.git("branch", "--list") == "* main\n"
    assert "synapsed" not in repo.git("config", "--list")


def test_nothing_that_is_nowhere_else_is_removed(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    ctl("start", "dummy", "--worktree", "login")
    tree = repo.tree("login")
    daemon.agents.clear()
    repo.git("switch", "-q", "--detach", at=tree)
    repo.commit("b.txt", "b\n", at=tree)
    assert "in no other branch" in ctl("worktree", "remove", "login").err, "a commit that no branch has"
    repo.git("switch", "-qc", "theirs", at=tree)
    daemon.agents["claude"] = agent("claude", port=8100, cwd=str(tree / "sub"))
    refused = ctl("worktree", "remove", "login", "--force")
    assert (refused.code, "stop claude --remove" in refused.err) == (6, True)
    assert tree.exists()
    daemon.agents["claude"] = agent("claude", port=8100, cwd=str(tree), state="stopped")
    done = ctl("worktree", "remove", "login")
    assert (done.code, "has lost its folder" in done.err) == (0, True), done.err
    assert repo.git("branch", "--list", "theirs") == "  theirs\n", "a branch that it did not make stays"


def test_in_the_middle_of_something(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    ctl("start", "dummy", "--worktree", "login")
    daemon.agents.clear()
    tree = repo.tree("login")
    (Path(repo.git("rev-parse", "--absolute-git-dir", at=tree).strip()) / "MERGE_HEAD").write_text("0" * 40)
    assert "has something unfinished" in ctl("worktree", "remove", "login").err
    assert ctl("worktree", "remove", "login", "--force").code == 0


def test_a_merge_that_conflicts_is_told(repo: Repo, ctl: Ctl) -> None:
    ctl("start", "dummy", "--worktree", "login")
    repo.commit("a.txt", "theirs\n", at=repo.tree("login"))
    repo.commit("a.txt", "ours\n")
    done = ctl("worktree", "merge", "login", "--json")
    assert (done.code, "git merge --abort" in json.loads(done.out)["error"]["message"]) == (6, True)
    assert repo.git("log", "-1", "--format=%s") == "change a.txt\n"


def test_a_worktree_that_there_is_not(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    for verb in ("diff", "merge", "remove"):
        assert "there is no worktree" in ctl("worktree", verb, "nothing").err
    assert ctl("worktree", "list").code == 0
    daemon.agents["claude"] = agent("claude", port=8100, cwd="/nowhere/at/all")
    assert ctl("diff", "claude").code == 2
    assert ctl("diff", "claude@box").code == 2
    daemon.die()
    ctl("worktree", "list")


def test_what_an_agent_wrote_is_harmless_on_a_terminal(repo: Repo, daemon: FakeDaemon) -> None:
    (repo.folder / "a.txt").write_text("\x1b]0;title\x07\n")
    daemon.agents["claude"] = agent("claude", port=8100, cwd=str(repo.folder))
    shown = PtyTool("diff", "claude")
    shown.until(b"\\x1b]0;title")
    assert shown.end() == 0
    assert b"\x1b]0;" not in shown.shown
    shown.close()


def test_one_in_which_a_program_lives_without_a_daemon_stays(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    assert ctl("start", "dummy", "--worktree", "login").code == 0
    daemon.die()
    folder = Paths.from_environ().state / "agents" / "synapse-dummy-8190"
    folder.mkdir(parents=True)
    noted = {"agent": {"name": "ann", "cwd": str(repo.tree("login"))}}
    (folder / "launch.json").write_text(json.dumps(noted))
    with (folder / "keeper.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = ctl("worktree", "remove", "login", "--force")
        assert (refused.code, "ann runs in" in refused.err) == (6, True), refused
        assert repo.tree("login").is_dir()
        assert json.loads(ctl("worktree", "list", "--json").out)[0]["agent"] == "ann"
    assert ctl("worktree", "remove", "login", "--force").code == 0


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_in_a_start_leaves_no_worktree(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.on_start = interrupt
    assert ctl("start", "dummy", "--worktree", "login").code == 130
    assert not repo.tree("login").exists()
    assert repo.git("branch", "--list", "login") == ""


def test_ctrl_c_in_the_set_up_leaves_no_worktree(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    assert ctl("start", "dummy", "--worktree", "login", "--setup", f"kill -INT {os.getpid()}").code == 130
    assert not repo.tree("login").exists()
    assert ("POST", "/control/start") not in [request[:2] for request in daemon.requests]


def test_the_worktree_of_an_agent_that_goes_on_stays(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.on_start = interrupt
    daemon.refuse("POST", "/control/agents/synapse-dummy-8190/stop", Busy("not now"))
    ended = ctl("start", "dummy", "--worktree", "login")
    assert (ended.code, "dummy goes on" in ended.err) == (130, True)
    assert repo.tree("login").is_dir()
