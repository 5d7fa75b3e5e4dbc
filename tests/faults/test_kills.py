"""Faults 1, 2, 3, 4, 5, 8, 10: the daemon dies, stops or is replaced; its agents do not notice."""

import contextlib
import http.client
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.faults import before
from tests.faults.house import PATIENT_S, House, Load
from tests.support.daemon import eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

AGENTS = int(os.environ.get("FAULT_AGENTS", "20"))
KILLS = int(os.environ.get("FAULT_KILLS", "50"))
SWAPS = int(os.environ.get("FAULT_SWAPS", "100"))
"""The figures of `make test-faults`; more, or less, by the environment."""

BLOCKS = 192
"""12 MiB a task."""

MakeHouse = Callable[..., House]
rng = random.Random(os.environ.get("FAULT_SEED", "1"))


def _all_adopted(house: House, count: int) -> bool:
    return (
        sum(
            agent["state"] == "running" and agent["evidence"] != "not looked at yet"
            for agent in house.daemon.get("/agents").json
        )
        == count
    )


def test_1_fifty_kills_under_full_output(house: MakeHouse) -> None:
    here = house("1", f"kill -9 of the daemon under {AGENTS} agents' full output")
    daemon = here.daemon.start()
    names = here.start_agents(AGENTS)
    pids = here.pids()
    took = []
    with Load(here, names, blocks=BLOCKS) as load:
        for _ in range(KILLS):
            time.sleep(rng.uniform(0.0, 1.0))  # the moment of the fault, not an expectation
            daemon.kill9()
            here.fault()
            began = time.monotonic()
            daemon.start()
            eventually(lambda: _all_adopted(here, AGENTS), "all are adopted", patience=PATIENT_S)
            took.append(time.monotonic() - began)
    here.audit(pids)
    assert load.problems == []
    took.sort()
    here.row.figures["until all agents were back"] = f"p50 {took[len(took) // 2]:.2f} s, most {took[-1]:.2f} s"
    here.row.figures["events followed by one subscriber"] = f"{len(load.ids)}, no gap, none twice"


def test_2_a_kill_in_mid_flight_and_a_stream_that_resumes(house: MakeHouse) -> None:
    here = house("2", "kill -9 of the daemon with a task in mid-flight")
    daemon = here.daemon.start()
    (name,) = here.start_agents(1)
    for number in range(5):
        task = here.send(f"busy 1\nflood 32 mid-{number}", name)
        assert task is not None
        eventually(lambda: daemon.agent(name)["activity"] == "busy", "it works")
        told = []
        with daemon.sse(f"/agents/{name}/tasks/{task}/subscribe") as events:
            told.append(next(events))
            daemon.kill9()
            here.fault()
            told += _rest(events)
        daemon.start()
        with daemon.sse(f"/agents/{name}/tasks/{task}/subscribe", last_id=told[-1]["id"]) as events:
            told += list(events)
        ids = [event["id"] for event in told]
        assert ids == sorted(set(ids))
        assert daemon.ended(task)["status"] == "completed"
        assert [event["id"] for event in told] == _ids_of(here, task)
    here.audit_tasks()


def _rest(events: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was still on its way when the daemon died."""
    told = []
    with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
        told.extend(events)
    return told


def _ids_of(here: House, task: str) -> list[int]:
    """Of what the task's stream has to tell, asked from the start."""
    agent = here.daemon.task(task)["agent_id"]
    with here.daemon.sse(f"/agents/{agent}/tasks/{task}/subscribe", last_id=0) as events:
        return [event["id"] for event in events]


def test_3_killed_between_sending_and_recording(house: MakeHouse) -> None:
    """At every moment between the acceptance of a message and its answer; and, to hit the moment for certain, with
    keepers that stand still while the daemon's input waits in their sockets."""
    here = house("3", "kill -9 between sending an input and recording it")
    daemon = here.daemon.start()
    names = here.start_agents(8)
    for step in range(10):
        keepers = [here.keeper_of(name) for name in names[: step % 2 * 4]]
        for keeper in keepers:
            keeper.suspend()
        for name in names:
            assert here.send(f"echo {name} in round {step}", name) is not None
        time.sleep(0.012 * step)  # the moment of the fault
        daemon.kill9()
        here.fault()
        for keeper in keepers:
            keeper.resume()
        daemon.start()
        for task in list(here.sent)[-len(names) :]:
            daemon.ended(task)
    here.audit_tasks()


def test_4_an_exit_while_the_daemon_is_down(house: MakeHouse) -> None:
    here = house("4", "the agent exits 7 while the daemon is down")
    daemon = here.daemon.start()
    (name,) = here.start_agents(1)
    pid = daemon.agent(name)["pid"]
    task = here.send("busy 1\nlast famous last words 7", name)
    assert task is not None
    eventually(lambda: daemon.agent(name)["activity"] == "busy", "it works")
    daemon.kill9()
    eventually(lambda: not psutil.pid_exists(pid), "the program is gone")
    here.fault()
    daemon.start()
    failed = daemon.ended(task)
    assert (failed["error"]["code"], failed["error"]["details"]["exit_code"]) == ("AGENT_EXITED", 7)
    daemon.ready(name)
    assert daemon.agent(name)["restarts"] == 1
    assert "famous last words" in daemon.ctl("logs", name).out
    daemon.kill9()  # what was decided about that exit is not decided again
    daemon.start()
    daemon.ready(name)
    assert daemon.agent(name)["restarts"] == 1
    here.audit_bytes(name, pid, ended=True)
    here.audit_tasks(may_fail=frozenset({task}))


def test_5_a_daemon_that_stands_still(house: MakeHouse) -> None:
    """What a watchdog does about it is a service manager's part: `test_systemd.py`."""
    here = house("5", "SIGSTOP of the daemon: agents go on")
    daemon = here.daemon.start()
    names = here.start_agents(3)
    pids = here.pids()
    tasks = [here.send(f"busy 1\nflood 512 {name}", name) for name in names]  # 32 MiB each
    for name in names:
        eventually(lambda: daemon.agent(name)["activity"] == "busy", "it works")  # noqa: B023
    os.kill(daemon.pid, signal.SIGSTOP)
    here.fault()

    def through() -> bool:
        notes = [here.notes / f"{pid}.out" for pid in pids.values()]
        return all(b"flooded" in path.read_bytes() for path in notes)

    eventually(through, "all printed everything to nobody", patience=PATIENT_S)
    os.kill(daemon.pid, signal.SIGCONT)
    assert len(tasks) == len(here.sent)
    here.audit(pids)


def test_8_upgrades_and_back(house: MakeHouse, tmp_path: Path) -> None:
    """Daemons of this version and of the one before, in turns: the old one is asked to go and to leave the agents, the
    new one takes them up. Half of the agents have keepers of the version before."""
    here = house("8", "another version of the daemon, and back, under load")
    daemon, older = here.daemon, before.unpack(tmp_path / "before")
    daemon.source = older
    daemon.start("--keep-agents")
    assert Path(psutil.Process(daemon.pid).cwd()) == older
    names = here.start_agents(5, "old")
    daemon.source = None
    assert daemon.signal(signal.SIGTERM) == 0
    daemon.start("--keep-agents")
    names += here.start_agents(5, "new")
    keepers = [" ".join(here.keeper_of(name).cmdline()) for name in names]
    assert [str(older) in keeper for keeper in keepers] == [True] * 5 + [False] * 5
    pids = here.pids()
    with Load(here, names, blocks=BLOCKS // 4) as load:
        for number in range(SWAPS):
            time.sleep(rng.uniform(0.0, 1.0))  # the moment of the swap
            daemon.source = None if number % 2 else older
            assert daemon.signal(signal.SIGTERM) == 0
            here.fault()
            daemon.start("--keep-agents")
    here.audit(pids)
    assert load.problems == []
    here.row.figures["events followed by one subscriber"] = f"{len(load.ids)}, no gap, none twice"
    daemon.kill9()
    daemon.source = None
    daemon.start()


def test_10_ten_crashes_in_ten_seconds(house: MakeHouse) -> None:
    here = house("10", "ten crashes of the daemon as it comes up")
    daemon = here.daemon.start()
    names = here.start_agents(5)
    pids = here.pids()
    for name in names:
        assert here.send(f"busy 2\nflood 8 {name}", name) is not None
    daemon.kill9()
    for step in range(10):
        daemon.process = daemon.run()
        time.sleep(0.1 * (step + 1))  # deeper and deeper into its start
        daemon.kill9()
        here.fault()
    daemon.start()
    here.audit(pids)
