"""A repository that plants commands wherever git takes one from: no verb runs any of them unasked."""

import shutil
from pathlib import Path

import pytest

from synapsed.parts.worktrees.ctl.git import Git
from synapsed.parts.worktrees.ctl.isolation import DATA, MERGING, RUNS, Setting, apart, commands, settings
from tests.parts.worktrees.test_worktrees import Repo, repo
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon, agent
from tests.synapsectl.pty_tool import PtyTool

__all__ = ["repo"]

HOOKS = (
    *("applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-checkout", "post-commit", "post-index-change"),
    *("post-merge", "post-rewrite", "pre-auto-gc", "pre-commit", "pre-merge-commit", "prepare-commit-msg"),
    *("reference-transaction", "update", "push-to-checkout", "sendemail-validate"),
)
KEYS = (
    *("filter.x.clean", "filter.x.smudge", "filter.x.process", "filter.a=b.clean", "filter.a=b.smudge"),
    *("diff.external", "diff.x.command", "diff.x.textconv", "merge.x.driver"),
    *("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy"),
    *("core.alternateRefsCommand", "sequence.editor", "credential.helper", "credential.https://a.b.helper"),
    *("gpg.program", "gpg.ssh.program", "gpg.x509.program", "gpg.openpgp.program", "gpg.ssh.defaultKeyCommand"),
    *("alias.status", "alias.diff", "alias.x", "pager.diff", "pager.status", "interactive.diffFilter"),
    *("difftool.x.cmd", "difftool.x.path", "mergetool.x.cmd", "mergetool.x.path", "guitool.x.cmd", "browser.x.cmd"),
    *("man.x.cmd", "man.x.path", "submodule.x.update", "remote.origin.uploadpack", "remote.origin.receivepack"),
    *("remote.origin.vcs", "remote.origin.proxy", "uploadpack.packObjectsHook", "sendemail.toCmd", "sendemail.ccCmd"),
    *("hook.x.command", "tar.x.command", "trailer.x.command", "trailer.x.cmd", "browser.x.path"),
)
"""Every key of git's whose value is a command, or a program's path (git 2.39; `hook.x.command` is newer)."""

DATA_TOO = {
    "diff.x.cachetextconv": "true",
    "filter.x.required": "true",
    "commit.gpgSign": "true",
    "hook.x.event": "post-checkout",
    "core.untrackedCache": "true",
    "diff.submodule": "diff",
    "submodule.recurse": "true",
    "branch.main.mergeOptions": "--strategy=x",
}


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    return tmp_path / "ran"


@pytest.fixture
def trap(tmp_path: Path, ran: Path) -> str:
    """A program that says that it was run, and by which name."""
    program = tmp_path / "trap"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {ran}\ncat\n')
    program.chmod(0o755)
    return str(program)


def plant(repo: Repo, trap: str, ran: Path, at: Path | None = None) -> None:
    """Whatever an agent may write to the repository at `at`."""
    folder = at or repo.folder
    common = Path(repo.git("rev-parse", "--path-format=absolute", "--git-common-dir", at=folder).strip())
    more = common / "more"
    more.write_text(f'[filter "included"]\n\tclean = {trap} included\n\tsmudge = {trap} included\n')
    repo.git("config", "include.path", str(more), at=folder)
    repo.git("config", f"includeIf.gitdir:{common}/.path", str(more), at=folder)
    repo.git("config", "extensions.worktreeConfig", "true", at=folder)
    (common / "config.worktree").write_text(f'[filter "own"]\n\tclean = {trap} own\n\tsmudge = {trap} own\n')
    (common / "info").mkdir(exist_ok=True)
    (common / "info" / "attributes").write_text("*.own filter=own\n*.included filter=included\n*.eq filter=a=b\n")
    for key, value in DATA_TOO.items():
        repo.git("config", key, value, at=folder)
    (common / "hooks").mkdir(exist_ok=True)
    for hook in HOOKS:
        (common / "hooks" / hook).unlink(missing_ok=True)
        (common / "hooks" / hook).symlink_to(trap)
    for key in KEYS:
        repo.git("config", key, f"{trap} {key}", at=folder)
    ran.unlink(missing_ok=True)


def told(ran: Path) -> str:
    return ran.read_text() if ran.exists() else ""


@pytest.fixture
def files(repo: Repo) -> Repo:
    """Files of every kind that is planted for are in the repository."""
    (repo.folder / ".gitattributes").write_text("*.txt filter=x diff=x merge=x\n")
    for name in ("a.txt", "b.own", "c.included", "d.eq"):
        repo.commit(name, "one\n")
    return repo


def test_no_verb_runs_anything_of_a_repositorys(
    files: Repo, daemon: FakeDaemon, ctl: Ctl, trap: str, ran: Path
) -> None:
    plant(files, trap, ran)
    started = ctl("start", "dummy", "--worktree", "login")
    assert started.code == 0, started.err
    assert "filter.x.clean" in started.err
    assert "an agent may have written it" in started.err
    tree = files.tree("login")
    plant(files, trap, ran, at=tree)
    for name in ("a.txt", "b.own", "c.included", "d.eq"):
        assert (tree / name).read_text() == "one\n"
        (tree / name).write_text("two\n")
    daemon.agents["claude"] = agent("claude", port=8100, cwd=str(tree))
    daemon.agents["here"] = agent("here", port=8101, cwd=str(files.folder))
    (files.folder / "a.txt").write_text("three\n")
    shown = ctl("diff", "claude")
    assert shown.out.count("+two\n") == 4
    assert "filter.x.process" in shown.err
    assert ctl("diff", "claude", "--stat").code == ctl("worktree", "list").code == 0
    assert "+three" in ctl("diff", "here").out
    assert ctl("worktree", "diff", "login", "--json").code == 0
    daemon.agents.clear()
    assert "not committed" in ctl("worktree", "merge", "login").err
    assert "not committed" in ctl("worktree", "remove", "login").err
    assert ctl("worktree", "remove", "login", "--force").code == 0
    assert not tree.exists()
    assert told(ran) == ""
    assert files.git("worktree", "list", "--porcelain").count("worktree ") == 1


def test_a_submodule_runs_nothing_of_its_own_either(
    files: Repo, daemon: FakeDaemon, ctl: Ctl, trap: str, ran: Path
) -> None:
    shutil.copytree(files.folder, library := files.folder.with_name("library"))
    assert ctl("start", "dummy", "--worktree", "login").code == 0
    tree = files.tree("login")
    files.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib", at=tree)
    files.git("commit", "-qm", "a submodule", at=tree)
    plant(files, trap, ran, at=tree / "lib")
    plant(files, trap, ran)
    daemon.agents.clear()
    (tree / "lib" / "a.txt").write_text("only here\n")
    daemon.agents["claude"] = agent("claude", port=8100, cwd=str(tree))
    assert ctl("diff", "claude").code == ctl("worktree", "list").code == 0
    for verb in ("merge", "remove"):
        daemon.agents.clear()
        assert "not committed (lib)" in ctl("worktree", verb, "login").err
    assert told(ran) == ""


def committed(repo: Repo, daemon: FakeDaemon, ctl: Ctl) -> Path:
    """The worktree `login` with a commit."""
    assert ctl("start", "dummy", "--worktree", "login").code == 0
    daemon.agents.clear()
    repo.commit("a.txt", "two\n", at=repo.tree("login"))
    return repo.tree("login")


def test_a_merge_is_asked_for_before_it_runs_what_the_repository_has(
    files: Repo, daemon: FakeDaemon, ctl: Ctl, trap: str, ran: Path
) -> None:
    committed(files, daemon, ctl)
    plant(files, trap, ran)
    files.git("config", "--unset", "commit.gpgSign")
    files.git("config", "--unset", "branch.main.mergeOptions")
    ran.unlink(missing_ok=True)
    refused = ctl("worktree", "merge", "login")
    assert refused.code == 6
    for words in ("hook post-merge", f"filter.x.smudge ({trap} filter.x.smudge)", "merge.x.driver", "--no-hooks"):
        assert words in refused.err
    assert "core.sshcommand" not in refused.err, "no merge runs it"
    asked = PtyTool("worktree", "merge", "login", cols=200)
    asked.until(b"merge with them? [y/N]")
    asked.type(b"n\n")
    assert asked.end() == 6
    asked.close()
    assert told(ran) == ""
    assert (files.folder / "a.txt").read_text() == "one\n"
    done = ctl("worktree", "merge", "login", "--no-hooks")
    assert done.code == 0, done.err
    assert (files.folder / "a.txt").read_text() == "two\n"
    assert told(ran) == ""


def test_a_merge_with_the_repositorys_hooks_where_a_person_says_so(
    files: Repo, daemon: FakeDaemon, ctl: Ctl, trap: str, ran: Path
) -> None:
    committed(files, daemon, ctl)
    (files.folder / ".git/hooks/post-merge").symlink_to(trap)
    asked = PtyTool("worktree", "merge", "login", cols=200)
    asked.until(b"hook post-merge would run: merge with them? [y/N]")
    asked.type(b"y\n")
    assert asked.end() == 0, asked.shown
    asked.close()
    assert "post-merge" in told(ran)
    assert (files.folder / "a.txt").read_text() == "two\n"


def test_what_the_persons_own_configuration_says_runs(
    files: Repo, daemon: FakeDaemon, ctl: Ctl, trap: str, ran: Path, tmp_path: Path
) -> None:
    """As git-lfs does, which is installed there; the repository cannot put another command in its place."""
    command = f'"sed s/one/uno/ && echo theirs >> {ran}"'
    (tmp_path / ".gitconfig").write_text(f'[filter "x"]\n\tclean = {command}\n\tsmudge = {command}\n')
    files.git("config", "filter.x.smudge", f"{trap} of the repository")
    assert ctl("start", "dummy", "--worktree", "login").code == 0
    assert (files.tree("login") / "a.txt").read_text() == "uno\n"
    assert set(told(ran).split()) == {"theirs"}


@pytest.mark.parametrize(("relative", "runs"), [(False, True), (True, False)])
def test_the_persons_own_hooks_run_at_a_merge(
    relative: bool, runs: bool, files: Repo, daemon: FakeDaemon, ctl: Ctl, trap: str, ran: Path, tmp_path: Path
) -> None:
    """Not those of a folder in each repository."""
    committed(files, daemon, ctl)
    for folder in (tmp_path / "hooks", files.folder / "hooks"):
        folder.mkdir()
        (folder / "post-merge").symlink_to(trap)
    (tmp_path / ".gitconfig").write_text(f"[core]\n\thooksPath = {'hooks' if relative else '~/hooks'}\n")
    assert ctl("worktree", "merge", "login").code == 0
    assert ("post-merge" in told(ran)) is runs


def test_a_set_up_command_of_the_repositorys_is_asked_for(
    repo: Repo, daemon: FakeDaemon, ctl: Ctl, ran: Path, tmp_path: Path
) -> None:
    repo.git("config", "synapsed.setup", f"echo set up >> {ran}")
    refused = ctl("start", "dummy", "--worktree", "login")
    assert refused.code == 6
    assert "--setup 'echo set up" in refused.err
    assert [path for _, path, _ in daemon.requests if path == "/control/start"] == []
    asked = PtyTool("start", "dummy", "--worktree", "login", cols=400)
    asked.until(b"run it? [y/N]")
    assert f"echo set up >> {ran}".encode() in asked.shown.replace(b"\r\n", b"")
    asked.type(b"n\n")
    assert asked.end() == 6
    asked.close()
    assert told(ran) == ""
    assert ctl("start", "dummy", "--worktree", "login", "--setup", "").code == 0
    asked = PtyTool("start", "dummy", "--worktree", "login", "--name", "two", cols=400)
    asked.until(b"run it? [y/N]")
    asked.type(b"y\n")
    assert asked.end() == 0, asked.shown
    asked.close()
    assert told(ran) == "set up\n"
    (tmp_path / ".gitconfig").write_text(f'[synapsed]\n\tsetup = "echo mine >> {ran}"\n')
    repo.git("config", "--unset", "synapsed.setup")
    assert ctl("start", "dummy", "--worktree", "other").code == 0
    assert told(ran) == "set up\nmine\n"


def test_missing_objects_are_not_fetched(files: Repo, daemon: FakeDaemon, ctl: Ctl, trap: str, ran: Path) -> None:
    """Of a partial clone; `ssh` and what serves the other side are commands."""
    files.git("config", "remote.origin.url", "box:repository")
    files.git("config", "remote.origin.promisor", "true")
    files.git("config", "extensions.partialClone", "origin")
    files.git("config", "core.repositoryFormatVersion", "1")
    files.git("config", "core.sshCommand", trap)
    blob = files.git("rev-parse", "HEAD:a.txt").strip()
    (files.folder / ".git/objects" / blob[:2] / blob[2:]).unlink()
    assert "extensions.partialclone" in commands(Git(files.folder).settings(), MERGING)
    (files.folder / "a.txt").write_text("two\n")
    daemon.agents["here"] = agent("here", port=8101, cwd=str(files.folder))
    ctl("diff", "here")
    ctl("worktree", "list")
    ctl("start", "dummy", "--worktree", "login")
    assert told(ran) == ""


# --- what is data, and what is a command ---


def test_what_is_data_runs_nothing() -> None:
    for key in (*KEYS, "core.hooksPath", "include.path", "includeIf.gitdir:/x/.path", "extensions.partialClone"):
        section, _, name = key.rpartition(".")
        told = f"{section.partition('.')[0].lower()}{section[len(section.partition('.')[0]) :]}.{name.lower()}"
        assert RUNS.fullmatch(told), key
        assert not DATA.fullmatch(told), key
    assert not any(DATA.fullmatch(key.lower()) for key in DATA_TOO if key != "commit.gpgSign")


def test_settings_are_written_as_they_were_told(tmp_path: Path, repo: Repo) -> None:
    values = {"user.name": 'a "b" \\c\n\td;#', 'remote.a"]\\b.url': "x\ty", "core.filemode": "false"}
    for key, value in values.items():
        repo.git("config", key, value)
    config = repo.folder / ".git/config"
    config.write_text(config.read_text() + "[core]\n\tsymlinks\n")
    listed = ("config", "--list", "--show-scope", "-z")
    found = settings(repo.git(*listed).encode())
    with apart(repo.folder / ".git", found) as folder:
        again = settings(repo.git(*listed[:1], "--file", str(folder / "config"), *listed[1:]).encode())
        assert not (folder / "hooks").exists()
        assert (folder / "objects").resolve() == repo.folder / ".git/objects"
    kept = {each.key: each.value for each in again}
    assert kept.items() >= values.items()
    assert kept["core.symlinks"] is None


def test_the_persons_settings_are_no_settings_of_the_repositorys() -> None:
    found = [Setting(scope, "filter.x.clean", scope) for scope in ("system", "global", "command")]
    assert commands(found) == {}
    for scope in ("local", "worktree", "unknown"):
        assert commands([*found, Setting(scope, "filter.x.clean", "rm")]) == {"filter.x.clean": "rm"}
