"""The tool against the real daemon and the shipped scripted agent: one person's session, from nothing to nothing."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.daemon import ANY_PORTS, PATIENCE_S, Ctl, Daemon
from tests.synapsectl.pty_tool import PtyTool

type Real = Callable[..., Ctl]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Started by nobody yet; whatever is started ends with the test."""
    daemon = Daemon(tmp_path, config=ANY_PORTS)
    yield daemon
    assert daemon.end() == 0


@pytest.fixture
def real(daemon: Daemon) -> Real:
    return daemon.ctl


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.night
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_persons_session(real: Real) -> None:
    started = real("start", "dummy", "--name", "d", "--json")
    assert started.code == 0, started.err
    assert "started one" in started.err
    pid = started.json["pid"]
    assert real("list").out.split("\t")[0] == "d"
    assert real("start", "dummy", "--name", "d").code == 6
    assert real("start", "nope").code == 2
    assert real("send", "d", "reverse abc", "--wait").out == "cba\n"

    waiting = real("send", "d", "ask y/n", "--wait")
    assert waiting.code == 7
    assert "Proceed? (y/n)" in waiting.err
    assert real("deny", "d").code == 0
    task = real("tasks", "d", "--json").json[0]["id"]
    assert real("task", task[:8], "--wait").out.endswith("Answered: n\n")

    assert real("send", "d", "busy 60", "--wait", "--timeout", "0.3").code == 5
    assert real("cancel", "d").code == 0
    assert real("status", "d", "--json").json["pid"] == pid
    exited = real("send", "d", "exit 7", "--wait")
    assert exited.code == 1
    assert "AGENT_EXITED" in exited.err

    assert real("stop", "d", "--remove").code == 0
    assert real("list", "--json").json == []
    assert not alive(pid)
    assert real("shutdown").code == 0
    assert real("list").code == 3


def test_starts_at_the_same_time_share_one_daemon(daemon: Daemon, real: Real) -> None:
    starts = [daemon.spawn("start", "dummy") for _ in range(3)]
    said = [process.communicate(timeout=PATIENCE_S)[1] for process in starts]
    assert [process.returncode for process in starts] == [0, 0, 0], said
    assert sum("started one" in text for text in said) == 1
    assert len(real("list", "--json").json) == 3
    stopped = real("stop", "--all")
    assert (stopped.code, len(stopped.out.splitlines())) == (0, 3)


@pytest.mark.night
def test_attached_over_a_killed_daemon(daemon: Daemon, real: Real) -> None:
    assert real("start", "dummy", "--name", "d").code == 0
    before = real("status", "d", "--json").json["pid"]
    tool = PtyTool("attach", "d", env=daemon.env)
    try:
        tool.until(b"dummy>")
        tool.type(b"first\r")
        tool.until(b"You said: first")
        os.kill(real("status", "--json").json["pid"], signal.SIGKILL)
        tool.until(b"the daemon is away")
        assert "started one" in real("start", "dummy", "--name", "e").err
        tool.type(b"second\r")
        tool.until(b"You said: second")
        tool.type(b"\x1d")
        assert tool.end() == 0
    finally:
        tool.close()
    assert real("status", "d", "--json").json["pid"] == before
