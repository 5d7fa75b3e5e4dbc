"""Parked agents in the real daemon: program and keeper gone, the address alive, and kills -9 in every phase."""

import contextlib
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.daemon import NO_PORTS, Daemon, eventually
from tests.synapsectl.pty_tool import PtyTool

PROFILE = """
[resume]
args = ["-X", "resume={conversation}"]
fresh_args = ["-X", "session={conversation}"]
"""
"""The scripted agent keeps nothing of a conversation; its interpreter does not mind being told of one."""

IDLE = "[agents.dummy]\nautostart = true\npark = { idle_timeout = 2 }\n"
BY_HAND = "[agents.dummy]\nautostart = true\n"


def house(home: Path, agents: str) -> Daemon:
    daemon = Daemon(home, config=NO_PORTS + agents)
    profiles = home / "config" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "dummy.toml").write_text(PROFILE)
    return daemon


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """With an agent that is parked by hand, ready and with a conversation."""
    daemon = house(tmp_path, BY_HAND)
    daemon.start()
    daemon.ready()
    daemon.ended(daemon.send("hello"))
    daemon.ready()
    yield daemon
    daemon.end()


def is_parked(daemon: Daemon) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        agent = daemon.agent()
        return agent if agent["state"] == "parked" else None

    return eventually(look, "it is parked")


def park(daemon: Daemon) -> dict[str, Any]:
    """By hand, once its screen has come to rest."""
    eventually(lambda: daemon.ctl("park", "dummy").code == 0, "it is parked by hand")
    return is_parked(daemon)


def program(daemon: Daemon) -> tuple[psutil.Process, psutil.Process]:
    """The program and its keeper."""
    process = psutil.Process(daemon.agent()["pid"])
    keeper = process.parent()
    assert keeper is not None
    return process, keeper


def answered_once(daemon: Daemon, task: str, word: str) -> None:
    done = daemon.ended(task)
    assert done["status"] == "completed", done
    assert done["artifacts"][-1]["parts"][0]["text"] == f"You said: {word}"
    shown = daemon.get("/control/agents/dummy/history?bytes=1000000").body.decode()
    assert shown.count(f"You said: {word}") == 1


@pytest.mark.night
def test_parked_after_its_time_and_woken_by_a_message(tmp_path: Path) -> None:
    daemon = house(tmp_path, IDLE)
    daemon.start()
    try:
        daemon.ready()
        process, keeper = program(daemon)
        daemon.ended(daemon.send("hello"))
        parked = is_parked(daemon)
        assert parked["pid"] is None
        assert "idle for" in parked["evidence"]
        eventually(lambda: not process.is_running() and not keeper.is_running(), "program and keeper are gone")
        assert daemon.get("/agents/dummy/status").json["status"] == "IDLE"
        assert "hello" in daemon.ctl("screen", "dummy").out
        assert daemon.agent()["state"] == "parked", "looking does not wake it"
        answered = daemon.ctl("send", "dummy", "--wait", "again")
        assert (answered.code, answered.out) == (0, "You said: again\n"), answered.err
        assert daemon.agent()["conversation"]["resumed"]
        is_parked(daemon)
    finally:
        daemon.end()


@pytest.mark.night
def test_what_a_person_does_to_a_parked_agent(daemon: Daemon) -> None:
    park(daemon)
    assert daemon.ctl("park", "dummy").code == 0
    assert daemon.ctl("input", "dummy", "yes").code == 6
    assert daemon.ctl("cancel", "dummy").code == 0
    killed = daemon.ctl("kill", "dummy")
    assert (killed.code, "parked" in killed.err) == (6, True)
    assert daemon.ctl("list").out.split("\t")[1] == "parked"
    assert "hello" in daemon.ctl("screen", "dummy").out
    assert '"lines"' in daemon.ctl("screen", "dummy", "--json").out
    assert daemon.agent()["state"] == "parked"
    assert daemon.ctl("restart", "dummy").code == 0
    daemon.ready()
    park(daemon)
    assert daemon.ctl("stop", "dummy").code == 0
    assert daemon.agent()["state"] == "stopped"
    assert daemon.ctl("send", "dummy", "x").code == 6


@pytest.mark.night
def test_an_a2a_message_wakes_it(daemon: Daemon) -> None:
    park(daemon)
    assert daemon.get("/agents/dummy/.well-known/agent-card.json").status == 200
    message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "by A2A"}]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    answer = daemon.request("POST", "/agents/dummy/a2a", call, {"A2A-Version": "1.0"}).json
    task = answer["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED", answer
    assert task["artifacts"][0]["parts"][0]["text"] == "You said: by A2A"


@pytest.mark.night
def test_a_terminal_wakes_it_and_keeps_it_awake(daemon: Daemon) -> None:
    park(daemon)
    tool = PtyTool("attach", "dummy", env=daemon.env)
    try:
        tool.until(b"dummy>")
        assert daemon.ready()["state"] == "running"
        refused = daemon.ctl("park", "dummy")
        assert (refused.code, "a terminal is attached" in refused.err) == (6, True), refused.err
    finally:
        tool.close()


def test_kill_9_while_it_is_parked(daemon: Daemon) -> None:
    park(daemon)
    for _ in range(2):
        daemon.kill9()
        daemon.start()
        assert is_parked(daemon)["pid"] is None
    assert "hello" in daemon.ctl("screen", "dummy").out
    assert "hello" in daemon.agent()["screen"]
    answered_once(daemon, daemon.send("after"), "after")


@pytest.mark.night
def test_shutdown_and_start_leave_it_parked(daemon: Daemon) -> None:
    park(daemon)
    assert daemon.signal(signal.SIGTERM) == 0
    daemon.start()
    assert is_parked(daemon)["pid"] is None
    answered_once(daemon, daemon.send("after"), "after")


@pytest.mark.night
def test_kill_9_while_it_is_being_parked(daemon: Daemon) -> None:
    """The message that came meanwhile is delivered once, to the next program."""
    process, keeper = program(daemon)
    keeper.suspend()  # it does not hear that it is to end its program
    parking = daemon.spawn("park", "dummy")

    def stopping() -> bool:
        nonlocal parking
        if parking.poll() not in (None, 0):  # its screen had not come to rest
            parking.communicate()
            parking = daemon.spawn("park", "dummy")
        return bool(daemon.agent()["state"] == "stopping")

    eventually(stopping, "it is being parked")
    task = daemon.send("meanwhile")
    daemon.kill9()
    parking.communicate()
    keeper.resume()
    daemon.start()
    answered_once(daemon, task, "meanwhile")
    assert not process.is_running()


@pytest.mark.parametrize(
    "moment_s", [0.05, *(pytest.param(moment, marks=pytest.mark.night) for moment in (0.0, 0.02, 0.1, 0.2, 0.4))]
)
def test_kill_9_while_it_is_being_woken(daemon: Daemon, moment_s: float) -> None:
    """At moments from the message to its answer: before the keeper, while the program starts, while it is typed."""
    park(daemon)
    task = daemon.send("wake up")
    time.sleep(moment_s)  # the moment is what is varied, not waited for
    daemon.kill9()
    daemon.start()
    answered_once(daemon, task, "wake up")
    assert len([p for p in psutil.process_iter(["cmdline"]) if _is_program(p, daemon)]) == 1


def _is_program(process: psutil.Process, daemon: Daemon) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.environ().get("SYNAPSE_CONTROL_SOCKET") == str(daemon.socket) and any(
            "dummy_agent.py" in part for part in process.cmdline()
        )
    return False
