"""The tool against the real daemon and the shipped scripted agent: one person's session, from nothing to nothing."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.synapsectl.conftest import Ctl
from tests.synapsectl.pty_tool import PtyTool


@pytest.fixture
def real(home: Path, ctl: Ctl, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ctl]:
    """The tool, in a home whose daemon takes a free port; whatever it started ends with the test."""
    monkeypatch.setenv("SYNAPSED_A2A_HOME", str(home / "a2a"))
    (home / "config").mkdir()
    (home / "config" / "config.toml").write_text('[api]\nlisten = "127.0.0.1:0"\n')
    yield ctl
    assert ctl("shutdown").code in (0, 3)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_persons_session(real: Ctl) -> None:
    started = real("start", "dummy", "--name", "d", "--json")
    assert started.code == 0, started.err
    assert "started one" in started.err
    pid = json.loads(started.out)["pid"]
    assert real("list").out.split("\t")[0] == "d"
    assert real("start", "dummy", "--name", "d").code == 6
    assert real("start", "nope").code == 2
    assert real("send", "d", "reverse abc", "--wait").out == "cba\n"

    waiting = real("send", "d", "ask y/n", "--wait")
    assert waiting.code == 7
    assert "Proceed? (y/n)" in waiting.err
    assert real("deny", "d").code == 0
    task = json.loads(real("tasks", "d", "--json").out)[0]["id"]
    assert real("task", task[:8], "--wait").out.endswith("Answered: n\n")

    assert real("send", "d", "busy 60", "--wait", "--timeout", "0.3").code == 5
    assert real("cancel", "d").code == 0
    assert json.loads(real("status", "d", "--json").out)["pid"] == pid
    exited = real("send", "d", "exit 7", "--wait")
    assert exited.code == 1
    assert "AGENT_EXITED" in exited.err

    assert real("stop", "d", "--remove").code == 0
    assert json.loads(real("list", "--json").out) == []
    assert not alive(pid)
    assert real("shutdown").code == 0
    assert real("list").code == 3


def test_starts_at_the_same_time_share_one_daemon(real: Ctl) -> None:
    command = [sys.executable, "-m", "synapsectl", "start", "dummy"]
    starts = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=100)[1] for process in starts]
    assert [process.returncode for process in starts] == [0, 0, 0], said
    assert sum("started one" in text for text in said) == 1
    assert len(json.loads(real("list", "--json").out)) == 3
    stopped = real("stop", "--all")
    assert (stopped.code, len(stopped.out.splitlines())) == (0, 3)


def test_attached_over_a_killed_daemon(real: Ctl) -> None:
    assert real("start", "dummy", "--name", "d").code == 0
    before = json.loads(real("status", "d", "--json").out)["pid"]
    tool = PtyTool("attach", "d")
    try:
        tool.until(b"dummy>")
        tool.type(b"first\r")
        tool.until(b"You said: first")
        os.kill(json.loads(real("status", "--json").out)["pid"], signal.SIGKILL)
        tool.until(b"the daemon is away")
        assert "started one" in real("start", "dummy", "--name", "e").err
        tool.type(b"second\r")
        tool.until(b"You said: second")
        tool.type(b"\x1d")
        assert tool.end() == 0
    finally:
        tool.close()
        if real("list").code == 3:
            # A failed test leaves no keeper behind either: the next daemon finds it, and stops it.
            real("start", "dummy")
    assert json.loads(real("status", "d", "--json").out)["pid"] == before
