"""Every shipped profile has a package, or a reason why its program is not tried."""

import fcntl
import json
import subprocess
from pathlib import Path

import pytest

from synapsed.profiles.library import ProfileLibrary
from tests.drift import packages
from tests.drift.packages import NOT_TRIED, PACKAGES, Installed, NotInstalled, Package, alone, install

BUILTIN = ProfileLibrary.builtin()


def test_every_shipped_profile_has_a_row() -> None:
    assert sorted([*PACKAGES, *NOT_TRIED]) == sorted(BUILTIN.names())


@pytest.mark.parametrize("name", PACKAGES)
def test_those_that_are_tried_are_verified(name: str) -> None:
    assert BUILTIN.get(name).verified


def test_what_a_registry_says_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(command: list[str], **_: object) -> None:
        raise subprocess.CalledProcessError(1, command, b"", b"npm error code E404\nnpm error 404 Not Found\n")

    monkeypatch.setenv("SYNAPSED_DRIFT_CACHE", str(tmp_path))
    monkeypatch.setattr(packages.shutil, "which", lambda _: "npm")
    monkeypatch.setattr(packages.subprocess, "run", refused)
    with pytest.raises(NotInstalled, match=r"^npm: @openai/codex: npm error 404 Not Found$"):
        install("codex")


def test_the_version_is_that_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is installed below a folder of drift's own, without what was there of an earlier release."""
    asked = list[list[str]]()

    def npm(command: list[str], *, cwd: Path, **_: object) -> subprocess.CompletedProcess[bytes]:
        asked.append(command)
        assert not (cwd / "package-lock.json").exists()
        package = cwd / "node_modules" / "@openai" / "codex"
        package.mkdir(parents=True)
        (package / "package.json").write_text(json.dumps({"version": "9.9.9"}))
        return subprocess.CompletedProcess(command, 0, b"", b"")

    monkeypatch.setenv("SYNAPSED_DRIFT_CACHE", str(tmp_path))
    (tmp_path / "codex").mkdir()
    (tmp_path / "codex" / "package-lock.json").write_text("{}")
    monkeypatch.setattr(packages.shutil, "which", lambda _: "npm")
    monkeypatch.setattr(packages.subprocess, "run", npm)
    assert install("codex") == Installed("9.9.9", tmp_path / "codex" / "node_modules" / ".bin")
    assert asked[0][-1] == "@openai/codex@latest"
    assert "--ignore-scripts" in asked[0]


def test_the_registries() -> None:
    assert PACKAGES["vibe"] == Package("PyPI", "mistral-vibe")
    assert {each.registry for name, each in PACKAGES.items() if name != "vibe"} == {"npm"}


def test_a_second_run_waits_for_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "codex"
    with alone(folder), folder.with_name("codex.lock").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
