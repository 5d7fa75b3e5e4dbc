"""What daemon.lock says, and to whom it means a daemon that runs here."""

import fcntl
import os
from pathlib import Path

import pytest

from synapsed.process.lock_record import LockRecord, RunningPlace, elsewhere, here, read_record, recorded_socket

DESK = RunningPlace("desk", "boot-1", "pid:[1]", "machine-1")
RECORD = LockRecord(7, DESK, "/run/user/7/synapsed/control.sock", 1_800_000_000.0)


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    lock = tmp_path / "daemon.lock"
    lock.write_text(RECORD.text())
    assert lock.read_text().split("\n")[:4] == ["7", "desk", "boot-1", RECORD.socket]
    assert read_record(str(lock)) == RECORD


def test_a_path_may_have_any_character(tmp_path: Path) -> None:
    odd = RECORD._replace(socket="/home/one\ntwo/\\n/ü/control.sock")
    (tmp_path / "lock").write_text(odd.text())
    assert read_record(str(tmp_path / "lock")) == odd


@pytest.mark.parametrize("text", ["", "7\n", "x\na\nb\nc\nd\n1\n", "\n" * 9])
def test_what_is_no_record(text: str, tmp_path: Path) -> None:
    (tmp_path / "lock").write_text(text)
    assert read_record(str(tmp_path / "lock")) is None


def test_a_link_or_a_pipe_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text(RECORD.text())
    (tmp_path / "link").symlink_to("lock")
    os.mkfifo(tmp_path / "pipe")
    assert [read_record(str(tmp_path / name)) for name in ("link", "pipe", "none")] == [None, None, None]


@pytest.mark.parametrize(
    ("place", "at"),
    [
        (DESK, True),
        (RunningPlace("renamed", "boot-1", "pid:[1]"), True),
        (RunningPlace("desk", "boot-2", "pid:[9]"), True),
        (RunningPlace("desk", "boot-1", "pid:[9]"), False),
        (RunningPlace("desk", "boot-2", "pid:[1]", "machine-1"), True),
        (RunningPlace("desk", "boot-2", "pid:[1]", "machine-2"), False),
        (RunningPlace("other", "boot-2", "pid:[1]"), False),
        (RunningPlace("other", "", ""), False),
    ],
    ids=[
        "here",
        "renamed",
        "restarted",
        "a container",
        "restarted with an id",
        "of the same name",
        "another host",
        "a system without boot ids",
    ],
)
def test_where_it_is(place: RunningPlace, at: bool) -> None:
    assert RECORD.is_at(place) is at


def test_whose_it_is_is_told() -> None:
    told = RECORD.describe(RunningPlace("box", "boot-1", "pid:[2]"))
    assert "host desk (another PID namespace of this machine), pid 7 there, since 2027-01-15" in told
    assert "namespace" not in RECORD.describe(RunningPlace("box", "boot-2", "pid:[1]"))


def test_a_daemon_that_is_here_is_found_by_its_lock(tmp_path: Path) -> None:
    lock = tmp_path / "daemon.lock"
    lock.write_text(RECORD._replace(place=here()).text())
    assert recorded_socket(str(lock)) == RECORD.socket
    assert elsewhere(str(lock)) is None
    lock.write_text(RECORD.text())
    assert recorded_socket(str(lock)) is None


def test_another_place_has_it_while_its_programs_may_live(tmp_path: Path) -> None:
    lock, keeper = tmp_path / "daemon.lock", tmp_path / "agents" / "synapse-dummy-8190" / "keeper.lock"
    beside = RECORD._replace(place=here()._replace(namespace="pid:[9]"))
    keeper.parent.mkdir(parents=True)
    keeper.touch()
    lock.write_text(beside.text())
    assert elsewhere(str(lock)) is None, "nothing of it lives"
    with keeper.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert elsewhere(str(lock)) == beside, "a program does"
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert elsewhere(str(lock)) == beside, "the daemon does"
    lock.write_text(RECORD.text())
    assert elsewhere(str(lock)) == RECORD, "of another machine nobody knows"
