"""Faults 5 and 9 where a service manager has its part in them: a real `systemd --user`."""

import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.faults.house import PATIENT_S, House
from tests.faults.ledger import Ledger
from tests.service.house import House as Service
from tests.support import systemd
from tests.support.daemon import eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

type MakeServed = Callable[..., tuple[Service, House]]


@pytest.fixture
def served(ledger: Ledger) -> Iterator[MakeServed]:
    """Makes the house of a fault, whose daemon is a service that was started by systemctl."""
    if reason := systemd.obstacle():
        pytest.skip(f"NO FAULT WAS TRIED ON A REAL systemd --user: {reason}")
    made: list[tuple[Service, House]] = []
    with systemd.user_manager() as manager:

        def make(number: str, name: str, *, drop_in: str) -> tuple[Service, House]:
            service = Service(manager)
            house = House(service.daemon, ledger.open(number, name))
            house.prepare()
            made.append((service, house))
            service.install()
            place = manager.home / ".config/systemd/user/synapsed.service.d/fault.conf"
            place.parent.mkdir(parents=True)
            place.write_text(f"[Service]\n{drop_in}\n")
            manager.systemctl("daemon-reload")
            manager.systemctl("start", "synapsed")
            return service, house

        yield make
        for service, house in made:
            shutil.rmtree(manager.home / ".config/systemd/user/synapsed.service.d")
            with contextlib.suppress(AssertionError):
                service.clear()
            house.audit_processes()
    assert all(house.row.clean for _, house in made), [house.row for _, house in made]


def test_5_a_daemon_that_stands_still_is_replaced(served: MakeServed) -> None:
    service, here = served("5b", "SIGSTOP of the service: the watchdog", drop_in="WatchdogSec=3\nTimeoutAbortSec=1")
    names = here.start_agents(3)
    pids = here.pids()
    for name in names:
        assert here.send(f"busy 1\nflood 512 {name}", name) is not None
        eventually(lambda: here.daemon.agent(name)["activity"] == "busy", "it works")  # noqa: B023
    before = service.pid
    os.kill(before, signal.SIGSTOP)
    here.fault()
    eventually(lambda: service.pid not in (0, before) and service.state() == "active", "the watchdog has it replaced")
    here.audit(pids)


IGNORES = """
trap '' TERM HUP INT
setsid sh -c 'trap "" TERM HUP; sleep 1000' &
( setsid sh -c 'trap "" TERM HUP; sleep 1001' & ) &
echo stubborn
while :; do sleep 1; done
"""


def stop_the_service(service: Service) -> None:
    service.manager.systemctl("stop", "synapsed")


def stop_the_target(service: Service) -> None:
    service.manager.systemctl("stop", "synapse-agents.target")


def stop_between_two_starts(service: Service) -> None:
    os.kill(service.pid, signal.SIGKILL)
    eventually(lambda: service.manager.show("synapsed.service", "SubState") == "auto-restart", "it waits")
    service.manager.systemctl("stop", "synapsed")


def test_9_stops_leave_nothing(served: MakeServed) -> None:
    service, here = served("9", "stops of service and target, and between two starts", drop_in="RestartSec=100")
    (name,) = here.start_agents(1)
    wanted = {"profile": "generic", "name": "stubborn", "cwd": "/", "args": ["sh", "-c", IGNORES]}
    assert here.daemon.post("/control/start", wanted).status == 200
    cut = set()
    for stop in (stop_the_service, stop_the_target, stop_between_two_starts):
        here.daemon.ready(name)
        eventually(lambda: "stubborn" in here.daemon.get("/agents/stubborn/screen").body.decode(), "it has begun")
        task = here.send(f"spawn\nbusy 300\necho {stop.__name__}", name)
        assert task is not None
        cut.add(task)
        eventually(lambda: "spawned" in here.daemon.agent(name)["screen"], "it has a descendant that would stay")
        stop(service)
        here.fault()
        eventually(service.gone, "no process is left", patience=PATIENT_S)
        here.row.left_over += len(here.left_over())
        service.manager.systemctl("reset-failed", check=False)
        service.manager.systemctl("start", "synapsed")
        failed = here.daemon.ended(task)
        assert (failed["status"], failed["error"]["code"]) == ("failed", "INTERRUPTED")
    here.daemon.ready(name)
    assert here.send("echo back again", name) is not None
    here.audit_tasks(may_fail=frozenset(cut))
