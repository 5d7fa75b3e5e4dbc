"""Folders whose names are no UTF-8."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts.worktrees.test_worktrees import Repo, repo

__all__ = ["repo"]

STRANGE = os.fsdecode(b"caf\xe9")


@pytest.mark.parametrize("locale", ["C.UTF-8", "C", "POSIX"])
def test_a_pipe_gets_bytes_as_they_are(repo: Repo, locale: str) -> None:
    folder = repo.folder.with_name(STRANGE)
    repo.folder.rename(folder)
    repo.git("worktree", "add", "-q", "-b", "login", str(folder.with_name(f"{STRANGE}.worktrees") / "login"), at=folder)
    done = subprocess.run(
        [sys.executable, "-m", "synapsectl", "worktree", "list", "--json"],
        cwd=folder,
        env={**os.environ, "LC_ALL": locale, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"caf\udce9.worktrees/login" in done.stdout
    table = subprocess.run(
        [sys.executable, "-m", "synapsectl", "worktree", "list"], cwd=folder, capture_output=True, check=False,
        env={**os.environ, "LC_ALL": locale, "PYTHONPATH": str(Path(__file__).parents[3])},
    )  # fmt: skip
    assert rb"/caf\xe9.worktrees/login" in table.stdout
