"""The broker as a unit of a real `systemd --user`, beside the daemon's and not its child."""

import json
import os
import signal

import pytest

from tests.parts.fleet.brokers import needs_broker
from tests.service.house import House
from tests.support.daemon import eventually
from tests.support.ports import free_port

pytestmark = [needs_broker, pytest.mark.night, pytest.mark.fleet, pytest.mark.timeout(400)]
UNIT = "synapsed-broker.service"


def pid_of(house: House) -> int:
    return int(house.manager.show(UNIT, "MainPID"))


def broker(house: House) -> dict:
    found: dict = json.loads(house.ctl("fleet", "status", "--json").out)["broker"]
    return found


def test_a_unit_of_its_own_that_outlives_the_daemon_and_is_started_again(house: House) -> None:
    made = house.ctl("fleet", "create", "--name", "box", "--listen", f"127.0.0.1:{free_port()}", "--json")
    assert made.code == 0, made
    assert json.loads(made.out)["service"] == "systemd"
    try:
        assert house.state(UNIT) == "active"
        first = pid_of(house)
        assert broker(house)["pid"] == first
        done = house.ctl("doctor", "--json")
        found = {one["check"]: one for one in json.loads(done.out)["checks"]}
        assert found["broker's unit"]["status"] == "ok", found["broker's unit"]
        assert found["broker"]["status"] == "ok", found["broker"]

        house.ctl("shutdown")
        assert pid_of(house) == first, "the daemon's end is not the broker's"
        assert broker(house)["healthy"]

        os.kill(first, signal.SIGKILL)
        eventually(lambda: pid_of(house) not in (0, first) and house.state(UNIT) == "active", "it is started again")
        assert broker(house)["healthy"], "active means healthy"
        assert len(servers(house)) == 1, "the server of the unit that was killed is gone"

        again = pid_of(house)
        server = broker(house)["server_pid"]
        assert house.ctl("fleet", "broker", "restart").code == 0
        assert pid_of(house) == again, "the unit stays, its server is another"
        assert broker(house)["server_pid"] != server

        assert house.ctl("fleet", "create", "--name", "box").code == 0, "done again it is as it was"
    finally:
        gone = house.ctl("fleet", "leave", "--force")
        assert gone.code == 0, gone
    assert house.manager.show(UNIT, "LoadState") == "not-found"
    assert not servers(house)
    house.ctl("shutdown")


def servers(house: House) -> list[str]:
    return [command for command in house.processes() if "nats-server" in command and "--config" in command]
