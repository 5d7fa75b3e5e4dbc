"""The limit of open files, and the log of a daemon that a person's tool has started."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from synapsed.process.open_files import LOG_MAX, MANY, OwnLog, keep_private, raise_limit

RAISE = (
    "from synapsed.process.open_files import raise_limit; import resource; print(raise_limit(), resource.getrlimit(7))"
)


@pytest.mark.skipif(sys.platform != "linux", reason="prlimit is Linux's")
@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ("256:1024", "(256, 1024) (1024, 1024)"),
        ("1024:1024", "(1024, 1024) (1024, 1024)"),
        ("512:", None),
    ],
)
def test_the_soft_limit_is_raised_to_the_hard_one(limit: str, told: str | None) -> None:
    done = subprocess.run(
        ["prlimit", f"--nofile={limit}", sys.executable, "-c", RAISE], capture_output=True, text=True, check=True
    )
    if told is not None:
        assert done.stdout.strip() == told
    else:
        now = int(done.stdout.partition(", ")[2].partition(")")[0])
        assert 512 < now <= MANY


def test_no_limit_is_none_for_the_agents_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS that is a number which the keeper would refuse."""
    endless = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _: (endless, endless))
    assert raise_limit() == (0, MANY)


@pytest.fixture
def own(tmp_path: Path) -> tuple[Path, int]:
    path = tmp_path / "daemon.log"
    return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


LOOK = """
import os, resource, sys
from pathlib import Path
from synapsed.process.open_files import LOG_MAX, OwnLog
MANY = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
log = OwnLog(Path(sys.argv[1]))
os.write(2, b"x" * LOG_MAX)
assert not log.rotate()
os.write(2, b"one more\\n")
resource.setrlimit(resource.RLIMIT_NOFILE, (3, MANY))
assert not log.rotate(), "no file can be opened"
resource.setrlimit(resource.RLIMIT_NOFILE, (MANY, MANY))
assert log.rotate()
os.write(2, b"the next\\n")
os.write(1, b"to both\\n")
assert not log.rotate()
"""


def test_a_log_that_grows_is_put_aside_while_the_daemon_runs(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    with path.open("ab") as file:
        subprocess.run([sys.executable, "-c", LOOK, str(path)], stdout=file, stderr=file, check=True)
    assert path.read_bytes() == b"the next\nto both\n"
    assert (tmp_path / "daemon.log.1").stat().st_size == LOG_MAX + len("one more\n")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_log_that_launchd_has_made_is_its_owners_alone(own: tuple[Path, int], tmp_path: Path) -> None:
    path, fd = own
    path.chmod(0o644)
    keep_private(tmp_path / "elsewhere", fd)
    assert path.stat().st_mode & 0o777 == 0o644
    keep_private(tmp_path, fd)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_log_that_is_not_its_own_is_left_alone(own: tuple[Path, int]) -> None:
    path, fd = own
    os.write(fd, b"x" * (LOG_MAX + 1))
    path.rename(path.with_name("elsewhere"))
    path.write_text("another daemon's")
    assert not OwnLog(path, fd).rotate()
    path.unlink()
    assert not OwnLog(path, fd).rotate()
    os.close(fd)
