"""`up`, and what is said of agents where no daemon runs."""

import fcntl
import json
from pathlib import Path

import pytest

from synapsectl.commands import up
from synapsed.agents import views
from synapsed.config.paths import Paths
from synapsed.model.agent import Activity, ProcessState
from synapsed.process.lock_record import LockRecord, RunningPlace, read_record
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon, agent


def test_it_says_which_agents_live(daemon: FakeDaemon, ctl: Ctl) -> None:
    bob = agent("bob", pid=None, state=ProcessState.STOPPED, activity=Activity.UNKNOWN, port=8191)
    daemon.agents = {"ann": agent("ann", pid=7), "bob": bob}
    told = ctl("up")
    assert (told.code, told.out) == (0, "ann\tready\t/work/space\n")
    assert [one["name"] for one in json.loads(ctl("up", "--json").out)] == ["ann"]
    assert ctl("up", "claude").code == 2, "it is no other word for start any more"


def test_one_that_is_yet_to_start_is_waited_for(daemon: FakeDaemon, ctl: Ctl, monkeypatch: pytest.MonkeyPatch) -> None:
    comes = {"pid": None, "state": ProcessState.STOPPED, "activity": Activity.UNKNOWN, "evidence": views.COMES_UP}
    daemon.agents = {"ann": agent("ann", **comes)}

    def start(_seconds: float) -> None:
        daemon.agents = {"ann": agent("ann")}

    monkeypatch.setattr(up.time, "sleep", start)
    assert ctl("up").out == "ann\tready\t/work/space\n"


def test_list_names_those_that_live_without_a_daemon(ctl: Ctl) -> None:
    paths = Paths.from_environ()
    for name in ("ann", "bob"):
        folder = paths.agent(f"synapse-fake-{name}")
        folder.mkdir(parents=True)
        (folder / "keeper.lock").touch()
        (folder / "launch.json").write_text(json.dumps({"agent": {"name": name}}))
    assert "ann" not in ctl("list").err
    with (paths.agent("synapse-fake-ann") / "keeper.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        told = ctl("list")
        as_json = ctl("list", "--json")
    assert told.code == as_json.code == 3
    assert "ann lives on without one: 'synapsectl up' brings it back" in told.err
    assert "ann lives on" in json.loads(as_json.out)["error"]["message"]
    assert "bob" not in told.err


ELSEWHERE = LockRecord(7, RunningPlace("desk", "another", "pid:[1]"), "/run/7/control.sock", 1_800_000_000.0)


@pytest.mark.parametrize("verb", [("list",), ("start", "dummy"), ("up",)])
def test_whose_state_it_is_is_said(verb: tuple[str, ...], ctl: Ctl) -> None:
    lock = Paths.from_environ().lock
    lock.parent.mkdir(parents=True)
    lock.write_text(ELSEWHERE.text())
    told = ctl(*verb)
    assert told.code == 3
    assert "is that of the daemon on host desk, pid 7 there, since 2027-01-15" in told.err
    assert "SYNAPSED_HOME=/dir" in told.err
    assert "'synapsectl up --take-over'" in told.err
    assert read_record(str(lock)) == ELSEWHERE


def test_it_is_not_taken_from_a_daemon_that_runs(ctl: Ctl, home: Path) -> None:
    lock = Paths.from_environ().lock
    lock.parent.mkdir(parents=True)
    lock.write_text(ELSEWHERE.text())
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        told = ctl("up", "--take-over")
    assert (told.code, "while its daemon runs: the daemon on host desk" in told.err) == (3, True), told
    assert read_record(str(lock)) == ELSEWHERE
