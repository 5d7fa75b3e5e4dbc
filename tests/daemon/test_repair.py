"""A database that was moved away or is damaged: the agents live, and are agents still; what can be saved is saved."""

import random
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.daemon import NO_PORTS, Daemon, eventually


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, config=NO_PORTS)
    daemon.start()
    yield daemon
    daemon.end()


def database(daemon: Daemon) -> Path:
    return daemon.home / "state" / "synapsed.db"


def test_agents_outlive_their_database(daemon: Daemon) -> None:
    assert daemon.ctl("start", "dummy", "--name", "ann", "--env", "MY_KEY=hush").code == 0
    ready = daemon.ready("ann")
    daemon.kill9()
    for path in database(daemon).parent.glob("synapsed.db*"):
        path.rename(path.with_name(f"away-{path.name}"))
    daemon.start()
    found = daemon.ready("ann")
    assert (found["pid"], found["id"], found["port"], found["cwd"]) == (
        ready["pid"],
        ready["id"],
        ready["port"],
        ready["cwd"],
    )
    assert daemon.ctl("send", "ann", "--wait", "echo still here").out == "still here\n"
    assert "TAKEN_UP" in daemon.ctl("events", "ann").out
    assert daemon.ctl("restart", "ann").code == 0
    ready = daemon.ready("ann")
    assert psutil.Process(ready["pid"]).environ()["MY_KEY"] == "hush", "its environment was the program's"
    daemon.kill9()
    daemon.start()
    assert daemon.ready("ann")["pid"] == ready["pid"]
    assert daemon.ctl("events", "ann").out.count("TAKEN_UP") == 1, "it is on record now"
    assert daemon.ctl("stop", "ann", "--remove").code == 0
    daemon.kill9()
    daemon.start()
    assert daemon.get("/agents").json == [], "one that was removed is not found again"


@pytest.mark.night
def test_an_older_copy_of_the_database_finds_the_program_that_runs(daemon: Daemon) -> None:
    assert daemon.ctl("start", "dummy").code == 0
    before = daemon.ready("dummy")["pid"]
    assert daemon.ctl("shutdown", "--keep-agents").code == 0
    assert daemon.process is not None
    daemon.process.wait()
    copy = database(daemon).read_bytes()
    daemon.start()
    assert daemon.ctl("restart", "dummy").code == 0
    pid = eventually(lambda: daemon.ready("dummy")["pid"], "it runs again")
    assert pid != before
    daemon.kill9()
    for path in database(daemon).parent.glob("synapsed.db*"):
        path.unlink()
    database(daemon).write_bytes(copy)
    daemon.start()
    assert daemon.ready("dummy")["pid"] == pid


@pytest.mark.night
@pytest.mark.slow
def test_a_damaged_database_is_repaired(daemon: Daemon) -> None:
    assert daemon.ctl("start", "dummy").code == 0
    ready = daemon.ready("dummy")
    assert "a daemon runs already" in daemon.ctl("doctor", "--repair").err
    daemon.kill9()
    assert daemon.ctl("doctor", "--repair").out.endswith("is sound: nothing was changed\n")
    database(daemon).write_bytes(random.Random(1).randbytes(40_000))
    process = daemon.run()
    assert process.wait(60) == 1
    assert "synapsectl doctor --repair" in (daemon.home / "daemon.log").read_text()
    assert "damaged" in daemon.ctl("doctor").out
    repaired = daemon.ctl("doctor", "--repair")
    assert repaired.code == 0
    assert "is a new one; the damaged one is" in repaired.out
    daemon.start()
    assert daemon.ready("dummy")["pid"] == ready["pid"], "its own files know what it is"
