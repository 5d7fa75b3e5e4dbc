"""A program behind a relay, as ssh, docker exec and sudo are: its keys and its output come late."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import relay
from tests.support.daemon import NO_PORTS, Daemon, eventually
from tests.support.sharing import ROOT

LATE = "2 2 0.1"
"""Together later than the program is looked at again, and than its submit key would be pressed again."""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Its agent is the scripted one, behind a relay."""
    daemon = Daemon(tmp_path, config=NO_PORTS + "[agents.dummy]\nautostart = true\n")
    (tmp_path / "delays").write_text(LATE)
    program = [sys.executable, "-S", "-E", "-I", str(ROOT / "examples/dummy_agent.py")]
    command = ["-S", "-E", "-I", str(relay.__file__), str(tmp_path / "delays"), str(tmp_path / "keys"), *program]
    (tmp_path / "config" / "profiles").mkdir(parents=True)
    (tmp_path / "config" / "profiles" / "dummy.toml").write_text(f"args = {command!r}\n")
    daemon.start()
    daemon.ready()
    yield daemon
    daemon.end()


def keys(daemon: Daemon) -> str:
    """All that has come to the program."""
    lines = (daemon.home / "keys").read_text().splitlines()
    return "".join(line.removeprefix("b").strip("'") for line in lines)


def typed(text: str) -> str:
    return f"\\x1b[200~{text}\\x1b[201~\\r"


def test_each_key_is_pressed_once(daemon: Daemon) -> None:
    """The question that a message asks is not answered by a second submit key, nor is an answer given twice."""
    asking = daemon.send("ask y/n")
    daemon.task_in(asking, "input_required")
    assert daemon.ctl("input", "dummy", "y").code == 0
    assert "Answered: y" in str(daemon.ended(asking))
    busy = daemon.send("busy 600")
    eventually(lambda: "working" in daemon.ctl("screen", "dummy").out, "it works")
    assert daemon.ctl("cancel", busy).code == 0
    assert daemon.ended(busy)["status"] == "canceled"
    assert keys(daemon) == f"{typed('ask y/n')}y\\r{typed('busy 600')}\\x03"


def test_a_message_that_is_canceled_at_once_is_removed_when_it_is_shown(daemon: Daemon) -> None:
    first = daemon.send("busy 600")
    assert daemon.ctl("cancel", first).code == 0
    assert daemon.ended(first)["status"] == "canceled"
    assert "You said: next" in str(daemon.ended(daemon.send("next")))
    assert keys(daemon) in (f"{typed('busy 600')[:-2]}\\x15{typed('next')}", typed("next"))


def test_a_persons_text_that_is_not_shown_yet_is_not_submitted(daemon: Daemon) -> None:
    assert daemon.ctl("keys", "dummy", "d", "o").code == 0
    waiting = daemon.send("hello")
    eventually(lambda: "dummy> do" in daemon.ctl("screen", "dummy").out, "it is shown")
    assert daemon.ctl("keys", "dummy", "Enter").code == 0
    assert "You said: hello" in str(daemon.ended(waiting))
    assert keys(daemon) == f"do\\r{typed('hello')}"
