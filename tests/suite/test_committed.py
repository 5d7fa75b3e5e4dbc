"""What is in the repository: files of the project, no links out of it, and nothing that it says is not to be there."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = "120000"


def listed(*options: str) -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    told = subprocess.run(["git", "ls-files", *options], cwd=ROOT, capture_output=True, text=True, check=True)
    return told.stdout.splitlines()


def test_no_link_is_committed() -> None:
    """One to an environment elsewhere made clones run each other's code."""
    assert [line for line in listed("--stage") if line.startswith(LINK)] == []


def test_nothing_ignored_is_committed() -> None:
    assert listed("--cached", "--ignored", "--exclude-standard") == []
