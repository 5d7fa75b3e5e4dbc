"""One daemon for one state: who is refused, and what is said."""

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from synapsed.api.listeners import lead_here
from synapsed.config.paths import Paths
from synapsed.errors import AlreadyRunning, StateElsewhere
from synapsed.process.lock_record import LockRecord, RunningPlace, read_record
from synapsed.process.state_lock import lock_home, prepare_directories

HOLDS = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("PRAGMA journal_mode = WAL").fetchall()
connection.execute("SELECT * FROM sqlite_schema").fetchall()
print("has it", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    paths = Paths.from_environ({"HOME": str(tmp_path), "SYNAPSED_HOME": str(tmp_path / "home")})
    prepare_directories(paths)
    return paths


def test_it_says_who_has_it_and_where_it_listens(paths: Paths) -> None:
    with lock_home(paths):
        record = read_record(str(paths.lock))
        assert record is not None
        assert (record.pid, record.socket) == (os.getpid(), str(paths.control_socket))
        assert paths.run_lock.read_text() == f"{os.getpid()}\n", "daemons before 0.2 know that one alone"
        assert paths.lock.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("elsewhere", ["run", "state"])
def test_a_second_one_is_refused_wherever_it_stands(elsewhere: str, paths: Paths, tmp_path: Path) -> None:
    """With the same state, or with the same sockets."""
    other = paths._replace(**{elsewhere: tmp_path / "other"})
    prepare_directories(other)
    with lock_home(paths), pytest.raises(AlreadyRunning, match=f"pid {os.getpid()}"), lock_home(other):
        raise AssertionError("it was let in")
    with lock_home(other):
        pass


def test_what_the_last_one_left_is_another_places(paths: Paths) -> None:
    before = LockRecord(7, RunningPlace("desk", "another-boot", "pid:[1]"), "/run/7/control.sock", 1_800_000_000.0)
    paths.lock.write_text(before.text())
    whose = re.escape("on host desk, pid 7 there, since 2027-01-15")
    with pytest.raises(StateElsewhere, match=whose) as refused, lock_home(paths):
        raise AssertionError("it was let in")
    assert "SYNAPSED_HOME=/dir" in refused.value.message
    assert "'synapsectl up --take-over'" in refused.value.message
    assert read_record(str(paths.lock)) == before, "it stays theirs"
    paths.lock.write_text("")
    with lock_home(paths) as lock:
        lock.leave()
    assert paths.lock.read_text() == "", "whoever comes next, from wherever, may have it"


def test_a_lock_that_was_removed_is_made_again(paths: Paths) -> None:
    with lock_home(paths) as lock:
        paths.lock.unlink()
        paths.run_lock.unlink()
        lock.make_again()
        assert (record := read_record(str(paths.lock))) is not None
        assert record.pid == os.getpid()
        with pytest.raises(AlreadyRunning), lock_home(paths):
            raise AssertionError("it was let in")


@pytest.fixture
def user(paths: Paths, request: pytest.FixtureRequest) -> Iterator[int]:
    """A process that has the database open, and is called by the words of the parameter."""
    sqlite3.connect(paths.database).close()
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(paths.database), *request.param],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"has it\n"
        yield process.pid
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who has it")
@pytest.mark.parametrize("user", [["/usr/bin/synapsed", "run"]], indirect=True)
def test_a_daemon_that_holds_no_lock_of_ours_is_found_by_the_database(paths: Paths, user: int) -> None:
    """One of before 0.2 with its sockets elsewhere, or one whose lock was removed."""
    with pytest.raises(AlreadyRunning, match=f"pid {user}"), lock_home(paths):
        raise AssertionError("it was let in")


@pytest.mark.parametrize("user", [["sqlite3"]], indirect=True)
def test_a_person_may_look_into_the_database(paths: Paths, user: int) -> None:
    with lock_home(paths):
        pass


def test_who_knows_the_sockets_of_the_daemon_before_finds_this_one(paths: Paths, tmp_path: Path) -> None:
    before = tmp_path / "before"
    before.mkdir(mode=0o700)
    (before / "control.sock").touch()
    lead_here(before / "control.sock", paths)
    assert {path.name: path.readlink() for path in before.iterdir()} == {
        name: paths.sockets / name for name in ("control.sock", "hooks.sock", "decide.sock")
    }
    lead_here(paths.control_socket, paths)
    assert not paths.control_socket.is_symlink(), "its own place stays as it is"
