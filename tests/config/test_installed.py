"""Of which commit a program is, and whether its files are still those that it was started from."""

from pathlib import Path

import pytest

from synapsed.process.installed import COMMIT_FILE, GONE, NEWER, InstalledFiles, commit, with_commit

SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    package = tmp_path / "root" / "synapsed"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    return package


def test_a_wheel_says_it(package: Path) -> None:
    (package / COMMIT_FILE).write_text(f"{SHA}\n")
    assert commit(package) == SHA[:10]


def test_nobody_may_know(package: Path) -> None:
    assert commit(package) == ""
    assert with_commit("0.1.0", "") == "0.1.0"
    assert with_commit("0.1.0", "abc") == "0.1.0 (abc)"


@pytest.mark.parametrize("how", ["loose", "packed", "detached", "worktree"])
def test_a_checkout_is_asked(package: Path, tmp_path: Path, how: str) -> None:
    root = package.parent
    git = root / ".git"
    git.mkdir()
    (git / "HEAD").write_text(f"{SHA}\n" if how == "detached" else "ref: refs/heads/main\n")
    if how == "packed":
        (git / "packed-refs").write_text(f"# pack-refs\n{'f' * 40} refs/heads/other\n{SHA} refs/heads/main\n")
    elif how != "detached":
        (git / "refs/heads").mkdir(parents=True)
        (git / "refs/heads/main").write_text(f"{SHA}\n")
    if how == "worktree":
        tree, own = tmp_path / "tree" / "synapsed", git / "worktrees/tree"
        tree.mkdir(parents=True)
        own.mkdir(parents=True)
        (tree.parent / ".git").write_text(f"gitdir: {own}\n")
        (own / "HEAD").write_text("ref: refs/heads/main\n")
        (own / "commondir").write_text("../..\n")
        package = tree
    assert commit(package) == SHA[:10]


def test_files_that_are_replaced_or_moved_are_told_of(package: Path) -> None:
    files = InstalledFiles(package, ["__init__.py"])
    assert files.problem() == ""
    moved = package.rename(package.with_name("moved"))
    assert files.problem().startswith(GONE)
    moved.rename(package)
    assert files.problem() == "", "they are back"
    newer = package / "newer"
    newer.write_text("__version__ = 2")
    newer.rename(package / "__init__.py")
    assert files.problem().startswith(f"{NEWER}: restart the service")
