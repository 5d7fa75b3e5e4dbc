"""What an agent, and the daemon that a verb starts, have of the environment around them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ground.person import Person, living_somewhere

IDENTITY = ("-c", "user.name=me", "-c", "user.email=me@here")

HOOK = """#!/bin/sh
exec "{python}" -m synapsectl start generic --name {name} --cwd "{own}" -- bash --norc </dev/null >>"{log}" 2>&1
"""


@pytest.fixture
def person() -> Iterator[Person]:
    with living_somewhere() as person:
        yield person


def environment_of(pid: object) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in Path(f"/proc/{pid}/environ").read_text().split("\0") if pair)


def of_git(pid: object) -> list[str]:
    return [name for name in environment_of(pid) if name.startswith("GIT_")]


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

    def hook(self, path: Path, name: str, python: str) -> None:
        path.write_text(HOOK.format(python=python, name=name, own=self.own, log=self.log))
        path.chmod(0o755)

    def subjects(self, repository: Path) -> list[str]:
        return sorted(self.git(repository, "log", "--all", "--format=%s").splitlines())


def test_an_agent_of_a_git_hook_commits_to_its_own_repository(person: Person, tmp_path: Path) -> None:
    git = Repositories(person, tmp_path)
    git.hook(git.theirs / ".git/hooks/post-commit", "c", sys.executable)
    git.hook(git.bare / "hooks/post-receive", "p", sys.executable)
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
