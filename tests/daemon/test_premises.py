"""What a daemon stands on is removed while it runs: it says so, and nothing is lost that can be kept."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, eventually


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path / "home")
    yield daemon.start()
    daemon.end()


def alerts(daemon: Daemon) -> str:
    return "\n".join(daemon.get("/control/status").json["alerts"])


def test_the_folder_of_state(daemon: Daemon) -> None:
    daemon.start_agent(name="ann")
    first = daemon.send("echo before", "ann")
    daemon.ended(first)
    token = (daemon.home / "state" / "token").read_text()
    assert alerts(daemon) == ""
    gone = (daemon.home / "state").rename(daemon.home / "gone")  # all of it at one moment: it is looked at every second
    shutil.rmtree(gone)
    eventually(lambda: "(state) was removed" in alerts(daemon), "it says so")
    assert "(database) was removed" in alerts(daemon)
    assert "was removed while the daemon ran" in daemon.ctl("status").out
    assert "somebody has removed what the daemon stands on" in daemon.log()
    eventually((daemon.home / "state" / "token").exists, "its token is written again")
    assert (daemon.home / "state" / "token").read_text() == token
    daemon.ctl("stop", "ann")
    assert daemon.ctl("shutdown").code == 0
    assert daemon.process is not None
    assert daemon.process.wait(60) == 0
    daemon.start()
    assert daemon.task(first)["artifacts"][0]["parts"][0]["text"] == "before", "all of it is in the database again"
    assert daemon.agent("ann")["state"] == "stopped", "also what came after that"
    assert (daemon.home / "state" / "synapsed.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.night
def test_the_control_socket(daemon: Daemon) -> None:
    daemon.socket.unlink()
    eventually(lambda: daemon.socket.exists() and daemon.ctl("list").code == 0, "it answers there again")
    assert "(control socket) was removed" in alerts(daemon)


def test_the_folder_of_the_sockets(daemon: Daemon) -> None:
    """As a logout has it, or whoever tidies up."""
    agent = daemon.start_agent(name="ann")
    run = daemon.home / "run"
    before = sorted(path.relative_to(run) for path in run.rglob("*"))
    shutil.rmtree(run)
    eventually(lambda: sorted(path.relative_to(run) for path in run.rglob("*")) == before, "all is made again")
    eventually(lambda: daemon.socket.exists() and daemon.ctl("list").code == 0, "it answers there")
    assert "(lock of the sockets) was removed" in alerts(daemon)
    second = daemon.run()
    assert second.wait(60) == 1, "there is one daemon still"
    go = daemon.home / "go"
    task = daemon.send(f"until {go}", "ann")
    daemon.task_in(task, "working")
    daemon.kill9()
    shutil.rmtree(run)
    daemon.start()
    go.touch()
    assert daemon.ended(task)["status"] == "completed", "the turn has gone on"
    assert daemon.agent("ann")["pid"] == agent["pid"], "its program was not ended"


@pytest.mark.night
def test_nothing_is_said_where_nothing_is_gone(daemon: Daemon) -> None:
    eventually(lambda: "daemon ready" in daemon.log(), "it is up")
    daemon.start_agent()
    assert alerts(daemon) == ""
