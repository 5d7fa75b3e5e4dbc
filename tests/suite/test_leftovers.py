"""A test that runs out of time leaves no process behind, and takes none from the tests after it."""

import os
import subprocess
import sys
from pathlib import Path

import psutil

from tests.support.daemon import PATIENCE_S

ROOT = Path(__file__).parents[2]

TESTS = """
import os, signal, subprocess, pytest

def start(name):
    # The shell ends at once, so that this process has no parent that waits for it.
    command = ["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    with open("pids", "a") as pids:
        pids.write(f"{name} {done.stdout}")
    return int(done.stdout)

@pytest.fixture(scope="module")
def shared():
    return start("shared")

@pytest.fixture
def own():
    start("own")

def test_out_of_time(shared, own):
    start("called")
    os.kill(os.getpid(), signal.SIGALRM)  # as its timer does

def test_after_it(shared):
    import psutil
    assert psutil.Process(shared).is_running()
    assert psutil.Process(start("well")).is_running()
"""


def test_what_a_test_out_of_time_had_started_is_ended(tmp_path: Path) -> None:
    (tmp_path / "test_these.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.support.leftovers", "--rootdir", "."]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "-o", "timeout=600", "-W", "ignore", "test_these.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    pids = dict(line.split() for line in (tmp_path / "pids").read_text().splitlines())
    assert pids.keys() == {"shared", "own", "called", "well"}
    alive = [name for name, pid in pids.items() if psutil.pid_exists(int(pid)) and not _is_dead(int(pid))]
    assert alive == [], "nothing of a run in which a test ran out of time goes on"


def _is_dead(pid: int) -> bool:
    """Killed, and not waited for yet by whoever has inherited it."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
