"""Line-oriented programs that are quiet and show no prompt: the kernel tells who works from who reads."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import ANY_PORTS, Daemon, eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells it on Linux alone")


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, config=ANY_PORTS).start()
    daemon.start_agent(profile="generic", name="shell", args=["bash", "--norc"], env={"PS1": "$ "})
    yield daemon
    daemon.end()


@pytest.mark.night
def test_who_reads_asks_and_who_sleeps_works(daemon: Daemon) -> None:
    """Both print nothing and show no prompt that is known; only the one waits for a person."""
    daemon.ready("shell")
    ask = f'{sys.executable} -c \'print("=" + input("Which way") + "=")\''
    waited = daemon.ctl("send", "shell", "--wait", "--", f"sleep 8; {ask}")
    assert (waited.code, "Which way" in waited.err) == (7, True), waited
    state = daemon.agent("shell")
    assert (state["activity"], state["held"], state["prompt"]["type"]) == ("unknown", "unknown screen", "screen")
    assert state["evidence"].startswith("kernel: it reads")
    with daemon.sse(f"/agents/shell/tasks/{state['task']}/subscribe") as events:
        assert daemon.ctl("input", "shell", "to the left").code == 0
        states = [event["data"]["state"] for event in events if event["event"] == "status"]
    assert states == ["submitted", "working", "input_required", "working", "completed"]
    assert "=to the left=" in daemon.task(state["task"])["artifacts"][0]["parts"][0]["text"]


@pytest.mark.night
def test_who_waits_behind_a_silent_one_is_told_why(daemon: Daemon) -> None:
    daemon.ready("shell")
    daemon.send("sleep 600", "shell")
    for number in range(2):
        daemon.send(f"echo {number}", "shell")
    waited = daemon.ctl("send", "shell", "--wait", "--timeout", "8", "--", "echo 3")
    assert waited.code == 5
    assert "the message waits behind task" in waited.err
    assert ": busy (" in waited.err
    assert "synapsectl status shell --explain" in waited.err
    state = daemon.agent("shell")
    assert (state["activity"], state["held"], state["queue"]) == ("busy", "busy", 3)


@pytest.mark.night
def test_a_program_with_the_terminal_for_itself_that_rests_is_not_busy(daemon: Daemon) -> None:
    program = "import tty, os; tty.setraw(0); print('a full-screen program', end='', flush=True); os.read(0, 1)"
    body = {"profile": "generic", "name": "full", "cwd": "/", "args": [sys.executable, "-c", program]}
    assert daemon.post("/control/start", body).status == 200
    state = eventually(lambda: (a := daemon.agent("full"))["held"] == "unknown screen" and a, "it is not understood")
    assert state["activity"] == "unknown"
    assert "full-screen" in state["prompt"]["prompt"]
    refused = daemon.ctl("input", "full", "x")
    assert (refused.code, "answer in an attached terminal" in refused.err) == (6, True), refused
