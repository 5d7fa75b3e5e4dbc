"""What an agent, and the daemon that a verb starts, have of the environment around them."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ground.installed import Installed
from tests.ground.person import Person, living_somewhere
from tests.synapsectl.pty_tool import PtyTool

IDENTITY = ("-c", "user.name=me", "-c", "user.email=me@here")

HOOK = """#!/bin/sh
exec "{tool}" start generic --name {name} --cwd "{own}" -- bash --norc </dev/null >>"{log}" 2>&1
"""


@pytest.fixture
def person(installed: Installed) -> Iterator[Person]:
    with living_somewhere(installed) as person:
        yield person


def environment_of(pid: object) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in Path(f"/proc/{pid}/environ").read_text().split("\0") if pair)


def of_git(pid: object) -> list[str]:
    return [name for name in environment_of(pid) if name.startswith("GIT_")]


@contextmanager
def listening(path: Path) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))
        sock.listen()
        yield
    path.unlink()


class Repositories:
    """Others', with hooks that start agents, and the agents' own."""

    def __init__(self, person: Person, root: Path) -> None:
        self._env = {**person.login, "GIT_CONFIG_NOSYSTEM": "1"}
        self.own, self.theirs, self.bare, self.worktree = (root / n for n in ("own", "theirs", "bare", "worktree"))
        for repository in (self.own, self.theirs):
            self.git(root, "init", "-q", str(repository))
            self.git(repository, "commit", "-q", "--allow-empty", "-m", "first")
        self.git(root, "clone", "-q", "--bare", str(self.theirs), str(self.bare))
        self.git(self.theirs, "worktree", "add", "-q", "-b", "topic", str(self.worktree))
        self.log = root / "log"

    def git(self, cwd: Path, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *IDENTITY, *arguments], cwd=cwd, env=self._env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done
        return done.stdout

    def hook(self, path: Path, name: str, tool: Path) -> None:
        path.write_text(HOOK.format(tool=tool, name=name, own=self.own, log=self.log))
        path.chmod(0o755)

    def subjects(self, repository: Path) -> list[str]:
        return sorted(self.git(repository, "log", "--all", "--format=%s").splitlines())


def test_an_agent_of_a_git_hook_commits_to_its_own_repository(person: Person, tmp_path: Path) -> None:
    git = Repositories(person, tmp_path)
    git.hook(git.theirs / ".git/hooks/post-commit", "c", person.installed.tool)
    git.hook(git.bare / "hooks/post-receive", "p", person.installed.tool)
    git.git(git.worktree, "commit", "-q", "--allow-empty", "-m", "theirs")
    git.git(git.worktree, "push", "-q", str(git.bare), "topic")
    told = git.log.read_text()
    assert "no daemon was running" in told
    commit = f"git {' '.join(IDENTITY)} commit -q --allow-empty -m"
    for name in ("c", "p"):
        agent = person.ready(name)
        assert of_git(agent["pid"]) == ["GIT_CONFIG_NOSYSTEM"], told
        sent = person.ctl("send", name, "--wait", "--", f"{commit} by-{name}")
        assert sent.code == 0, sent
    assert of_git(person.pid) == ["GIT_CONFIG_NOSYSTEM"], "the person's own"
    assert git.subjects(git.own) == ["by-c", "by-p", "first"]
    assert git.subjects(git.theirs) == git.subjects(git.bare) == ["first", "theirs"]


@pytest.mark.night
def test_a_restart_after_the_next_login(person: Person) -> None:
    old, new = person.home / "a1", person.home / "a2"

    def sock() -> str:
        return environment_of(person.ready("g")["pid"])["SSH_AUTH_SOCK"]

    with listening(new):
        with listening(old):
            logged_in = {**person.login, "SSH_AUTH_SOCK": str(old)}
            assert person.ctl("start", "generic", "--name", "g", "--", "bash", "--norc", env=logged_in).code == 0
            assert "environment" not in person.ctl("status", "g").out
            assert person.ctl("restart", "g", env={**person.login, "SSH_AUTH_SOCK": str(new)}).code == 0
            assert sock() == str(old), "it is no person's shell, and nothing is gone"
        assert "SSH_AUTH_SOCK of its environment" in person.ctl("status", "g").out
        assert "g is started with SSH_AUTH_SOCK" in person.ctl("doctor").out
        for env in (person.login, {**person.cron, "SSH_AUTH_SOCK": str(new)}):
            assert person.ctl("restart", "g", env=env).code == 0
            assert sock() == str(old)
        tool = PtyTool("restart", "g", env={**person.login, "SSH_AUTH_SOCK": str(new), "ONLY_HERE": "1"})
        assert tool.end() == 0, tool.shown
        tool.close()
        assert sock() == str(new)
        assert str(new) not in next((person.state / "agents").glob("*/launch.json")).read_text()
        assert "ONLY_HERE" not in environment_of(person.ready("g")["pid"])
        assert "environment" not in person.ctl("status", "g").out
        env = {**person.login, "SSH_AUTH_SOCK": str(new), "ONLY_HERE": "1"}
        assert person.ctl("restart", "g", "--env-from-here", env=env).code == 0
        assert environment_of(person.ready("g")["pid"])["ONLY_HERE"] == "1"
        told = person.ctl("events", "--json", "--after", "0").out + person.ctl("list", "--json").out
        assert str(new) not in told
