"""A person's folders that resist, and names of bytes, by the installed tool: nothing is half done, and each is told."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ground.installed import Installed
from tests.ground.person import Person, living_somewhere

pytestmark = [
    pytest.mark.night,
    pytest.mark.skipif(
        sys.platform != "linux" or os.getuid() != 0 or shutil.which("setpriv") is None, reason="makes what resists"
    ),
]

PLAIN = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
OTHER = 65534
STRANGE = os.fsdecode(b"caf\xe9")
RESISTS = {
    "mode 0500": ("chmod 0500 {0}", PLAIN, "may not be deleted by you (mode 0500"),
    "mode 0": ("chmod 0 {0}", PLAIN, "may not be deleted by you (mode 0000"),
    "another's": (f"chown {OTHER} {{0}}; chmod 0755 {{0}}", PLAIN, "or root can delete it"),
    "another's file where each owns their own": (
        f"chown {OTHER} {{0}} {{0}}/file; chmod 1777 {{0}}",
        PLAIN,
        "or root can delete it",
    ),
    "a mount": (
        "true",
        ("unshare", "--mount", "sh", "-c", 'mount --bind {0} {0} && exec "$@"', "sh"),
        "is a mount point: nothing was deleted",
    ),
}


@pytest.fixture(scope="module")
def person(installed: Installed) -> Iterator[Person]:
    with living_somewhere(installed) as person:
        yield person


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=me", "-c", "user.email=me@here")
    done = subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def repository(person: Person) -> Path:
    """With the worktree `login`, and an ignored folder in that."""
    folder = person.home / f"r{len(list(person.home.iterdir()))}"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / ".gitignore").write_text("cache/\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    tree = folder.with_name(f"{folder.name}.worktrees") / "login"
    git(folder, "worktree", "add", "-q", "-b", "login", str(tree))
    (tree / "cache/mod").mkdir(parents=True)
    (tree / "cache/mod/file").touch()
    return folder


@pytest.mark.parametrize("name", RESISTS)
def test_a_folder_that_resists_is_found_before_anything_is_deleted(name: str, person: Person, repository: Path) -> None:
    prepare, around, says = RESISTS[name]
    closed = repository.with_name(f"{repository.name}.worktrees") / "login/cache/mod"
    subprocess.run(["sh", "-c", prepare.format(closed)], check=True)
    filled = [word.replace("{0}", str(closed)) for word in around]
    for force in ((), ("--force",)):
        done = person.ctl("worktree", "remove", "login", *force, around=filled, cwd=repository)
        assert (done.code, says in done.err) == (6, True), done
        assert (closed / "file").exists()
        assert git(repository, "status", "--porcelain") == ""
        assert "login" in git(repository, "branch", "--list", "login")
    done = person.ctl("worktree", "remove", "login", cwd=repository)  # as root, and without the mount
    assert done.code == 0, done
    assert not closed.parents[1].exists()
    assert git(repository, "branch", "--list", "login") == ""


@pytest.mark.parametrize(
    "words",
    [
        ("send", "claude", STRANGE),
        ("status", STRANGE),
        ("start", "dummy", "--name", STRANGE),
        ("start", "dummy", "--", STRANGE),
        ("schedule", "add", "claude", "hourly", STRANGE),
        ("history", STRANGE),
    ],
    ids=lambda words: " ".join(words).encode("ascii", "replace").decode(),
)
@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_an_argument_of_bytes(person: Person, words: tuple[str, ...], locale: str) -> None:
    done = person.ctl(*words, env={**person.login, "LANG": locale})
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert done.err.endswith(r": an argument is not UTF-8: 'caf\xe9'" "\n")
