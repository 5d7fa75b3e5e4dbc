"""Faults 20 to 22: a keeper that is stopped (SIGSTOP), and goes on or does not."""

from collections.abc import Callable

import psutil
import pytest

from tests.faults.house import PATIENT_S, House
from tests.support.daemon import eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

MakeHouse = Callable[..., House]


def silent(here: House, name: str) -> None:
    eventually(lambda: here.daemon.agent(name).get("held") == "keeper" or None, "it is told", patience=PATIENT_S)
    agent = here.daemon.agent(name)
    assert agent["activity"] == "unknown"
    assert agent["evidence"] == "the process that holds its terminal does not answer"
    assert any("the process that holds its terminal does not answer" in alert for alert in agent["alerts"]), agent


@pytest.mark.parametrize("restarted", [False, True], ids=["", "and the daemon is killed"])
def test_20_a_keeper_stands_still_and_goes_on(house: MakeHouse, restarted: bool) -> None:
    here = house("20", f"SIGSTOP and SIGCONT of a keeper{', a kill of the daemon' if restarted else ''}")
    daemon = here.daemon.start()
    frozen, spared = here.start_agents(2)
    pids = here.pids()
    keeper = here.keeper_of(frozen)
    here.send("say before", frozen)
    daemon.ready(frozen)
    keeper.suspend()
    here.fault()
    silent(here, frozen)
    here.send("say while it stands", frozen)
    if restarted:
        daemon.kill9()
        daemon.start()
        silent(here, frozen)
    here.send("say beside", spared)
    keeper.resume()
    daemon.ready(frozen)
    here.audit_tasks()
    assert here.pids() == pids
    assert daemon.agent(frozen)["alerts"] == []


@pytest.mark.parametrize("verb", ["stop", "restart", "kill"])
def test_21_a_keeper_that_stands_still_is_ended(house: MakeHouse, verb: str) -> None:
    here = house("21", f"{verb} of an agent whose keeper was stopped")
    daemon = here.daemon.start()
    (frozen,) = here.start_agents(1)
    pid, keeper = here.pids()[frozen], here.keeper_of(frozen)
    keeper.suspend()
    here.fault()
    done = daemon.ctl(verb, frozen)
    assert done.code == 0, done
    eventually(lambda: not psutil.pid_exists(keeper.pid) or None, "the keeper is gone")
    eventually(lambda: not psutil.pid_exists(pid) or None, "the program is gone")
    if verb == "stop":
        assert daemon.agent(frozen)["state"] == "stopped"
    else:
        eventually(lambda: daemon.agent(frozen)["pid"] not in (None, pid) or None, "another is started")
        daemon.ready(frozen)


def test_22_stop_before_the_daemon_has_reached_it(house: MakeHouse) -> None:
    here = house("22", "stop of an agent whose keeper was stopped before the daemon started")
    daemon = here.daemon.start()
    (frozen,) = here.start_agents(1)
    keeper = here.keeper_of(frozen)
    keeper.suspend()
    here.fault()
    daemon.kill9()
    daemon.start()
    silent(here, frozen)
    done = daemon.ctl("stop", frozen)
    assert done.code == 0, done
    eventually(lambda: not psutil.pid_exists(keeper.pid) or None, "the keeper is gone")
    assert daemon.agent(frozen)["state"] == "stopped"
